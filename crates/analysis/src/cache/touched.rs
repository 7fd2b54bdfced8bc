//! What an access touches: lines, and bytes of a line.

use anytrace_core::access::Access;

/// Calls `visit` with the first address of each line an access touches, in ascending order; addresses wrap at 2^64.
#[inline]
pub(super) fn for_each_line(access: &Access, shift: u32, mut visit: impl FnMut(u64)) {
    if access.bytes == 0 {
        return;
    }
    let line_bytes = 1_u64 << shift;
    let within = access.address & (line_bytes - 1);
    let lines = ((within + u64::from(access.bytes) - 1) >> shift) + 1;
    let first = access.address - within;
    for line in 0..lines {
        visit(first.wrapping_add(line << shift));
    }
}

/// The bytes of a line that an access touches, one bit for each 64th of the line (for each byte, in shorter lines).
pub(super) fn touched_bytes(access: &Access, at: u64, shift: u32) -> u64 {
    let grain = shift.saturating_sub(6);
    let from = access.address.wrapping_sub(at);
    let line_bytes = 1_u64 << shift;
    // An access that began in an earlier line wraps to a huge number.
    let first = if from < line_bytes { from } else { 0 };
    let last = access.last().wrapping_sub(at).min(line_bytes - 1);
    let (first, last) = (first >> grain, last >> grain);
    (u64::MAX >> (63 - last.min(63))) & (u64::MAX << first.min(63))
}

#[cfg(test)]
mod tests {
    use anytrace_core::access::{AccessFlags, AccessKind};

    use super::*;

    #[test]
    fn the_bytes_touched_are_bits() {
        let access = |address, bytes| Access {
            address,
            seq: 0,
            thread: 0,
            bytes,
            kind: AccessKind::Read,
            flags: AccessFlags::NONE,
        };
        assert_eq!(touched_bytes(&access(64, 8), 64, 6), 0xff);
        assert_eq!(touched_bytes(&access(60, 8), 0, 6), 0xf << 60);
        assert_eq!(touched_bytes(&access(60, 8), 64, 6), 0xf);
        assert_eq!(touched_bytes(&access(64, 64), 64, 6), u64::MAX);
        assert_eq!(touched_bytes(&access(0, 255), 64, 6), u64::MAX);
        assert_eq!(touched_bytes(&access(130, 4), 128, 7), 0b110);
    }
}
