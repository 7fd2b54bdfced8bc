//! Atomic operations of 8 to 64 bits: carried out while the log is locked, so that records are in the order of effects.
//! A load is a read, a store a write, a change a read and a write, a comparison that fails only a read.

use std::arch::naked_asm;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

use crate::log::{Entry, Section};
use crate::record::{self, ATOMIC, READ, WRITE};
use crate::thread;

/// What an operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Read,
    Write,
    Both,
}

/// Carries out an operation and records it. `code`: where the program goes on; 0 where that is unknown.
#[inline]
pub(super) fn recorded<R>(at: *mut c_void, size: u8, code: usize, run: impl FnOnce() -> (R, Effect)) -> R {
    let at = at as usize;
    thread::with(|me| {
        if me.quiet.load(Relaxed) > 0 {
            return run().0;
        }
        match Section::enter(me) {
            Entry::Entered(mut section) => {
                let (result, effect) = run();
                for tag in tags(effect) {
                    section.log().access(me, *tag, at, size, code);
                }
                result
            }
            Entry::Nested => {
                let (result, effect) = run();
                for tag in tags(effect) {
                    me.spill(&record::access(*tag, at as u64, size, me.id()));
                }
                result
            }
            Entry::Off => run().0,
        }
    })
}

fn tags(effect: Effect) -> &'static [u8] {
    match effect {
        Effect::Read => &[READ | ATOMIC],
        Effect::Write => &[WRITE | ATOMIC],
        Effect::Both => &[READ | ATOMIC, WRITE | ATOMIC],
    }
}

/// The order asked for. Higher bits are hints for lock elision.
fn order(asked: c_int) -> Ordering {
    match asked & 0xff {
        0 => Relaxed,
        1 | 2 => Acquire,
        3 => Release,
        4 => AcqRel,
        _ => SeqCst,
    }
}

/// A load's order; orders that a load cannot have are taken as the strongest.
fn load_order(asked: c_int) -> Ordering {
    match order(asked) {
        Relaxed => Relaxed,
        Acquire => Acquire,
        _ => SeqCst,
    }
}

/// A store's order.
fn store_order(asked: c_int) -> Ordering {
    match order(asked) {
        Relaxed => Relaxed,
        Release => Release,
        _ => SeqCst,
    }
}

/// Defines the operations that take a value and give the old one.
macro_rules! changes {
    ($atomic:ty, $integer:ty, $size:literal: $($name:ident $method:ident)*) => {$(
        #[doc = concat!("`", stringify!($method), "`, ", $size, " bytes.")]
        ///
        /// # Safety
        /// `at` is valid for atomic access of this size.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            unsafe extern "C" fn body(at: *mut $integer, value: $integer, mo: c_int, code: usize) -> $integer {
                recorded(at.cast(), $size, code, || {
                    // SAFETY: valid and aligned by the caller's contract, which is that of the operation itself.
                    let old = unsafe { <$atomic>::from_ptr(at) }.$method(value, order(mo));
                    (old, Effect::Both)
                })
            }
            naked_asm!("mov rcx, [rsp]", "jmp {}", sym body)
        }
    )*};
}

/// Defines all operations of one size.
macro_rules! atomics {
    ($atomic:ty, $integer:ty, $size:literal: $load:ident $store:ident $strong:ident $weak:ident $val:ident
     $($name:ident $method:ident)*) => {
        #[doc = concat!("Load, ", $size, " bytes.")]
        ///
        /// # Safety
        /// `at` is valid for atomic access of this size.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $load() {
            unsafe extern "C" fn body(at: *mut $integer, mo: c_int, code: usize) -> $integer {
                recorded(at.cast(), $size, code, || {
                    // SAFETY: valid and aligned by the caller's contract, which is that of the operation itself.
                    (unsafe { <$atomic>::from_ptr(at) }.load(load_order(mo)), Effect::Read)
                })
            }
            naked_asm!("mov rdx, [rsp]", "jmp {}", sym body)
        }

        #[doc = concat!("Store, ", $size, " bytes.")]
        ///
        /// # Safety
        /// `at` is valid for atomic access of this size.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $store() {
            unsafe extern "C" fn body(at: *mut $integer, value: $integer, mo: c_int, code: usize) {
                recorded(at.cast(), $size, code, || {
                    // SAFETY: valid and aligned by the caller's contract, which is that of the operation itself.
                    (unsafe { <$atomic>::from_ptr(at) }.store(value, store_order(mo)), Effect::Write)
                })
            }
            naked_asm!("mov rcx, [rsp]", "jmp {}", sym body)
        }

        const _: () = {
            /// Compare and exchange; gives the old value.
            ///
            /// # Safety
            /// `at` is valid for atomic access of this size.
            unsafe extern "C" fn exchange(
                at: *mut $integer, expected: $integer, value: $integer, mo: c_int, fail: c_int, code: usize,
            ) -> $integer {
                recorded(at.cast(), $size, code, || {
                    // SAFETY: valid and aligned by the caller's contract, which is that of the operation itself.
                    let atomic = unsafe { <$atomic>::from_ptr(at) };
                    match atomic.compare_exchange(expected, value, order(mo), load_order(fail)) {
                        Ok(old) => (old, Effect::Both),
                        Err(old) => (old, Effect::Read),
                    }
                })
            }

            /// The same; gives 1 where it was done, else puts the old value where the expected one was.
            ///
            /// # Safety
            /// As above, and `expected` is valid for reading and writing.
            unsafe extern "C" fn compared(
                at: *mut $integer, expected: *mut $integer, value: $integer, mo: c_int, fail: c_int, code: usize,
            ) -> c_int {
                // SAFETY: as the caller's.
                unsafe {
                    let wanted = expected.read_unaligned();
                    let old = exchange(at, wanted, value, mo, fail, code);
                    if old == wanted {
                        return 1;
                    }
                    expected.write_unaligned(old);
                    0
                }
            }

            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $val() {
                naked_asm!("mov r9, [rsp]", "jmp {}", sym exchange)
            }

            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $strong() {
                naked_asm!("mov r9, [rsp]", "jmp {}", sym compared)
            }

            // It never fails without reason.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $weak() {
                naked_asm!("mov r9, [rsp]", "jmp {}", sym compared)
            }
        };

        changes! { $atomic, $integer, $size: $($name $method)* }
    };
}

atomics! { AtomicU8, u8, 1:
__tsan_atomic8_load __tsan_atomic8_store __tsan_atomic8_compare_exchange_strong
__tsan_atomic8_compare_exchange_weak __tsan_atomic8_compare_exchange_val
__tsan_atomic8_exchange swap __tsan_atomic8_fetch_add fetch_add __tsan_atomic8_fetch_sub fetch_sub
__tsan_atomic8_fetch_and fetch_and __tsan_atomic8_fetch_or fetch_or __tsan_atomic8_fetch_xor fetch_xor
__tsan_atomic8_fetch_nand fetch_nand }
atomics! { AtomicU16, u16, 2:
__tsan_atomic16_load __tsan_atomic16_store __tsan_atomic16_compare_exchange_strong
__tsan_atomic16_compare_exchange_weak __tsan_atomic16_compare_exchange_val
__tsan_atomic16_exchange swap __tsan_atomic16_fetch_add fetch_add __tsan_atomic16_fetch_sub fetch_sub
__tsan_atomic16_fetch_and fetch_and __tsan_atomic16_fetch_or fetch_or __tsan_atomic16_fetch_xor fetch_xor
__tsan_atomic16_fetch_nand fetch_nand }
atomics! { AtomicU32, u32, 4:
__tsan_atomic32_load __tsan_atomic32_store __tsan_atomic32_compare_exchange_strong
__tsan_atomic32_compare_exchange_weak __tsan_atomic32_compare_exchange_val
__tsan_atomic32_exchange swap __tsan_atomic32_fetch_add fetch_add __tsan_atomic32_fetch_sub fetch_sub
__tsan_atomic32_fetch_and fetch_and __tsan_atomic32_fetch_or fetch_or __tsan_atomic32_fetch_xor fetch_xor
__tsan_atomic32_fetch_nand fetch_nand }
atomics! { AtomicU64, u64, 8:
__tsan_atomic64_load __tsan_atomic64_store __tsan_atomic64_compare_exchange_strong
__tsan_atomic64_compare_exchange_weak __tsan_atomic64_compare_exchange_val
__tsan_atomic64_exchange swap __tsan_atomic64_fetch_add fetch_add __tsan_atomic64_fetch_sub fetch_sub
__tsan_atomic64_fetch_and fetch_and __tsan_atomic64_fetch_or fetch_or __tsan_atomic64_fetch_xor fetch_xor
__tsan_atomic64_fetch_nand fetch_nand }

/// A fence between threads. The format has no record for it.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_atomic_thread_fence(mo: c_int) {
    match order(mo) {
        Relaxed => {}
        order => fence(order),
    }
}

/// A fence between a thread and its signal handlers.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_atomic_signal_fence(mo: c_int) {
    match order(mo) {
        Relaxed => {}
        order => compiler_fence(order),
    }
}
