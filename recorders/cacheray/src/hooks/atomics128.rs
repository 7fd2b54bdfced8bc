//! Atomic operations of 128 bits, by the processor's `cmpxchg16b`; all of them with the strongest order. Where they are
//! in the program is not recorded: their arguments leave no register for it.
//!
//! A load is such an instruction too, and so needs memory that can be written to, as with libatomic before AVX.

use std::arch::asm;
use std::ffi::c_int;

use super::atomics::{Effect, recorded};

/// The instruction: returns the previous value at `at`, which is `new` now if that was `expected`.
///
/// The library's own function for it becomes a call of libatomic where the processor is not known to have it; those
/// for which compilers emit these hooks do.
///
/// # Safety
/// `at` is valid for atomic access of 16 bytes.
unsafe fn compare_exchange(at: *mut u128, expected: u128, new: u128) -> u128 {
    let (mut low, mut high) = (expected as u64, (expected >> 64) as u64);
    // SAFETY: one atomic access of the 16 bytes at `at`; the compiler keeps rbx for itself, so it is put back.
    unsafe {
        asm!(
            "xchg rsi, rbx",
            "lock cmpxchg16b [rdi]",
            "mov rbx, rsi",
            // Registers by name: a register of the compiler's choice may be rbx itself.
            in("rdi") at,
            inout("rsi") new as u64 => _,
            in("rcx") (new >> 64) as u64,
            inout("rax") low,
            inout("rdx") high,
            options(nostack),
        );
    }
    u128::from(high) << 64 | u128::from(low)
}

/// Puts `change` of the old value in its place, and gives the old one.
///
/// # Safety
/// `at` is valid for atomic access of 16 bytes.
unsafe fn change(at: *mut u128, change: impl Fn(u128) -> u128) -> u128 {
    // SAFETY: as the caller's.
    let mut old = unsafe { compare_exchange(at, 0, 0) };
    loop {
        // SAFETY: as above.
        let found = unsafe { compare_exchange(at, old, change(old)) };
        if found == old {
            return old;
        }
        old = found;
    }
}

/// Defines the operations that take a value and give the old one.
macro_rules! changes {
    ($($name:ident |$old:ident, $value:ident| $new:expr;)*) => {$(
        /// Changes 16 bytes and gives what they were.
        ///
        /// # Safety
        /// `at` is valid for atomic access of 16 bytes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(at: *mut u128, $value: u128, _mo: c_int) -> u128 {
            // SAFETY: as the caller's.
            recorded(at.cast(), 16, 0, || (unsafe { change(at, |$old| $new) }, Effect::Both))
        }
    )*};
}

changes! {
    __tsan_atomic128_exchange |_old, value| value;
    __tsan_atomic128_fetch_add |old, value| old.wrapping_add(value);
    __tsan_atomic128_fetch_sub |old, value| old.wrapping_sub(value);
    __tsan_atomic128_fetch_and |old, value| old & value;
    __tsan_atomic128_fetch_or |old, value| old | value;
    __tsan_atomic128_fetch_xor |old, value| old ^ value;
    __tsan_atomic128_fetch_nand |old, value| !(old & value);
}

/// Load, 16 bytes.
///
/// # Safety
/// `at` is valid for atomic access of 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_atomic128_load(at: *mut u128, _mo: c_int) -> u128 {
    // SAFETY: as the caller's; zero in place of zero changes nothing.
    recorded(at.cast(), 16, 0, || (unsafe { compare_exchange(at, 0, 0) }, Effect::Read))
}

/// Store, 16 bytes.
///
/// # Safety
/// `at` is valid for atomic access of 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_atomic128_store(at: *mut u128, value: u128, _mo: c_int) {
    // SAFETY: as the caller's.
    recorded(at.cast(), 16, 0, || (unsafe { change(at, |_| value) }, Effect::Write));
}

/// Compare and exchange, 16 bytes; gives the old value.
///
/// # Safety
/// `at` is valid for atomic access of 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_atomic128_compare_exchange_val(
    at: *mut u128,
    expected: u128,
    value: u128,
    _mo: c_int,
    _fail: c_int,
) -> u128 {
    recorded(at.cast(), 16, 0, || {
        // SAFETY: as the caller's.
        let old = unsafe { compare_exchange(at, expected, value) };
        (old, if old == expected { Effect::Both } else { Effect::Read })
    })
}

/// Compare and exchange, 16 bytes; gives 1 where it was done, else puts the old value where the expected one was.
///
/// # Safety
/// `at` is valid for atomic access of 16 bytes, `expected` for reading and writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_atomic128_compare_exchange_strong(
    at: *mut u128,
    expected: *mut u128,
    value: u128,
    mo: c_int,
    fail: c_int,
) -> c_int {
    // SAFETY: as the caller's.
    unsafe {
        let wanted = expected.read_unaligned();
        let old = __tsan_atomic128_compare_exchange_val(at, wanted, value, mo, fail);
        if old == wanted {
            return 1;
        }
        expected.write_unaligned(old);
        0
    }
}

/// As `__tsan_atomic128_compare_exchange_strong`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_atomic128_compare_exchange_weak(
    at: *mut u128,
    expected: *mut u128,
    value: u128,
    mo: c_int,
    fail: c_int,
) -> c_int {
    // SAFETY: as the caller's.
    unsafe { __tsan_atomic128_compare_exchange_strong(at, expected, value, mo, fail) }
}
