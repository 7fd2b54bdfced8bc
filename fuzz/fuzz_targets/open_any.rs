//! Any bytes: recognized as what they are, then read.

#![no_main]

use anytrace_core::{Input, testing};
use anytrace_formats::{Recognized, recognize};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Recognized::Trace(format) = recognize(&Input::from_bytes("fuzz", bytes.to_vec()).head()) {
        testing::examine(format, bytes);
    }
});
