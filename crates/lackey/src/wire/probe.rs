//! Is this a lackey trace? Examines the first lines.

use anytrace_core::{Confidence, Head};

use crate::wire::message::{Fact, message};
use crate::wire::parse::{canonical, is_cut, read_line};

/// Lines examined before giving up.
const LINES_MAX: usize = 4096;

/// This many records as Valgrind spells them, with little else, are not a coincidence.
const SURE_RECORDS: usize = 16;

/// The answer for the first bytes of a file, at most 64 KiB.
pub(crate) fn probe(head: &Head<'_>) -> Confidence {
    let lines = count(head);
    if lines.has_tool {
        return Confidence::Certain;
    }
    let others = lines.other;
    match lines {
        LineCounts { records: 0, .. } if head.has_extension(&["lackey"]) => Confidence::Maybe,
        LineCounts { records: 0, .. } => Confidence::No,
        // One line in eight is something else: output of the program, or damage.
        LineCounts { spelled, .. } if spelled >= SURE_RECORDS && others * 8 <= spelled => Confidence::Certain,
        LineCounts { records, .. } if others * 2 <= records => Confidence::Likely,
        LineCounts { spelled, .. } if spelled > 0 => Confidence::Maybe,
        _ => Confidence::No,
    }
}

#[derive(Debug, Default)]
struct LineCounts {
    /// Records in any spelling.
    records: usize,
    /// Records as Valgrind spells them.
    spelled: usize,
    /// Neither records nor Valgrind's messages nor empty.
    other: usize,
    /// One of Valgrind's messages names the tool.
    has_tool: bool,
}

fn count(head: &Head<'_>) -> LineCounts {
    let mut lines = LineCounts::default();
    let mut rest = head.bytes;
    for _ in 0..LINES_MAX {
        if rest.is_empty() {
            break;
        }
        if let Some((_, used)) = canonical(rest) {
            (lines.records, lines.spelled) = (lines.records + 1, lines.spelled + 1);
            rest = rest.get(used..).unwrap_or_default();
            continue;
        }
        let end = memchr::memchr(b'\n', rest);
        let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        rest = rest.get(line.len() + 1..).unwrap_or_default();
        let said = message(line);
        if said.is_some_and(|said| matches!(said.fact(), Some(Fact::Tool(_)))) {
            lines.has_tool = true;
            break;
        }
        let is_cut_here = end.is_none() && (!head.is_complete() || is_cut(line));
        match read_line(line) {
            Ok(_) => lines.records += 1,
            Err(_) if said.is_some() || is_cut_here || line.trim_ascii().is_empty() => {}
            Err(_) => lines.other += 1,
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use anytrace_core::Input;

    use super::*;

    fn sure(text: &str) -> Confidence {
        probe(&Input::from_bytes("x", text.as_bytes().to_vec()).head())
    }

    #[test]
    fn a_banner_or_many_records_are_certain() {
        assert_eq!(sure("==1== Lackey, an example Valgrind tool\n"), Confidence::Certain);
        assert_eq!(sure("hello\n==00:00:00:00.000 9== Lackey, an example Valgrind tool\n"), Confidence::Certain);
        let records = "I  0401ab70,3\n S 1fff000698,8\n".repeat(10);
        assert_eq!(sure(&records), Confidence::Certain);
        assert_eq!(sure(&format!("{records}a\nb\n")), Confidence::Certain);
    }

    #[test]
    fn few_records_are_likely_and_a_word_among_much_text_is_not() {
        assert_eq!(sure(" L 10,1\n M 20,1\n L 22,1\n"), Confidence::Likely);
        assert_eq!(sure(" L 10,1"), Confidence::Likely);
        assert_eq!(sure("==1== Memcheck, a memory error detector\n==1== Command: x\n"), Confidence::No);
        assert_eq!(sure(&"a line of prose, 10,1\n".repeat(100)), Confidence::No);
        let mostly_text = format!("{}I  0401ab70,3\n{}", "prose\n".repeat(50), "prose\n".repeat(50));
        assert_eq!(sure(&mostly_text), Confidence::Maybe);
        assert_eq!(sure(""), Confidence::No);
        assert_eq!(probe(&Input::from_bytes("x.lackey", b"prose\n".to_vec()).head()), Confidence::Maybe);
    }
}
