//! Another program takes the process's place: what there is is written before. Nothing of the caller's registers or stack
//! is changed, for some of these functions have as many parameters as the caller likes.

use std::arch::naked_asm;
use std::ffi::{CStr, c_void};

use crate::process;

/// A function that writes the trace and goes on in the C library's own.
macro_rules! before {
    ($($name:ident $text:literal $number:literal)*) => {
        $(
            /// Exported for the program.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name() {
                naked_asm!(
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "push rcx",
                    "push r8",
                    "push r9",
                    "push rax",
                    "mov edi, {number}",
                    "call {ours}",
                    "mov r11, rax",
                    "pop rax",
                    "pop r9",
                    "pop r8",
                    "pop rcx",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "jmp r11",
                    number = const $number,
                    ours = sym ours,
                )
            }
        )*

        const NAMES: [&CStr; [$($number),*].len()] = [$($text),*];
    };
}

before! {
    execve c"execve" 0
    execv c"execv" 1
    execvp c"execvp" 2
    execvpe c"execvpe" 3
    execl c"execl" 4
    execlp c"execlp" 5
    execle c"execle" 6
    fexecve c"fexecve" 7
}

/// Writes the trace, and finds the real function.
extern "C" fn ours(number: u32) -> *const c_void {
    process::before_exec();
    let name = NAMES.get(number as usize).copied().unwrap_or(c"execve");
    // SAFETY: the name ends with a zero.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}
