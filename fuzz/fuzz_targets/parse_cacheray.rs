//! Any bytes as a cacheray trace: every reading verb, and repair whose result must pass `check`.

#![no_main]

use anytrace_cacheray::Cacheray;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anytrace_core::testing::fuzz_parse(&Cacheray, bytes));
