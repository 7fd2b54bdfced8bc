//! Functions that print to memory: `snprintf` and its like. Those with a list of arguments make one of their own, as
//! the ABI has it, and continue as those that are given one.

use std::ffi::{c_char, c_int, c_void};

use super::library::{library, writes};

/// Records what was printed: `letters` and the zero byte, as far as there is room.
fn printed(to: *const c_char, letters: c_int, room: usize) {
    if let Ok(letters) = usize::try_from(letters) {
        writes(to, letters.saturating_add(1).min(room));
    }
}

/// The same for wide letters.
fn printed_wide(to: *const i32, letters: c_int) {
    if let Ok(letters) = usize::try_from(letters) {
        writes(to, letters.saturating_add(1).saturating_mul(4));
    }
}

/// A list of arguments.
type List = *mut c_void;

library! {
    "vsnprintf"(to: *mut c_char, room: usize, form: *const c_char, list: List) -> c_int,
        after |n| { printed(to, n, room) };
    "__vsnprintf_chk"(to: *mut c_char, room: usize, flag: c_int, all: usize, form: *const c_char, list: List) -> c_int,
        after |n| { printed(to, n, room) };
    "vsprintf"(to: *mut c_char, form: *const c_char, list: List) -> c_int, after |n| { printed(to, n, usize::MAX) };
    "__vsprintf_chk"(to: *mut c_char, flag: c_int, all: usize, form: *const c_char, list: List) -> c_int,
        after |n| { printed(to, n, usize::MAX) };
    "__vswprintf_chk"(to: *mut i32, room: usize, flag: c_int, all: usize, form: *const i32, list: List) -> c_int,
        after |n| { printed_wide(to, n) };
    "vasprintf"(to: *mut *mut c_char, form: *const c_char, list: List) -> c_int,
        after |n| { if n >= 0 { writes(to, 8) } };
    "__vasprintf_chk"(to: *mut *mut c_char, flag: c_int, form: *const c_char, list: List) -> c_int,
        after |n| { if n >= 0 { writes(to, 8) } };
    "vswprintf"(to: *mut i32, room: usize, form: *const i32, list: List) -> c_int, after |n| { printed_wide(to, n) };
}

/// Defines functions with any number of arguments, which call those that take a list. `$fixed` is eight times the
/// arguments in front; `$list` is the register of the one that is the list.
macro_rules! variadic {
    ($($name:literal => $to:literal, $fixed:literal, $list:literal;)*) => {$(
        #[cfg(not(test))]
        const _: () = {
            /// # Safety
            /// The contract of the library's function of this name.
            #[unsafe(naked)]
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn entry() {
                std::arch::naked_asm!(
                    concat!(".weak ", $name),
                    // Room for the registers' arguments, 176 bytes, and the list, 24; 16 more keep the alignment.
                    "sub rsp, 216",
                    "mov [rsp], rdi",
                    "mov [rsp + 8], rsi",
                    "mov [rsp + 16], rdx",
                    "mov [rsp + 24], rcx",
                    "mov [rsp + 32], r8",
                    "mov [rsp + 40], r9",
                    "test al, al",
                    "je 2f",
                    "movaps [rsp + 48], xmm0",
                    "movaps [rsp + 64], xmm1",
                    "movaps [rsp + 80], xmm2",
                    "movaps [rsp + 96], xmm3",
                    "movaps [rsp + 112], xmm4",
                    "movaps [rsp + 128], xmm5",
                    "movaps [rsp + 144], xmm6",
                    "movaps [rsp + 160], xmm7",
                    "2:",
                    concat!("mov dword ptr [rsp + 176], ", $fixed),
                    "mov dword ptr [rsp + 180], 48",
                    "lea rax, [rsp + 224]",
                    "mov [rsp + 184], rax",
                    "mov [rsp + 192], rsp",
                    concat!("lea ", $list, ", [rsp + 176]"),
                    concat!("call ", $to),
                    "add rsp, 216",
                    "ret",
                )
            }
        };
    )*};
}

pub(super) use variadic;

variadic! {
    "asprintf" => "vasprintf@PLT", 16, "rdx";
    "__asprintf_chk" => "__vasprintf_chk@PLT", 24, "rcx";
    "snprintf" => "vsnprintf@PLT", 24, "rcx";
    "__snprintf_chk" => "__vsnprintf_chk@PLT", 40, "r9";
    "sprintf" => "vsprintf@PLT", 16, "rdx";
    "__sprintf_chk" => "__vsprintf_chk@PLT", 32, "r8";
    "__swprintf_chk" => "__vswprintf_chk@PLT", 40, "r9";
    "swprintf" => "vswprintf@PLT", 24, "rcx";
}
