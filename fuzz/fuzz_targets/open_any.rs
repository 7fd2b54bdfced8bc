//! Any bytes: recognised as what they are, then read.

#![no_main]

use anytrace_core::{Input, testing};
use anytrace_formats::{Recognised, recognise};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Recognised::Trace(format) = recognise(&Input::from_bytes("fuzz", bytes.to_vec()).head()) {
        testing::examine(format, bytes);
    }
});
