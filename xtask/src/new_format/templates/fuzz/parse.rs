//! Any bytes as a newformat trace: every reading verb, and repair whose result must pass `check`.

#![no_main]

use anytrace_newformat::NewFormat;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anytrace_core::testing::fuzz_parse(&NewFormat, bytes));
