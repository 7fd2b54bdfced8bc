//! Test bytes from labeled parts, and a slow decoder: neither shares code with the crate.

#![allow(dead_code, clippy::unwrap_used, unreachable_pub, reason = "each test uses a part; a test fails by panicking")]

pub mod elf;
pub mod made;
pub mod run;
pub mod slow;

use anytrace_core::testing::{examine, rewrite};
use anytrace_core::{Error, Plan, Selection, TargetOptions};
use anytrace_xray::Xray;

pub fn target(to: Option<&str>, version: Option<u32>, endian: Option<anytrace_core::Endian>) -> TargetOptions {
    TargetOptions { to: to.map(str::to_owned), version, endian, ..TargetOptions::default() }
}

pub fn try_convert(bytes: &[u8], target: TargetOptions) -> Result<Vec<u8>, Error> {
    rewrite(&Xray, bytes, &Plan::Convert(target)).map(|(bytes, _, _)| bytes)
}

pub fn convert(bytes: &[u8], target: TargetOptions) -> Vec<u8> {
    try_convert(bytes, target).unwrap_or_else(|e| panic!("{e}"))
}

pub fn trim(bytes: &[u8], selection: Selection) -> Vec<u8> {
    rewrite(&Xray, bytes, &Plan::Trim(selection, TargetOptions::default())).unwrap().0
}

pub fn no_errors(bytes: &[u8], what: &str) {
    let exam = examine(&Xray, bytes);
    assert!(exam.errors().is_empty(), "{what}: {:#?}", exam.errors());
}

/// A small sample of this crate.
pub fn sample(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
