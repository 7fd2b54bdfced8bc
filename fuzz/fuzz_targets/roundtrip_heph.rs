//! What reads without error as a heph trace is written back unchanged, also by way of JSON lines.

#![no_main]

use anytrace_heph::Heph;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    anytrace_core::testing::fuzz_roundtrip(&Heph, bytes, &anytrace_core::testing::same_bytes);
});
