//! What diagnostics show of the bytes.

use anytrace_core::text;

/// Most bytes that a diagnostic shows.
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
