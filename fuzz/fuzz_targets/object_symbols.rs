//! Any bytes as an object file: sections and symbols.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anytrace_symbols::testing::fuzz_object(bytes));
