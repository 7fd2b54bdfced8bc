//! The wire: little-endian, no header (docs of the format, section 1).

/// Bytes of an access: tag, address, size, thread.
pub(crate) const ACCESS_BYTES: usize = 18;
/// Bytes of a remove: tag, address, thread.
pub(crate) const REMOVE_BYTES: usize = 17;
/// Bytes of an add before its name: tag, address, thread, element bytes, elements, name bytes.
pub(crate) const ADD_BYTES: usize = 29;

pub(crate) const READ: u8 = 0;
pub(crate) const WRITE: u8 = 1;
pub(crate) const ADD: u8 = 2;
pub(crate) const REMOVE: u8 = 3;
/// Flag of an access: atomic.
pub(crate) const ATOMIC: u8 = 0x40;
/// Flag of an access: the compiler could not prove that it is aligned.
pub(crate) const UNALIGNED: u8 = 0x80;

/// An add, with its name unchanged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Add<'a> {
    pub(crate) address: u64,
    pub(crate) thread: u64,
    pub(crate) element_bytes: u32,
    pub(crate) elements: u32,
    pub(crate) name: &'a [u8],
}

/// Encodes an access.
#[inline(always)]
pub(crate) fn access(tag: u8, address: u64, size: u8, thread: u64) -> [u8; ACCESS_BYTES] {
    // Two words and a half: three stores instead of four, none of them across another's bytes.
    let low = u64::from(tag) | address << 8;
    let high = address >> 56 | u64::from(size) << 8 | thread << 16;
    let mut bytes = [0; ACCESS_BYTES];
    let (words, rest) = bytes.split_at_mut(16);
    words[..8].copy_from_slice(&low.to_le_bytes());
    words[8..].copy_from_slice(&high.to_le_bytes());
    rest.copy_from_slice(&((thread >> 48) as u16).to_le_bytes());
    bytes
}

/// The address of an encoded access.
#[inline(always)]
pub(crate) fn address_of(access: &[u8; ACCESS_BYTES]) -> usize {
    let [_, a, b, c, d, e, f, g, h, ..] = *access;
    usize::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// The bytes that an encoded access touches.
pub(crate) fn bytes_of(access: &[u8; ACCESS_BYTES]) -> usize {
    let [.., size, _, _, _, _, _, _, _, _] = *access;
    usize::from(size)
}

/// Encodes a remove.
pub(crate) fn remove(address: u64, thread: u64) -> [u8; REMOVE_BYTES] {
    let mut bytes = [REMOVE; REMOVE_BYTES];
    bytes[1..9].copy_from_slice(&address.to_le_bytes());
    bytes[9..].copy_from_slice(&thread.to_le_bytes());
    bytes
}

/// Encodes the part of an add before its name.
pub(crate) fn add(add: &Add<'_>) -> [u8; ADD_BYTES] {
    let mut bytes = [ADD; ADD_BYTES];
    bytes[1..9].copy_from_slice(&add.address.to_le_bytes());
    bytes[9..17].copy_from_slice(&add.thread.to_le_bytes());
    bytes[17..21].copy_from_slice(&add.element_bytes.to_le_bytes());
    bytes[21..25].copy_from_slice(&add.elements.to_le_bytes());
    bytes[25..].copy_from_slice(&u32::try_from(add.name.len()).unwrap_or(0).to_le_bytes());
    bytes
}

/// Bytes of complete records within the first `sent` bytes of consecutive records.
pub(crate) fn complete_bytes(records: &[u8], sent: usize) -> usize {
    let mut at = 0;
    while at < records.len() {
        match at.checked_add(complete_length(records, at)) {
            Some(end) if end <= sent => at = end,
            _ => break,
        }
    }
    at
}

/// How many accesses are among complete records, and the check of their addresses that `codes` keeps.
pub(crate) fn accesses(records: &[u8]) -> (u64, u64) {
    let (mut at, mut accesses, mut check) = (0, 0, 0_u64);
    while let Some(tag) = records.get(at) {
        let length = complete_length(records, at);
        if matches!(tag & 0x3f, READ | WRITE) {
            let address =
                records.get(at + 1..).and_then(|rest| rest.first_chunk()).map_or(0, |n| u64::from_le_bytes(*n));
            accesses += 1;
            check = check.rotate_left(5) ^ address;
        }
        at = at.saturating_add(length);
    }
    (accesses, check)
}

/// The bytes of the record that begins there.
fn complete_length(records: &[u8], at: usize) -> usize {
    let name = records.get(at + 25..).and_then(|rest| rest.first_chunk()).map_or(0, |n| u32::from_le_bytes(*n));
    match records.get(at).map_or(0, |tag| tag & 0x3f) {
        ADD => ADD_BYTES.saturating_add(name as usize),
        REMOVE => REMOVE_BYTES,
        _ => ACCESS_BYTES,
    }
}

/// The longest piece of a range that begins here: a power of two that the address is a multiple of.
pub(crate) fn piece(at: usize, rest: usize, longest: usize) -> usize {
    let aligned = if at == 0 { longest } else { 1 << at.trailing_zeros().min(7) };
    longest.min(aligned).min(1 << rest.ilog2().min(7))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_is_encoded_as_the_format_requires() {
        let bytes = access(0xc1, 0x8877_6655_4433_2211, 0xab, 0x1020_3040_5060_7080);
        let mut expected = vec![0xc1];
        expected.extend(0x8877_6655_4433_2211_u64.to_le_bytes());
        expected.push(0xab);
        expected.extend(0x1020_3040_5060_7080_u64.to_le_bytes());
        assert_eq!(bytes.as_slice(), expected);
    }

    #[test]
    fn a_written_part_is_cut_to_complete_records() {
        let name = b"struct.Node";
        let head = add(&Add { address: 1, thread: 2, element_bytes: 3, elements: 4, name });
        let mut bytes = access(0, 1, 4, 0).to_vec();
        bytes.extend(head);
        bytes.extend(name);
        bytes.extend(remove(1, 2));
        let ends = [0, 18, 18 + 40, 18 + 40 + 17];
        for sent in 0..=bytes.len() {
            let expected = ends.iter().rfind(|end| **end <= sent).copied();
            assert_eq!(Some(complete_bytes(&bytes, sent)), expected, "{sent}");
        }
    }

    fn pieces(at: usize, bytes: usize, longest: usize) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut next = at;
        while next < at + bytes {
            let length = piece(next, at + bytes - next, longest);
            found.push((next, length));
            next += length;
        }
        found
    }

    #[test]
    fn pieces_are_aligned_powers_of_two_that_cover_the_range_once() {
        assert_eq!(pieces(0x1008, 24, 16), [(0x1008, 8), (0x1010, 16)]);
        assert_eq!(pieces(0x1001, 15, 16), [(0x1001, 1), (0x1002, 2), (0x1004, 4), (0x1008, 8)]);
        assert_eq!(pieces(0, 256, 128), [(0, 128), (128, 128)]);
        assert_eq!(pieces(0x40, 3, 1).len(), 3);
        for longest in [1, 2, 4, 8, 16, 32, 64, 128] {
            for at in 0..70 {
                for bytes in 1..200 {
                    let all = pieces(at, bytes, longest);
                    assert_eq!(all.iter().map(|(_, n)| n).sum::<usize>(), bytes);
                    assert!(all.iter().all(|(at, n)| n.is_power_of_two() && at % n == 0 && *n <= longest));
                }
            }
        }
    }
}
