//! What reads without error as a lackey trace is written back unchanged, also by way of JSON lines.

#![no_main]

use anytrace_lackey::Lackey;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // Out of a container of compressed data comes what it held: other bytes.
    if !anytrace_core::Input::from_bytes("fuzz", bytes.to_vec()).layers().is_empty() {
        return;
    }
    anytrace_core::testing::fuzz_roundtrip(&Lackey, bytes, &anytrace_core::testing::same_bytes);
});
