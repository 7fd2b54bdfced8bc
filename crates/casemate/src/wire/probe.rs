//! Is this a casemate trace? Examines the first record, after white space, comments and the reference's output.

use anytrace_core::{Confidence, Head};

use crate::wire::field::Field;
use crate::wire::output::{Line, classify};
use crate::wire::parse::{Need, parse_watched};
use crate::wire::record::Kind;
use crate::wire::style::Radix;
use crate::wire::words::{Class, class, key_at};

/// Lines examined before giving up.
const LINES_MAX: usize = 256;

/// The answer for the first bytes of a file, at most 64 KiB.
pub(crate) fn probe(head: &Head<'_>) -> Confidence {
    let mut rest = head.bytes;
    let mut is_first = true;
    let mut has_output = false;
    for _ in 0..LINES_MAX {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            break;
        }
        if rest.starts_with(b"(") {
            return record(rest);
        }
        match classify(rest, true, is_first) {
            Some(Line::Comment) => rest = after_line(rest),
            Some(Line::Claim | Line::Output) => {
                has_output = true;
                rest = after_line(rest);
            }
            Some(Line::Colour(length) | Line::ByteOrderMark(length)) => rest = rest.get(length..).unwrap_or_default(),
            _ => return stray(rest),
        }
        is_first = false;
    }
    // Nothing but white space and comments, or a verdict alone.
    let is_named = head.has_extension(&["log", "trace", "casemate"]);
    match (has_output, is_named) {
        (true, true) => Confidence::Likely,
        (false, false) if head.bytes.contains(&b';') => Confidence::No,
        _ => Confidence::Maybe,
    }
}

/// A trace whose beginning is damaged still shows records on later lines.
fn stray(rest: &[u8]) -> Confidence {
    let is_text = rest.iter().take(4096).all(|b| class(*b) != Class::Control);
    let has_record = rest.split(|b| *b == b'\n').take(LINES_MAX).any(|line| {
        let line = line.trim_ascii_start();
        line.starts_with(b"(") && record(line) == Confidence::Certain
    });
    match (is_text, has_record) {
        (true, true) => Confidence::Likely,
        (false, true) => Confidence::Maybe,
        _ => Confidence::No,
    }
}

fn after_line(rest: &[u8]) -> &[u8] {
    memchr::memchr(b'\n', rest).map_or(&[], |at| &rest[at..])
}

/// How likely the first record is one of this format.
fn record(rest: &[u8]) -> Confidence {
    if [Radix::Hex, Radix::Decimal].into_iter().any(|radix| parse_watched(rest, radix, &mut ()).is_ok()) {
        return Confidence::Certain;
    }
    let (kind, after) = word(rest.get(1..).unwrap_or_default());
    let is_known = Kind::from_key(key_at(rest, 1, 1 + kind)).is_some();
    let first = after.trim_ascii_start();
    let has_id = match first {
        [b'(', tail @ ..] => Field::from_key(key_at(tail, 0, word(tail).0)) == Some(Field::Id),
        [digit, ..] => digit.is_ascii_digit(),
        [] => false,
    };
    match (is_known, has_id) {
        (true, true) => Confidence::Certain,
        (false, true) if kind > 0 => Confidence::Likely,
        (true, false) if matches!(parse_watched(rest, Radix::Hex, &mut ()), Err(Need::More(_))) => Confidence::Likely,
        (true, false) => Confidence::Maybe,
        // One parenthesis too many before the first record.
        _ if rest.get(1) == Some(&b'(') && word(rest.get(2..).unwrap_or_default()).0 > 0 => {
            if Kind::from_key(key_at(rest, 2, 2 + word(&rest[2..]).0)).is_some() {
                Confidence::Likely
            } else {
                stray(after_line(rest))
            }
        }
        _ => stray(after_line(rest)),
    }
}

/// The length of the word at the start, and what follows it.
fn word(bytes: &[u8]) -> (usize, &[u8]) {
    let length = bytes.iter().take(64).take_while(|b| class(**b) == Class::Word).count();
    (length, &bytes[length..])
}
