//! What the end-to-end test records of a Rust program, built with `-Z instrument-xray`.
//!
//! Started with an argument, it records itself in flight-recorder mode; Basic mode is enabled by the environment.

use std::ffi::{CString, c_char, c_int};
use std::hint::black_box;

unsafe extern "C" {
    fn __xray_log_select_mode(mode: *const c_char) -> c_int;
    fn __xray_log_init_mode(mode: *const c_char, options: *const c_char) -> c_int;
    fn __xray_patch() -> c_int;
    fn __xray_log_finalize() -> c_int;
    fn __xray_log_flushLog() -> c_int;
}

struct Till(u32);

impl Till {
    #[inline(never)]
    fn add(&mut self, coins: u32) {
        self.0 = black_box(self.0) + coins;
    }
}

#[inline(never)]
fn fib(n: u32) -> u32 {
    if n < 2 { black_box(n) } else { fib(n - 1) + fib(n - 2) }
}

#[inline(never)]
fn work(n: u32) -> u32 {
    let mut till = Till(0);
    till.add(fib(n));
    till.0
}

fn main() {
    let options = std::env::args().nth(1).and_then(|text| CString::new(text).ok());
    if let Some(options) = &options {
        // SAFETY: the strings end in zero and outlive the calls; the runtime copies them.
        unsafe {
            __xray_log_select_mode(c"xray-fdr".as_ptr());
            __xray_log_init_mode(c"xray-fdr".as_ptr(), options.as_ptr());
            __xray_patch();
        }
    }
    println!("{}", work(8));
    if options.is_some() {
        // SAFETY: no other thread runs.
        unsafe {
            __xray_log_finalize();
            __xray_log_flushLog();
        }
    }
}
