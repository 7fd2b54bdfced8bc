//! Any bytes as a heph trace: every reading verb, and repair whose result must pass `check`.

#![no_main]

use anytrace_heph::Heph;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anytrace_core::testing::fuzz_parse(&Heph, bytes));
