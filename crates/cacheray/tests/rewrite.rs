//! `convert`, `repair`, `trim` and the way back from JSON lines.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panic, as tests do")]

mod common;

use anytrace_cacheray::Cacheray;
use anytrace_core::testing::{assert_repairs, examine, rewrite, rewrite_with, through_jsonl};
use anytrace_core::{
    Collect, DumpForm, DumpOptions, Endian, Format, ImportOptions, Input, Kind, Limits, MemoryTarget, OpenOptions,
    Plan, Selection, Settings, TargetOptions,
};
use common::{HEAP, LAYOUTS, Trace, heap};

fn convert(bytes: &[u8], target: TargetOptions) -> Vec<u8> {
    rewrite(&Cacheray, bytes, &Plan::Convert(target)).unwrap().0
}

fn dump(bytes: &[u8], options: &DumpOptions) -> String {
    let mut out = Vec::new();
    let trace = Cacheray.open(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
    trace.dump(options, &mut out, &mut Collect::default()).unwrap();
    String::from_utf8(out).unwrap()
}

/// The same program in a layout: every kind of record, flags, odd names.
fn program(is_big: bool, pointer: usize) -> Trace {
    let base = heap(pointer);
    Trace::of(is_big, pointer)
        .add(base, 24, 10, b"struct.Foo")
        .ordinary(40)
        .access(0xc1, base + 0x203, 16, 3)
        .add_raw(2, base + 0x800, u64::MAX, (1, u32::MAX), 2, b"\xff\n")
        .remove_raw(3, base, 3)
        .access(0x40, base + 9, 1, 1 << 40)
}

#[test]
fn every_layout_converts_into_every_other_and_back() {
    for (is_big, pointer) in LAYOUTS {
        let bytes = program(is_big, pointer).bytes;
        assert_eq!(convert(&bytes, TargetOptions::default()), bytes);
        for to_big in [false, true] {
            let endian = Some(if to_big { Endian::Big } else { Endian::Little });
            let flipped = convert(&bytes, TargetOptions { endian, ..TargetOptions::default() });
            assert_eq!(flipped, program(to_big, pointer).bytes, "{is_big} -> {to_big}");
        }
    }
    // Narrow addresses fit wide pointers and come back.
    let narrow = program(false, 4).bytes;
    let wide = convert(
        &narrow,
        TargetOptions { own: Settings::default().with("to-pointer-width", "8"), ..TargetOptions::default() },
    );
    let options = OpenOptions {
        own: Settings::default().with("pointer-width", "8"),
        endian: Some(Endian::Little),
        ..OpenOptions::default()
    };
    let back = Plan::Convert(TargetOptions {
        own: Settings::default().with("to-pointer-width", "4"),
        ..TargetOptions::default()
    });
    assert_eq!(rewrite_with(&Cacheray, &options, &wide, &back).unwrap().0, narrow);
}

#[test]
fn an_address_that_does_not_fit_is_refused_by_record_and_field() {
    let bytes = program(false, 8).bytes;
    let plan = Plan::Convert(TargetOptions {
        own: Settings::default().with("to-pointer-width", "4"),
        ..TargetOptions::default()
    });
    let error = rewrite(&Cacheray, &bytes, &plan).err().unwrap();
    assert_eq!(error.kind(), Kind::Unsupported);
    let text = error.to_string();
    assert!(text.starts_with("record 0 at byte 0x0: address 0x5555deadb000 does not fit"), "{text}");
}

#[test]
fn options_the_format_has_not_are_refused() {
    let bytes = program(false, 8).bytes;
    for target in [
        TargetOptions { version: Some(1), ..TargetOptions::default() },
        TargetOptions { own: Settings::default().with("container", "gzip"), ..TargetOptions::default() },
        TargetOptions { to: Some("yaml".to_owned()), ..TargetOptions::default() },
        TargetOptions { own: Settings::default().with("to-pointer-width", "3"), ..TargetOptions::default() },
    ] {
        let error = rewrite(&Cacheray, &bytes, &Plan::Convert(target)).err().unwrap();
        assert_eq!(error.kind(), Kind::Usage);
    }
    let time = Some((anytrace_core::TimeBound::Open, anytrace_core::TimeBound::Open));
    let plan = Plan::Trim(Selection { time, ..Selection::default() }, TargetOptions::default());
    assert_eq!(rewrite(&Cacheray, &bytes, &plan).err().unwrap().kind(), Kind::Usage);
}

#[test]
fn json_lines_lead_back_to_the_same_bytes_in_every_layout() {
    for (is_big, pointer) in LAYOUTS {
        let trace = program(is_big, pointer);
        assert_eq!(through_jsonl(&Cacheray, &OpenOptions::default(), &trace.bytes).unwrap(), trace.bytes);
        let to = TargetOptions { to: Some("jsonl".to_owned()), ..TargetOptions::default() };
        let lines = convert(&trace.bytes, to);
        let form = DumpForm::Jsonl;
        assert_eq!(dump(&trace.bytes, &DumpOptions { form, ..DumpOptions::default() }).into_bytes(), lines);
    }
    // Flags on RTTA records are wire facts and survive.
    let flagged = Trace::new().ordinary(20).add_raw(0x42, HEAP, 0, (8, 1), 1, b"T").remove_raw(0xc3, HEAP, 0).bytes;
    assert_eq!(through_jsonl(&Cacheray, &OpenOptions::default(), &flagged).unwrap(), flagged);
}

#[test]
fn json_lines_have_a_first_line_and_an_object_a_record() {
    let bytes = Trace::new().add(HEAP, 8, 2, b"T").access(0xc1, HEAP + 1, 4, 7).remove(HEAP).bytes;
    let form = DumpForm::Jsonl;
    let expected = "{\"anytrace\":\"jsonl\",\"version\":1,\"format\":\"cacheray\",\"format_version\":null,\"byte_order\":\"little\",\"pointer_width\":8}\n\
        {\"kind\":\"rtta_add\",\"address\":93827296505856,\"elemsize\":8,\"elemcount\":2,\"thread\":0,\"type\":\"T\"}\n\
        {\"kind\":\"write\",\"address\":93827296505857,\"size\":4,\"thread\":7,\"atomic\":true,\"unaligned\":true}\n\
        {\"kind\":\"rtta_remove\",\"address\":93827296505856,\"thread\":0}\n";
    assert_eq!(dump(&bytes, &DumpOptions { form, ..DumpOptions::default() }), expected);
}

fn import(text: &str, target: &TargetOptions) -> Result<Vec<u8>, anytrace_core::Error> {
    let mut out = MemoryTarget::default();
    let options = ImportOptions { target, limits: Limits::default() };
    let input = Input::from_bytes("x.jsonl", text.as_bytes().to_vec());
    Cacheray.import(input, &options, &mut out, &mut Collect::default())?;
    Ok(out.0)
}

const HEADER: &str =
    "{\"anytrace\":\"jsonl\",\"version\":1,\"format\":\"cacheray\",\"byte_order\":\"little\",\"pointer_width\":4}\n";

#[test]
fn wrong_json_lines_are_refused_with_line_and_field() {
    let read = "{\"kind\":\"read\",\"address\":16,\"size\":4,\"thread\":0}";
    assert_eq!(import(&format!("{HEADER}{read}\n"), &TargetOptions::default()).unwrap().len(), 14);
    let cases = [
        ("kind", read.replace("read", "peek")),
        ("size", read.replace(":4,", ":256,")),
        ("address", read.replace("16", "-1")),
        ("address", read.replace("16", "4294967296")),
        ("thread", read.replace("thread", "thrd")),
        ("atomic", read.replace('}', ",\"atomic\":1}")),
        ("type", "{\"kind\":\"rtta_add\",\"address\":1,\"elemsize\":1,\"elemcount\":1,\"thread\":0}".to_owned()),
    ];
    for (field, line) in cases {
        let error = import(&format!("{HEADER}{read}\n{line}\n"), &TargetOptions::default()).unwrap_err();
        let diagnostic = error.diagnostic().unwrap_or_else(|| panic!("{line}: {error}"));
        assert_eq!((diagnostic.field.as_deref(), diagnostic.line.map(|l| l.0)), (Some(field), Some(3)), "{line}");
    }
    let header = HEADER.replace(":4}", ":5}");
    assert!(import(&header, &TargetOptions::default()).unwrap_err().to_string().contains("pointer_width"));
    let big = TargetOptions {
        endian: Some(Endian::Big),
        own: Settings::default().with("to-pointer-width", "8"),
        ..TargetOptions::default()
    };
    let wide = import(&format!("{HEADER}{read}\n"), &big).unwrap();
    assert_eq!(wide, Trace::of(true, 8).read(16, 4).bytes);
}

#[test]
fn convert_of_a_damaged_trace_writes_every_complete_record_and_reports_losses() {
    let good = Trace::new().ordinary(30);
    let bytes = [good.bytes.as_slice(), &[0xff; 7], &good.bytes, &[1, 2, 3]].concat();
    let (copy, outcome, sink) = rewrite(&Cacheray, &bytes, &Plan::Convert(TargetOptions::default())).unwrap();
    assert_eq!(copy, [good.bytes.as_slice(), &good.bytes].concat());
    assert_eq!(sink.codes(), ["cacheray/bad-tag", "cacheray/truncated"]);
    assert_eq!((outcome.records_read, outcome.records_written, outcome.bytes_lost), (60, 60, 10));
    assert_eq!(outcome.notes.len(), 2);
}

#[test]
fn repair_cuts_drops_and_strips_and_keeps_the_rest_byte_for_byte() {
    let head = Trace::new().add(HEAP, 8, 4, b"T").ordinary(30);
    let flagged = head.clone().add_raw(0x82, HEAP + 0x900, 5, (8, 1), 3, b"int").ordinary(30);
    let clean = head.clone().add_raw(2, HEAP + 0x900, 5, (8, 1), 3, b"int").ordinary(30);
    let mut bytes = flagged.bytes.clone();
    bytes.splice(head.starts[10]..head.starts[10], [0x7f; 33]);
    bytes.extend([0; 18 * 6 + 5]);
    let (repaired, outcome, _) = rewrite(&Cacheray, &bytes, &Plan::Repair(TargetOptions::default())).unwrap();
    assert_eq!(repaired, clean.bytes);
    assert_eq!((outcome.bytes_lost, outcome.records_written), (33 + 18 * 6 + 5, 62));
    assert_eq!(outcome.notes.len(), 4, "{:?}", outcome.notes);
    assert_repairs(&Cacheray, &bytes, "a bit of everything");
    // Zeros followed by records are not a tail: they are kept.
    let run = [head.bytes.as_slice(), &[0; 36], &head.bytes].concat();
    assert_eq!(assert_repairs(&Cacheray, &run, "zeros inside"), run);
}

fn trim(bytes: &[u8], selection: Selection) -> Vec<u8> {
    let (part, outcome, sink) = rewrite(&Cacheray, bytes, &Plan::Trim(selection, TargetOptions::default())).unwrap();
    let exam = examine(&Cacheray, &part);
    assert_eq!(exam.info.0.records, outcome.records_written);
    assert_eq!(sink.errors(), 0);
    assert!(exam.errors().is_empty());
    part
}

#[test]
fn a_part_by_records_starts_with_the_regions_that_live_there() {
    let trace = Trace::new()
        .add(HEAP, 16, 1, b"gone")
        .add(HEAP + 0x100, 16, 1, b"outer")
        .ordinary(10)
        .remove(HEAP)
        .add(HEAP + 0x104, 4, 1, b"inner")
        .ordinary(10)
        .remove(HEAP + 0x104)
        .ordinary(10);
    let part = trim(&trace.bytes, Selection { records: Some(20..30), ..Selection::default() });
    let carried = Trace::new().add(HEAP + 0x100, 16, 1, b"outer").add(HEAP + 0x104, 4, 1, b"inner").bytes;
    let expected = [carried.as_slice(), &trace.bytes[trace.starts[20]..trace.starts[30]]].concat();
    assert_eq!(part, expected);
    let all = trim(&trace.bytes, Selection { records: Some(0..u64::MAX), ..Selection::default() });
    assert_eq!(all, trace.bytes);
    assert_eq!(trim(&trace.bytes, Selection { records: Some(100..200), ..Selection::default() }), b"");
    assert_eq!(trim(&trace.bytes, Selection { records: Some(5..5), ..Selection::default() }), b"");
}

#[test]
fn every_range_of_a_real_trace_checks_as_well_as_the_entire_trace() {
    let bytes = common::sample("broken/trunc-add-after-1");
    let entire = examine(&Cacheray, &bytes);
    for start in (0..800).step_by(37) {
        let records = Some(start..start + 120);
        let (part, outcome, _) = rewrite(
            &Cacheray,
            &bytes,
            &Plan::Trim(Selection { records, ..Selection::default() }, TargetOptions::default()),
        )
        .unwrap();
        let exam = examine(&Cacheray, &part);
        assert_eq!(exam.error_codes(), Vec::<&str>::new());
        assert_eq!(exam.info.0.records, outcome.records_written);
        let known: Vec<_> = entire.check.iter().map(|d| d.code()).collect();
        assert!(exam.check.iter().all(|d| known.contains(&d.code())), "from {start}: {:?}", exam.check);
    }
}

#[test]
fn a_part_by_thread_keeps_its_accesses_and_all_regions() {
    let trace = Trace::new()
        .add(HEAP, 16, 1, b"T")
        .access(0, HEAP, 8, 1)
        .access(1, HEAP + 8, 8, 2)
        .access(0, HEAP, 8, 2)
        .remove_raw(3, HEAP, 1);
    let part = trim(&trace.bytes, Selection { threads: vec![2], ..Selection::default() });
    let expected =
        Trace::new().add(HEAP, 16, 1, b"T").access(1, HEAP + 8, 8, 2).access(0, HEAP, 8, 2).remove_raw(3, HEAP, 1);
    assert_eq!(part, expected.bytes);
}

fn by_name(name: &'static [u8], records: Option<std::ops::Range<u64>>) -> Selection {
    Selection { name: Some(Box::new(move |n: &[u8]| n == name)), records, ..Selection::default() }
}

#[test]
fn a_part_by_type_follows_the_latest_region_of_a_byte() {
    let trace = Trace::new()
        .add(HEAP, 64, 1, b"A")
        .read(HEAP, 8)
        .read(HEAP + 64, 8)
        .add(HEAP + 16, 16, 1, b"B")
        .read(HEAP + 16, 8)
        .read(HEAP + 32, 8)
        .remove(HEAP + 16)
        .read(HEAP + 16, 4)
        .remove(HEAP)
        .read(HEAP, 1);
    let a = Trace::new().add(HEAP, 64, 1, b"A").read(HEAP, 8).read(HEAP + 32, 8).read(HEAP + 16, 4).remove(HEAP);
    assert_eq!(trim(&trace.bytes, by_name(b"A", None)), a.bytes);
    let b = Trace::new().add(HEAP + 16, 16, 1, b"B").read(HEAP + 16, 8).remove(HEAP + 16);
    assert_eq!(trim(&trace.bytes, by_name(b"B", None)), b.bytes);
    let late = Trace::new().add(HEAP, 64, 1, b"A").read(HEAP + 32, 8).read(HEAP + 16, 4);
    assert_eq!(trim(&trace.bytes, by_name(b"A", Some(4..8))), late.bytes);
    assert_eq!(trim(&trace.bytes, by_name(b"C", None)), b"");
}

#[test]
fn two_regions_of_one_start_are_removed_latest_first_by_type_too() {
    let trace = Trace::new()
        .add(HEAP, 64, 1, b"old")
        .add(HEAP, 32, 1, b"new")
        .read(HEAP, 8)
        .remove(HEAP)
        .read(HEAP + 8, 8)
        .remove(HEAP);
    let old = Trace::new().add(HEAP, 64, 1, b"old").read(HEAP + 8, 8).remove(HEAP);
    assert_eq!(trim(&trace.bytes, by_name(b"old", None)), old.bytes);
}

#[test]
fn text_has_a_line_a_record_and_positions_only_where_wanted() {
    let bytes = Trace::new().add(HEAP, 8, 2, b"a\x1b[31m\"").access(0x80, HEAP + 1, 4, 7).remove(HEAP).bytes;
    let plain = "0 rtta_add 0x5555deadb000 elemsize 8 elemcount 2 thread 0 type \"a\\u{1b}[31m\\\"\"\n\
        1 read 0x5555deadb001 size 4 thread 7 unaligned\n\
        2 rtta_remove 0x5555deadb000 thread 0\n";
    assert_eq!(dump(&bytes, &DumpOptions::default()), plain);
    let with_offsets = dump(&bytes, &DumpOptions { offsets: true, ..DumpOptions::default() });
    assert!(with_offsets.contains("\n0x24 1 read "), "{with_offsets}");
    let bare = dump(&bytes, &DumpOptions { offsets: true, without_positions: true, ..DumpOptions::default() });
    assert!(bare.starts_with("rtta_add ") && bare.contains("\nread 0x"), "{bare}");
}

#[test]
fn a_dump_prints_the_selected_records() {
    let trace = Trace::new().add(HEAP, 64, 1, b"A").access(0, HEAP, 8, 1).access(0, HEAP + 72, 8, 2).remove(HEAP);
    let lines = |selection| dump(&trace.bytes, &DumpOptions { selection, ..DumpOptions::default() });
    let seqs = |selection| -> Vec<String> {
        lines(selection).lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    assert_eq!(seqs(Selection { records: Some(1..3), ..Selection::default() }), ["1", "2"]);
    assert_eq!(seqs(Selection { threads: vec![2], ..Selection::default() }), ["2"]);
    assert_eq!(seqs(by_name(b"A", None)), ["0", "1", "3"]);
    assert_eq!(seqs(by_name(b"A", Some(1..3))), ["1"]);
}

#[test]
fn a_part_that_does_not_show_its_layout_says_how_to_open_it() {
    let trace = Trace::of(true, 4).add(heap(4), 4, 1, b"int").ordinary(40).access(0, 0x1000_1000, 1, 0);
    let plan =
        |records| Plan::Trim(Selection { records: Some(records), ..Selection::default() }, TargetOptions::default());
    let (_, entire, _) = rewrite(&Cacheray, &trace.bytes, &plan(0..u64::MAX)).unwrap();
    assert_eq!(entire.notes, Vec::<String>::new());
    let no_regions = Trace::of(true, 4).access(0, 0x1000_1000, 1, 0).bytes;
    let given = OpenOptions {
        endian: Some(Endian::Big),
        own: Settings::default().with("pointer-width", "4"),
        ..OpenOptions::default()
    };
    let (part, outcome, _) = rewrite_with(&Cacheray, &given, &no_regions, &plan(0..1)).unwrap();
    assert_eq!(part, no_regions);
    assert!(outcome.notes[0].ends_with("--endian big --pointer-width 4"), "{:?}", outcome.notes);
}

#[test]
fn repair_with_a_given_layout_drops_no_complete_record() {
    for (is_big, pointer) in LAYOUTS {
        let odd = Trace::of(is_big, pointer).access(0, 7, 3, u64::MAX).access(1, 1, 0, 1 << 63).bytes;
        let endian = Some(if is_big { Endian::Big } else { Endian::Little });
        let given = OpenOptions {
            endian,
            own: Settings::default().with("pointer-width", pointer.to_string().as_str()),
            ..OpenOptions::default()
        };
        let damaged = [odd.as_slice(), &[0xff]].concat();
        let (repaired, ..) =
            rewrite_with(&Cacheray, &given, &damaged, &Plan::Repair(TargetOptions::default())).unwrap();
        assert_eq!(repaired, odd);
    }
}

#[test]
fn names_of_megabytes_pass_through_every_form() {
    let name: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 255) as u8).collect();
    let bytes = Trace::new().ordinary(20).add(HEAP, 8, 1, &name).ordinary(20).bytes;
    assert!(convert(&bytes, TargetOptions::default()) == bytes);
    assert!(through_jsonl(&Cacheray, &OpenOptions::default(), &bytes).unwrap() == bytes);
    let flipped = convert(&bytes, TargetOptions { endian: Some(Endian::Big), ..TargetOptions::default() });
    let back = convert(&flipped, TargetOptions { endian: Some(Endian::Little), ..TargetOptions::default() });
    assert!(back == bytes);
}

/// Any record: kind and flags, address, size, thread, factors, name.
type Any = (u8, u64, u8, u64, (u32, u32), Vec<u8>);

fn built(records: &[Any], (is_big, pointer): (bool, usize)) -> Vec<u8> {
    let build = |trace: Trace, (tag, address, size, thread, factors, name): &Any| {
        let address = if pointer == 4 { address & 0xffff_ffff } else { *address };
        let length = u32::try_from(name.len()).unwrap();
        match tag & 3 {
            0 | 1 => trace.access(tag & 0xc1, address, *size, *thread),
            2 => trace.add_raw(tag & 0xc0 | 2, address, *thread, *factors, length, name),
            _ => trace.remove_raw(tag & 0xc0 | 3, address, *thread),
        }
    };
    records.iter().fold(Trace::of(is_big, pointer), build).bytes
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config {
        cases: 64,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(20_210_423),
        ..Default::default()
    })]

    #[test]
    fn any_records_survive_copy_json_lines_and_the_other_byte_order(
        records in proptest::collection::vec(proptest::arbitrary::any::<Any>(), 0..60),
        layout in 0..4_usize,
    ) {
        let (is_big, pointer) = LAYOUTS[layout];
        let bytes = built(&records, (is_big, pointer));
        let [endian, other] = if is_big { [Endian::Big, Endian::Little] } else { [Endian::Little, Endian::Big] };
        let open = |endian| OpenOptions {
            endian: Some(endian),
            own: Settings::default().with("pointer-width", pointer.to_string().as_str()),
            ..OpenOptions::default()
        };
        let to = |endian| Plan::Convert(TargetOptions { endian, ..TargetOptions::default() });
        let copy = |open: &OpenOptions, bytes: &[u8], to| rewrite_with(&Cacheray, open, bytes, &to).unwrap().0;
        assert_eq!(copy(&open(endian), &bytes, to(None)), bytes);
        let flipped = copy(&open(endian), &bytes, to(Some(other)));
        assert_eq!(flipped, built(&records, (!is_big, pointer)));
        assert_eq!(copy(&open(other), &flipped, to(Some(endian))), bytes);
        assert_eq!(through_jsonl(&Cacheray, &open(endian), &bytes).unwrap(), bytes);
    }
}
