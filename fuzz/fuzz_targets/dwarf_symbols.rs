//! Any bytes as a file with debug data: lines, inlined functions, layouts of types.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let scratch = std::env::temp_dir().join(format!("anytrace-fuzz-{}", std::process::id()));
    anytrace_symbols::testing::fuzz_debug_data(bytes, &scratch);
});
