//! What makes bytes safe for a terminal.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

use anytrace_core::text::is_unsafe_char;

/// Longest color sequence that is recognized; longer ones are escaped.
const SEQUENCE_BYTES_MAX: usize = 40;

/// Bytes of text that are looked at together, so that little memory is used however much is written at once.
const PIECE_BYTES: usize = 1 << 16;

/// ESC and a number that differs each time the program runs: what follows it was written by [`crate::paint`].
static MARK: LazyLock<String> = LazyLock::new(|| format!("\u{1b}{:016x}", RandomState::new().build_hasher().finish()));

/// How unsafe characters are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// As they are: no terminal.
    None,
    /// `\u{1b}`, `\xff`.
    Text,
    /// `\u001b`, as in JSON strings.
    Json,
}

/// Which color sequences pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colors {
    /// None; marked ones vanish.
    None,
    /// Those with the mark.
    Marked,
    /// All sequences that only change colors.
    All,
}

/// Color sequences with the mark in place of each ESC.
pub(crate) fn marked(sequences: &str) -> String {
    sequences.replace('\u{1b}', &MARK)
}

/// True for a character that is escaped.
pub(super) fn is_unsafe(c: char) -> bool {
    is_unsafe_char(c) && !matches!(c, '\n' | '\t')
}

/// Holds what may be the beginning of a character or of a sequence between two writes.
pub(super) struct Guard {
    pub(super) escapes: Escapes,
    pub(super) colors: Colors,
    /// Bytes that cannot be classified yet; then all that are being classified.
    pending: Vec<u8>,
    safe: Vec<u8>,
}

impl Guard {
    pub(super) fn new(escapes: Escapes, colors: Colors) -> Self {
        Self { escapes, colors, pending: Vec::new(), safe: Vec::new() }
    }

    /// True for bytes that can be written as they are.
    pub(super) fn passes(&self, bytes: &[u8]) -> bool {
        self.pending.is_empty()
            && match self.escapes {
                // Without an ESC there is no mark.
                Escapes::None => memchr::memchr(0x1b, bytes).is_none(),
                Escapes::Text | Escapes::Json => bytes.iter().all(|byte| matches!(byte, 0x20..0x7f | b'\n' | b'\t')),
            }
    }

    /// The safe form of what was left and of `bytes`, except for what the next write may complete.
    pub(super) fn take(&mut self, bytes: &[u8]) -> &[u8] {
        self.safe.clear();
        for piece in bytes.chunks(PIECE_BYTES) {
            let mut judged = std::mem::take(&mut self.pending);
            judged.extend_from_slice(piece);
            let used = match self.escapes {
                Escapes::None => self.unmark(&judged),
                Escapes::Text | Escapes::Json => self.escape(&judged),
            };
            judged.drain(..used);
            self.pending = judged;
        }
        &self.safe
    }

    /// The safe form of what was never completed.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        let pending = std::mem::take(&mut self.pending);
        let mut rest = Vec::new();
        match self.escapes {
            Escapes::None => rest = pending,
            escapes => {
                for chunk in pending.utf8_chunks() {
                    chunk.valid().chars().for_each(|c| push(&mut rest, c, escapes));
                    chunk.invalid().iter().for_each(|byte| push_byte(&mut rest, *byte, escapes));
                }
            }
        }
        rest
    }

    /// Marked sequences become plain ones, or nothing; all else stays. Gives the number of bytes used.
    fn unmark(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some(found) = memchr::memchr(0x1b, &bytes[at..]) {
            self.safe.extend_from_slice(&bytes[at..at + found]);
            at += found;
            match marked_sequence(&bytes[at..]) {
                Sequence::Is(used, text) => {
                    if self.colors != Colors::None {
                        self.safe.push(0x1b);
                        self.safe.extend_from_slice(text);
                    }
                    at += used;
                }
                Sequence::Needs => return at,
                Sequence::No => {
                    self.safe.push(0x1b);
                    at += 1;
                }
            }
        }
        self.safe.extend_from_slice(&bytes[at..]);
        bytes.len()
    }

    /// Escapes for a terminal. Gives the number of bytes used.
    fn escape(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some(&first) = bytes.get(at) {
            if first == 0x1b {
                let rest = &bytes[at..];
                match self.sequence(rest) {
                    Sequence::Is(used, text) => {
                        if self.colors != Colors::None {
                            self.safe.push(0x1b);
                            self.safe.extend_from_slice(text);
                        }
                        at += used;
                    }
                    Sequence::Needs => return at,
                    Sequence::No => {
                        push(&mut self.safe, '\u{1b}', self.escapes);
                        at += 1;
                    }
                }
                continue;
            }
            let end = memchr::memchr(0x1b, &bytes[at..]).map_or(bytes.len(), |found| at + found);
            let text = &bytes[at..end];
            let mut used = 0;
            for chunk in text.utf8_chunks() {
                chunk.valid().chars().for_each(|c| push(&mut self.safe, c, self.escapes));
                used += chunk.valid().len();
                let invalid = chunk.invalid();
                if end == bytes.len() && used + invalid.len() == text.len() && may_go_on(invalid) {
                    return at + used;
                }
                invalid.iter().for_each(|byte| push_byte(&mut self.safe, *byte, self.escapes));
                used += invalid.len();
            }
            at = end;
        }
        bytes.len()
    }

    fn sequence<'b>(&self, bytes: &'b [u8]) -> Sequence<'b> {
        match marked_sequence(bytes) {
            Sequence::No if self.colors == Colors::All => plain_sequence(bytes, 1),
            other => other,
        }
    }
}

/// What begins at an ESC.
enum Sequence<'b> {
    /// A color sequence: bytes used, and what follows its ESC.
    Is(usize, &'b [u8]),
    /// That depends on bytes that are not there yet.
    Needs,
    No,
}

/// A color sequence whose ESC is the mark.
fn marked_sequence(bytes: &[u8]) -> Sequence<'_> {
    let mark = MARK.as_bytes();
    if bytes.len() < mark.len() {
        return if mark.starts_with(bytes) { Sequence::Needs } else { Sequence::No };
    }
    if bytes.starts_with(mark) { plain_sequence(bytes, mark.len()) } else { Sequence::No }
}

/// `[`, digits and semicolons, `m`, after an ESC of this many bytes.
fn plain_sequence(bytes: &[u8], behind: usize) -> Sequence<'_> {
    let text = &bytes[behind.min(bytes.len())..];
    for (at, byte) in text.iter().take(SEQUENCE_BYTES_MAX).enumerate() {
        match (at, byte) {
            (0, b'[') | (1.., b'0'..=b'9' | b';') => {}
            (1.., b'm') => return Sequence::Is(behind + at + 1, &text[..=at]),
            _ => return Sequence::No,
        }
    }
    if text.len() < SEQUENCE_BYTES_MAX { Sequence::Needs } else { Sequence::No }
}

/// True when more bytes could make a character of these.
fn may_go_on(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

fn push(out: &mut Vec<u8>, c: char, escapes: Escapes) {
    if !is_unsafe(c) {
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    } else if escapes == Escapes::Json {
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
        }
    } else {
        out.extend_from_slice(format!("\\u{{{:x}}}", u32::from(c)).as_bytes());
    }
}

fn push_byte(out: &mut Vec<u8>, byte: u8, escapes: Escapes) {
    // JSON has no way to write a byte: what is not text there is replaced, as everywhere.
    let text = if escapes == Escapes::Json { "\u{fffd}".to_owned() } else { format!("\\x{byte:02x}") };
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output, written in pieces of this many bytes.
    fn shown(escapes: Escapes, colors: Colors, bytes: &[u8], step: usize) -> Vec<u8> {
        let mut guard = Guard::new(escapes, colors);
        let mut out = Vec::new();
        for piece in bytes.chunks(step) {
            if guard.passes(piece) {
                out.extend_from_slice(piece);
            } else {
                out.extend_from_slice(guard.take(piece));
            }
        }
        out.extend(guard.rest());
        out
    }

    const EVIL: &[u8] = b"a\x1b]0;x\x07\x1b[31mR\xc2\x9b1m\xe2\x80\xae\r\n\t\x00\x7f\xff\xfe\xf0\x9f\xa6\x80\xe2\x80";

    #[test]
    fn nothing_unsafe_gets_through_however_it_is_cut() {
        let expected = "a\\u{1b}]0;x\\u{7}\\u{1b}[31mR\\u{9b}1m\\u{202e}\\u{d}\n\t\\u{0}\\u{7f}\\xff\\xfe🦀\\xe2\\x80";
        for step in 1..EVIL.len() + 1 {
            for colors in [Colors::None, Colors::Marked] {
                let out = shown(Escapes::Text, colors, EVIL, step);
                assert_eq!(String::from_utf8(out).unwrap(), expected, "{step}");
            }
        }
    }

    #[test]
    fn only_marked_sequences_pass() {
        let text = format!("{}x\u{1b}[1my{}", marked("\u{1b}[1m\u{1b}[31m"), marked("\u{1b}[0m"));
        for step in 1..text.len() + 1 {
            let of = |escapes, colors| String::from_utf8(shown(escapes, colors, text.as_bytes(), step)).unwrap();
            assert_eq!(of(Escapes::Text, Colors::Marked), "\u{1b}[1m\u{1b}[31mx\\u{1b}[1my\u{1b}[0m");
            assert_eq!(of(Escapes::Text, Colors::None), "x\\u{1b}[1my");
            assert_eq!(of(Escapes::Text, Colors::All), "\u{1b}[1m\u{1b}[31mx\u{1b}[1my\u{1b}[0m");
            assert_eq!(of(Escapes::None, Colors::None), "x\u{1b}[1my");
            assert_eq!(of(Escapes::None, Colors::Marked), "\u{1b}[1m\u{1b}[31mx\u{1b}[1my\u{1b}[0m");
        }
    }

    #[test]
    fn where_all_colors_pass_nothing_else_does() {
        for bad in ["\u{1b}[2J", "\u{1b}]0;x\u{7}", "\u{1b}[?25l", "\u{1b}[m", "\u{1b}c", "\u{1b}[1;", "\u{1b}"] {
            let out = String::from_utf8(shown(Escapes::Text, Colors::All, bad.as_bytes(), 3)).unwrap();
            assert_eq!(out.contains('\u{1b}'), bad == "\u{1b}[m", "{bad:?} {out:?}");
        }
    }

    #[test]
    fn no_terminal_gets_every_byte() {
        for step in 1..EVIL.len() {
            assert_eq!(shown(Escapes::None, Colors::Marked, EVIL, step), EVIL);
        }
    }

    #[test]
    fn json_is_still_json() {
        let json = serde_json::to_string("\u{9b}\u{202e}\u{e0041}\u{7f}é").unwrap();
        let out = shown(Escapes::Json, Colors::None, json.as_bytes(), 5);
        assert!(out.is_ascii() || !String::from_utf8_lossy(&out).contains(is_unsafe));
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), "\u{9b}\u{202e}\u{e0041}\u{7f}é");
    }
}
