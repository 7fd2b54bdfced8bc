//! Any lines as names of linkers.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anytrace_symbols::testing::fuzz_demangle(bytes));
