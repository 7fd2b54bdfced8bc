//! Each rule beyond the samples: when it reports, when it does not, and where.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use anytrace_core::testing::{assert_windows_agree, examine, rewrite, through_jsonl};
use anytrace_core::{Collect, Diagnostic, Format, Input, Limits, OpenOptions, Plan, TargetOptions};
use anytrace_lackey::Lackey;

fn check(text: &str) -> Vec<Diagnostic> {
    examine(&Lackey, text.as_bytes()).check
}

/// Code, line and column of each diagnostic.
fn places(text: &str) -> Vec<(&'static str, u64, u64)> {
    let place = |d: &Diagnostic| {
        let (line, column) = d.line.unwrap();
        (d.code().trim_start_matches("lackey/"), line, column)
    };
    check(text).iter().map(place).collect()
}

const I: &str = "I  0401ab70,3\n";

#[test]
fn sizes_that_valgrind_never_writes_are_odd() {
    let text = format!("{I} L 00001000,0\n S 00001000,513\n M 00001000,512\nI  00001000,33\nI  00001003,32\n");
    assert_eq!(places(&text), [("odd-size", 2, 13), ("odd-size", 3, 13), ("odd-size", 5, 13)]);
    assert_eq!(check(&text)[1].found.as_deref(), Some("513"));
}

#[test]
fn an_access_past_the_last_address_wraps() {
    let text = " L ffffffffffffffff,1\n L fffffffffffffff8,8\n L fffffffffffffff9,8\n";
    assert_eq!(places(text), [("access-wraps", 3, 1)]);
}

#[test]
fn a_superblock_begins_with_the_fetch_of_its_first_instruction() {
    let block = "SB 00401000\n";
    let fetch = "I  00401000,3\n";
    assert_eq!(places(&format!("{block}{fetch}{block}{fetch}")), []);
    assert_eq!(places(&format!("{block}{block}")), [], "superblocks alone");
    assert_eq!(places(&format!("{block}{fetch}{block} L 00001000,4\n")), [("block-without-fetch", 3, 1)]);
    assert_eq!(places(&format!("{block}I  00401003,3\n")), [("block-without-fetch", 1, 1)]);
    assert_eq!(places(&format!("{block}{fetch}{block}{block}{fetch}")), [("block-without-fetch", 3, 1)]);
    // A run may end with the program inside a superblock.
    assert_eq!(places(&format!("{block}{fetch}{block}")), []);
}

#[test]
fn valgrinds_counts_are_compared() {
    let end = |instructions: u64, blocks: u64| {
        format!("==7== Executed:\n==7==   SBs entered:   {blocks}\n==7==   guest instrs:  {instructions}\n")
    };
    let two = format!("SB 0401ab70\n{I}I  0401ab73,5\n");
    assert_eq!(places(&format!("{two}{}", end(2, 1))), []);
    assert_eq!(places(&format!("{two}{}", end(3, 1))), [("counts-differ", 6, 1)]);
    assert_eq!(places(&format!("{two}{}", end(1, 9))), [("counts-differ", 5, 1), ("counts-differ", 6, 1)]);
    // Without --trace-superblocks=yes there are none to count; without --trace-mem=yes there are no instructions.
    assert_eq!(places(&format!("{I}{}", end(1, 5))), []);
    assert_eq!(places(&format!("SB 0401ab70\n{}", end(900, 1))), []);
    // A forked child continues the counts of its parent.
    assert_eq!(places(&format!("==6== x\n{two}{}", end(90, 9))), [("several-processes", 5, 1)]);
    // Thousands are grouped.
    assert_eq!(places(&format!("{}==7==   guest instrs:  1,200\n", I.repeat(1200))), []);
}

#[test]
fn a_run_without_its_end_is_reported() {
    let start = "==7== Lackey, an example Valgrind tool\n";
    assert_eq!(places(&format!("{start}{I}")), [("no-end", 1, 1)]);
    assert_eq!(places(&format!("{start}{I}==7== Exit code:       0\n")), []);
    assert_eq!(places(I), [], "a quiet run has neither");
}

#[test]
fn another_spelling_is_reported_once() {
    for other in [
        "I 0401ab70,3\n",
        "I  401ab70,3\n",
        "I  0401AB70,3\n",
        "I  0401ab70,03\n",
        "I  0401ab70,3\r\n",
        "I  00401ab70,3\n",
    ] {
        assert_eq!(places(&format!("{I}{other}{other}")), [("spelling", 2, 1)], "{other:?}");
    }
    let help = check(" L 10,1\n")[0].clone();
    assert_eq!((help.expected.as_deref(), help.found.as_deref()), (Some("\" L 00000010,1\""), Some("\" L 10,1\"")));
}

#[test]
fn consecutive_text_is_reported_once() {
    let text = format!("a\nb\n{I}c\n\nd\n==7== x\ne\n{I}{I}f\n");
    assert_eq!(places(&text), [("text", 1, 1), ("text", 4, 1), ("text", 11, 1)]);
    let exam = examine(&Lackey, text.as_bytes());
    assert!(exam.info.0.details.contains(&("text_pieces", 6.into())), "{:?}", exam.info.0.details);
}

#[test]
fn text_before_a_record_is_distinguished_from_half_a_record() {
    assert_eq!(places("done I  0401ab70,3\n"), [("text-before-record", 1, 1)]);
    assert_eq!(places("I  04I  0401ab70,3\n"), [("bad-line", 1, 6)]);
    assert_eq!(places("I  0401ab70,3I  0401ab70,3\n"), [("bad-line", 1, 14)]);
    assert_eq!(places("\x01I  0401ab70,3\n"), [("not-text", 1, 1)]);
    for text in ["done I  0401ab70,3\n", "I  04I  0401ab70,3\n", "I  0401ab70,3I  0401ab70,3\n"] {
        assert_eq!(examine(&Lackey, text.as_bytes()).info.0.records, 1, "{text:?}");
        assert_windows_agree(&Lackey, text.as_bytes());
    }
}

/// A trace read with lines of at most 64 bytes.
fn short_lines(bytes: &[u8]) -> (Collect, Vec<u8>) {
    let options = OpenOptions { limits: Limits::default().with_record_bytes_max(1), ..OpenOptions::default() };
    let open = || Lackey.open(Input::from_bytes("x", bytes.to_vec()), &options).unwrap();
    let mut sink = Collect::default();
    open().check(&mut sink).unwrap();
    let mut out = anytrace_core::MemoryTarget::default();
    open().rewrite(&Plan::Convert(TargetOptions::default()), &mut out, &mut Collect::default()).unwrap();
    (sink, out.0)
}

#[test]
fn long_lines_are_read_in_pieces() {
    let long = format!("{I}{}\n{I}", "word ".repeat(60));
    let (sink, copy) = short_lines(long.as_bytes());
    assert_eq!(sink.codes(), ["lackey/line-too-long", "lackey/text"]);
    assert_eq!(copy, long.as_bytes());
    let message = format!("==7== {}\n{I}", "word ".repeat(60));
    assert_eq!(short_lines(message.as_bytes()).0.codes(), ["lackey/line-too-long"]);
    let record = format!("{I}I  {}\n{I}", "0".repeat(300));
    let (sink, copy) = short_lines(record.as_bytes());
    assert_eq!(sink.codes(), ["lackey/bad-line"]);
    assert_eq!((sink.0[0].skipped_bytes, copy), (304, I.repeat(2).into_bytes()));
}

#[test]
fn a_long_line_that_turns_to_bytes_loses_its_rest() {
    let mut bytes = format!("{I}{}", "word ".repeat(20)).into_bytes();
    bytes.extend([0; 500]);
    bytes.extend(format!("\n{I}").into_bytes());
    let (sink, copy) = short_lines(&bytes);
    assert_eq!(sink.codes(), ["lackey/line-too-long", "lackey/text", "lackey/not-text"]);
    // The text that was kept gets a line end, so that the record after it is recognized.
    assert_eq!(String::from_utf8(copy.clone()).unwrap(), format!("{I}{}\n{I}", &"word ".repeat(20)[..64]));
    assert_eq!(sink.0[2].skipped_bytes as usize, bytes.len() - I.len() - 64 - I.len());
}

#[test]
fn a_long_piece_of_zeros_is_one_diagnostic_and_little_memory() {
    let mut bytes = I.as_bytes().to_vec();
    bytes.extend(vec![0; 5 << 20]);
    let exam = examine(&Lackey, &bytes);
    assert_eq!(exam.error_codes(), ["lackey/not-text"]);
    assert_eq!(exam.check[0].skipped_bytes, 5 << 20);
    assert_eq!(exam.info.0.records, 1);
}

#[test]
fn json_lines_keep_long_lines_and_missing_line_ends() {
    let long = format!("{I}{}\n{I}x", "word ".repeat(500_000));
    assert!(through_jsonl(&Lackey, &OpenOptions::default(), long.as_bytes()).unwrap() == long.as_bytes());
    let repaired = rewrite(&Lackey, b" L 00000010,1", &Plan::Repair(TargetOptions::default())).unwrap();
    assert_eq!(
        (repaired.0.as_slice(), repaired.1.notes),
        (&b" L 00000010,1\n"[..], vec!["A line end was added.".to_owned()])
    );
}
