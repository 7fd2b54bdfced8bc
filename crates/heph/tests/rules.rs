//! Every rule is triggered, with its code at its place; `bad/` contains the same cases as files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use anytrace_core::testing::{assert_repairs, examine, examine_with, through_jsonl};
use anytrace_core::{
    Collect, Format, ImportOptions, Input, Limits, MemoryTarget, OpenOptions, Severity, TargetOptions,
};
use anytrace_heph::Heph;
use common::{Bytes, diagnostics};

/// A trace that breaks one rule: code, what, offset of the diagnostic, bytes.
fn cases() -> Vec<(&'static str, &'static str, u64, Vec<u8>)> {
    let good = || Bytes::new().epoch().poll(1, 0);
    let after = |bytes: Bytes| bytes.poll(1, 2).bytes;
    let event = || good().event(1, 1, 0, 5, 6, "e");
    vec![
        ("bad-magic", "one bit", 81, after(good().raw(&[0xC1, 0xFC, 0x1F, 0xB6]).u32(42).raw(&[0; 34]))),
        ("bad-magic", "little endian", 81, good().raw(&[0xB7, 0x1F, 0xFC, 0xC1]).raw(&[0; 38]).bytes),
        ("size-too-small", "event of 41", 81, after(event().sized(41))),
        ("size-too-small", "metadata of 9", 81, after(good().metadata("", b"x").sized(9))),
        ("size-too-big", "4 GiB less 1", 81, after(event().sized(u32::MAX))),
        ("truncated", "in the frame", 81, good().raw(&[0xC1, 0xFC, 0x1F]).bytes),
        ("truncated", "in the body", 81, event().sized(50).bytes),
        (
            "string-overrun",
            "description",
            81,
            after(good().event(1, 1, 0, 5, 6, "").u8(0).end().patched(81 + 40, &[0xff])),
        ),
        ("string-overrun", "attribute name", 81, after(event().u16(9).raw(b"ab").end())),
        ("string-overrun", "string value", 81, after(event().attribute("a", 4).u16(3).raw(b"ab").end())),
        ("string-overrun", "half a length", 81, after(event().u8(0).end())),
        ("string-overrun", "array element", 81, after(event().attribute("a", 0x84).u16(2).text("x").u16(7).end())),
        ("string-overrun", "option name", 81, after(good().metadata("abc", b"").patched(89, &[0xff]))),
        ("missing-value", "name alone", 81, after(event().text("n").end())),
        ("bad-type", "0", 81, after(event().attribute("n", 0).end())),
        ("bad-type", "5", 81, after(event().attribute("n", 5).u64(1).end())),
        ("bad-type", "array marker alone", 81, after(event().attribute("n", 0x80).u16(0).end())),
        ("bad-type", "array of 5", 81, after(event().attribute("n", 0x85).u16(0).end())),
        ("bad-utf8", "description", 81, after(good().event(1, 1, 0, 5, 6, "abc").end().patched(81 + 43, &[0xe9]))),
        ("bad-utf8", "string value", 81, after(event().attribute("a", 4).u16(2).raw(&[0xc0, 0x80]).end())),
        ("bad-utf8", "option name", 81, after(good().metadata("abc", b"").patched(91, &[0xff]))),
        ("value-overrun", "number", 81, after(event().attribute("n", 2).u32(1).end())),
        ("value-overrun", "array", 81, after(event().attribute("n", 0x83).u16(3).u64(0).u64(0).end())),
        ("value-overrun", "half a count", 81, after(event().attribute("n", 0x81).u8(0).end())),
        ("bad-option-size", "epoch of 4", 0, after(Bytes::new().metadata("epoch", &[0; 4]))),
        ("no-epoch-yet", "none at all", 0, Bytes::new().poll(1, 0).bytes),
        ("epoch-after-events", "late", 58, Bytes::new().poll(1, 0).epoch().bytes),
        ("epoch-set-again", "another value", 81, good().metadata("epoch", &[0; 8]).bytes),
        ("unknown-option", "host", 81, good().metadata("host", b"box").bytes),
        ("counter-starts-at", "7", 23, Bytes::new().epoch().poll(1, 7).bytes),
        ("counter-gap", "1", 81, good().poll(1, 2).bytes),
        ("counter-back", "doubled", 81, good().poll(1, 0).bytes),
        (
            "counter-doubtful",
            "9000 in no time",
            81,
            good().event(1, 9000, 0, 100, 101, "forged").end().poll(1, 1).poll(1, 2).bytes,
        ),
        ("session-not-closed", "no end", 23, Bytes::new().epoch().raw(&session()).poll(1, 0).bytes),
        ("session-closed", "all there", 255, Bytes::new().epoch().raw(&session()).poll(1, 0).raw(&end(1)).bytes),
        ("tail-missing", "two events", 255, Bytes::new().epoch().raw(&session()).poll(1, 0).raw(&end(3)).bytes),
        ("end-before-start", "by one", 81, good().event(1, 1, 0, 9, 8, "").end().bytes),
        ("counter-out-of-order", "inverted neighbors", 197, good().poll(1, 1).poll(1, 3).poll(1, 2).poll(1, 4).bytes),
        (
            "partial-overlap",
            "two events cross",
            65,
            Bytes::new().epoch().event(1, 0, 0, 0, 10, "").end().event(1, 1, 0, 5, 15, "").end().bytes,
        ),
    ]
}

/// What begins a session.
fn session() -> Vec<u8> {
    let mut packet = Vec::new();
    let session = heph_encoder::Session { id: 0xabc, program: "prog", process: 7, ..heph_encoder::Session::default() };
    heph_encoder::session(&mut packet, &session).unwrap();
    packet
}

/// What ends it: stream 1 has had this many events.
fn end(recorded: u64) -> Vec<u8> {
    let all = heph_encoder::StreamAccount { stream: 1, recorded, ..heph_encoder::StreamAccount::default() };
    let account = heph_encoder::Account { id: 0xabc, is_closed: true, streams: &[all], all_streams: 1, all };
    let mut packet = Vec::new();
    heph_encoder::account(&mut packet, &account).unwrap();
    packet
}

#[test]
fn one_forged_counter_is_no_loss_whatever_it_is() {
    // Nothing continues it, or nothing can have got there in the time.
    for (forged, end_ns) in [(1_047_075, 150), (1_047_075, 9_000_000_000), (40_000, 150), (40_000, 9_000_000_000)] {
        for place in [1, 7, 19] {
            let mut made = Bytes::new().epoch();
            for counter in 0..20 {
                if counter == place {
                    made = made.event(1, forged, 0, end_ns, end_ns, "forged").end();
                }
                let ns = u64::from(counter) * 10 + 100;
                made = made.event(1, counter, 0, ns, ns, "real").end();
            }
            let exam = examine(&Heph, &made.bytes);
            let codes: Vec<_> = exam.check.iter().map(|found| found.code()).collect();
            assert!(codes.contains(&"heph/counter-doubtful"), "{forged} at {place}, {end_ns}: {codes:?}");
            assert!(!codes.contains(&"heph/counter-gap"), "{forged} at {place}, {end_ns}: {codes:?}");
            let lost = exam.info.0.details.iter().find(|detail| detail.0 == "lost_events");
            assert_eq!(lost, None, "{forged} at {place}, {end_ns}");
        }
    }
}

#[test]
fn an_overlap_is_explained_by_who_wrote_the_trace() {
    let crossing = |bytes: Bytes, substream: u64| {
        bytes.event(1, 1, substream, 0, 10, "request").end().event(1, 2, substream, 5, 15, "request").end().bytes
    };
    let help = |bytes: &[u8]| {
        let exam = examine(&Heph, bytes);
        let found = exam.check.iter().find(|found| found.code() == "heph/partial-overlap").unwrap();
        found.help.clone().unwrap().into_owned()
    };
    let runtime = Bytes::new().epoch().event(1, 0, 0, 0, 1, "Polling for OS events").end();
    assert!(help(&crossing(runtime, 0)).starts_with("expected of Heph since December 2024"));
    let begun = |substream| Bytes::new().epoch().event(1, 0, substream, 0, 1, "other").end();
    let recorded = help(&crossing(begun(7), 7));
    assert!(recorded.starts_with("not written by Heph's runtime"), "{recorded}");
    let lives = help(&crossing(begun(7), 7 | 1 << 52));
    assert!(lives.starts_with("expected of tracing-heph with `lives`"), "{lives}");
}

#[test]
fn each_rule_is_reported_at_its_place() {
    for (code, what, offset, bytes) in cases() {
        let reported = diagnostics(&bytes);
        let code = format!("heph/{code}");
        assert!(reported.iter().any(|c| c.0 == code && c.2 == offset), "{code} ({what}): {reported:?}");
        // Besides the case's own code, only the loss of the damaged packet may be reported.
        let others: Vec<_> = reported.iter().filter(|c| c.0 != code && c.1 != Severity::Note).collect();
        let allowed = [
            "heph/counter-back",
            "heph/counter-gap",
            "heph/no-epoch-yet",
            "heph/counter-starts-at",
            "heph/session-closed",
        ];
        assert!(others.iter().all(|c| allowed.contains(&c.0)), "{code} ({what}): {reported:?}");
        assert_repairs(&Heph, &bytes, what);
    }
}

#[test]
fn the_samples_under_bad_are_these_cases() {
    let folder = common::own_corpus().join("bad");
    for (code, what, _, bytes) in cases() {
        let path = folder.join(format!("{code}--{}.heph", what.replace(' ', "-")));
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
        let kept = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(kept, bytes, "{}", path.display());
    }
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let code = format!("heph/{}", name.split("--").next().unwrap());
        let reported = diagnostics(&std::fs::read(&path).unwrap());
        assert!(reported.iter().any(|c| c.0 == code), "{name}: {reported:?}");
    }
}

#[test]
fn every_rule_has_a_case() {
    let cases = cases();
    // These need more than a file: a limit, an option, another verb.
    let elsewhere = [
        "heph/capture-cut",
        "heph/error-record",
        "heph/nested-array-recovered",
        "heph/stream-time",
        "heph/too-many-streams",
        "heph/without-number",
    ];
    for rule in Heph.rules() {
        let is_here = cases.iter().any(|case| format!("heph/{}", case.0) == rule.code);
        assert!(is_here || elsewhere.contains(&rule.code), "{}", rule.code);
    }
}

#[test]
fn an_error_record_is_a_loss_for_the_way_back() {
    let lines = br#"{"kind":"error","offset":5,"code":"bad-magic","detail":"0x01020304","skipped":37}
{"kind":"metadata","option":"epoch","value":7}
"#;
    let mut out = MemoryTarget::default();
    let mut sink = Collect::default();
    let input = Input::from_bytes("x.jsonl", lines.to_vec());
    assert!(Heph.recognizes_jsonl(&input.head()));
    let options = ImportOptions { target: &TargetOptions::default(), limits: Limits::default() };
    let outcome = Heph.import(input, &options, &mut out, &mut sink).unwrap();
    assert_eq!((sink.codes(), sink.errors()), (vec!["heph/error-record"], 1));
    assert_eq!((outcome.bytes_lost, outcome.records_written, out.0.len()), (37, 1, 23));
}

#[test]
fn streams_past_the_limit_are_counted_together() {
    let mut limits = Limits::default();
    limits.distinct_max = 2;
    let bytes = Bytes::new().epoch().poll(1, 0).poll(2, 0).poll(3, 9).poll(4, 5).poll(1, 1).bytes;
    let options = OpenOptions { limits, ..OpenOptions::default() };
    let exam = examine_with(&Heph, &options, &|| Input::from_bytes("x", bytes.clone()));
    assert_eq!(exam.check.iter().map(|d| d.code()).collect::<Vec<_>>(), ["heph/too-many-streams"]);
    let threads: Vec<_> = exam.info.0.threads.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(threads, [("1", 2), ("2", 1), ("other", 2)]);
}

#[test]
fn a_diagnostic_names_place_field_expected_and_found() {
    let bytes =
        Bytes::new().epoch().event(1, 0, 0, 5, 6, "e").attribute("a", 4).u16(9).raw(b"ab").end().poll(1, 1).bytes;
    let exam = examine(&Heph, &bytes);
    let d = &exam.check[0];
    assert_eq!((d.offset, d.record, d.resumed_at), (23, Some(1), Some(1)));
    assert_eq!(d.field.as_deref(), Some("attribute 'a'"));
    assert_eq!(d.expected.as_deref(), Some("a length of at most 2 (packet end)"));
    assert_eq!(d.found.as_deref(), Some("9"));
    assert_eq!(d.help.as_deref(), Some("the error is at byte 0x46"));
    assert_eq!(d.skipped_bytes, 51);
}

#[test]
fn a_byte_swapped_writer_is_named() {
    let bytes = common::own_corpus().join("broken/little_endian.heph");
    let exam = examine(&Heph, &std::fs::read(bytes).unwrap());
    assert!(exam.check[0].help.as_deref().unwrap().contains("little-endian"));
}

#[test]
fn a_packet_above_the_limit_is_passed_over_by_its_size() {
    let limits = Limits::default().with_record_bytes_max(100);
    let options = OpenOptions { limits, ..OpenOptions::default() };
    let big = Bytes::new().epoch().event(1, 0, 0, 0, 1, &"x".repeat(200)).end();
    let size = big.bytes.len() as u64 - 23;
    let bytes = big.poll(1, 1).bytes;
    let exam = examine_with(&Heph, &options, &|| Input::from_bytes("x", bytes.clone()));
    let d = &exam.check[0];
    assert_eq!((d.code(), d.offset, d.skipped_bytes), ("heph/size-too-big", 23, size));
    assert_eq!(d.expected.as_deref(), Some("at most 100 (limit)"));
    assert_eq!(exam.info.0.records, 2);
    assert!(exam.error_codes() == ["heph/size-too-big"]);
}

#[test]
fn a_size_above_the_limit_that_is_damage_swallows_nothing() {
    let options = OpenOptions { limits: Limits::default().with_record_bytes_max(200), ..OpenOptions::default() };
    let mut made = Bytes::new().epoch().event(1, 0, 0, 0, 1, "torn").sized(5000);
    for counter in 1..100 {
        made = made.poll(1, counter);
    }
    let exam = examine_with(&Heph, &options, &|| Input::from_bytes("x", made.bytes.clone()));
    assert_eq!(exam.error_codes(), ["heph/size-too-big"]);
    assert_eq!(exam.info.0.records, 100);
}

#[test]
fn an_empty_input_has_no_records_and_no_diagnostics() {
    let exam = examine(&Heph, &[]);
    assert_eq!((exam.info.0.records, exam.check.len(), exam.jsonl.len(), exam.text.len()), (0, 0, 0, 0));
}

#[test]
fn damage_inside_a_gzip_layer_counts_in_the_decompressed_stream() {
    let trace = Bytes::new().epoch().poll(1, 0).raw(b"noise").poll(1, 1).bytes;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &trace).unwrap();
    let packed = encoder.finish().unwrap();
    let exam = examine(&Heph, &packed);
    assert_eq!((exam.check[0].offset, exam.check[0].code()), (81, "heph/bad-magic"));
    assert_eq!(exam.info.0.container.as_deref(), Some("gzip"));
    assert_eq!(exam.info.0.bytes, trace.len() as u64);
    let cut = examine(&Heph, &packed[..packed.len() - 4]);
    assert!(cut.error_codes().contains(&"layer/gzip-truncated") || cut.errors().len() == 2, "{:?}", cut.error_codes());
}

#[test]
fn every_unusual_but_valid_form_survives_the_way_through_json_lines() {
    let bytes = Bytes::new()
        .metadata("", b"")
        .metadata("host", &[0, 0xff])
        .epoch()
        .event(u32::MAX, u32::MAX, u64::MAX, u64::MAX, 0, "\u{202e}\0\"\\")
        .attribute("", 3)
        .u64(0x7ff0_dead_beef_0001)
        .attribute("", 0x83)
        .u16(2)
        .u64(0x8000_0000_0000_0000)
        .u64(1)
        .attribute("é", 0x84)
        .u16(0)
        .attribute("i", 2)
        .u64(u64::MAX)
        .end()
        .bytes;
    assert_eq!(through_jsonl(&Heph, &OpenOptions::default(), &bytes).unwrap(), bytes);
}
