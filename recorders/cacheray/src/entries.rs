//! The functions of the C and C++ libraries that the recorder intercepts.
//!
//! Each is a few instructions that pass on the address the call returns to, or save the arguments, and jump. All are
//! weak: a program's own `malloc` or `operator new` takes precedence over ours.

use std::arch::naked_asm;
use std::ffi::c_void;

use crate::hooks::{library, memory, releases};
use crate::log::signals;
use crate::{alloc, real, spawn};

/// Defines functions that jump to ours, with the return address in one more register.
macro_rules! with_site {
    ($($name:literal $entry:ident => $to:path, $register:literal;)*) => {$(
        #[doc = concat!("`", $name, "`: see `alloc`.")]
        ///
        /// # Safety
        /// The contract of the library's function of this name.
        #[unsafe(naked)]
        #[unsafe(export_name = $name)]
        pub unsafe extern "C" fn $entry() {
            naked_asm!(
                concat!(".weak ", $name),
                concat!("mov ", $register, ", [rsp]"),
                "jmp {}",
                sym $to
            )
        }
    )*};
}

/// Defines functions that jump to ours as they are.
macro_rules! plain {
    ($($name:literal $entry:ident => $to:path;)*) => {$(
        #[doc = concat!("`", $name, "`: see where it leads.")]
        ///
        /// # Safety
        /// The contract of the library's function of this name.
        #[unsafe(naked)]
        #[unsafe(export_name = $name)]
        pub unsafe extern "C" fn $entry() {
            naked_asm!(concat!(".weak ", $name), "jmp {}", sym $to)
        }
    )*};
}

/// Defines functions that write the buffer and jump to the real function, whatever arguments it takes.
macro_rules! flushed {
    ($($name:literal $entry:ident;)*) => {$(
        #[doc = concat!("`", $name, "`, after the buffer was written.")]
        ///
        /// # Safety
        /// The contract of the library's function of this name.
        #[unsafe(naked)]
        #[unsafe(export_name = $name)]
        pub unsafe extern "C" fn $entry() {
            naked_asm!(
                concat!(".weak ", $name),
                // Seven words keep the stack aligned to 16 bytes for the calls.
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                "call {flush}",
                "lea rdi, [rip + 2f]",
                "call {address}",
                "mov r11, rax",
                "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp r11",
                concat!("2: .asciz \"", $name, "\""),
                flush = sym signals::before_the_end,
                address = sym real::address,
            )
        }
    )*};
}

/// Defines functions that see to the recorder and jump to the real function, which jumps out of a signal handler maybe.
macro_rules! jumps {
    ($($name:literal $entry:ident;)*) => {$(
        #[doc = concat!("`", $name, "`: see `signals::before_a_jump`.")]
        ///
        /// # Safety
        /// The contract of the library's function of this name.
        #[unsafe(naked)]
        #[unsafe(export_name = $name)]
        pub unsafe extern "C" fn $entry() {
            naked_asm!(
                concat!(".weak ", $name),
                // Three words keep the stack aligned to 16 bytes for the calls.
                "push rdi", "push rsi", "push rax",
                "call {before}",
                "lea rdi, [rip + 2f]",
                "call {address}",
                "mov r11, rax",
                "pop rax", "pop rsi", "pop rdi",
                "jmp r11",
                concat!("2: .asciz \"", $name, "\""),
                before = sym signals::before_a_jump,
                address = sym real::address,
            )
        }
    )*};
}

with_site! {
    "malloc" malloc => alloc::malloc, "rsi";
    "calloc" calloc => alloc::calloc, "rdx";
    "realloc" realloc => alloc::realloc, "rdx";
    "reallocarray" reallocarray => alloc::reallocarray, "rcx";
    "posix_memalign" posix_memalign => alloc::posix_memalign, "rcx";
    "aligned_alloc" aligned_alloc => alloc::aligned_alloc, "rdx";
    "memalign" memalign => alloc::memalign, "rdx";
    "valloc" valloc => alloc::valloc, "rsi";
    "pvalloc" pvalloc => alloc::pvalloc, "rsi";
    "memcpy" memcpy => memory::memcpy, "rcx";
    "memmove" memmove => memory::memmove, "rcx";
    "memset" memset => memory::memset, "rcx";
    "__cacheray_memcpy" our_memcpy => memory::memcpy, "rcx";
    "__cacheray_memmove" our_memmove => memory::memmove, "rcx";
    "__cacheray_memset" our_memset => memory::memset, "rcx";
    "strdup" strdup => library::strdup, "rsi";
    "__strdup" strdup_too => library::strdup, "rsi";
    "strndup" strndup => library::strndup, "rdx";
    "__strndup" strndup_too => library::strndup, "rdx";
    "_Znwm" new => new_or_throw, "rsi";
    "_Znam" new_array => new_or_throw, "rsi";
    "_ZnwmRKSt9nothrow_t" new_nothrow => alloc::new, "rsi";
    "_ZnamRKSt9nothrow_t" new_array_nothrow => alloc::new, "rsi";
    "_ZnwmSt11align_val_t" new_aligned => new_aligned_or_throw, "rdx";
    "_ZnamSt11align_val_t" new_array_aligned => new_aligned_or_throw, "rdx";
    "_ZnwmSt11align_val_tRKSt9nothrow_t" new_aligned_nothrow => alloc::new_aligned, "rdx";
    "_ZnamSt11align_val_tRKSt9nothrow_t" new_array_aligned_nothrow => alloc::new_aligned, "rdx";
}

plain! {
    "free" free => alloc::free;
    "cfree" cfree => alloc::free;
    "_ZdlPv" delete => alloc::free;
    "_ZdaPv" delete_array => alloc::free;
    "_ZdlPvm" delete_sized => alloc::free;
    "_ZdaPvm" delete_array_sized => alloc::free;
    "_ZdlPvRKSt9nothrow_t" delete_nothrow => alloc::free;
    "_ZdaPvRKSt9nothrow_t" delete_array_nothrow => alloc::free;
    "_ZdlPvSt11align_val_t" delete_aligned => alloc::free;
    "_ZdaPvSt11align_val_t" delete_array_aligned => alloc::free;
    "_ZdlPvmSt11align_val_t" delete_sized_aligned => alloc::free;
    "_ZdaPvmSt11align_val_t" delete_array_sized_aligned => alloc::free;
    "_ZdlPvSt11align_val_tRKSt9nothrow_t" delete_aligned_nothrow => alloc::free;
    "_ZdaPvSt11align_val_tRKSt9nothrow_t" delete_array_aligned_nothrow => alloc::free;
    "sigaction" sigaction => signals::sigaction;
    "__sigaction" sigaction_too => signals::sigaction;
    "signal" signal => signals::signal;
    "bsd_signal" bsd_signal => signals::signal;
    "ssignal" ssignal => signals::signal;
    "pthread_create" pthread_create => spawn::pthread_create;
    "pthread_once" pthread_once => releases::pthread_once;
    "call_once" call_once => releases::call_once;
    "_exit" exit_now => signals::exit_now;
    "_Exit" exit_now_too => signals::exit_now;
}

flushed! {
    "execve" execve;
    "execv" execv;
    "execvp" execvp;
    "execvpe" execvpe;
    "execl" execl;
    "execlp" execlp;
    "execle" execle;
    "fexecve" fexecve;
    "execveat" execveat;
    "abort" abort;
    "__assert_fail" assert_fail;
}

jumps! {
    "longjmp" longjmp;
    "_longjmp" longjmp_plain;
    "siglongjmp" siglongjmp;
    "__longjmp_chk" longjmp_checked;
}

/// C++'s `new`: where memory is out, the library's own tries again and throws.
unsafe extern "C-unwind" fn new_or_throw(bytes: usize, site: usize) -> *mut c_void {
    // SAFETY: any size may be asked for.
    let at = unsafe { alloc::new(bytes, site) };
    if !at.is_null() {
        return at;
    }
    let real = real::address(c"_Znwm".as_ptr());
    if real.is_null() {
        std::process::abort();
    }
    // SAFETY: the C++ library's function of this name has this type.
    let real: unsafe extern "C-unwind" fn(usize) -> *mut c_void = unsafe { std::mem::transmute(real) };
    // SAFETY: any size may be asked for.
    unsafe { real(bytes) }
}

/// The same with an alignment.
unsafe extern "C-unwind" fn new_aligned_or_throw(bytes: usize, align: usize, site: usize) -> *mut c_void {
    // SAFETY: as the caller's.
    let at = unsafe { alloc::new_aligned(bytes, align, site) };
    if !at.is_null() {
        return at;
    }
    let real = real::address(c"_ZnwmSt11align_val_t".as_ptr());
    if real.is_null() {
        std::process::abort();
    }
    // SAFETY: the C++ library's function of this name has this type.
    let real: unsafe extern "C-unwind" fn(usize, usize) -> *mut c_void = unsafe { std::mem::transmute(real) };
    // SAFETY: as the caller's.
    unsafe { real(bytes, align) }
}
