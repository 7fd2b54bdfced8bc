//! Finds where the frames of a zstd file begin. Each can be decoded independently.

use zstd::zstd_safe::{find_frame_compressed_size, get_frame_content_size};

use crate::wire::stream::DecodeStart;

/// Most frames remembered; if there are more, every second, fourth, …
const FRAMES_MAX: usize = 1 << 16;

/// Skippable frames contain no data (RFC 8878, 3.1.2).
const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// The places of frames, as long as each declares its content size. The table that may be at the end is not trusted;
/// the frames themselves are read.
pub(crate) fn places(file: &[u8]) -> Vec<DecodeStart> {
    let mut places = Vec::new();
    let mut step = 1_u64;
    let mut number = 0_u64;
    let mut place = DecodeStart { file: 0, raw: 0 };
    loop {
        let rest = usize::try_from(place.file).ok().and_then(|at| file.get(at..)).unwrap_or_default();
        let Ok(length) = find_frame_compressed_size(rest) else { return places };
        let is_skippable = rest.get(1..4) == Some(&SKIPPABLE);
        if !is_skippable && number.is_multiple_of(step) {
            places.push(place);
        }
        if places.len() > FRAMES_MAX {
            step = step.saturating_mul(2);
            let mut is_kept = false;
            places.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
        let raw = match get_frame_content_size(rest) {
            _ if is_skippable => Some(0),
            Ok(Some(raw)) => place.raw.checked_add(raw).map(|_| raw),
            _ => None,
        };
        let (Some(raw), true) = (raw, length > 0) else { return places };
        number += u64::from(!is_skippable);
        place = DecodeStart { file: place.file + length as u64, raw: place.raw + raw };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_with_and_without_a_table_and_rubbish_ends_them() {
        let frame = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).unwrap();
        let (one, two) = (frame(&[7; 5000]), frame(b"two"));
        let skippable = [&[0x5e, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let file = [one.as_slice(), &skippable, &two, b"rubbish"].concat();
        let later = DecodeStart { file: (one.len() + skippable.len()) as u64, raw: 5000 };
        assert_eq!(places(&file), [DecodeStart { file: 0, raw: 0 }, later]);
        for cut in 0..file.len() {
            assert!(places(&file[..cut]).len() <= 2);
        }
        assert!(places(b"").is_empty());
    }

    #[test]
    fn a_frame_that_does_not_say_its_size_is_the_last() {
        let streamed = zstd::encode_all(&[7_u8; 5000][..], 1).unwrap();
        let known = zstd::bulk::compress(b"abc", 1).unwrap();
        let file = [known.as_slice(), &streamed, &known].concat();
        assert_eq!(places(&file), [DecodeStart::default(), DecodeStart { file: known.len() as u64, raw: 3 }]);
    }
}
