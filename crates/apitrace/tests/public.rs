//! The public surface: reader, parser and writer against each other and against the verbs.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod traces;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use anytrace_apitrace::{Apitrace, Container, EventKind, Layout, Need, Pairing, Reader, Record, Token, Writer, parse};
use anytrace_core::testing::public::{
    Sample, assert_cuts_keep_records, assert_for_each_is_a_loop, assert_windows_read_alike, in_memory, read,
};
use anytrace_core::testing::{mutations, rewrite};
use anytrace_core::{
    Collect, Diagnostic, Format, Input, Kind, Limits, OpenOptions, Passed, Place, Plan, Severity, Step, TargetOptions,
    surface,
};
use build::Build;

surface!(Public, anytrace_apitrace, Row, |event: &Record<'_>| Row::of(Place::default(), event));

/// An event as values that outlive it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    place: Place,
    bytes: Vec<u8>,
    kind: EventKind,
    /// Number, thread, frame.
    call: [Option<u64>; 3],
    pairing: Option<Pairing>,
    function: Option<Vec<u8>>,
    tokens: Vec<String>,
}

impl Row {
    fn of(place: Place, event: &Record<'_>) -> Self {
        Self {
            place,
            bytes: event.bytes().to_vec(),
            kind: event.kind(),
            call: [event.call(), event.thread(), event.frame()],
            pairing: event.pairing(),
            function: event.function().map(|row| row.name().to_vec()),
            tokens: meanings(event),
        }
    }
}

/// The tokens without call numbers and definitions: what an event says wherever it is written.
fn meanings(event: &Record<'_>) -> Vec<String> {
    let of = |token: Token<'_>| match (token, token.signature()) {
        (Token::Leave { .. }, _) => "leave".to_owned(),
        (_, Some((space, signature))) => {
            let row = event.signature(space, signature.id);
            // The definition of GLenum takes 100 kB.
            let definition = row.map(|row| {
                let mut hasher = DefaultHasher::new();
                row.definition.hash(&mut hasher);
                hasher.finish()
            });
            let value = match token {
                Token::Enum(_, value) => format!("{value:?}"),
                Token::Bitmask(_, value) | Token::Struct(_, value) => value.to_string(),
                _ => String::new(),
            };
            format!("{} {} {value} {definition:?}", space.name(), signature.id)
        }
        _ => format!("{token:?}"),
    };
    event.tokens().map(of).collect()
}

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &OpenOptions::default()).unwrap()
}

fn steps(mut reader: Reader) -> (Vec<Row>, Vec<Diagnostic>, Passed) {
    let (mut rows, mut damage) = (Vec::new(), Vec::new());
    while let Some(step) = reader.next().unwrap() {
        match step {
            Step::Record(place, event) => rows.push(Row::of(place, &event)),
            Step::Damage(diagnostic) => damage.push(diagnostic),
        }
    }
    assert!(reader.next().unwrap().is_none(), "the end is final");
    let passed = reader.for_each(|_| panic!("the end is final")).unwrap();
    (rows, damage, passed)
}

/// Copies every event for which the function returns true.
fn copy_if(bytes: &[u8], layout: &Layout, mut keep: impl FnMut(&Record<'_>) -> bool) -> Vec<u8> {
    let mut writer = Writer::with_layout(Vec::new(), layout);
    let mut reader = reader(bytes);
    while let Some(step) = reader.next().unwrap() {
        if let Step::Record(place, event) = step
            && keep(&event)
        {
            writer.write(&event).unwrap_or_else(|e| panic!("event {}: {e}", place.seq));
        }
    }
    writer.finish().unwrap()
}

/// The layout at the end.
fn layout(bytes: &[u8]) -> Layout {
    let mut reader = reader(bytes);
    reader.for_each(|_| Ok(())).unwrap();
    reader.layout().clone()
}

fn raw(bytes: &[u8]) -> Vec<u8> {
    let target =
        TargetOptions { own: anytrace_core::Settings::default().with("container", "raw"), ..TargetOptions::default() };
    rewrite(&Apitrace, bytes, &Plan::Convert(target)).unwrap().0
}

fn samples() -> Vec<(String, Vec<u8>)> {
    let read = traces::all().into_iter().map(|path| (path.display().to_string(), std::fs::read(path).unwrap()));
    let found: Vec<_> = read.filter(|(_, bytes)| bytes.len() < 400_000).collect();
    assert!(found.len() > 40);
    found
}

#[test]
fn next_hands_out_what_the_verbs_count_and_report() {
    for (name, bytes) in samples() {
        let (rows, damage, passed) = steps(reader(&bytes));
        let open = || Apitrace.open(Input::from_bytes("x.trace", bytes.clone()), &OpenOptions::default()).unwrap();
        let (mut of_info, mut of_check) = (Collect::default(), Collect::default());
        let info = open().info(&mut of_info).unwrap();
        assert_eq!(damage, of_info.0, "{name}");
        let summary = open().check(&mut of_check).unwrap();
        assert_eq!((passed.records, passed.bytes), (summary.records, summary.bytes), "{name}");
        assert_eq!((rows.len() as u64, rows.len() as u64), (info.records, passed.records), "{name}");
        assert!(damage.iter().all(|one| of_check.0.contains(one)), "{name}");
        assert!(rows.iter().zip(0..).all(|(row, seq)| row.place.seq == seq), "{name}");
    }
}

#[test]
fn an_undamaged_trace_is_copied_byte_for_byte() {
    for (name, bytes) in traces::undamaged() {
        let of_source = layout(&bytes);
        let copy = copy_if(&bytes, &of_source, |_| true);
        if bytes.len() > 2 {
            assert_eq!(raw(&copy), raw(&bytes), "{name}");
            assert_eq!(layout(&copy).container, of_source.container, "{name}");
        }
        let in_raw = of_source.with_container(Container::Raw);
        let copy = copy_if(&bytes, &in_raw, |_| true);
        assert_eq!(steps(reader(&copy)).0, steps(reader(&bytes)).0, "{name}");
        let first = steps(reader(&copy)).0.first().map_or(copy.len() as u64, |row| row.place.offset);
        assert_eq!(Layout::parse(&copy).unwrap().1 as u64, first, "{name}");
    }
}

#[test]
fn the_format_s_own_files_come_back_unchanged_with_their_container() {
    for name in ["interleave", "threads", "uncompressed", "allvals_v6", "allvals_v1", "nested", "peer/vbo"] {
        let bytes = std::fs::read(traces::own(name)).unwrap();
        // Known before anything is read.
        let early = reader(&bytes).layout().clone();
        assert!(copy_if(&bytes, &early, |_| true) == bytes, "{name}");
    }
}

#[test]
fn a_copy_of_a_damaged_trace_has_the_same_events() {
    for (name, bytes) in samples() {
        let of_source = layout(&bytes);
        if of_source.header.version > 6 {
            continue;
        }
        let (before, ..) = steps(reader(&bytes));
        let mut writer = Writer::with_layout(Vec::new(), &of_source);
        let (mut source, mut kept, mut refused) = (reader(&bytes), Vec::new(), Vec::new());
        while let Some(step) = source.next().unwrap() {
            let Step::Record(place, event) = step else { continue };
            match writer.write(&event) {
                Ok(()) => kept.push(place.seq),
                Err(error) if error.to_string().contains("definition is lost") => refused.push(event.call()),
                Err(error) => {
                    assert!(error.to_string().contains("its enter was not written"), "{name}: {error}");
                    assert!(refused.contains(&event.call()), "{name}: {error}");
                }
            }
        }
        let (after, ..) = steps(reader(&writer.finish().unwrap()));
        let written: Vec<_> = before.iter().filter(|row| kept.contains(&row.place.seq)).collect();
        assert_eq!(after.len(), written.len(), "{name}");
        for (found, wanted) in after.iter().zip(written) {
            assert_eq!((&found.tokens, found.kind), (&wanted.tokens, wanted.kind), "{name}: {wanted:?}");
            let is_paired = |row: &Row| row.pairing == Some(Pairing::Paired);
            assert!(is_paired(found) || !is_paired(wanted), "{name}: {found:?}");
        }
    }
}

#[test]
fn what_is_read_depends_neither_on_windows_nor_on_how_it_is_asked_for() {
    for (name, bytes) in samples().into_iter().filter(|(_, bytes)| bytes.len() < 60_000) {
        let sample = Sample { path: PathBuf::from(&name), name, bytes };
        assert_windows_read_alike::<Public>(&sample, &OpenOptions::default(), &[1, 7, 4096]);
        assert_for_each_is_a_loop::<Public>(&sample, &OpenOptions::default());
    }
}

#[test]
fn a_cut_loses_no_event_before_it() {
    for name in ["allvals_v6", "allvals_v2", "interleave", "nested"] {
        let bytes = raw(&std::fs::read(traces::own(name)).unwrap());
        let options = OpenOptions::default();
        let all = read::<Public>(in_memory(&bytes), &options).records();
        let ends: Vec<u64> = all.iter().map(|(place, row)| place.offset + row.bytes.len() as u64).collect();
        assert_cuts_keep_records::<Public>(name, &bytes, &options, (&all, &ends), 4096, |cut, kept, part| {
            assert_eq!(part.records().len(), kept, "{name} cut at {cut}");
            let is_between = kept == 0 || ends[kept - 1] == cut as u64;
            assert!(!part.damage().is_empty() || is_between, "{name} cut at {cut}");
        });
    }
}

#[test]
fn hostile_bytes_are_read_to_the_end_and_what_was_read_can_be_written() {
    for name in ["allvals_v6", "allvals_v0", "threads"] {
        let bytes = raw(&std::fs::read(traces::own(name)).unwrap());
        mutations(&bytes, 11, 300, |bytes| {
            let mut reader = reader(bytes);
            let mut writer = Writer::with_layout(Vec::new(), &Layout::default().with_container(Container::Raw));
            let mut written = 0;
            while let Some(step) = reader.next().unwrap() {
                if let Step::Record(_, event) = step {
                    written += usize::from(writer.write(&event).is_ok());
                }
            }
            let copy = writer.finish().unwrap();
            assert_eq!(steps(self::reader(&copy)).0.len(), written, "{bytes:02x?} became {copy:02x?}");
        });
    }
}

#[test]
fn parsing_event_by_event_equals_reading() {
    for (name, bytes) in traces::undamaged().into_iter().filter(|(_, bytes)| bytes.len() > 2) {
        let bytes = raw(&bytes);
        let (mut layout, mut at) = Layout::parse(&bytes).unwrap();
        for row in steps(reader(&bytes)).0 {
            let (event, length) = parse(&bytes[at..], &layout).unwrap();
            assert_eq!((at as u64, event.bytes()), (row.place.offset, row.bytes.as_slice()), "{name}");
            assert_eq!((event.kind(), meanings(&event)), (row.kind, row.tokens), "{name}");
            if event.kind() == EventKind::Enter {
                assert_eq!(event.function().map(|row| row.name().to_vec()), row.function, "{name}");
            }
            assert_eq!(layout.learn(&bytes[at..]).unwrap(), length, "{name}");
            at += length;
        }
        assert_eq!(at, bytes.len(), "{name}");
    }
}

#[test]
fn a_cut_event_needs_more_bytes_but_never_more_than_it_has() {
    let bytes = raw(&std::fs::read(traces::own("allvals_v6")).unwrap());
    let (mut layout, mut at) = Layout::parse(&bytes).unwrap();
    while at < bytes.len() {
        let length = parse(&bytes[at..], &layout).unwrap().1;
        for cut in 0..length {
            let Err(Need::More(more)) = parse(&bytes[at..at + cut], &layout) else {
                panic!("cut at {cut} of {length}")
            };
            assert!(more > cut as u64 && more <= length as u64, "{more} of {length}, cut at {cut}");
        }
        layout.learn(&bytes[at..at + length]).unwrap();
        at += length;
    }
    // A failed attempt teaches nothing.
    let mut empty = Layout::default();
    assert!(empty.learn(b"\x00\x00\x00\x01f\x00\x09").is_err());
    assert!(empty.signature(anytrace_apitrace::Space::Function, 0).is_none());
    let Err(Need::Bad(fault)) = parse(b"\x00\x00\x00\x01f\x00\x09", &empty) else { panic!("no fault") };
    assert_eq!((fault.at, fault.to_string().contains("found 9")), (6, true));
}

#[test]
fn a_long_blob_comes_in_one_piece_and_beyond_the_limit_is_refused() {
    let blob = vec![7; 3 << 20];
    let mut build = Build::version(6);
    build.add(b"\x00\x00\x00\x01f\x01\x01x\x01\x00\x08").add(&build::leb(blob.len() as u64)).add(&blob).add(&[0]);
    let (rows, ..) = steps(reader(&build.bytes));
    assert_eq!(rows.len(), 1);
    let mut source = reader(&build.bytes);
    let Some(Step::Record(_, event)) = source.next().unwrap() else { panic!("no event") };
    let found = event.tokens().find_map(|token| match token {
        Token::Bytes(_, bytes) => Some(bytes.to_vec()),
        _ => None,
    });
    assert!(found.unwrap() == blob);
    let from = rows[0].place.offset as usize;
    let layout = Layout::default();
    let Err(Need::More(more)) = parse(&build.bytes[from..from + 100], &layout) else { panic!("complete") };
    assert_eq!(more, rows[0].bytes.len() as u64);
    // The default limits bound other tokens, not blobs.
    let small = OpenOptions { limits: Limits::default().with_record_bytes_max(1 << 10), ..OpenOptions::default() };
    let mut bounded = Reader::new(Input::from_bytes("x", build.bytes.clone()), &small).unwrap();
    assert!(matches!(bounded.next().unwrap(), Some(Step::Record(..))));
}

#[test]
fn calls_left_out_renumber_the_rest_and_definitions_move() {
    for (name, bytes) in traces::undamaged() {
        let (all, ..) = steps(reader(&bytes));
        let names: std::collections::BTreeSet<_> = all.iter().filter_map(|row| row.function.clone()).collect();
        for left_out in names.iter().take(6) {
            let copy = copy_if(&bytes, &layout(&bytes), |event| {
                event.function().is_none_or(|row| row.name() != left_out.as_slice())
            });
            let (found, damage, _) = steps(reader(&copy));
            let wanted: Vec<_> = all.iter().filter(|row| row.function.as_ref() != Some(left_out)).collect();
            let pairs = |row: &Row| (row.tokens.clone(), row.function.clone(), row.pairing, row.call[1]);
            let is_paired = wanted.iter().all(|row| row.pairing == Some(Pairing::Paired));
            assert_eq!(found.len(), wanted.len(), "{name}");
            for (found, wanted) in found.iter().zip(wanted).filter(|_| is_paired) {
                assert_eq!(pairs(found), pairs(wanted), "{name} without {}", String::from_utf8_lossy(left_out));
            }
            let errors = damage.iter().filter(|one| one.severity == Severity::Error).count();
            assert_eq!(
                errors,
                steps(reader(&bytes)).1.iter().filter(|one| one.severity == Severity::Error).count(),
                "{name}"
            );
        }
    }
}

#[test]
fn a_leave_without_its_enter_is_refused_and_nothing_of_it_is_written() {
    let bytes = std::fs::read(traces::own("interleave")).unwrap();
    let mut writer = Writer::new(Vec::new());
    let mut source = reader(&bytes);
    let mut refused = 0;
    while let Some(step) = source.next().unwrap() {
        let Step::Record(_, event) = step else { panic!("{step:?}") };
        if event.kind() == EventKind::Enter && event.call() == Some(1) {
            continue;
        }
        match writer.write(&event) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!((error.kind(), event.call()), (Kind::Unsupported, Some(1)));
                assert!(error.to_string().contains("call number 1"), "{error}");
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 1);
    let (rows, damage, _) = steps(reader(&writer.finish().unwrap()));
    assert_eq!((rows.len(), damage.len()), (steps(reader(&bytes)).0.len() - 2, 0));
}

#[test]
fn other_versions_are_written_as_convert_writes_them() {
    let mut converted = 0;
    for (name, bytes) in traces::undamaged().into_iter().filter(|(_, bytes)| bytes.len() > 2) {
        let of_source = layout(&bytes);
        for version in 0..=6 {
            let target = TargetOptions {
                version: Some(version),
                own: anytrace_core::Settings::default().with("container", "raw"),
                ..TargetOptions::default()
            };
            let expected = rewrite(&Apitrace, &bytes, &Plan::Convert(target));
            let mut written = Layout::default().with_container(Container::Raw);
            written.header = of_source.header.clone();
            written.header.version = u64::from(version);
            if version < 6 {
                written.header.semantic_version = u64::from(version);
            }
            let mut writer = Writer::with_layout(Vec::new(), &written);
            let done = reader(&bytes).for_each(|step| match step {
                Step::Record(_, event) => writer.write(&event),
                Step::Damage(_) => Ok(()),
            });
            let found = done.and_then(|_| writer.finish());
            match (found, expected) {
                (Ok(found), Ok((expected, ..))) => {
                    assert!(found == expected, "{name} as version {version}");
                    converted += usize::from(u64::from(version) != of_source.header.version);
                }
                (Err(found), Err(expected)) => assert_eq!(found.kind(), expected.kind(), "{name} as {version}"),
                (found, expected) => panic!("{name} as version {version}: {found:?}, convert: {:?}", expected.err()),
            }
        }
    }
    assert!(converted > 30, "{converted}");
}

#[test]
fn two_traces_in_one_define_each_signature_once() {
    let bytes = std::fs::read(traces::own("interleave")).unwrap();
    let mut writer = Writer::new(Vec::new());
    for _ in 0..2 {
        let mut source = reader(&bytes);
        source
            .for_each(|step| match step {
                Step::Record(_, event) => writer.write(&event),
                Step::Damage(diagnostic) => panic!("{diagnostic}"),
            })
            .unwrap();
    }
    let (once, ..) = steps(reader(&bytes));
    let (twice, damage, _) = steps(reader(&writer.finish().unwrap()));
    assert_eq!((twice.len(), damage), (2 * once.len(), Vec::new()));
    let meanings = |rows: &[Row]| {
        let is_paired = |row: &Row| row.pairing == Some(Pairing::Paired);
        rows.iter().map(|row| (row.tokens.clone(), is_paired(row))).collect::<Vec<_>>()
    };
    assert_eq!(meanings(&twice[once.len()..]), meanings(&once));
}

#[test]
fn an_id_with_two_meanings_is_refused() {
    let enumeration = |name: &[u8]| {
        let mut build = Build::version(6);
        build.add(b"\x00\x00\x00\x01f\x01\x01x\x01\x00\x09\x05\x01\x01").add(name).add(b"\x04\x01\x04\x01\x00");
        build.bytes
    };
    let mut writer = Writer::new(Vec::new());
    let (one, other) = (enumeration(b"A"), enumeration(b"B"));
    let (mut one, mut other) = (reader(&one), reader(&other));
    let Some(Step::Record(_, event)) = one.next().unwrap() else { panic!("no event") };
    writer.write(&event).unwrap();
    let Some(Step::Record(_, event)) = other.next().unwrap() else { panic!("no event") };
    let error = writer.write(&event).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    assert!(error.to_string().contains("enum id 5"), "{error}");
    assert_eq!(steps(reader(&writer.finish().unwrap())).0.len(), 1);
}

#[test]
fn a_header_that_cannot_be_written_is_refused() {
    for (version, properties, word) in
        [(7, vec![], "version 7"), (5, vec![(b"a".to_vec(), b"b".to_vec())], "properties")]
    {
        let mut layout = Layout::default();
        (layout.header.version, layout.header.properties) = (version, properties);
        let error = Writer::with_layout(Vec::new(), &layout).finish().unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(error.to_string().contains(word), "{error}");
    }
    let mut layout = Layout::default().with_container(Container::Raw);
    layout.header.properties.push((b"process".to_vec(), b"game".to_vec()));
    let bytes = Writer::with_layout(Vec::new(), &layout).finish().unwrap();
    assert_eq!(reader(&bytes).layout().header.properties, layout.header.properties);
}
