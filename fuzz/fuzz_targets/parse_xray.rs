//! Any bytes as a xray trace: every reading verb, and repair whose result must pass `check`.

#![no_main]

use anytrace_xray::Xray;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anytrace_core::testing::fuzz_parse(&Xray, bytes));
