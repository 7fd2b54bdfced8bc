//! One trace per rule, built field by field: exactly that code, at that offset and record.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panic, as tests do")]

mod common;

use anytrace_cacheray::Cacheray;
use anytrace_core::testing::{Exam, assert_windows_agree, examine, examine_with};
use anytrace_core::{Endian, Format, Input, Limits, OpenOptions, Settings, Severity};
use common::{HEAP, LAYOUTS, Trace, heap};

/// What `check` reports, as code, record and offset.
fn found(trace: &Trace) -> Vec<(&'static str, Option<u64>, u64)> {
    let exam = examine(&Cacheray, &trace.bytes);
    exam.check.iter().map(|d| (d.code().strip_prefix("cacheray/").unwrap(), d.record, d.offset)).collect()
}

/// Asserts that a trace breaks one rule, at the last record that was built, when it follows good ones.
fn assert_rule(code: &str, severity: Severity, build: impl Fn(Trace, u64) -> Trace) {
    for (is_big, pointer) in LAYOUTS {
        let base = heap(pointer);
        let trace = build(Trace::of(is_big, pointer).add(base, 16, 4, b"struct.T").ordinary(40), base);
        let (at, record) = (*trace.starts.last().unwrap() as u64, trace.starts.len() as u64 - 1);
        let exam = examine(&Cacheray, &trace.bytes);
        let got: Vec<_> = exam.check.iter().map(|d| (d.code(), d.severity, d.record, d.offset)).collect();
        let code = format!("cacheray/{code}");
        assert_eq!(got, [(code.as_str(), severity, Some(record), at)], "big-endian {is_big}, pointers of {pointer}");
    }
}

#[test]
fn accesses_that_are_legal_but_odd_are_warnings() {
    use Severity::Warning;
    assert_rule("odd-size", Warning, |t, base| t.read(base + 0x100, 3));
    assert_rule("odd-size", Warning, |t, base| t.read(base + 0x100, 0));
    assert_rule("misaligned-without-flag", Warning, |t, base| t.write(base + 0x101, 4));
    assert_rule("access-straddles-region-end", Warning, |t, base| t.access(0x80, base + 60, 8, 0));
}

#[test]
fn accesses_past_the_last_address_wrap_in_either_width() {
    let wide = Trace::new().ordinary(40).access(0x80, u64::MAX - 3, 8, 0);
    let at = wide.starts[40] as u64;
    assert_eq!(found(&wide), [("access-wraps", Some(40), at), ("high-addresses", Some(40), at)]);
    let narrow = Trace::of(false, 4).ordinary(40).access(0x80, u64::from(u32::MAX) - 3, 8, 0);
    assert_eq!(found(&narrow), [("access-wraps", Some(40), narrow.starts[40] as u64)]);
    let fits = Trace::of(true, 4).add(heap(4), 4, 1, b"int").ordinary(40).read(u64::from(u32::MAX) - 7, 8);
    assert_eq!(found(&fits), []);
}

#[test]
fn impossible_addresses_and_kernel_addresses_are_distinguished() {
    let odd = Trace::new().ordinary(40).read(0x0000_8000_0000_0000, 8);
    assert_eq!(found(&odd), [("address-not-canonical", Some(40), 720)]);
    let kernel = Trace::new().ordinary(40).read(0xffff_8881_0000_0000, 8).ordinary(2).read(0xffff_8881_0000_0008, 8);
    let exam = examine(&Cacheray, &kernel.bytes);
    assert_eq!(exam.check.len(), 1);
    let note = &exam.check[0];
    assert_eq!((note.code(), note.offset, note.severity), ("cacheray/high-addresses", 720, Severity::Note));
    assert_eq!(note.found.as_deref(), Some("2 accesses"));
}

#[test]
fn removes_report_the_rule_they_break() {
    use Severity::{Note, Warning};
    assert_rule("remove-without-add", Warning, |t, base| t.remove(base + 0x1000));
    assert_rule("remove-twice", Warning, |t, base| t.remove(base).remove(base));
    assert_rule("remove-inside-region", Warning, |t, base| t.remove(base + 16));
    assert_rule("remove-null", Note, |t, _| t.remove(0));
}

#[test]
fn adds_say_how_they_lie_over_live_regions() {
    use Severity::{Note, Warning};
    assert_rule("overlap-same-start", Warning, |t, base| t.add(base, 4, 1, b"int"));
    assert_rule("overlap-nested", Note, |t, base| t.add(base + 8, 4, 1, b"int"));
    assert_rule("overlap-nested", Note, |t, base| t.add(base - 16, 1024, 1, b"arena"));
    assert_rule("overlap-partial", Warning, |t, base| t.add(base + 32, 64, 1, b"struct.U"));
    assert_rule("region-empty", Warning, |t, base| t.add(base + 0x400, 0, 8, b"struct.E"));
    assert_rule("type-two-sizes", Note, |t, base| t.add(base + 0x400, 32, 2, b"struct.T"));
}

#[test]
fn regions_past_any_address_space_are_huge_or_wrap() {
    let huge = Trace::new().ordinary(40).add(HEAP + 0x10000, 1 << 31, 1 << 20, b"T");
    assert_eq!(found(&huge), [("region-huge", Some(40), 720)]);
    let wraps = Trace::new().ordinary(40).add(u64::MAX - 63, 64, 2, b"T").remove(u64::MAX - 63);
    assert_eq!(found(&wraps), [("region-wraps", Some(40), 720)]);
    let narrow = Trace::of(false, 4).ordinary(40).add(0xffff_ffc0, 64, 2, b"T");
    assert_eq!(found(&narrow), [("region-wraps", Some(40), 560)]);
}

#[test]
fn a_region_of_any_factors_does_not_overflow() {
    let trace = Trace::new().ordinary(40).add(HEAP, u32::MAX, u32::MAX, b"T").read(HEAP + 8, 8).remove(HEAP);
    let codes: Vec<_> = found(&trace).into_iter().map(|(code, ..)| code).collect();
    assert_eq!(codes, ["region-huge", "region-wraps"]);
}

#[test]
fn names_are_judged_by_their_bytes() {
    use Severity::{Note, Warning};
    assert_rule("name-empty", Warning, |t, base| t.add(base + 0x400, 8, 1, b""));
    assert_rule("name-odd", Warning, |t, base| t.add(base + 0x400, 8, 1, b"a\0b\nc\x1b[31m"));
    assert_rule("name-odd", Warning, |t, base| t.add(base + 0x400, 8, 1, b"\xff\xfe"));
    assert_rule("name-long", Note, |t, base| t.add(base + 0x400, 8, 1, &[b'n'; 257]));
    let longest = Trace::new().ordinary(40).add(HEAP, 8, 1, &[b'n'; 256]);
    assert_eq!(found(&longest), []);
}

#[test]
fn flags_on_rtta_records_are_reported_by_info_too() {
    for tag in [0x42, 0x82, 0xc2] {
        assert_rule("flags-on-rtta", Severity::Warning, |t, base| t.add_raw(tag, base + 0x400, 0, (8, 1), 3, b"int"));
    }
    assert_rule("flags-on-rtta", Severity::Warning, |t, base| t.remove_raw(0x43, base, 0));
    let trace = Trace::new().ordinary(40).remove_raw(0x83, HEAP, 0);
    let exam = examine(&Cacheray, &trace.bytes);
    assert_eq!(exam.info.1.iter().map(|d| d.code()).collect::<Vec<_>>(), ["cacheray/flags-on-rtta"]);
    assert_eq!(exam.info.0.records, 41);
}

#[test]
fn a_bad_tag_is_passed_and_records_resume_at_the_next() {
    for tag in [0x04, 0x44, 0x3f, 0xff] {
        for (is_big, pointer) in LAYOUTS {
            let mut trace = Trace::of(is_big, pointer).add(heap(pointer), 4, 1, b"int").ordinary(80);
            let at = trace.starts[40];
            trace.bytes[at] = tag;
            let exam = examine(&Cacheray, &trace.bytes);
            let [error] = exam.errors()[..] else { panic!("{:?}", exam.check) };
            let next = (trace.starts[41] - at) as u64;
            assert_eq!((error.code(), error.offset, error.record), ("cacheray/bad-tag", at as u64, Some(40)));
            assert_eq!((error.skipped_bytes, error.resumed_at), (next, Some(40)), "{is_big} {pointer} {tag:#x}");
            assert_eq!(exam.info.0.records, 80);
        }
    }
}

#[test]
fn rubbish_of_any_length_is_passed_and_counted() {
    for length in [1, 5, 17, 18, 19, 100, 5000, 200_000] {
        let rubbish: Vec<u8> = (0..length).map(|n| 0x10 + (n % 7) as u8).collect();
        let before = Trace::new().ordinary(30);
        let at = before.bytes.len() as u64;
        let trace = before.rubbish(&rubbish).ordinary(30);
        let exam = examine(&Cacheray, &trace.bytes);
        let [error] = exam.errors()[..] else { panic!("{:?}", exam.check) };
        assert_eq!((error.offset, error.skipped_bytes, error.resumed_at), (at, length as u64, Some(30)));
        assert_eq!(exam.info.0.records, 60);
    }
}

#[test]
fn rubbish_to_the_end_is_one_error() {
    let trace = Trace::new().ordinary(30).rubbish(&[0xff; 1000]);
    let exam = examine(&Cacheray, &trace.bytes);
    let [error] = exam.errors()[..] else { panic!("{:?}", exam.check) };
    assert_eq!((error.offset, error.skipped_bytes, error.resumed_at), (540, 1000, None));
    assert_eq!((exam.info.0.records, exam.info.0.bytes), (30, 1540));
}

#[test]
fn a_cut_record_is_reported_with_its_remaining_bytes() {
    let trace = Trace::new().ordinary(30);
    let cuts = [
        ("read", trace.clone().read(HEAP, 8), 18),
        ("write", trace.clone().write(HEAP, 8), 18),
        ("rtta_remove", trace.clone().remove(HEAP), 17),
        ("rtta_add", trace.add(HEAP, 8, 1, b""), 29),
    ];
    for (kind, trace, length) in cuts {
        for left in 1..length {
            let exam = examine(&Cacheray, &trace.bytes[..540 + left]);
            let [error] = exam.errors()[..] else { panic!("{:?}", exam.check) };
            assert_eq!((error.code(), error.offset), ("cacheray/truncated", 540));
            assert_eq!(error.field.as_deref(), Some(kind));
            assert_eq!(error.found.as_deref(), Some(format!("{left} bytes left").as_str()));
            assert_eq!(exam.info.0.records, 30);
        }
    }
}

#[test]
fn a_name_length_past_the_end_costs_one_record_not_those_after_it() {
    for length in [4000, 1 << 20, (16 << 20) - 29, 20 << 20, u32::MAX] {
        let before = Trace::new().add(HEAP, 8, 1, b"int").ordinary(30);
        let at = before.bytes.len() as u64;
        let trace = before.add_raw(2, HEAP + 0x400, 0, (8, 1), length, b"struct.T").ordinary(40);
        let exam = examine(&Cacheray, &trace.bytes);
        let [error] = exam.errors()[..] else { panic!("{:?}", exam.check) };
        let code = if length > 16 << 20 { "cacheray/name-too-long" } else { "cacheray/truncated-string" };
        assert_eq!((error.code(), error.offset, error.record), (code, at, Some(31)), "{length}");
        assert_eq!((error.skipped_bytes, error.resumed_at), (37, Some(31)), "{length}");
        assert_eq!(exam.info.0.records, 71);
        assert_windows_agree(&Cacheray, &trace.bytes);
    }
}

#[test]
fn a_name_longer_than_the_limit_is_skipped_without_memory_and_reading_goes_on() {
    let name = vec![b'n'; 100_000];
    let trace = Trace::new().ordinary(30).add(HEAP, 8, 1, &name).ordinary(30);
    let options = OpenOptions { limits: Limits::default().with_record_bytes_max(50_000), ..OpenOptions::default() };
    let exam = examine_with(&Cacheray, &options, &|| Input::from_bytes("x", trace.bytes.clone()));
    assert_eq!(exam.error_codes(), ["cacheray/name-too-long"]);
    assert_eq!(exam.errors()[0].skipped_bytes, 100_029);
    assert_eq!(exam.info.0.records, 60);
    assert_eq!(examine(&Cacheray, &trace.bytes).error_codes(), Vec::<&str>::new());
}

#[test]
fn a_limit_below_any_record_stops_names_only() {
    let trace = Trace::new().add(HEAP, 8, 1, b"int").ordinary(30).add(HEAP, 8, 1, &[b'n'; 400]).ordinary(30);
    for limit in [0, 1, 17, 30] {
        let options = OpenOptions { limits: Limits::default().with_record_bytes_max(limit), ..OpenOptions::default() };
        let exam = examine_with(&Cacheray, &options, &|| Input::from_bytes("x", trace.bytes.clone()));
        assert_eq!((exam.error_codes(), exam.info.0.records), (vec!["cacheray/name-too-long"], 61));
    }
}

#[test]
fn zeros_at_the_end_are_a_tail_and_zeros_before_records_a_run() {
    for (is_big, pointer) in LAYOUTS {
        let good = Trace::of(is_big, pointer).add(heap(pointer), 8, 1, b"int").ordinary(40);
        let stride = pointer + 10;
        let at = good.bytes.len() as u64;
        let tail = good.clone().rubbish(&vec![0; stride * 5]);
        assert_eq!(found(&tail), [("zero-tail", Some(41), at)]);
        assert_eq!(examine(&Cacheray, &tail.bytes).info.1.len(), 1, "info reports it too");
        let ragged = good.clone().rubbish(&vec![0; stride * 5 + 3]);
        let end = at + 5 * stride as u64;
        assert_eq!(found(&ragged), [("zero-tail", Some(41), at), ("truncated", Some(46), end)]);
        let run = good.rubbish(&vec![0; stride * 5]).read(heap(pointer), 8);
        assert_eq!(found(&run), [("zero-run", Some(41), at)]);
    }
    assert_eq!(found(&Trace::new().rubbish(&[0; 18_000])), [("zero-tail", Some(0), 0)]);
}

#[test]
fn a_long_zero_tail_is_one_warning_with_its_true_start() {
    let trace = Trace::new().ordinary(3000).rubbish(&vec![0; 18 * 200_000]);
    let exam = examine(&Cacheray, &trace.bytes);
    assert_eq!(exam.check.len(), 1);
    assert_eq!((exam.check[0].offset, exam.info.0.records), (54_000, 203_000));
    assert!(exam.check[0].found.as_deref().unwrap().starts_with("3600000 bytes of zeros"));
}

#[test]
fn interleaved_fields_are_one_mix_with_its_place() {
    let bytes = common::sample("broken/interleaved-corrupt-real-part");
    let exam = examine(&Cacheray, &bytes);
    let mixes: Vec<_> = exam.check.iter().filter(|d| d.code() == "cacheray/implausible-mix").collect();
    assert_eq!(mixes.len(), 1);
    assert!(exam.errors().is_empty());
    let first_odd = exam.check.iter().filter(|d| d.code() == "cacheray/odd-size").map(|d| d.offset).min();
    assert_eq!(Some(mixes[0].offset), first_odd);
}

/// Live regions followed where one key is counted separately.
const FOLLOWED_MAX: u64 = 256;

fn examine_with_one_key(trace: &Trace) -> Exam {
    let mut limits = Limits::default();
    limits.distinct_max = 1;
    let options = OpenOptions { limits, ..OpenOptions::default() };
    examine_with(&Cacheray, &options, &|| Input::from_bytes("x", trace.bytes.clone()))
}

fn codes(exam: &Exam) -> Vec<&'static str> {
    exam.check.iter().map(|d| d.code()).collect()
}

/// This many regions that are live at once, each removed once; then all of them again.
fn rounds(regions: u64) -> Trace {
    let mut trace = Trace::new().ordinary(40);
    for _ in 0..2 {
        trace = (0..regions).fold(trace, |trace, n| trace.add(HEAP + n * 64, 16, 1, b"T"));
        trace = (0..regions).fold(trace, |trace, n| trace.remove(HEAP + n * 64));
    }
    trace
}

#[test]
fn a_limit_of_live_regions_makes_no_breach_of_a_trace_without_one() {
    for (regions, expected) in
        [(FOLLOWED_MAX - 1, &[][..]), (FOLLOWED_MAX, &[]), (FOLLOWED_MAX + 1, &["cacheray/state-limit"])]
    {
        let exam = examine_with_one_key(&rounds(regions));
        // Beyond it there are too many addresses of removed regions to keep as well.
        let mut found = codes(&exam);
        found.dedup();
        assert_eq!(found, expected, "{regions}");
        let detail =
            |name: &str| exam.info.0.details.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
        assert_eq!(detail("rtta_remove_without_add"), Some(0.into()), "{regions}");
        let unfollowed = (regions > FOLLOWED_MAX).then(|| 2.into());
        assert_eq!(detail("rtta_adds_not_followed"), unfollowed, "{regions}");
        assert_eq!(detail("rtta_removes_not_followed"), unfollowed, "{regions}");
    }
}

#[test]
fn breaches_before_a_limit_are_found_and_none_is_made_up_behind_it() {
    let breach = |trace: Trace| trace.add(HEAP, 16, 1, b"T").remove(HEAP).remove(HEAP).remove(HEAP + 8 * 64);
    let full =
        |trace: Trace| (0..=FOLLOWED_MAX).fold(trace, |trace, n| trace.add(HEAP + 0x10_0000 + n * 64, 16, 1, b"T"));
    let before = examine_with_one_key(&full(breach(Trace::new().ordinary(40))));
    let breaches = ["cacheray/remove-twice", "cacheray/remove-without-add"];
    assert_eq!(codes(&before), [&breaches[..], &["cacheray/state-limit"]].concat());
    // After it the second remove may be of a region that is not followed.
    let behind = examine_with_one_key(&breach(full(Trace::new().ordinary(40))));
    assert_eq!(codes(&behind), ["cacheray/state-limit"]);
    // The end of a region may be that of one that is not followed and covers it.
    let over = full(Trace::new().ordinary(40)).add(HEAP + 0x10_0000, 64, 1, b"T").access(0x80, HEAP + 0x10_000c, 8, 0);
    assert_eq!(codes(&examine_with_one_key(&over)), ["cacheray/state-limit", "cacheray/overlap-same-start"]);
}

#[test]
fn more_regions_over_each_other_than_are_followed_are_no_breach() {
    let depth = 70;
    let nested = (0..depth)
        .fold(Trace::new().ordinary(40), |trace, n| trace.add(HEAP + n * 8, (depth - n) as u32 * 16, 1, b"T"));
    let trace = (0..depth).rev().fold(nested, |trace, n| trace.remove(HEAP + n * 8));
    let mut found = codes(&examine(&Cacheray, &trace.bytes));
    found.dedup();
    assert_eq!(found, ["cacheray/overlap-nested", "cacheray/state-limit", "cacheray/overlap-nested"]);
}

#[test]
fn removes_that_can_no_longer_be_distinguished_are_not_judged() {
    // More addresses than are kept, one after the other.
    let one_by_one = |count: u64| {
        (0..count)
            .fold(Trace::new().ordinary(40), |trace, n| trace.add(HEAP + n * 64, 16, 1, b"T").remove(HEAP + n * 64))
    };
    let again = |count: u64| codes(&examine_with_one_key(&one_by_one(count).remove(HEAP + (count - 1) * 64)));
    assert_eq!(again(FOLLOWED_MAX - 1), ["cacheray/remove-twice"]);
    assert_eq!(again(FOLLOWED_MAX), ["cacheray/remove-twice"]);
    assert_eq!(again(FOLLOWED_MAX + 1), ["cacheray/state-limit"]);
}

#[test]
fn a_damaged_gzip_layer_is_an_error_and_the_decompressed_part_is_read() {
    // A gzip member with one stored block of a trace, without a trailer.
    let trace = Trace::new().ordinary(30).bytes;
    let length = u16::try_from(trace.len()).unwrap();
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 0];
    gzip.extend(length.to_le_bytes());
    gzip.extend((!length).to_le_bytes());
    gzip.extend(&trace);
    let exam = examine(&Cacheray, &gzip);
    assert_eq!(exam.error_codes(), ["container/gzip-truncated"]);
    assert_eq!((exam.info.0.records, exam.info.0.container.as_deref()), (30, Some("gzip")));
}

#[test]
fn options_override_the_scores() {
    let trace = Trace::of(true, 4).add(heap(4), 4, 1, b"int").ordinary(40);
    let open = |endian, pointer_width: Option<&str>| {
        let own = pointer_width.map(|width| Settings::default().with("pointer-width", width)).unwrap_or_default();
        let options = OpenOptions { endian, own, ..OpenOptions::default() };
        examine_with(&Cacheray, &options, &|| Input::from_bytes("x", trace.bytes.clone())).info.0
    };
    assert_eq!(open(None, None).byte_order, Some(Endian::Big));
    assert_eq!(open(Some(Endian::Little), None).byte_order, Some(Endian::Little));
    assert_eq!(open(Some(Endian::Big), Some("4")).records, 41);
    assert_eq!(open(None, Some("8")).details[0], ("pointer_width", 8.into()));
    let wrong = OpenOptions { own: Settings::default().with("pointer-width", "5"), ..OpenOptions::default() };
    let error = Cacheray.open(Input::from_bytes("x", vec![0]), &wrong).err().unwrap();
    assert_eq!(error.kind(), anytrace_core::Kind::Usage);
}

#[test]
fn every_rule_is_reached_by_a_test_of_this_file() {
    let text = include_str!("rules.rs");
    for rule in Cacheray.rules() {
        let short = rule.code.strip_prefix("cacheray/").unwrap();
        assert!(
            text.contains(&format!("\"{short}\"")) || text.contains(&format!("\"{}\"", rule.code)),
            "{}",
            rule.code
        );
    }
}
