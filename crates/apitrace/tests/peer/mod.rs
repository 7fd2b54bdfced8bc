//! The installed apitrace, to compare with.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};

use anytrace_core::testing::has_program;
use tempfile::TempDir;

/// The program, and a folder for its files.
pub struct Peer(TempDir);

impl Peer {
    /// `None` where it is not installed; the test is skipped.
    pub fn installed() -> Option<Self> {
        has_program("apitrace").then(|| Self(tempfile::tempdir().unwrap()))
    }

    /// The path of a file in its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs it.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Output {
        Command::new("apitrace").args(arguments).output().unwrap()
    }

    /// The output of one of its verbs for a trace; `None` if it fails.
    pub fn edited(&self, verb: &str, options: &[String], bytes: &[u8]) -> Option<Vec<u8>> {
        let (source, made) = (self.file("in.trace"), self.file("out.trace"));
        std::fs::write(&source, bytes).unwrap();
        let arguments = [verb.as_ref(), "-o".as_ref(), made.as_os_str()].into_iter();
        let output = self.run(arguments.chain(options.iter().map(OsStr::new)).chain([source.as_os_str()]));
        output.status.success().then(|| std::fs::read(&made).unwrap())
    }
}
