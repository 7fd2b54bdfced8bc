//! Numbers of few bits as Parquet stores levels and keys: runs of equal ones, the rest bit-packed.

use super::thrift::varint;

/// As many equal numbers become a run. Fewer take less room bit-packed, and their groups have eight.
const RUN_MIN: usize = 8;

/// Appends numbers of `bits` bits each, at most 32.
pub(super) fn encode<T: Copy + PartialEq + Into<u32>>(out: &mut Vec<u8>, numbers: &[T], bits: u32) {
    let mut packed_from = 0;
    let mut at = 0;
    while let Some(first) = numbers.get(at) {
        let equal = numbers[at..].iter().take_while(|number| *number == first).count();
        // Bit-packed groups are full, except at the end: they take what they lack from the run.
        let lacking = (8 - (at - packed_from) % 8) % 8;
        if equal >= lacking + RUN_MIN {
            pack(out, &numbers[packed_from..at + lacking], bits);
            varint(out, ((equal - lacking) as u64) << 1);
            let value: u32 = (*first).into();
            out.extend_from_slice(&value.to_le_bytes()[..bits.div_ceil(8) as usize]);
            packed_from = at + equal;
        }
        at += equal;
    }
    pack(out, &numbers[packed_from..], bits);
}

fn pack<T: Copy + Into<u32>>(out: &mut Vec<u8>, numbers: &[T], bits: u32) {
    if numbers.is_empty() {
        return;
    }
    let groups = numbers.len().div_ceil(8);
    varint(out, (groups as u64) << 1 | 1);
    let end = out.len() + groups * bits as usize;
    let (mut word, mut filled) = (0_u64, 0);
    for number in numbers {
        let number: u32 = (*number).into();
        word |= u64::from(number) << filled;
        filled += bits;
        while filled >= 8 {
            out.push(word as u8);
            word >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        out.push(word as u8);
    }
    out.resize(end, 0);
}

/// Bits that the largest key of a dictionary of this many entries takes; at least 1, as other writers have it.
pub(super) fn bits_for(entries: usize) -> u32 {
    let largest = u32::try_from(entries.saturating_sub(1)).unwrap_or(u32::MAX);
    (u32::BITS - largest.leading_zeros()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An obvious reader.
    fn decode(mut bytes: &[u8], bits: u32, count: usize) -> Vec<u32> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let (mut header, mut shift) = (0_usize, 0);
            while let Some((byte, rest)) = bytes.split_first() {
                header |= usize::from(byte & 0x7f) << shift;
                (bytes, shift) = (rest, shift + 7);
                if byte & 0x80 == 0 {
                    break;
                }
            }
            if header & 1 == 0 {
                let (value, rest) = bytes.split_at(bits.div_ceil(8) as usize);
                let value = value.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
                numbers.extend(std::iter::repeat_n(value, header >> 1));
                bytes = rest;
            } else {
                let (group, rest) = bytes.split_at((header >> 1) * bits as usize);
                let bit = |at: usize| u32::from(group[at / 8] >> (at % 8) & 1);
                let number = |n: usize| (0..bits as usize).map(|at| bit(n * bits as usize + at) << at).sum::<u32>();
                numbers.extend((0..(header >> 1) * 8).map(number));
                bytes = rest;
            }
        }
        assert!(bytes.is_empty());
        numbers.truncate(count);
        numbers
    }

    #[test]
    fn runs_and_groups_read_back() {
        let mut seed = 1_u32;
        for bits in [1, 2, 3, 7, 8, 9, 17, 31, 32] {
            for count in [0, 1, 7, 8, 9, 40, 300] {
                for longest in [1, 4, 12, 40] {
                    let mut numbers: Vec<u32> = Vec::new();
                    while numbers.len() < count {
                        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let run = (seed >> 8) as usize % longest + 1;
                        numbers.extend(std::iter::repeat_n(seed >> (32 - bits), run));
                    }
                    numbers.truncate(count);
                    let mut out = Vec::new();
                    encode(&mut out, &numbers, bits);
                    assert_eq!(decode(&out, bits, count), numbers, "{bits} bits, {count} numbers");
                }
            }
        }
    }

    #[test]
    fn a_run_is_two_bytes_and_its_neighbors_are_full_groups() {
        let mut out = Vec::new();
        encode(&mut out, &[true; 1000], 1);
        assert_eq!(out, [0xd0, 0x0f, 1]);
        out.clear();
        let mut levels = vec![false, true, true];
        levels.resize(3 + 20, false);
        encode(&mut out, &levels, 1);
        assert_eq!(out, [3, 0b110, 15 << 1, 0]);
        assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(bits_for), [1, 1, 1, 2, 2, 3, 8, 9]);
    }
}
