//! The output of the verbs, in all their forms.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use anytrace_core::testing::{examine, rewrite};
use anytrace_core::{
    Collect, DumpForm, DumpOptions, Error, Format, ImportOptions, Input, Kind, Limits, MemoryTarget, OpenOptions, Plan,
    Selection, Settings, TargetOptions,
};
use anytrace_lackey::Lackey;

const LOG: &str = "\
==7== Lackey, an example Valgrind tool
==7== Command: ./a
==7== 
SB 0401ab70
I  0401ab70,3
 L 1fff000698,8
word
 S 1fff000690,16
--7-- Reading syms
 M 00108040,4
I  0401ab73,5
==7== 
==7==   guest instrs:  2
==7== Exit code:       0
";

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/corpus/{name}.lackey", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn dump(text: &[u8], options: &DumpOptions) -> String {
    let mut out = Vec::new();
    let trace = Lackey.open(Input::from_bytes("x", text.to_vec()), &OpenOptions::default()).unwrap();
    trace.dump(options, &mut out, &mut Collect::default()).unwrap();
    String::from_utf8(out).unwrap()
}

fn records(range: std::ops::Range<u64>) -> Selection {
    Selection { records: Some(range), ..Selection::default() }
}

fn import(lines: &str, target: &TargetOptions) -> Result<String, Error> {
    let mut out = MemoryTarget::default();
    let options = ImportOptions { target, limits: Limits::default() };
    Lackey.import(Input::from_bytes("x", lines.as_bytes().to_vec()), &options, &mut out, &mut Collect::default())?;
    Ok(String::from_utf8(out.0).unwrap())
}

#[test]
fn dump_prints_records_with_numbers_and_offsets() {
    let options = DumpOptions { offsets: true, ..DumpOptions::default() };
    assert_eq!(
        dump(LOG.as_bytes(), &options),
        "0x41 0 block 0x401ab70\n0x4d 1 fetch 0x401ab70 size 3\n0x5b 2 read 0x1fff000698 size 8\n\
         0x70 3 write 0x1fff000690 size 16\n0x94 4 modify 0x108040 size 4\n0xa2 5 fetch 0x401ab73 size 5\n"
    );
    let options = DumpOptions { selection: records(2..4), ..DumpOptions::default() };
    assert_eq!(dump(LOG.as_bytes(), &options), "2 read 0x1fff000698 size 8\n3 write 0x1fff000690 size 16\n");
    let options = DumpOptions { without_positions: true, selection: records(5..u64::MAX), ..DumpOptions::default() };
    assert_eq!(dump(LOG.as_bytes(), &options), "fetch 0x401ab73 size 5\n");
}

#[test]
fn json_lines_contain_text_between_records_and_odd_spellings() {
    let options = DumpOptions { form: DumpForm::Jsonl, ..DumpOptions::default() };
    let text = "==7== x\nI  0401ab70,3\nSB 00000010\n L 10,1\r\n\nword";
    assert_eq!(
        dump(text.as_bytes(), &options),
        "{\"anytrace\":\"jsonl\",\"version\":1,\"format\":\"lackey\",\"format_version\":null}\n\
         {\"kind\":\"message\",\"line\":\"==7== x\"}\n{\"kind\":\"fetch\",\"address\":67218288,\"size\":3}\n\
         {\"kind\":\"block\",\"address\":16}\n{\"kind\":\"read\",\"address\":16,\"size\":1,\"line\":\" L 10,1\\r\"}\n\
         {\"kind\":\"space\",\"line\":\"\"}\n{\"kind\":\"text\",\"line\":\"word\",\"line_end\":false}\n"
    );
    // For `diff`, Valgrind's lines with their process ids are left out.
    let options = DumpOptions { form: DumpForm::Jsonl, without_positions: true, ..DumpOptions::default() };
    assert_eq!(dump(&sample("rows"), &options), dump(&sample("stamped"), &options));
    assert!(!dump(&sample("rows"), &options).contains("message"));
}

#[test]
fn selections_that_lackey_does_not_have_are_refused() {
    let open = || Lackey.open(Input::from_bytes("x", LOG.into()), &OpenOptions::default()).unwrap();
    let selection = || Selection { threads: vec![1], ..Selection::default() };
    let options = DumpOptions { selection: selection(), ..DumpOptions::default() };
    let error = open().dump(&options, &mut Vec::new(), &mut Collect::default()).unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Usage, "--thread does not apply to lackey traces"));
    let plan = Plan::Trim(selection(), TargetOptions::default());
    assert!(open().rewrite(&plan, &mut MemoryTarget::default(), &mut Collect::default()).is_err());
    let wrong = [
        TargetOptions { own: Settings::default().with("to-radix", "hex"), ..TargetOptions::default() },
        TargetOptions { to: Some("yaml".into()), ..TargetOptions::default() },
        TargetOptions { own: Settings::default().with("style", "pretty"), ..TargetOptions::default() },
        TargetOptions {
            to: Some("jsonl".into()),
            own: Settings::default().with("style", "canonical"),
            ..TargetOptions::default()
        },
    ];
    for target in wrong {
        let shown = format!("{target:?}");
        let plan = Plan::Convert(target);
        let error = open().rewrite(&plan, &mut MemoryTarget::default(), &mut Collect::default()).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage, "{shown}");
    }
    let options = OpenOptions { own: Settings::default().with("radix", "hex"), ..OpenOptions::default() };
    assert!(Lackey.open(Input::from_bytes("x", LOG.into()), &options).is_err());
}

#[test]
fn a_part_has_its_head_and_not_the_counts_of_the_run() {
    let part = |range| rewrite(&Lackey, LOG.as_bytes(), &Plan::Trim(records(range), TargetOptions::default())).unwrap();
    let head = "==7== Lackey, an example Valgrind tool\n==7== Command: ./a\n==7== \n";
    let (bytes, outcome, _) = part(2..5);
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text, format!("{head} L 1fff000698,8\nword\n S 1fff000690,16\n M 00108040,4\n"));
    assert_eq!((outcome.records_read, outcome.records_written), (5, 3));
    assert_eq!(outcome.notes.len(), 1, "{:?}", outcome.notes);
    let (bytes, outcome, _) = part(5..u64::MAX);
    assert_eq!(String::from_utf8(bytes).unwrap(), format!("{head}I  0401ab73,5\n"));
    assert!(outcome.notes[0].starts_with("4 lines that Valgrind wrote"), "{:?}", outcome.notes);
    // All records selected means the entire trace.
    let (bytes, _, _) =
        rewrite(&Lackey, LOG.as_bytes(), &Plan::Trim(Selection::default(), TargetOptions::default())).unwrap();
    assert_eq!(bytes, LOG.as_bytes());
    for (from, to) in [(0, 40), (100, 200), (268, 269), (300, 400)] {
        let (bytes, outcome, _) =
            rewrite(&Lackey, &sample("rows"), &Plan::Trim(records(from..to), TargetOptions::default())).unwrap();
        let exam = examine(&Lackey, &bytes);
        assert_eq!(exam.errors().len() as u64 + outcome.records_written, exam.info.0.records, "{from}..{to}");
    }
}

#[test]
fn the_canonical_style_is_valgrinds_spelling() {
    let target = || TargetOptions { own: Settings::default().with("style", "canonical"), ..TargetOptions::default() };
    for name in ["odd/short", "odd/upper-case", "odd/blanks", "odd/crlf", "odd/no-line-end"] {
        let bytes = sample(name);
        let (written, outcome, _) = rewrite(&Lackey, &bytes, &Plan::Convert(target())).unwrap();
        let codes: Vec<_> = examine(&Lackey, &written).check.iter().map(|d| d.code()).collect();
        assert_eq!(codes, Vec::<&str>::new(), "{name}");
        let records = |bytes: &[u8]| dump(bytes, &DumpOptions::default());
        assert_eq!(records(&written), records(&bytes), "{name}");
        assert_eq!(outcome.records_written, outcome.records_read);
    }
    let short = rewrite(&Lackey, b" M 20,01\r\n", &Plan::Convert(target())).unwrap().0;
    assert_eq!(short, b" M 00000020,1\n");
}

#[test]
fn edited_json_lines_win_over_the_line_they_came_with() {
    let head = "{\"anytrace\":\"jsonl\",\"version\":1,\"format\":\"lackey\"}\n";
    let read = |line: &str| import(&format!("{head}{line}\n"), &TargetOptions::default());
    assert_eq!(read(r#"{"kind":"read","address":16,"size":1,"line":" L 10,1"}"#).unwrap(), " L 10,1\n");
    assert_eq!(read(r#"{"kind":"read","address":16,"size":2,"line":" L 10,1"}"#).unwrap(), " L 00000010,2\n");
    assert_eq!(read(r#"{"kind":"block","address":16}"#).unwrap(), "SB 00000010\n");
    assert_eq!(read(r#"{"kind":"text","line":"a","line_end":false}"#).unwrap(), "a");
    let canonical = TargetOptions { own: Settings::default().with("style", "canonical"), ..TargetOptions::default() };
    let line = r#"{"kind":"read","address":16,"size":1,"line":" L 10,1"}"#;
    assert_eq!(import(&format!("{head}{line}"), &canonical).unwrap(), " L 00000010,1\n");
    let jsonl = TargetOptions { to: Some("jsonl".into()), ..TargetOptions::default() };
    let again = import(&format!("{head}{line}\n{{\"kind\":\"space\",\"line\":\" \"}}"), &jsonl).unwrap();
    assert!(again.ends_with(&format!("{line}\n{{\"kind\":\"space\",\"line\":\" \"}}\n")), "{again}");
}

#[test]
fn json_lines_that_describe_no_line_are_rejected_by_field() {
    let head = "{\"anytrace\":\"jsonl\",\"version\":1,\"format\":\"lackey\"}\n";
    for (line, field) in [
        (r#"{"kind":"jump","address":16,"size":1,"line":""}"#, "kind"),
        (r#"{"address":16,"size":1}"#, "kind"),
        (r#"{"kind":"read","address":-1,"size":1}"#, "address"),
        (r#"{"kind":"read","address":16}"#, "size"),
        (r#"{"kind":"read","address":16,"size":65536}"#, "size"),
        (r#"{"kind":"text","line":"a\nb"}"#, "line"),
        (r#"{"kind":"text","line":" L 10,1"}"#, "line"),
        (r#"{"kind":"message","line":"no mark"}"#, "line"),
        (r#"{"kind":"space","line":"x"}"#, "line"),
        (r#"{"kind":"space","line":"","line_end":3}"#, "line_end"),
    ] {
        let error = import(&format!("{head}{line}\n"), &TargetOptions::default()).unwrap_err();
        let diagnostic = error.diagnostic().unwrap();
        assert_eq!((diagnostic.field.as_deref(), diagnostic.line.map(|l| l.0)), (Some(field), Some(2)), "{line}");
    }
    assert!(import("{\"kind\":\"space\",\"line\":\"\"}\n", &TargetOptions::default()).is_err(), "no header");
}
