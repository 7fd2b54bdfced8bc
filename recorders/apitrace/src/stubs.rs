//! A symbol for each function. It keeps the registers in which arguments are, as the convention of System V for x86-64
//! has them, and calls one handler for all with the function's number.

use std::arch::naked_asm;

use crate::handler;

/// Reached by a jump from a symbol, with the function's number in `eax`.
#[unsafe(naked)]
unsafe extern "C" fn common() {
    naked_asm!(
        // Debuggers and backtraces find the caller by these.
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "sub rsp, 128",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], rcx",
        "mov [rsp + 32], r8",
        "mov [rsp + 40], r9",
        "movsd [rsp + 48], xmm0",
        "movsd [rsp + 56], xmm1",
        "movsd [rsp + 64], xmm2",
        "movsd [rsp + 72], xmm3",
        "movsd [rsp + 80], xmm4",
        "movsd [rsp + 88], xmm5",
        "movsd [rsp + 96], xmm6",
        "movsd [rsp + 104], xmm7",
        "lea rcx, [rbp + 16]",
        "mov [rsp + 112], rcx",
        "mov edi, eax",
        "mov rsi, rsp",
        "call {handle}",
        // The result is in the register that the caller looks into, whatever its type.
        "movq xmm0, rax",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
        handle = sym handler::handle,
    )
}

macro_rules! stubs {
    ($($number:literal $name:ident)*) => {
        $(
            /// Exported for the program.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, reason = "the names of OpenGL")]
            unsafe extern "C" fn $name() {
                naked_asm!("mov eax, {number}", "jmp {common}", number = const $number, common = sym common)
            }
        )*
    };
}

include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
