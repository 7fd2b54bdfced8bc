//! What reads without error as a apitrace trace is written back unchanged, also by way of JSON lines.

#![no_main]

use anytrace_apitrace::Apitrace;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    anytrace_core::testing::fuzz_roundtrip(&Apitrace, bytes, &|a, b| {
        anytrace_core::testing::same_records(&Apitrace, a, b)
    });
});
