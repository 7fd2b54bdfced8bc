//! Is this a newformat trace? Examines the first line.

use anytrace_core::{Confidence, Head};

use crate::wire::record::{HEADER, NAME};

/// The answer for the first bytes of a file.
pub(crate) fn probe(head: &Head<'_>) -> Confidence {
    let line = head.bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if line == HEADER {
        return Confidence::Certain;
    }
    // Another version: its verbs report it.
    match unknown_version(line) {
        Some(_) => Confidence::Likely,
        None => Confidence::No,
    }
}

/// The version on a header line of a version that is not supported.
pub(crate) fn unknown_version(line: &[u8]) -> Option<&str> {
    let version = line.strip_prefix(NAME.as_bytes())?.strip_prefix(b" ")?;
    let is_number = (1..=10).contains(&version.len()) && version.iter().all(u8::is_ascii_digit);
    if is_number && line != HEADER { std::str::from_utf8(version).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use anytrace_core::Input;

    use super::*;

    #[test]
    fn the_header_decides() {
        let sure = |text: &str| probe(&Input::from_bytes("x", text.as_bytes().to_vec()).head());
        assert_eq!(sure("newformat 1\n7 seven\n"), Confidence::Certain);
        assert_eq!(sure("newformat 22\n7 seven\n"), Confidence::Likely);
        for text in ["", "7 seven\n", "newformat\n", "newformat one\n", "a newformat 1\n"] {
            assert_eq!(sure(text), Confidence::No, "{text:?}");
        }
    }
}
