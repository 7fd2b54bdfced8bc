//! Checks a hypervisor's page tables for break-before-make while it runs.
//!
//! A static library for programs without an operating system: no allocation but from one block of memory that the
//! caller gives, no floating point, no path to a panic, no thread of its own. `include/casemate.h` is its interface and
//! documentation; the engine is `anytrace-casemate-model`, the same as that of `anytrace casemate check`.
//!
//! ```sh
//! cargo rustc --profile linked -p anytrace-recorder-casemate --crate-type staticlib --target aarch64-unknown-none-softfloat
//! ```

#![no_std]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

#[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "elsewhere the program has an allocator"))]
mod arena;
mod interface;
mod line;
mod steps;

pub use interface::{
    Callbacks, Checker, Memory, Options, Report, casemate_initialise, casemate_memory, casemate_report, casemate_step,
    casemate_step_name, casemate_verdict,
};
pub use steps::Step;

/// Only programs without an operating system need one. It names a function that does not exist: a program in which a
/// path to a panic is left does not link.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        safe fn casemate_contains_a_path_to_a_panic() -> !;
    }
    casemate_contains_a_path_to_a_panic()
}
