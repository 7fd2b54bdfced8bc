//! Convert, repair, JSON lines and limits.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod builder;

use anytrace_casemate::{GrammarOnly as Casemate, Reader};
use anytrace_casemate::{Radix, Style};
use anytrace_core::testing::{assert_repairs, dripping, examine, rewrite, rewrite_with};
use anytrace_core::{
    Collect, DumpForm, DumpOptions, Error, Format, ImportOptions, Input, Kind, Limits, MemoryTarget, OpenOptions,
    Outcome, Plan, Selection, Settings, Step, TargetOptions,
};
use builder::Log;

fn target(style: Option<Style>, radix: Option<Radix>) -> TargetOptions {
    let mut own = Settings::default();
    if let Some(style) = style {
        own.set("style", format!("{style:?}").to_lowercase().as_str());
    }
    if let Some(radix) = radix {
        own.set("to-radix", radix.name());
    }
    TargetOptions { own, ..TargetOptions::default() }
}

fn converted(text: &str, target: TargetOptions) -> String {
    let (bytes, _, sink) = rewrite(&Casemate, text.as_bytes(), &Plan::Convert(target)).unwrap();
    assert_eq!(sink.errors(), 0);
    String::from_utf8(bytes).unwrap()
}

fn repaired(bytes: &[u8]) -> (String, Outcome) {
    assert_repairs(&Casemate, bytes, "repair");
    let (bytes, outcome, _) = rewrite(&Casemate, bytes, &Plan::Repair(TargetOptions::default())).unwrap();
    (String::from_utf8(bytes).unwrap(), outcome)
}

fn imported(text: &str, target: &TargetOptions) -> Result<String, Error> {
    let input = Input::from_bytes("x.jsonl", text.as_bytes().to_vec());
    let mut out = MemoryTarget::default();
    let options = ImportOptions { target, limits: Limits::default() };
    Casemate.import(input, &options, &mut out, &mut Collect::default())?;
    Ok(String::from_utf8(out.0).unwrap())
}

const HEADER: &str = "{\"anytrace\":\"jsonl\",\"version\":1,\"format\":\"casemate\"}\n";

const SEED: &str =
    "; a comment\r\n(MSR (id 3)\n  (tid 1) (src \"a.c:1\") (sysreg TTBR_EL2) (value 0x1F))\n(tlbi 4 1 vae2is 10 3)\n";

#[test]
fn each_style_writes_every_record_once() {
    assert_eq!(
        converted(SEED, target(Some(Style::Canonical), None)),
        "(sysreg-write (id 3) (tid 1) (sysreg ttbr0_el2) (value 0x1f) (src \"a.c:1\"))\n\
         (tlbi (id 4) (tid 1) vae2is (value 0x300000000010))\n"
    );
    assert_eq!(
        converted(SEED, target(Some(Style::Positional), Some(Radix::Hex))),
        "(sysreg-write 3 1 ttbr0_el2 0x1f \"a.c:1\")\n(tlbi 4 1 vae2is 0x300000000010)\n"
    );
    assert_eq!(
        converted(SEED, target(Some(Style::Pretty), Some(Radix::Decimal))),
        "(sysreg-write\n  (id 3)\n  (tid 1)\n  (sysreg ttbr0_el2)\n  (value 31)\n  (src \"a.c:1\"))\n\
         (tlbi\n  (id 4)\n  (tid 1)\n  vae2is\n  (value 52776558133264))\n"
    );
}

#[test]
fn a_radix_alone_changes_numbers_only() {
    let decimal = converted(SEED, target(None, Some(Radix::Decimal)));
    assert_eq!(
        decimal,
        "; a comment\r\n(MSR (id 3)\n  (tid 1) (src \"a.c:1\") (sysreg TTBR_EL2) (value 31))\n(tlbi 4 1 vae2is 16 3)\n"
    );
    let options = OpenOptions { own: Settings::default().with("radix", "dec"), ..OpenOptions::default() };
    let plan = Plan::Convert(target(None, Some(Radix::Hex)));
    let (hex, _, _) = rewrite_with(&Casemate, &options, decimal.as_bytes(), &plan).unwrap();
    let hex = String::from_utf8(hex).unwrap();
    assert!(hex.contains("(value 1f)") && hex.contains("vae2is 10 3"), "{hex}");
    assert_eq!(converted(SEED, target(None, Some(Radix::Hex))), SEED);
}

#[test]
fn every_form_reads_back_as_the_same_records() {
    let records = |bytes: &[u8], radix: Radix| {
        let mut seen = Vec::new();
        let options = OpenOptions { own: Settings::default().with("radix", radix.name()), ..OpenOptions::default() };
        let mut reader = Reader::new(Input::from_bytes("bytes", bytes.to_vec()), &options).unwrap();
        while let Some(step) = reader.next().unwrap() {
            if let Step::Record(_, record) = step {
                seen.push((record.id, record.thread, record.transition, format!("{:?}", record.source)));
            }
        }
        seen
    };
    for name in ["seed_example", "head_good_bbm", "joined_c0015", "positional_h_t0sz25_ok"] {
        let path = format!("{}/corpus/{name}.log", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(path).unwrap();
        let expected = records(&bytes, Radix::Hex);
        for style in [Style::Canonical, Style::Positional, Style::Pretty] {
            for radix in [Radix::Hex, Radix::Decimal] {
                let plan = Plan::Convert(target(Some(style), Some(radix)));
                let (out, outcome, _) = rewrite(&Casemate, &bytes, &plan).unwrap();
                assert_eq!(records(&out, radix), expected, "{name} {style:?} {radix:?}");
                assert_eq!(
                    (outcome.records_read, outcome.records_written),
                    (expected.len() as u64, expected.len() as u64)
                );
                // Written again in the same form, it is identical.
                let options =
                    OpenOptions { own: Settings::default().with("radix", radix.name()), ..OpenOptions::default() };
                assert!(rewrite_with(&Casemate, &options, &out, &plan).unwrap().0 == out, "{name} {style:?} {radix:?}");
            }
        }
    }
}

#[test]
fn a_claimed_verdict_survives_every_form() {
    let text = "(lock 0 0 8)\ncasemate error\nmsg: x\n! double-use pte\n";
    assert_eq!(converted(text, TargetOptions::default()), text);
    assert_eq!(converted(text, target(Some(Style::Positional), None)), "(lock 0 0 0x8)\n! double-use pte\n");
}

#[test]
fn options_of_other_formats_and_unknown_targets_are_refused() {
    let refused =
        |options: TargetOptions| rewrite(&Casemate, b"(lock 0 0 8)", &Plan::Convert(options)).unwrap_err().kind();
    assert_eq!(refused(TargetOptions { version: Some(2), ..TargetOptions::default() }), Kind::Usage);
    assert_eq!(refused(TargetOptions { to: Some("yaml".into()), ..TargetOptions::default() }), Kind::Usage);
    let options = TargetOptions {
        to: Some("jsonl".into()),
        own: Settings::default().with("style", "pretty"),
        ..TargetOptions::default()
    };
    assert_eq!(refused(options), Kind::Usage);
    let wide = b"(tlbi 0 0 vae2is (addr 1) (level 10))";
    let error = rewrite(&Casemate, wide, &Plan::Convert(target(Some(Style::Pretty), None))).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    assert!(error.to_string().contains("transition 0: level"), "{error}");
    let open = OpenOptions { own: Settings::default().with("pointer-width", "4"), ..OpenOptions::default() };
    assert!(Casemate.open(Input::from_bytes("x", Vec::new()), &open).is_err());
}

#[test]
fn converting_to_json_lines_gives_what_dump_gives() {
    let bytes = SEED.as_bytes();
    let options = TargetOptions { to: Some("jsonl".into()), ..TargetOptions::default() };
    let (lines, _, _) = rewrite(&Casemate, bytes, &Plan::Convert(options)).unwrap();
    let mut dumped = Vec::new();
    let dump = DumpOptions { form: DumpForm::Jsonl, ..DumpOptions::default() };
    let trace = Casemate.open(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
    trace.dump(&dump, &mut dumped, &mut Collect::default()).unwrap();
    assert_eq!(lines, dumped);
    assert_eq!(imported(std::str::from_utf8(&lines).unwrap(), &TargetOptions::default()).unwrap(), SEED);
    assert_eq!(
        imported(std::str::from_utf8(&lines).unwrap(), &target(Some(Style::Positional), None)).unwrap(),
        converted(SEED, target(Some(Style::Positional), None))
    );
}

#[test]
fn the_books_example_of_json_lines_reads() {
    let chapter = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/formats/casemate.md");
    let chapter = std::fs::read_to_string(chapter).unwrap();
    let lines = chapter.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(
        imported(lines, &TargetOptions::default()).unwrap(),
        "(mem-write (id 5) (tid 0) (mem-order plain) (address 2000) (value 3003) (src \"t.c:36\"))\n\
         (barrier (id 6) (tid 0) dsb (kind ish) (src \"t.c:37\"))\n\
         (TLBI 7 0 ipas2e1is (addr 0) (level 3) (src 17))\n\
         (mem-atomic (id 8) (tid 0) (op cmpxchg) (mem-order acq_rel) (address 0x2000) (value 0x0) (read 0x3003))\n\
         ! double-use pte\n"
    );
}

#[test]
fn a_changed_field_wins_over_the_spelling() {
    let line = "{\"kind\":\"lock\",\"id\":9,\"tid\":1,\"address\":64,\"text\":\"(LOCK 2 1 42)\"}\n";
    let text = imported(&format!("{HEADER}{line}"), &TargetOptions::default()).unwrap();
    assert_eq!(text, "(LOCK 9 1 40)\n");
}

#[test]
fn json_lines_that_describe_no_record_are_rejected_by_field() {
    for (line, field) in [
        ("{\"kind\":\"lock\",\"id\":1,\"tid\":1}", "address"),
        ("{\"kind\":\"lock\",\"id\":-1,\"tid\":1,\"address\":1}", "id"),
        ("{\"kind\":\"lock\",\"id\":1,\"tid\":4294967296,\"address\":1}", "tid"),
        ("{\"kind\":\"frob\",\"id\":1,\"tid\":1}", "kind"),
        ("{\"kind\":\"lock\",\"id\":1,\"tid\":1,\"address\":1,\"src\":\"a\\nb\"}", "src"),
        ("{\"kind\":\"lock\",\"id\":1,\"tid\":1,\"address\":1,\"form\":\"odd\"}", "form"),
        ("{\"kind\":\"lock\",\"id\":1,\"tid\":1,\"address\":1,\"before\":\"(\"}", "before"),
        ("{\"kind\":\"lock\",\"id\":1,\"tid\":1,\"address\":1,\"before\":\"; c\"}", "before"),
        ("{\"kind\":\"claim\",\"text\":\"! a\\n(lock 0 0 0)\"}", "text"),
        ("{\"kind\":\"tlbi\",\"id\":1,\"tid\":1,\"op\":\"alle1is\",\"value\":1}", "value"),
        ("{\"kind\":\"tlbi\",\"id\":1,\"tid\":1,\"op\":\"vae2is\"}", "value"),
        ("{\"kind\":\"barrier\",\"id\":1,\"tid\":1,\"barrier\":\"dmb\"}", "barrier"),
    ] {
        let error = imported(&format!("{HEADER}{line}\n"), &TargetOptions::default()).unwrap_err();
        let diagnostic = error.diagnostic().unwrap();
        assert_eq!(diagnostic.field.as_deref(), Some(field), "{line}: {error}");
        assert_eq!(diagnostic.line.map(|(line, _)| line), Some(2), "{line}");
    }
}

#[test]
fn repair_keeps_good_records_byte_for_byte() {
    let log = Log::new()
        .raw("; first\n")
        .open("lock")
        .bare("0")
        .bare("0")
        .bare("8")
        .close()
        .raw("rubbish here\n")
        .open("LOCK")
        .bare("1")
        .bare("x")
        .bare("8")
        .close()
        .open("unlock")
        .bare("2")
        .bare("0")
        .bare("8")
        .close()
        .raw(")");
    let (text, outcome) = repaired(log.bytes());
    let gap = "\n; anytrace: records were lost here\n";
    assert_eq!(text, format!("; first\n(lock 0 0 8)\n\n\n{gap}(unlock 2 0 8)\n{gap}"));
    assert_eq!((outcome.records_read, outcome.records_written, outcome.bytes_lost), (2, 2, 12 + 12 + 1));
    assert_eq!(outcome.notes, ["25 bytes were left out."]);
}

#[test]
fn repair_drops_verdicts_that_cannot_be_kept() {
    let (text, outcome) = repaired(b"(lock 0 0 8)\n! a\n! b\n(unlock 1 0 8)\n! c\n");
    assert_eq!(text, "(lock 0 0 8)\n\n\n(unlock 1 0 8)\n! c\n");
    assert_eq!(outcome.notes, ["2 claimed verdicts followed by records were left out."]);
    let (text, outcome) = repaired(b"(mem-init 0 0 0 8)\n! a\n");
    assert_eq!(text, "(mem-init 0 0 0 8)\n\n");
    assert_eq!(outcome.notes.len(), 1);
    let many = format!("(lock 0 0 8)\n! a\n{}", "; long\n".repeat(20_000));
    assert_eq!(repaired(many.as_bytes()).0.len(), many.len() - 3);
}

#[test]
fn repair_drops_records_that_check_refuses() {
    let (text, outcome) = repaired(b"(barrier 0 0 dsb osh)\n(mem-set 1 0 4 8 0)\n(mem-write 2 0 plain 4 0)\n");
    // A DSB that is in no document is a warning, and stays.
    let kept = "(barrier 0 0 dsb osh)\n\n\n; anytrace: records were lost here\n(mem-write 2 0 plain 4 0)\n";
    assert_eq!(text, kept);
    assert_eq!((outcome.records_read, outcome.records_written), (3, 2));
}

#[test]
fn a_record_beyond_the_limit_is_skipped_without_buffering_it() {
    let long = format!("(lock 0 0 {}8)\n(lock 1 0 8)\n", " ".repeat(3 << 20));
    let exam = examine(&Casemate, long.as_bytes());
    assert_eq!(exam.error_codes(), ["casemate/record-too-long"]);
    assert_eq!((exam.info.0.records, exam.check[0].resumed_at), (1, Some(0)));
    assert_eq!(exam.check[0].skipped_bytes, (3 << 20) + 12);
    let limits = Limits::default().with_record_bytes_max(100);
    let short = format!("(lock 0 0 {}8)\n(lock 1 0 8)\n", " ".repeat(200));
    let options = OpenOptions { limits, ..OpenOptions::default() };
    let mut sink = Collect::default();
    let trace = Casemate.open(dripping("x", short.as_bytes(), 7), &options).unwrap();
    assert_eq!(trace.info(&mut sink).unwrap().records, 1);
    assert_eq!(sink.codes(), ["casemate/record-too-long"]);
}

#[test]
fn endless_tokens_of_every_kind_are_read_past() {
    let filler = 3 << 20;
    for (before, fill, after) in [
        ("; ", "c", "\n(lock 0 0 8)\n"),
        ("! ", "c", "\n"),
        ("msg: ", "(", "\n(lock 0 0 8)\n"),
        ("x", "x", "\n(lock 0 0 8)\n"),
        ("(lock 0 0 8 \"", "x", "\")\n(lock 0 0 8)\n"),
        ("(", "(", "\n(lock 0 0 8)\n"),
        ("", ")", "\n(lock 0 0 8)\n"),
        ("", "(lock 0 0 8 ", "\n(lock 0 0 8)\n"),
    ] {
        let count = if fill == ")" || fill.len() > 1 { 20_000 } else { filler };
        let text = format!("{before}{}{after}", fill.repeat(count));
        let mut sink = Collect::default();
        let trace = Casemate.open(dripping("x", text.as_bytes(), 65_536), &OpenOptions::default()).unwrap();
        let info = trace.info(&mut sink).unwrap();
        assert_eq!(info.bytes, text.len() as u64);
        assert!(info.records >= 1 || before == "! ", "{before} {fill}");
    }
}

#[test]
fn dump_selects_and_leaves_out_positions() {
    let text = "(lock 0 1 8 \"a.c:1\")\n(unlock 1 2 8 \"b.c:2\")\n(lock 2 2 8)\n! x\n";
    let dump = |options: DumpOptions| {
        let mut out = Vec::new();
        let trace = Casemate.open(Input::from_bytes("x", text.into()), &OpenOptions::default()).unwrap();
        trace.dump(&options, &mut out, &mut Collect::default()).unwrap();
        String::from_utf8(out).unwrap()
    };
    let part = |selection| dump(DumpOptions { selection, ..DumpOptions::default() });
    let by_name = |name: &'static [u8]| {
        part(Selection { name: Some(Box::new(move |text| text.starts_with(name))), ..Selection::default() })
    };
    assert_eq!(
        part(Selection { threads: vec![1], ..Selection::default() }),
        "(lock (id 0) (tid 1) (address 0x8) (src \"a.c:1\"))\n"
    );
    assert_eq!(by_name(b"unlock").lines().count(), 1);
    assert_eq!(by_name(b"b.c").lines().count(), 1);
    assert_eq!(by_name(b"lock").lines().count(), 2);
    assert_eq!(part(Selection { records: Some(1..3), ..Selection::default() }).lines().count(), 2);
    let plain = dump(DumpOptions { without_positions: true, offsets: true, ..DumpOptions::default() });
    assert_eq!(plain.lines().next(), Some("(lock (tid 1) (address 0x8) (src \"a.c:1\"))"));
    assert_eq!(plain.lines().last(), Some("! x"));
    let offsets = dump(DumpOptions { offsets: true, ..DumpOptions::default() });
    assert!(offsets.lines().nth(1).unwrap().starts_with("0x15  (unlock"), "{offsets}");
    let frames = Selection { own: Settings::default().with("frames", 0..1), ..Selection::default() };
    let trace = Casemate.open(Input::from_bytes("x", text.into()), &OpenOptions::default()).unwrap();
    let options = DumpOptions { selection: frames, ..DumpOptions::default() };
    assert_eq!(trace.dump(&options, &mut Vec::new(), &mut Collect::default()).unwrap_err().kind(), Kind::Usage);
}

#[test]
fn lines_without_positions_are_equal_where_records_mean_the_same() {
    let plain = |text: &str| {
        let mut out = Vec::new();
        let options =
            DumpOptions { form: DumpForm::Jsonl, without_positions: true, offsets: true, ..DumpOptions::default() };
        let trace = Casemate.open(Input::from_bytes("x", text.into()), &OpenOptions::default()).unwrap();
        trace.dump(&options, &mut out, &mut Collect::default()).unwrap();
        String::from_utf8(out).unwrap()
    };
    let head = "(sysreg-write (id 7) (tid 1) (sysreg ttbr0_el2) (value 0x1f) (src \"a.c:1\"))\n\
                (tlbi (id 8) (tid 1) vae2is (value 300000000010))\nmsg: x\n! y";
    assert_eq!(plain(&format!("{SEED}! y\n")), plain(head));
    assert_eq!(plain(head).lines().last(), Some("{\"kind\":\"claim\",\"message\":\"y\"}"));
    assert_eq!(plain(head).lines().count(), 4);
}

#[test]
fn no_control_character_reaches_the_text_dump() {
    let exam = examine(&Casemate, b"(lock 0 0 8 \"a\x1b[2J\xff\")\n! \x1b]0;x\x07\n");
    assert!(exam.text.iter().all(|b| *b == b'\n' || (0x20..0x7f).contains(b)));
}

#[test]
fn an_empty_trace_has_no_records_and_no_faults() {
    for bytes in [&b""[..], b"\n\n  \n", b"; only a comment"] {
        let exam = examine(&Casemate, bytes);
        assert_eq!((exam.info.0.records, exam.check.len()), (0, 0));
        assert_eq!(rewrite(&Casemate, bytes, &Plan::Convert(TargetOptions::default())).unwrap().0, bytes);
    }
}
