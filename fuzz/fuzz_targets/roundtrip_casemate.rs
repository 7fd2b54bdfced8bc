//! What reads without error as a casemate trace is written back unchanged, also by way of JSON lines.

#![no_main]

use anytrace_casemate::Casemate;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    anytrace_core::testing::fuzz_roundtrip(&Casemate, bytes, &|a, b| {
        anytrace_core::testing::same_records(&Casemate, a, b)
    });
});
