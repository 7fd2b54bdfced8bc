//! What reads without error as a trace in the Common Trace Format is written back unchanged, also by way of JSON lines.

#![no_main]

use anytrace_ctf::Ctf;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // `convert` removes compression: its output is another file.
    if !anytrace_core::Input::from_bytes("fuzz", bytes.to_vec()).layers().is_empty() {
        return;
    }
    anytrace_core::testing::fuzz_roundtrip(&Ctf, bytes, &anytrace_core::testing::same_bytes);
});
