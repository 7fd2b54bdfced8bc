//! What reads without error as a lackey trace is written back unchanged, also by way of JSON lines.

#![no_main]

use anytrace_lackey::Lackey;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    anytrace_core::testing::fuzz_roundtrip(&Lackey, bytes, &anytrace_core::testing::same_bytes);
});
