//! Any bytes as a chrome trace: every reading verb, and repair whose result must pass `check`.

#![no_main]

use anytrace_chrome::Chrome;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anytrace_core::testing::fuzz_parse(&Chrome, bytes));
