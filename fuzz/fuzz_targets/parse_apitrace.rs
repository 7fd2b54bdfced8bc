//! Any bytes as a apitrace trace: every reading verb, and repair whose result must pass `check`.

#![no_main]

use anytrace_apitrace::Apitrace;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anytrace_core::testing::fuzz_parse(&Apitrace, bytes));
