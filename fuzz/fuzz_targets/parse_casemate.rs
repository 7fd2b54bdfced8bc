//! Any bytes as a casemate trace: every reading verb, and repair whose result must pass `check`.

#![no_main]

use anytrace_casemate::{Casemate, GrammarOnly};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    anytrace_core::testing::fuzz_parse(&GrammarOnly, bytes);
    anytrace_core::testing::examine(&Casemate, bytes);
});
