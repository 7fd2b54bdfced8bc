//! The public surface: what a program sees that uses `parse`, `Reader` and `Writer`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::path::PathBuf;

use anytrace_casemate::{
    Casemate, Layout, Operand, Radix, Reader, Record, Source, Style, TlbiOp, Transition, Writer, parse,
};
use anytrace_core::testing::dripping;
use anytrace_core::testing::public::{
    Read, Sample, assert_cuts_keep_records, assert_for_each_is_a_loop, assert_refuses_other_options,
    assert_verbs_agree, ends_by_next, in_memory, read,
};
use anytrace_core::{Kind, OpenOptions, Passed, surface};

surface!(Public, anytrace_casemate, Fields, fields_of);

type Fields = (u64, u32, Transition, String);

fn fields_of(record: &Record<'_>) -> Fields {
    (record.id, record.thread, record.transition, format!("{:?}", record.source))
}

fn reader_of(bytes: &[u8]) -> Reader {
    Reader::new(in_memory(bytes), &OpenOptions::default()).unwrap()
}

fn read_all(bytes: &[u8]) -> Read<Fields> {
    read::<Public>(in_memory(bytes), &OpenOptions::default())
}

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn samples() -> Vec<Sample> {
    let found = Sample::all(&corpus(), &["", "odd", "bad", "relax", "breaches"], &["log"]);
    assert!(found.len() > 40);
    found
}

#[test]
fn every_sample_that_is_copied_reads_back_as_the_same_records() {
    for Sample { name, bytes, .. } in samples() {
        let all = read_all(&bytes);
        let again = read_all(all.copy());
        assert_eq!(again.rows(), all.rows(), "{name}");
        assert!(again.damage().is_empty(), "{name}");
    }
}

#[test]
fn a_copy_of_a_log_with_a_record_a_line_has_the_same_bytes() {
    for name in ["head_good_bbm", "head_good_trylock", "positional_h_t0sz25_ok", "std_h_nosys_unset"] {
        let sample = Sample::read(&corpus(), &format!("{name}.log"));
        assert!(read_all(&sample.bytes).copy() == sample.bytes, "{name}");
    }
}

#[test]
fn the_steps_are_what_the_verbs_report() {
    for sample in samples() {
        let (read, exam) =
            assert_verbs_agree::<Public>(&Casemate, &sample.name, &|| sample.input(), &OpenOptions::default());
        let jsonl = String::from_utf8(exam.jsonl).unwrap();
        let offsets: Vec<u64> = jsonl
            .lines()
            .skip(1)
            .filter(|line| !line.contains("\"kind\":\"claim\"") && !line.contains("\"kind\":\"output\""))
            .filter_map(|line| Some(line.split_once("\"offset\":")?.1.split([',', '}']).next()?.parse().unwrap()))
            .collect();
        let places: Vec<u64> = read.records().iter().map(|(place, _)| place.offset).collect();
        assert_eq!(places, offsets, "{}", sample.name);
    }
}

#[test]
fn damage_comes_before_the_record_at_which_reading_resumes() {
    let read = read_all(b"(lock 0 0 8)(lock 1 0)(unlock 2 0 8)");
    assert_eq!(read.steps.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(read.damage()[0].resumed_at, Some(1));
}

#[test]
fn a_pipe_that_gives_a_byte_at_a_time_reads_as_a_file() {
    for Sample { name, bytes, .. } in samples() {
        let all = read_all(&bytes);
        for at_once in [1, 7, 4096] {
            // The copy may differ: its layout is what is known of the reader's before the first record.
            let piped = read::<Public>(dripping("bytes", &bytes, at_once), &OpenOptions::default());
            assert_eq!((&piped.steps, &piped.layout), (&all.steps, &all.layout), "{name} at {at_once}");
            assert_eq!(piped.passed, all.passed, "{name} at {at_once}");
        }
    }
}

#[test]
fn a_record_longer_than_a_step_and_a_log_longer_than_a_step_read_alike() {
    let long = format!("(lock 1 0 8 \"{}\")", "x".repeat(200_000));
    let log = format!("{}\n{long}\n{}", "(lock 0 0 8)\n".repeat(9_000), "(unlock 2 0 8)\n".repeat(9_000));
    let all = read_all(log.as_bytes());
    assert_eq!((all.records().len(), all.damage().len()), (18_001, 0));
    let piped = read::<Public>(dripping("bytes", log.as_bytes(), 50_000), &OpenOptions::default());
    assert_eq!(piped, all);
}

#[test]
fn a_log_cut_anywhere_keeps_the_records_before_the_cut() {
    for Sample { name, bytes, .. } in samples() {
        let records = read_all(&bytes).records();
        let (part, ends, options) = (&bytes[..bytes.len().min(3000)], ends_by_next(&records), OpenOptions::default());
        assert_cuts_keep_records::<Public>(&name, part, &options, (&records, &ends), 3000, |_, _, _| {});
    }
}

#[test]
fn for_each_is_a_loop_over_next() {
    for sample in samples() {
        let all = assert_for_each_is_a_loop::<Public>(&sample, &OpenOptions::default());
        assert_eq!(all.passed.bytes, sample.bytes.len() as u64, "{}", sample.name);
    }
}

#[test]
fn lost_bytes_are_those_of_no_record_and_no_comment() {
    let log = b"; a comment\n(lock 0 0 8)\nstray\n(unlock 1 0 8)\n";
    let passed = reader_of(log).for_each(|_| Ok(())).unwrap();
    assert_eq!(passed, Passed { records: 2, bytes: log.len() as u64, bytes_lost: 5 });
}

#[test]
fn an_error_of_the_visitor_ends_the_loop() {
    let mut count = 0;
    let ended = reader_of(b"(lock 0 0 8)(lock 1 0 8)").for_each(|_| {
        count += 1;
        Err(anytrace_core::Error::usage("enough"))
    });
    assert_eq!((ended.unwrap_err().kind(), count), (Kind::Usage, 1));
}

#[test]
fn the_layout_is_that_of_the_first_record() {
    let layout_of = |log: &[u8]| *reader_of(log).layout();
    assert_eq!(layout_of(b"; none"), Layout::default());
    let positional = layout_of(b"(lock 0 0 2a)");
    assert_eq!((positional.style, positional.is_bare), (Style::Positional, true));
    assert!(layout_of(b"(MSR (id 3) (tid 1) (sysreg TTBR_EL2) (value 0x31))").is_upper);
    let options =
        OpenOptions { own: anytrace_core::Settings::default().with("radix", "dec"), ..OpenOptions::default() };
    let reader = Reader::new(in_memory(b"(lock 0 0 42)"), &options).unwrap();
    assert_eq!(reader.layout().radix, Radix::Decimal);
}

#[test]
fn options_of_other_formats_are_refused() {
    assert_refuses_other_options::<Public>("pointer-width", "8");
}

#[test]
fn a_record_that_would_not_read_back_is_refused_by_field() {
    let layout = Layout::default();
    let (lock, _) = parse(b"(lock 0 0 8)", &layout).unwrap();
    let mut writer = Writer::new(Vec::new());
    let tlbi = |op, operand| Transition::Tlbi { op, operand };
    for (record, field) in [
        (anytrace_casemate::Record { source: Source::Text(b"a\"b"), ..lock }, "src"),
        (anytrace_casemate::Record { source: Source::Text(b"a\nb"), ..lock }, "src"),
        (anytrace_casemate::Record { transition: tlbi(TlbiOp::Vae2is, Operand::None), ..lock }, "value"),
        (anytrace_casemate::Record { transition: tlbi(TlbiOp::Alle1is, Operand::Value(1)), ..lock }, "value"),
    ] {
        let error = writer.write(&record).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(error.to_string().contains(&format!("transition 0: {field}")), "{error}");
    }
    let long = vec![b'x'; 1 << 20];
    assert!(writer.write(&anytrace_casemate::Record { source: Source::Text(&long), ..lock }).is_err());
    let wide = tlbi(TlbiOp::Vae2is, Operand::AddressLevel { address: 1, level: 16 });
    assert!(writer.write(&anytrace_casemate::Record { transition: wide, ..lock }).is_err());
    writer.write(&lock).unwrap();
    assert_eq!(writer.finish().unwrap(), b"(lock (id 0) (tid 0) (address 0x8))\n");
}

#[test]
fn parse_requests_more_for_every_prefix_of_a_record() {
    let record = b"(tlbi (id 4) (tid 1) vae2is (value 0x10) (src \"a.c:1\"))";
    for length in 0..record.len() {
        let need = parse(&record[..length], &Layout::default()).unwrap_err();
        assert!(matches!(need, anytrace_core::Need::More(n) if n == length as u64 + 1), "{length}: {need:?}");
    }
    assert!(matches!(parse(b"x(lock 0 0 8)", &Layout::default()), Err(anytrace_core::Need::Bad(_))));
}
