//! Compares lines like Python's `difflib.Differ`: similar lines are paired, with guides that point out what differs.

use std::collections::HashMap;

use anytrace_analysis::matching::{Operation, matching_blocks, operations};

/// Most candidate pairs of lines. Longer runs of lines that differ are not paired.
const PAIRS_MAX: usize = 250_000;

/// Lines are paired from this similarity on.
const CUTOFF: f64 = 0.75;

/// The result for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    Same,
    Removed,
    Added,
    /// Points out what differs in the line before.
    Guide,
}

/// Lines and their tags.
pub(crate) type TaggedLines = Vec<(Tag, String)>;

fn keys(lines: &[String]) -> (HashMap<&str, u64>, Vec<u64>) {
    let mut known = HashMap::new();
    let list = lines.iter().map(|line| number(&mut known, line)).collect();
    (known, list)
}

fn number<'a>(known: &mut HashMap<&'a str, u64>, line: &'a str) -> u64 {
    let next = known.len() as u64;
    *known.entry(line).or_insert(next)
}

/// Compares two texts.
pub(crate) fn compare(a: &[String], b: &[String]) -> TaggedLines {
    let (mut known, in_a) = keys(a);
    let in_b: Vec<u64> = b.iter().map(|line| number(&mut known, line)).collect();
    let mut tagged = TaggedLines::new();
    for (operation, i, j) in operations(&in_a, &in_b, &|_| false) {
        let (a, b) = (a.get(i).unwrap_or_default(), b.get(j).unwrap_or_default());
        match operation {
            Operation::Equal => push(&mut tagged, Tag::Same, a),
            _ => differ(&mut tagged, a, b),
        }
    }
    tagged
}

fn push(tagged: &mut TaggedLines, tag: Tag, lines: &[String]) {
    tagged.extend(lines.iter().map(|line| (tag, line.clone())));
}

/// Compares runs of lines that have none in common, without recursion.
fn differ(tagged: &mut TaggedLines, a: &[String], b: &[String]) {
    let mut todo = vec![(a, b, None)];
    while let Some((a, b, pair)) = todo.pop() {
        if let Some((old, new)) = pair {
            guided(tagged, old, new);
        }
        if a.is_empty() || b.is_empty() {
            push(tagged, Tag::Removed, a);
            push(tagged, Tag::Added, b);
            continue;
        }
        let Some((i, j)) = most_alike(a, b) else {
            // The shorter part first, which is easier to read.
            if b.len() < a.len() {
                push(tagged, Tag::Added, b);
                push(tagged, Tag::Removed, a);
            } else {
                push(tagged, Tag::Removed, a);
                push(tagged, Tag::Added, b);
            }
            continue;
        };
        let (Some((old, after_a)), Some((new, after_b))) =
            (a.get(i..).and_then(<[String]>::split_first), b.get(j..).and_then(<[String]>::split_first))
        else {
            continue;
        };
        todo.push((after_a, after_b, Some((old.as_str(), new.as_str()))));
        todo.push((a.get(..i).unwrap_or_default(), b.get(..j).unwrap_or_default(), None));
    }
}

/// The most similar pair of lines, or the first equal pair if none are similar enough.
fn most_alike(a: &[String], b: &[String]) -> Option<(usize, usize)> {
    if a.len().saturating_mul(b.len()) > PAIRS_MAX {
        return None;
    }
    let chars = |line: &String| line.chars().map(u64::from).collect::<Vec<_>>();
    let (in_a, in_b): (Vec<_>, Vec<_>) = (a.iter().map(chars).collect(), b.iter().map(chars).collect());
    let (mut best, mut found, mut equal) = (0.74, None, None);
    for (j, new) in in_b.iter().enumerate() {
        for (i, old) in in_a.iter().enumerate() {
            if old == new {
                equal = equal.or(Some((i, j)));
                continue;
            }
            let ratio = |common: usize| 2.0 * common as f64 / (old.len() + new.len()) as f64;
            if ratio(old.len().min(new.len())) > best && ratio(in_common(old, new)) > best {
                let matches = matching_blocks(old, new, &|_| false).iter().map(|block| block.2).sum();
                if ratio(matches) > best {
                    (best, found) = (ratio(matches), Some((i, j)));
                }
            }
        }
    }
    if best < CUTOFF { equal } else { found }
}

/// The number of characters in common, in any order.
fn in_common(a: &[u64], b: &[u64]) -> usize {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for char in b {
        *counts.entry(*char).or_default() += 1;
    }
    let mut common = 0;
    for char in a {
        if let Some(count) = counts.get_mut(char).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    common
}

/// Adds a pair of lines and guides that point out what differs in them.
fn guided(tagged: &mut TaggedLines, old: &str, new: &str) {
    if old == new {
        return tagged.push((Tag::Same, old.to_owned()));
    }
    let chars = |line: &str| line.chars().map(u64::from).collect::<Vec<_>>();
    let (mut under_old, mut under_new) = (String::new(), String::new());
    for (operation, i, j) in operations(&chars(old), &chars(new), &|_| false) {
        let (sign_old, sign_new) = match operation {
            Operation::Equal => (' ', ' '),
            Operation::Replace => ('^', '^'),
            Operation::Delete | Operation::Insert => ('-', '+'),
        };
        under_old.extend(i.map(|_| sign_old));
        under_new.extend(j.map(|_| sign_new));
    }
    for (tag, line, under) in [(Tag::Removed, old, under_old), (Tag::Added, new, under_new)] {
        tagged.push((tag, line.to_owned()));
        // White space is kept, so that columns align.
        let guide: String = line
            .chars()
            .zip(under.chars())
            .map(|(char, sign)| if sign == ' ' && char.is_whitespace() { char } else { sign })
            .collect();
        let guide = guide.trim_end();
        if !guide.is_empty() {
            tagged.push((Tag::Guide, guide.to_owned()));
        }
    }
}

/// Lines as split by Python.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let ends = ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (line, after) = match rest.find(ends) {
            None => (rest, ""),
            Some(at) => {
                let (line, after) = rest.split_at(at);
                let mut chars = after.chars();
                chars.next();
                (line, after.strip_prefix("\r\n").unwrap_or(chars.as_str()))
            }
        };
        found.push(line.to_owned());
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_python_s_manual_comes_out_the_same() {
        let text = |text: &str| lines(text);
        let a = text(
            "  1. Beautiful is better than ugly.\n  2. Explicit is better than implicit.\n  3. Simple is better than complex.\n  4. Complex is better than complicated.\n",
        );
        let b = text(
            "  1. Beautiful is better than ugly.\n  3.   Simple is better than complex.\n  4. Complicated is better than complex.\n  5. Flat is better than nested.\n",
        );
        let shown: Vec<String> = compare(&a, &b)
            .iter()
            .map(|(tag, line)| {
                let sign = match tag {
                    Tag::Same => "  ",
                    Tag::Removed => "- ",
                    Tag::Added => "+ ",
                    Tag::Guide => "? ",
                };
                format!("{sign}{line}")
            })
            .collect();
        let expected = [
            "    1. Beautiful is better than ugly.",
            "-   2. Explicit is better than implicit.",
            "-   3. Simple is better than complex.",
            "+   3.   Simple is better than complex.",
            "?     ++",
            "-   4. Complex is better than complicated.",
            "?            ^                     ---- ^",
            "+   4. Complicated is better than complex.",
            "?           ++++ ^                      ^",
            "+   5. Flat is better than nested.",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn lines_end_where_python_ends_them() {
        assert_eq!(lines("a\r\nb\rc\n\nd\u{2028}e"), ["a", "b", "c", "", "d", "e"]);
        assert!(lines("").is_empty());
    }
}
