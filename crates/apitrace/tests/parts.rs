//! Reading in parts gives the rows and the diagnostics of reading at once, and no index can do harm.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod random;
mod traces;

use std::path::Path;
use std::sync::Arc;

use anytrace_apitrace::{Apitrace, Reader};
use anytrace_core::index::{Mark, MarkSink, Part};
use anytrace_core::table::{Batch, Scan};
use anytrace_core::testing::parts::examine_parts;
use anytrace_core::testing::{mutations, rewrite, truncations};
use anytrace_core::{
    Collect, Error, Format, Input, Kind, Limits, OpenOptions, Plan, Settings, SpanOptions, Step, TargetOptions, tables,
};
use random::{Random, random_stream};

/// Longest sample that is read: each is read more than a thousand times.
const SAMPLE_BYTES_MAX: usize = 6000;

/// The marks of a trace, and what all parts share.
#[derive(Default)]
struct Found {
    marks: Vec<Mark>,
    shared: Option<Arc<[u8]>>,
}

impl MarkSink for Found {
    fn mark(&mut self, mark: Mark) -> Result<(), Error> {
        self.marks.push(mark);
        Ok(())
    }

    fn share(&mut self, bytes: Vec<u8>) {
        self.shared = Some(bytes.into());
    }
}

fn input(bytes: &[u8]) -> Input {
    Input::from_bytes("x.trace", bytes.to_vec())
}

fn find(bytes: &[u8], every_bytes: u64) -> (Found, Collect) {
    let (mut found, mut damage) = (Found::default(), Collect::default());
    let trace = Apitrace.open(input(bytes), &OpenOptions::default()).unwrap();
    trace.marks(every_bytes, &mut found, &mut damage).unwrap();
    (found, damage)
}

fn options(part: Part) -> OpenOptions {
    OpenOptions { part: Some(part), ..OpenOptions::default() }
}

/// What happens when a table is read from a part.
fn outcome(bytes: &[u8], part: Part, table: &str) -> Result<(), Error> {
    let trace = Apitrace.open(input(bytes), &options(part))?;
    let mut take = |_: Batch| -> Result<(), Error> { Ok(()) };
    let (scan, how) = (Scan::default(), SpanOptions::default());
    tables::read(&Apitrace, trace, table, &scan, &how, &mut take, &mut Collect::default()).map(|_| ())
}

#[test]
fn every_sample_is_the_same_in_parts() {
    let (mut most, mut most_damaged) = (0, 0);
    for path in traces::below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")) {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() > SAMPLE_BYTES_MAX {
            continue;
        }
        let parts = examine_parts(&Apitrace, &bytes);
        most = most.max(parts);
        if path.parent().unwrap().ends_with("bad") {
            most_damaged = most_damaged.max(parts);
        }
    }
    assert!(most >= 64 && most_damaged >= 7, "{most} {most_damaged}");
}

#[test]
fn random_traces_of_every_version_are_the_same_in_parts() {
    for version in 0..=6 {
        let mut random = Random(7919 * (version + 1));
        let raw = random_stream(&mut random, version, 120);
        let raw_parts = examine_parts(&Apitrace, &raw);
        let snappy_parts = examine_parts(&Apitrace, &build::snappy(&raw, 20 + random.below(3000) as usize));
        let zstd_parts = examine_parts(&Apitrace, &build::zstd_frames(&raw, 20 + random.below(3000) as usize));
        // Before version 3, reading begins only where no call is open: some of these never return. A long blob is one part.
        let fewest = if version < 3 { 2 } else { 7 };
        let all = [raw_parts, snappy_parts, zstd_parts];
        assert!(all.iter().all(|parts| *parts >= fewest) && raw_parts == snappy_parts, "v{version}: {all:?}");
    }
}

#[test]
fn cut_and_changed_traces_are_the_same_in_parts() {
    let bytes = std::fs::read(traces::own("threads")).unwrap();
    truncations(&bytes, 12, |_, cut| {
        examine_parts(&Apitrace, cut);
    });
    mutations(&bytes, 5, 15, |bytes| {
        examine_parts(&Apitrace, bytes);
    });
}

#[test]
fn damage_beside_marks_is_the_same_in_parts() {
    let mut most = 0;
    for seed in 1..25 {
        let mut random = Random(seed * 104_729);
        let raw = random_stream(&mut random, 6, 60);
        let chunk = 20 + random.below(900) as usize;
        let mut bytes = match seed % 5 {
            0 | 2 => build::snappy(&raw, chunk),
            4 => build::zstd_frames(&raw, chunk),
            _ => raw,
        };
        let at = bytes.len() / 2 + random.below(bytes.len() as u64 / 2) as usize;
        match seed % 3 {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << random.below(8),
            _ => drop(bytes.drain(at..(at + 9).min(at + at / 2))),
        }
        most = most.max(examine_parts(&Apitrace, &bytes));
    }
    assert!(most >= 7, "{most}");
}

#[test]
fn events_of_parts_are_the_events_of_the_trace() {
    let mut bytes = random_stream(&mut Random(31), 6, 300);
    bytes.truncate(bytes.len() - 2);
    let (Found { marks, shared }, damage) = find(&bytes, 700);
    let steps = |part: Option<Part>| {
        let mut reader = Reader::new(input(&bytes), &OpenOptions { part, ..OpenOptions::default() }).unwrap();
        let mut seen = Vec::new();
        while let Some(step) = reader.next().unwrap() {
            seen.push(match step {
                Step::Record(place, event) => {
                    format!("{place:?} {:?} {:?}", event.function().map(|one| one.name().to_vec()), event.bytes())
                }
                Step::Damage(diagnostic) => diagnostic.to_string(),
            });
        }
        seen
    };
    let froms = std::iter::once(None).chain(marks.iter().cloned().map(Some));
    let untils = marks.iter().map(|mark| Some(mark.offset)).chain([None]);
    let parts = froms.zip(untils).map(|(from, until)| Part { from, until, shared: shared.clone(), ..Part::default() });
    let joined: Vec<_> = parts.flat_map(|part| steps(Some(part))).collect();
    assert!(marks.len() > 10 && !damage.0.is_empty());
    assert!(joined == steps(None));
}

#[test]
fn containers_that_are_decoded_from_their_start_have_no_marks() {
    let raw = random_stream(&mut Random(11), 6, 200);
    let to = |container: &str| {
        let own = Settings::default().with("container", container);
        let target = TargetOptions { own, ..TargetOptions::default() };
        rewrite(&Apitrace, &raw, &Plan::Convert(target)).unwrap().0
    };
    for container in ["gzip", "brotli", "zstd", "zstd-seekable"] {
        let (found, damage) = find(&to(container), 1);
        assert!(found.marks.is_empty() && found.shared.is_none() && damage.0.is_empty(), "{container}");
    }
    assert!(find(&to("snappy"), 1).0.marks.len() > 64 && find(&raw, 1).0.marks.len() > 64);
}

#[test]
fn marks_are_between_events_and_none_follow_damage() {
    let b = || build::Build::version(6);
    let mut call = b();
    call.enter_new(0, 0, "f", &[]).end();
    let head = b().bytes.len();
    let first = call.bytes.len();
    call.leave(0).end();
    let mut bytes = call.bytes.clone();
    for number in 1..5 {
        call = b();
        call.enter(0, 0).end().leave(number).end();
        bytes.extend(&call.bytes[head..]);
    }
    // An enter without a definition is four bytes: kind, thread, function, end. So is a leave without a result, but for
    // the thread.
    let expected: Vec<u64> = [first, first + 3]
        .into_iter()
        .chain((1..5).flat_map(|n| {
            let start = first + 3 + (n - 1) * 7;
            [start + 4, start + 7]
        }))
        .map(|offset| offset as u64)
        .collect();
    let offsets = |bytes: &[u8]| find(bytes, 1).0.marks.iter().map(|mark| (mark.offset, mark.seq)).collect::<Vec<_>>();
    assert_eq!(offsets(&bytes), expected.iter().copied().zip(1..).collect::<Vec<_>>());
    bytes.splice(first + 3 + 14..first + 3 + 14, [0xff; 3]);
    let left = offsets(&bytes);
    assert!(left.len() <= 6 && left.iter().all(|(offset, _)| *offset <= (first + 3 + 14) as u64), "{left:?}");
}

#[test]
fn definitions_are_weighed_against_the_file_not_against_what_it_contains() {
    let zstd = |filling: &mut dyn FnMut() -> Vec<u8>| {
        let (mut trace, mut names) = (build::Build::version(6), Random(7));
        for id in 0..1000 {
            // Which the index repeats.
            let name = format!("f{:016x}{:016x}", names.next(), names.next());
            trace.enter_new(0, id, &name, &["data"]).end().leave(id).end();
        }
        for id in 0..4000 {
            trace.enter(0, id % 1000).argument(0, &build::blob(&filling())).end().leave(1000 + id).end();
        }
        build::zstd_frames(&trace.bytes, 64 << 10)
    };
    let mut random = Random(31);
    let dense = zstd(&mut || (0..150).flat_map(|_| random.next().to_le_bytes()).collect());
    let sparse = zstd(&mut || vec![0; 1200]);
    assert!(dense.len() > 3 << 20 && sparse.len() < 1 << 20, "{} {}", dense.len(), sparse.len());
    let length = |bytes: &[u8]| find(bytes, 1 << 20).0.shared.map_or(0, |shared| shared.len());
    assert!((12 << 10..=dense.len() / 100).contains(&length(&dense)), "{}", length(&dense));
    assert_eq!(length(&sparse), 0);
    assert!(!find(&sparse, 64 << 10).0.marks.is_empty(), "a shorter distance is a wish");
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let bytes = random_stream(&mut Random(17), 6, 60);
    let (Found { marks, shared }, _) = find(&bytes, 500);
    let mark = marks[1].clone();
    let refusal = |part: Part| outcome(&bytes, part, "events").map_err(|error| (error.kind(), error.to_string())).err();
    let part = |mark: &Mark, shared: &Option<Arc<[u8]>>| Part {
        from: Some(mark.clone()),
        shared: shared.clone(),
        ..Part::default()
    };
    assert_eq!(refusal(part(&mark, &shared)), None);
    let text = format!("reading cannot begin at byte {:#x} of the raw stream", mark.offset);
    assert_eq!(refusal(part(&mark, &None)), Some((Kind::Usage, text.clone())));
    assert_eq!(refusal(part(&Mark { seq: mark.seq + 1, ..mark.clone() }, &shared)), Some((Kind::Usage, text)));
    let limits = Limits::default().with_record_bytes_max(1 << 16);
    let error = Reader::new(input(&bytes), &OpenOptions { limits, ..options(part(&mark, &shared)) }).err().unwrap();
    assert!(error.kind() == Kind::Usage && error.to_string().contains("16777216 record bytes, not 65536"), "{error}");
}

#[test]
fn changed_states_do_no_harm() {
    let raw = random_stream(&mut Random(19), 6, 60);
    let bytes = build::snappy(&raw, 400);
    let (Found { marks, shared }, _) = find(&bytes, 300);
    let (shared, mut opened) = (shared.unwrap(), 0);
    for (number, mark) in marks.iter().enumerate() {
        let seed = number as u64 + 3;
        let mut attempt = |part: Part| match outcome(&bytes, part, "calls") {
            Ok(()) => opened += 1,
            Err(error) => assert!(matches!(error.kind(), Kind::Usage | Kind::Malformed | Kind::Limit), "{error}"),
        };
        mutations(&mark.state, seed, 60, |state| {
            let from = Some(Mark { state: state.into(), ..mark.clone() });
            attempt(Part { from, until: None, shared: Some(Arc::clone(&shared)), ..Part::default() });
        });
        mutations(&shared, seed, 40, |shared| {
            attempt(Part { from: Some(mark.clone()), until: None, shared: Some(shared.into()), ..Part::default() });
        });
    }
    assert!(opened > 10, "{opened}");
}
