//! What reads without error as a cacheray trace is written back unchanged, also by way of JSON lines.

#![no_main]

use anytrace_cacheray::Cacheray;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    anytrace_core::testing::fuzz_roundtrip(&Cacheray, bytes, &anytrace_core::testing::same_bytes);
});
