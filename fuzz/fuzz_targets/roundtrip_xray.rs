//! What reads without error as a xray trace is written back unchanged, also by way of JSON lines.

#![no_main]

use anytrace_xray::Xray;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // Out of a container of compressed data comes what it held: other bytes.
    if !anytrace_core::Input::from_bytes("fuzz", bytes.to_vec()).layers().is_empty() {
        return;
    }
    anytrace_core::testing::fuzz_roundtrip(&Xray, bytes, &|a, b| {
        anytrace_core::testing::same_bytes_or_text_records(&Xray, a, b)
    });
});
