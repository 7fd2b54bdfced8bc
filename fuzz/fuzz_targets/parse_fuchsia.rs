//! Any bytes as a fuchsia trace: every reading verb, and repair whose result must pass `check`.

#![no_main]

use anytrace_fuchsia::Fuchsia;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anytrace_core::testing::fuzz_parse(&Fuchsia, bytes));
