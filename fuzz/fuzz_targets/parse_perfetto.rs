//! Any bytes as a perfetto trace: every reading verb, and repair whose result must pass `check`.

#![no_main]

use anytrace_perfetto::Perfetto;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anytrace_core::testing::fuzz_parse(&Perfetto, bytes));
