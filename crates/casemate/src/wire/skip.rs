//! Skips bytes that are not a record, over any number of windows and without storing any of them.
//!
//! Reading continues after the parenthesis that closes the damaged record, or where another record begins: at `(` and
//! the name of a kind, wherever that occurs, since no field has a kind's name. Of text between records, the rest of the
//! line is skipped. Lines of the reference's error block and its verdict end a damaged record too.

use crate::wire::record::Kind;
use crate::wire::words::{Class, class, key_at};

/// The longest name of a kind, and one byte to see its end.
const NAME_BYTES_MAX: usize = 16;

/// The state of a skip.
#[derive(Debug, Clone)]
pub(crate) struct Skip {
    /// Open parentheses; 0 when skipping a line.
    pub(crate) depth: u64,
    inside: Inside,
    at_line_start: bool,
    is_first: bool,
    in_word: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    String,
    Comment,
    /// After the escape character: the `;` of a color code begins no comment.
    Colour,
}

/// How far a skip got in a window.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Skipped {
    /// It ends after this many bytes.
    Ends(usize),
    /// It continues; this many bytes are skipped, and those after them are needed together with more.
    GoesOn(usize),
}

impl Skip {
    /// Skips a record; the first byte of the window is its `(`.
    pub(crate) fn record() -> Self {
        Self { depth: 0, inside: Inside::Nothing, at_line_start: false, is_first: true, in_word: false }
    }

    /// Skips text between records, to the end of its line.
    pub(crate) fn line() -> Self {
        Self { depth: 0, inside: Inside::Nothing, at_line_start: false, is_first: false, in_word: false }
    }

    /// Continues in a window. `is_last`: nothing follows the window.
    pub(crate) fn step(&mut self, window: &[u8], is_last: bool) -> Skipped {
        let mut at = 0;
        while let Some(&byte) = window.get(at) {
            // After a lost quote, strings and other text of the line are exchanged: records are searched for in strings
            // too.
            let may_begin = byte == b'(' && self.inside == Inside::String;
            if may_begin {
                match begins_record(&window[at..], is_last) {
                    Some(true) => return Skipped::Ends(at),
                    Some(false) => {}
                    None => return Skipped::GoesOn(at),
                }
            }
            if self.inside != Inside::Nothing {
                let ends = match self.inside {
                    Inside::String => byte == b'"',
                    Inside::Colour => byte.is_ascii_alphabetic(),
                    _ => false,
                } || byte == b'\n';
                if ends {
                    self.inside = Inside::Nothing;
                }
                if byte == b'\n' && self.depth == 0 {
                    return Skipped::Ends(at);
                }
                self.at_line_start = byte == b'\n';
                self.in_word = false;
                at += 1;
                continue;
            }
            let was_line_start = self.at_line_start;
            self.at_line_start = byte == b'\n' || was_line_start && class(byte) == Class::Space;
            match byte {
                b'(' if self.is_first => self.depth = 1,
                b'(' => match begins_record(&window[at..], is_last) {
                    Some(true) => return Skipped::Ends(at),
                    Some(false) if self.depth > 0 => self.depth += 1,
                    Some(false) => {}
                    None => {
                        self.at_line_start = was_line_start;
                        return Skipped::GoesOn(at);
                    }
                },
                b')' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Skipped::Ends(at + 1);
                    }
                }
                b'"' => self.inside = Inside::String,
                // Within a word it is a damaged character and hides nothing.
                b';' if !self.in_word => self.inside = Inside::Comment,
                0x1b => self.inside = Inside::Colour,
                b'\n' if self.depth == 0 => return Skipped::Ends(at),
                b'!' | b'c' if was_line_start && self.depth > 0 => match begins_verdict(&window[at..], is_last) {
                    Some(true) => return Skipped::Ends(at),
                    Some(false) => {}
                    None => {
                        self.at_line_start = was_line_start;
                        return Skipped::GoesOn(at);
                    }
                },
                _ => {}
            }
            self.is_first = false;
            self.in_word = class(byte) == Class::Word && self.inside == Inside::Nothing;
            at += 1;
        }
        Skipped::GoesOn(at)
    }
}

/// True when `(` and the name of a kind are here; `None` when that cannot be determined yet.
fn begins_record(bytes: &[u8], is_last: bool) -> Option<bool> {
    let word = bytes.get(1..).unwrap_or_default();
    let length = word.iter().take(NAME_BYTES_MAX).take_while(|b| class(**b) == Class::Word).count();
    if length < NAME_BYTES_MAX && length == word.len() && !is_last {
        return None;
    }
    Some(length > 0 && Kind::from_key(key_at(word, 0, length)).is_some())
}

/// True when the reference's verdict or its error block is here.
fn begins_verdict(bytes: &[u8], is_last: bool) -> Option<bool> {
    for mark in [&b"! "[..], b"casemate error"] {
        if bytes.starts_with(mark) {
            return Some(true);
        }
        if !is_last && mark.starts_with(bytes) {
            return None;
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(text: &str, mut skip: Skip) -> usize {
        let in_one_window = match skip.clone().step(text.as_bytes(), true) {
            Skipped::Ends(at) | Skipped::GoesOn(at) => at,
        };
        // A window that grows a byte at a time must give the same result.
        let (mut from, mut to) = (0, 0);
        let stepped = loop {
            match skip.step(&text.as_bytes()[from..to], to == text.len()) {
                Skipped::Ends(at) => break from + at,
                Skipped::GoesOn(at) if to == text.len() => break from + at,
                Skipped::GoesOn(at) => from += at,
            }
            to += 1;
        };
        assert_eq!(stepped, in_one_window, "{text}");
        in_one_window
    }

    #[test]
    fn a_record_ends_at_its_closing_parenthesis() {
        assert_eq!(skipped("(x (a 1) (b (c)))(lock", Skip::record()), 17);
        assert_eq!(skipped("(x \"))\" ; ))\n)zz", Skip::record()), 14);
    }

    #[test]
    fn a_record_that_is_not_closed_ends_where_another_begins() {
        assert_eq!(skipped("(x (a 1)\n(LOCK 1 2 3)", Skip::record()), 9);
        assert_eq!(skipped("(x (a 1) (mem-write 1", Skip::record()), 9);
        assert_eq!(skipped("((lock 1 1 2))", Skip::record()), 1);
        assert_eq!(skipped("(x (a 1( \u{1b}[46;37;1m(LOCK 1 2 3)", Skip::record()), 19);
        assert_eq!(skipped("(x \"a)) (lock 1 1 2 \"b\") (lock", Skip::record()), 8);
        assert_eq!(skipped("(x (a 1;2)) (lock", Skip::record()), 11);
        assert_eq!(skipped("(x \"lost\n(lock 1 1 2))", Skip::record()), 9);
        assert_eq!(skipped("(x (a 1)\n! claim", Skip::record()), 9);
        assert_eq!(skipped("(x (a 1)\n casemate error", Skip::record()), 10);
    }

    #[test]
    fn a_word_that_only_begins_like_a_kind_is_passed_over() {
        assert_eq!(skipped("(x (locker 1))zz", Skip::record()), 14);
        assert_eq!(skipped("(x (hint", Skip::record()), 3);
        assert_eq!(skipped("(x (hin", Skip::record()), 7);
    }

    #[test]
    fn text_between_records_ends_with_its_line() {
        assert_eq!(skipped("noise (a) b\n(lock", Skip::line()), 11);
        assert_eq!(skipped("noise (lock 1", Skip::line()), 6);
        assert_eq!(skipped("noise ; (lock 1\n", Skip::line()), 15);
    }
}
