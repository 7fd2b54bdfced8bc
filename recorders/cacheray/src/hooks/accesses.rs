//! Plain accesses: by size, unaligned, volatile, compound, of virtual tables; and the calls around them.

use std::arch::naked_asm;
use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;

use crate::hot::IS_OFF;
use crate::record::{READ, UNALIGNED, WRITE};
use crate::thread::{self, QUIET, READY};
use crate::{log, variables};

/// Defines hooks that record one access of a fixed size, or two, by a function.
macro_rules! accesses {
    ($record:path; $($size:literal: $([$($name:ident)+] => $tags:tt;)*)*) => {$($($(
        #[doc = concat!("An access of ", $size, " bytes.")]
        ///
        /// # Safety
        /// None: the address is only recorded.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            extern "C" fn body(at: *const c_void, code: usize) {
                for flags in $tags {
                    $record(tag(flags, at as usize, $size), at as usize, $size, code);
                }
            }
            naked_asm!(
                "cmp byte ptr [rip + {off}], 0", "jne 2f", "mov rsi, [rsp]", "jmp {body}", "2: ret",
                off = sym IS_OFF, body = sym body,
            )
        }
    )+)*)*};
}

/// Compilers call the plain hook for 16 bytes whose alignment they know to be 8; they cannot prove that it is 16 as
/// well, which is what the flag means.
#[inline(always)]
fn tag(tag: u8, at: usize, size: u8) -> u8 {
    if size == 16 && at & 15 != 0 { tag | UNALIGNED } else { tag }
}

accesses! { log::access;
    1:
        [__tsan_read1 __tsan_read1_pc] => [READ];
        [__tsan_write1 __tsan_write1_pc] => [WRITE];
        [__tsan_read_write1] => [READ, WRITE];
    2:
        [__tsan_read2 __tsan_read2_pc] => [READ];
        [__tsan_write2 __tsan_write2_pc] => [WRITE];
        [__tsan_read_write2] => [READ, WRITE];
        [__tsan_unaligned_read2] => [READ | UNALIGNED];
        [__tsan_unaligned_write2] => [WRITE | UNALIGNED];
        [__tsan_unaligned_read_write2] => [READ | UNALIGNED, WRITE | UNALIGNED];
    4:
        [__tsan_read4 __tsan_read4_pc] => [READ];
        [__tsan_write4 __tsan_write4_pc] => [WRITE];
        [__tsan_read_write4] => [READ, WRITE];
        [__tsan_unaligned_read4] => [READ | UNALIGNED];
        [__tsan_unaligned_write4] => [WRITE | UNALIGNED];
        [__tsan_unaligned_read_write4] => [READ | UNALIGNED, WRITE | UNALIGNED];
    8:
        [__tsan_read8 __tsan_read8_pc __tsan_vptr_read] => [READ];
        [__tsan_write8 __tsan_write8_pc] => [WRITE];
        [__tsan_read_write8] => [READ, WRITE];
        [__tsan_unaligned_read8] => [READ | UNALIGNED];
        [__tsan_unaligned_write8] => [WRITE | UNALIGNED];
        [__tsan_unaligned_read_write8] => [READ | UNALIGNED, WRITE | UNALIGNED];
    16:
        [__tsan_read16 __tsan_read16_pc] => [READ];
        [__tsan_write16 __tsan_write16_pc] => [WRITE];
        [__tsan_read_write16] => [READ, WRITE];
        [__tsan_unaligned_read16] => [READ | UNALIGNED];
        [__tsan_unaligned_write16] => [WRITE | UNALIGNED];
        [__tsan_unaligned_read_write16] => [READ | UNALIGNED, WRITE | UNALIGNED];
}

// Programs let threads wait for each other by volatile variables, too.
accesses! { log::access_in_order;
    1:
        [__tsan_volatile_read1] => [READ];
        [__tsan_volatile_write1] => [WRITE];
    2:
        [__tsan_volatile_read2] => [READ];
        [__tsan_volatile_write2] => [WRITE];
        [__tsan_unaligned_volatile_read2] => [READ | UNALIGNED];
        [__tsan_unaligned_volatile_write2] => [WRITE | UNALIGNED];
    4:
        [__tsan_volatile_read4] => [READ];
        [__tsan_volatile_write4] => [WRITE];
        [__tsan_unaligned_volatile_read4] => [READ | UNALIGNED];
        [__tsan_unaligned_volatile_write4] => [WRITE | UNALIGNED];
    8:
        [__tsan_volatile_read8] => [READ];
        [__tsan_volatile_write8] => [WRITE];
        [__tsan_unaligned_volatile_read8] => [READ | UNALIGNED];
        [__tsan_unaligned_volatile_write8] => [WRITE | UNALIGNED];
    16:
        [__tsan_volatile_read16] => [READ];
        [__tsan_volatile_write16] => [WRITE];
        [__tsan_unaligned_volatile_read16] => [READ | UNALIGNED];
        [__tsan_unaligned_volatile_write16] => [WRITE | UNALIGNED];
}

/// A constructor or destructor sets an object's pointer to its virtual table.
///
/// # Safety
/// None: the address is only recorded.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_vptr_update() {
    extern "C" fn body(at: *mut c_void, code: usize) {
        log::access(WRITE, at as usize, 8, code);
    }
    naked_asm!("mov rsi, [rsp]", "jmp {}", sym body)
}

/// Each module's constructor calls this first.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_init() {
    super::memory::instrumented();
    log::start::begin();
    variables::look();
}

/// A function begins; `from` is where its caller goes on. The format has no calls: they name what is allocated.
///
/// # Safety
/// None: the addresses are only kept.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_func_entry(_from: *const c_void) {
    extern "C" fn body(from: usize, own: usize, stack: usize) {
        thread::with(|me| me.calls.enter(own, from, stack));
    }
    naked_asm!(
        "cmp byte ptr [rip + {off}], 0", "jne 2f", "mov rsi, [rsp]", "mov rdx, rsp", "jmp {body}", "2: ret",
        off = sym IS_OFF, body = sym body,
    )
}

/// A function ends, also by an exception.
///
/// # Safety
/// None: the stack pointer is only compared.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_func_exit() {
    extern "C" fn body(stack: usize) {
        thread::with(|me| {
            // What called the outermost function may let other threads come after it.
            if me.calls.leave(stack) {
                log::publish_of(me);
            }
        });
    }
    naked_asm!(
        "cmp byte ptr [rip + {off}], 0", "jne 2f", "mov rdi, rsp", "jmp {body}", "2: ret",
        off = sym IS_OFF, body = sym body,
    )
}

/// The calling thread's accesses are not recorded until [`__tsan_ignore_thread_end`]. Calls nest.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_ignore_thread_begin() {
    thread::with(|me| {
        // What follows may let other threads go on, and is not looked at.
        log::publish_of(me);
        me.quiet.fetch_add(1, Relaxed);
        if me.state() == READY {
            me.set_state(QUIET);
        }
    });
}

/// Ends one [`__tsan_ignore_thread_begin`].
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_ignore_thread_end() {
    thread::with(|me| {
        let before = me.quiet.load(Relaxed);
        me.quiet.store(before.saturating_sub(1), Relaxed);
        if before <= 1 && me.state() == QUIET {
            me.set_state(READY);
        }
    });
}
