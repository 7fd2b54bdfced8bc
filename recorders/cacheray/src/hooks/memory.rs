//! Ranges: struct copies, `memcpy` and its like, in pieces that the format's size byte can hold.

use std::ffi::{c_int, c_void};

use crate::log::{self, Entry, Section};
use crate::record::{READ, WRITE};
use crate::thread;

/// Records a range as aligned powers of two, none longer than the option `range` says.
pub(crate) fn range(tag: u8, at: usize, bytes: usize) {
    // A range that goes around the end of memory is no range; what is done with it will fail by itself.
    let (Some(end), Some(longest)) = (at.checked_add(bytes), longest()) else { return };
    let mut next = at;
    while next < end {
        let piece = piece(next, end - next, longest);
        log::access(tag, next, piece as u8);
        next += piece;
    }
}

/// The longest piece that begins here: a power of two that the address is a multiple of.
fn piece(at: usize, rest: usize, longest: usize) -> usize {
    let aligned = if at == 0 { longest } else { 1 << at.trailing_zeros().min(7) };
    longest.min(aligned).min(1 << rest.ilog2().min(7))
}

/// What the option says; `None` where nothing is recorded.
fn longest() -> Option<usize> {
    thread::with(|me| match Section::enter(me) {
        Entry::Entered(mut section) => Some(section.log().range_bytes()),
        Entry::Nested => Some(16),
        Entry::Off => None,
    })
}

/// A read of any length.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_read_range(at: *const c_void, bytes: usize) {
    range(READ, at as usize, bytes);
}

/// A write of any length.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_write_range(at: *const c_void, bytes: usize) {
    range(WRITE, at as usize, bytes);
}

/// As [`__tsan_read_range`].
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_read_range_pc(at: *const c_void, bytes: usize, _from: *const c_void) {
    range(READ, at as usize, bytes);
}

/// As [`__tsan_write_range`].
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_write_range_pc(at: *const c_void, bytes: usize, _from: *const c_void) {
    range(WRITE, at as usize, bytes);
}

unsafe extern "C" {
    fn memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
    fn memset(to: *mut c_void, byte: c_int, bytes: usize) -> *mut c_void;
}

/// `memcpy`: all reads, then all writes.
///
/// # Safety
/// The contract of `memcpy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void {
    range(READ, from as usize, bytes);
    range(WRITE, to as usize, bytes);
    // SAFETY: as the caller's. Compilers call this for copies of a struct onto itself, which the C library bears.
    unsafe { memcpy(to, from, bytes) }
}

/// `memmove`: all reads, then all writes.
///
/// # Safety
/// The contract of `memmove`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_memmove(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void {
    range(READ, from as usize, bytes);
    range(WRITE, to as usize, bytes);
    // SAFETY: as the caller's.
    unsafe { memmove(to, from, bytes) }
}

/// `memset`.
///
/// # Safety
/// The contract of `memset`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_memset(to: *mut c_void, byte: c_int, bytes: usize) -> *mut c_void {
    range(WRITE, to as usize, bytes);
    // SAFETY: as the caller's.
    unsafe { memset(to, byte, bytes) }
}

#[cfg(test)]
mod tests {
    use super::piece;

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
