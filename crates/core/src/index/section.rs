//! The section of an index file that is the viewer's: a summary of all spans, whose bytes only the viewer understands.

use twox_hash::XxHash3_64;

use super::IndexFault;
use super::file::{ENTRY_BYTES, HEADER_BYTES, MAGIC, Sections, VERSION};

/// Kind of the section.
const PYRAMID: u32 = 7;

/// The bytes of an index file with a pyramid as its last section, in place of the one it may have.
///
/// # Errors
/// What is wrong with the index.
pub fn with_pyramid(index: &[u8], pyramid: &[u8]) -> Result<Vec<u8>, IndexFault> {
    let old = Sections::of(index)?;
    let kinds = old.kinds().filter(|kind| *kind != PYRAMID);
    let mut sections = Vec::new();
    for kind in kinds {
        sections.push((kind, old.get(kind)?.unwrap_or_default()));
    }
    sections.push((PYRAMID, pyramid));
    let mut out = MAGIC.to_vec();
    out.extend(VERSION.to_le_bytes());
    out.extend(u32::try_from(sections.len()).unwrap_or(u32::MAX).to_le_bytes());
    let mut offset = (HEADER_BYTES + sections.len() * ENTRY_BYTES + size_of::<u64>()) as u64;
    for (kind, bytes) in &sections {
        let numbers = [u64::from(*kind), offset, bytes.len() as u64, XxHash3_64::oneshot(bytes)];
        numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
        offset += bytes.len() as u64;
    }
    out.extend(XxHash3_64::oneshot(&out).to_le_bytes());
    sections.iter().for_each(|(_, bytes)| out.extend_from_slice(bytes));
    Ok(out)
}

/// The pyramid of an index file, if it has one; other sections are not looked at.
///
/// # Errors
/// Where the directory or the section is damaged.
pub fn pyramid(index: &[u8]) -> Result<Option<&[u8]>, IndexFault> {
    Sections::of(index)?.get(PYRAMID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Chunk, Index, Pieces, piece_bytes};

    fn index() -> Index {
        Index {
            format: "x".to_owned(),
            version: "1".to_owned(),
            pieces: Pieces { file_bytes: 0, piece_bytes: piece_bytes(0), digests: Vec::new() },
            chunks: vec![Chunk::default()],
            threads: Vec::new(),
            kinds: Vec::new(),
            shared: None,
        }
    }

    #[test]
    fn an_index_stays_what_it_was_beside_a_pyramid() {
        let bytes = index().encode();
        assert_eq!(pyramid(&bytes), Ok(None));
        let with = with_pyramid(&with_pyramid(&bytes, b"first").unwrap(), b"second").unwrap();
        assert_eq!((Index::decode(&with), pyramid(&with)), (Ok(index()), Ok(Some(&b"second"[..]))));
    }

    #[test]
    fn a_damaged_pyramid_is_refused_and_the_rest_is_not() {
        let mut bytes = with_pyramid(&index().encode(), b"pyramid").unwrap();
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        assert!(matches!(pyramid(&bytes), Err(IndexFault::Checksum(_))));
        assert_eq!(Index::decode(&bytes), Ok(index()));
    }
}
