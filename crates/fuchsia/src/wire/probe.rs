//! Is this a Fuchsia trace? It begins with a magic number.

use anytrace_core::bytes::array_at;
use anytrace_core::{Confidence, Head};

use super::content::{Content, read};
use super::parse::parse;
use super::record::{Layout, MAGIC};

/// Records that are read where there is no magic number.
const RECORDS_MAX: usize = 32;

/// The usual extensions.
pub(crate) const EXTENSIONS: &[&str] = &["fxt"];

/// The answer for the first bytes of a file.
pub(crate) fn probe(head: &Head<'_>) -> Confidence {
    if array_at::<8>(head.bytes, 0).map(u64::from_le_bytes) == Some(MAGIC) {
        return Confidence::Certain;
    }
    // A trace whose start is lost: records that can be read, one after another.
    if !head.has_extension(EXTENSIONS) {
        return Confidence::No;
    }
    let (mut rest, mut known) = (head.bytes, 0);
    for _ in 0..RECORDS_MAX {
        match parse(rest, &Layout::default()) {
            Ok((record, used)) if read(&record).is_ok_and(|content| content != Content::Unknown) => {
                known += 1;
                rest = rest.get(used..).unwrap_or_default();
            }
            _ => break,
        }
    }
    if known >= 4 { Confidence::Likely } else { Confidence::Maybe }
}

#[cfg(test)]
mod tests {
    use anytrace_core::Input;

    use super::*;

    #[test]
    fn the_magic_number_decides() {
        let of = |name: &str, bytes: &[u8]| probe(&Input::from_bytes(name, bytes.to_vec()).head());
        assert_eq!(of("x", &MAGIC.to_le_bytes()), Confidence::Certain);
        assert_eq!(of("x", &[0; 64]), Confidence::No);
        assert_eq!(of("x.fxt", b"text"), Confidence::Maybe);
        let rate = [&0x21_u64.to_le_bytes()[..], &1000_u64.to_le_bytes()].concat();
        assert_eq!(of("x.fxt", &rate.repeat(4)), Confidence::Likely);
    }
}
