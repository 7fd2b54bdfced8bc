//! Any bytes as a lackey trace: every reading verb, and repair whose result must pass `check`.

#![no_main]

use anytrace_lackey::Lackey;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anytrace_core::testing::fuzz_parse(&Lackey, bytes));
