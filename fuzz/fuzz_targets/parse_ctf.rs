//! Any bytes as a trace in the Common Trace Format: every reading verb, and repair whose result must pass `check`.

#![no_main]

use anytrace_ctf::Ctf;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anytrace_core::testing::fuzz_parse(&Ctf, bytes));
