//! Text cells of CSV (RFC 4180), for every table written: quoted where necessary, and guarded.
//!
//! Spreadsheets evaluate a cell that begins like a formula, and names in a trace are untrusted. So a text cell that
//! begins with `=`, `+`, `-`, `@`, a tab or a line end gets a leading `'`, which spreadsheets take for "this is text".
//! Numbers are never text cells and stay numbers.
//!
//! ```
//! use anytrace_export::cells::Cells;
//!
//! assert_eq!(Cells::Guarded.text("=1+1"), "'=1+1");
//! assert_eq!(Cells::Raw.text("=1+1"), "=1+1");
//! assert_eq!(Cells::Guarded.text("f(int, \"x\")"), "\"f(int, \"\"x\"\")\"");
//! ```

/// Whether text that begins like a formula is guarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cells {
    /// With a leading `'`.
    #[default]
    Guarded,
    /// Unchanged: for programs, and where the bytes of a peer are wanted.
    Raw,
}

impl Cells {
    /// Appends a text cell, in quotes where it has to be.
    pub fn push(self, out: &mut Vec<u8>, text: &str) {
        if text.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
            self.push_quoted(out, text);
        } else {
            self.push_guard(out, text);
            out.extend_from_slice(text.as_bytes());
        }
    }

    /// Appends a text cell in quotes.
    pub fn push_quoted(self, out: &mut Vec<u8>, text: &str) {
        out.push(b'"');
        self.push_guard(out, text);
        push_doubled(out, text.as_bytes());
        out.push(b'"');
    }

    /// A text cell, in quotes where it has to be.
    pub fn text(self, text: &str) -> String {
        let mut out = Vec::with_capacity(text.len());
        self.push(&mut out, text);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// A text cell in quotes.
    pub fn quoted(self, text: &str) -> String {
        let mut out = Vec::with_capacity(text.len() + 2);
        self.push_quoted(&mut out, text);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// A text cell for people: what could move, hide or reorder it on a terminal is escaped.
    pub fn printable(self, text: &str) -> String {
        self.text(&anytrace_core::text::printable(text))
    }

    fn push_guard(self, out: &mut Vec<u8>, text: &str) {
        if self == Self::Guarded && text.starts_with(FORMULA) {
            out.push(b'\'');
        }
    }
}

/// Characters that begin a formula, in some locales in their wide form.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Appends bytes with each quotation mark doubled, as within quotes.
pub(crate) fn push_doubled(out: &mut Vec<u8>, bytes: &[u8]) {
    for (n, piece) in bytes.split(|byte| *byte == b'"').enumerate() {
        if n > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_have_to_be() {
        for cells in [Cells::Guarded, Cells::Raw] {
            assert_eq!(cells.text("fib(int)"), "fib(int)");
            assert_eq!(cells.text("f(int, \"x\")"), "\"f(int, \"\"x\"\")\"");
            assert_eq!(cells.text("a\nb"), "\"a\nb\"");
            assert_eq!((cells.quoted("a"), cells.text("")), ("\"a\"".to_owned(), String::new()));
            assert_eq!(cells.printable("a\nb"), "a\\u{a}b");
        }
    }

    #[test]
    fn only_text_that_begins_like_a_formula_is_guarded() {
        for text in ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "＝1"] {
            assert_eq!((Cells::Guarded.text(text), Cells::Raw.text(text)), (format!("'{text}"), text.to_owned()));
        }
        assert_eq!(Cells::Guarded.text("=a,\"b\""), "\"'=a,\"\"b\"\"\"");
        assert_eq!(Cells::Guarded.quoted("\r=1"), "\"'\r=1\"");
        for text in ["a=1", "'=1", " x", "(all)", "1-2"] {
            assert_eq!(Cells::Guarded.text(text), text);
        }
    }
}
