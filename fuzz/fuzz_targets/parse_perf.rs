//! Any bytes as a perf trace: every reading verb, and repair whose result must pass `check`.

#![no_main]

use anytrace_perf::Perf;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anytrace_core::testing::fuzz_parse(&Perf, bytes));
