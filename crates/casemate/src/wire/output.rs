//! Text in real logs that is not a record: comments, claimed verdicts, and the output of the reference checker between
//! the records (its error block, its states and differences, its colors).

use anytrace_core::text;

/// What begins at a place where a record could begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// A comment, to the end of the line.
    Comment,
    /// A claimed verdict, to the end of the line.
    Claim,
    /// A line printed by the reference.
    Output,
    /// A color code of this many bytes.
    Colour(usize),
    /// A byte order mark of this many bytes.
    ByteOrderMark(usize),
    /// A closing parenthesis.
    Close,
    /// Unknown text.
    Stray,
}

/// Starts of lines that the reference checker prints (seen in its logs, its `-p` and `-d` output and the transcripts
/// of the corpus).
const STARTS: [&[u8]; 18] = [
    // The example programs of the time of the first document defined names for their pages like this, before the first
    // record.
    b"#define",
    b"casemate error",
    b"casemate-check:",
    b"msg:",
    b"related locations:",
    b"on event:",
    b"state:",
    b"roots:",
    b"unclean_locations:",
    b"locks:",
    b"mem:",
    b"<clean>",
    b"<identical>",
    b"<blob",
    b"[stderr]",
    b"[stdout]",
    b"[exit]",
    b"[0x",
];

/// The comment that `repair` leaves where records were lost: a later check must not take the remaining records as
/// everything that happened.
pub(crate) const GAP: &[u8] = b"; anytrace: records were lost here";

/// Longest color code.
const COLOUR_BYTES_MAX: usize = 32;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Classifies what begins here; `None` when more bytes are needed. `is_all`: no more bytes will come.
pub(crate) fn classify(bytes: &[u8], is_all: bool, is_first: bool) -> Option<Line> {
    match bytes.first()? {
        b';' => Some(Line::Comment),
        b')' => Some(Line::Close),
        // A record right after it takes precedence over a verdict that begins like this.
        b'!' if bytes.get(1) == Some(&b'(') => Some(Line::Stray),
        b'!' => cell(bytes, is_all, Line::Claim),
        b'*' | b'+' | b'-' => cell(bytes, is_all, Line::Stray),
        0x1b => colour(bytes, is_all),
        0xef if is_first => match prefix(bytes, BYTE_ORDER_MARK, is_all)? {
            true => Some(Line::ByteOrderMark(BYTE_ORDER_MARK.len())),
            false => Some(Line::Stray),
        },
        _ => {
            let mut is_open = false;
            for start in STARTS {
                match prefix(bytes, start, is_all) {
                    Some(true) => return Some(Line::Output),
                    Some(false) => {}
                    None => is_open = true,
                }
            }
            (!is_open).then_some(Line::Stray)
        }
    }
}

/// A line about a cell, `*$[0x…`: `*` or `!`, ` ` or `$`, then the address, preceded by `+` or `-` in differences. A
/// line that begins with `!` otherwise is a verdict.
fn cell(bytes: &[u8], is_all: bool, otherwise: Line) -> Option<Line> {
    let mut rest = bytes;
    if let [b'+' | b'-', tail @ ..] = rest {
        rest = tail;
    }
    if let [b'!' | b'*', tail @ ..] = rest {
        rest = tail;
        // Color codes may appear between the characters of a difference.
        while let [b' ' | b'$', tail @ ..] = rest {
            rest = tail;
        }
    }
    match prefix(rest, b"[0x", is_all)? {
        true => Some(Line::Output),
        false => Some(otherwise),
    }
}

/// `ESC [ … letter`.
fn colour(bytes: &[u8], is_all: bool) -> Option<Line> {
    if !prefix(bytes, b"\x1b[", is_all)? {
        return Some(Line::Stray);
    }
    let tail = &bytes[2..];
    match tail.iter().position(|b| !b.is_ascii_digit() && *b != b';') {
        Some(at) if at < COLOUR_BYTES_MAX && tail[at].is_ascii_alphabetic() => Some(Line::Colour(at + 3)),
        None if !is_all && tail.len() < COLOUR_BYTES_MAX => None,
        _ => Some(Line::Stray),
    }
}

fn prefix(bytes: &[u8], mark: &[u8], is_all: bool) -> Option<bool> {
    if bytes.len() >= mark.len() || is_all || !mark.starts_with(bytes) {
        return Some(bytes.starts_with(mark));
    }
    None
}

/// The first character of a piece of text, quoted and escaped, for diagnostics.
pub(crate) fn shown(bytes: &[u8]) -> String {
    format!("'{}'", text::escaped(bytes.get(..1).unwrap_or_default()))
}

/// The text of a claimed verdict, without `!` and the blanks around.
pub(crate) fn claim_text(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"!").unwrap_or(line).trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_a_cell_is_no_verdict() {
        assert_eq!(classify(b"! BBM valid->valid\n", true, false), Some(Line::Claim));
        assert_eq!(classify(b"! [0x....55c1dba6f000]=0x0", true, false), Some(Line::Output));
        assert_eq!(classify(b"!$[0x..", true, false), Some(Line::Output));
        assert_eq!(classify(b"-* [0x..", true, false), Some(Line::Output));
        assert_eq!(classify(b"*  [0x..", true, false), Some(Line::Output));
        assert_eq!(classify(b"*mem-init", false, false), Some(Line::Stray));
        assert_eq!(classify(b"!(lock", true, false), Some(Line::Stray));
        assert_eq!(classify(b"!", false, false), None);
        assert_eq!(classify(b"! [", false, false), None);
        assert_eq!(classify(b"! [", true, false), Some(Line::Claim));
    }

    #[test]
    fn a_colour_code_is_bounded() {
        assert_eq!(classify(b"\x1b[46;37;1m(lock", true, false), Some(Line::Colour(10)));
        assert_eq!(classify(b"\x1b[", false, false), None);
        assert_eq!(classify(b"\x1b[4", true, false), Some(Line::Stray));
        let endless = [b"\x1b[".as_slice(), &[b'1'; 100]].concat();
        assert_eq!(classify(&endless, false, false), Some(Line::Stray));
    }

    #[test]
    fn a_byte_order_mark_counts_only_at_the_start() {
        assert_eq!(classify(b"\xef\xbb\xbf(lock", true, true), Some(Line::ByteOrderMark(3)));
        assert_eq!(classify(b"\xef\xbb\xbf(lock", true, false), Some(Line::Stray));
    }
}
