//! What diagnostics show of a line.

use anytrace_core::text;

/// Most bytes of a line that a diagnostic shows.
pub(crate) const SHOWN_BYTES: usize = 40;

/// The beginning of some bytes, quoted and escaped.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let cut = bytes.get(..SHOWN_BYTES);
    let mut out = Vec::new();
    text::push_quoted(&mut out, cut.unwrap_or(bytes));
    if cut.is_some_and(|cut| cut.len() < bytes.len()) {
        out.extend_from_slice("…".as_bytes());
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The position of a control character that does not occur in text.
pub(crate) fn control(line: &[u8]) -> Option<usize> {
    let is_control =
        |byte: &u8| *byte < 0x20 && !matches!(byte, b'\t' | b'\r' | 0x07 | 0x08 | 0x0c | 0x1b) || *byte == 0x7f;
    line.iter().position(is_control)
}

/// A byte of a line, by its value.
pub(crate) fn shown_byte(line: &[u8], at: usize) -> String {
    format!("a byte of {:#04x}", line.get(at).copied().unwrap_or(0))
}
