//! Is this a trace in the Common Trace Format? An archive with a description among its first files, or a description.

use anytrace_core::archive::{BLOCK_BYTES, Header, Kind, padding};
use anytrace_core::bytes::array_at;
use anytrace_core::{Confidence, Head};

use super::catalog::is_description;
use crate::tsdl::text;

/// The usual extensions.
pub(crate) const EXTENSIONS: &[&str] = &["ctf", "ctf.tar", "tar"];

/// The answer for the first bytes of a file.
pub(crate) fn probe(head: &Head<'_>) -> Confidence {
    if text::is_description(head.bytes) {
        return Confidence::Certain;
    }
    let (mut at, mut files) = (0_usize, 0);
    while let Some(header) = array_at::<BLOCK_BYTES>(head.bytes, at).and_then(|block| Header::read(&block)) {
        files += 1;
        at = at.saturating_add(BLOCK_BYTES);
        let contents = head.bytes.get(at..).unwrap_or_default();
        // The description of a newer version is JSON.
        if header.kind == Kind::File && is_description(&header.name) {
            let is_known = text::is_description(contents) || !contents.starts_with(b"\x1e{");
            return if is_known { Confidence::Certain } else { Confidence::No };
        }
        let size = usize::try_from(header.size).unwrap_or(usize::MAX);
        at = at.saturating_add(size).saturating_add(padding(header.size));
    }
    // Only the first files are in sight.
    if files > 0 { Confidence::Maybe } else { Confidence::No }
}

#[cfg(test)]
mod tests {
    use anytrace_core::Input;

    use super::*;

    #[test]
    fn a_description_decides() {
        let of = |bytes: Vec<u8>| probe(&Input::from_bytes("x", bytes).head());
        let file = |name: &str, bytes: &[u8]| [&Header::file(name, bytes.len() as u64).to_bytes(), bytes].concat();
        assert_eq!(of(file("a/metadata", b"/* CTF 1.8 */")), Confidence::Certain);
        assert_eq!(of(file("metadata", b"\x1e{\"type\":\"preamble\"}")), Confidence::No);
        assert_eq!(of([file("a", &[]), file("metadata", &[])].concat()), Confidence::Certain);
        assert_eq!(of(file("a", &[1; 512])), Confidence::Maybe);
        assert_eq!(of(b"/* CTF 1.8 */ trace {".to_vec()), Confidence::Certain);
        assert_eq!(of(b"\x57\x1d\xd1\x75".to_vec()), Confidence::Certain);
        assert_eq!(of(vec![0; 600]), Confidence::No);
    }
}
