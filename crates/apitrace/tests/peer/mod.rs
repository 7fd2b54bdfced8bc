//! The installed apitrace, to compare with.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// The program, and a folder for its files.
pub struct Peer(TempDir);

impl Peer {
    /// `None`, with a note, if it is not installed.
    pub fn installed() -> Option<Self> {
        if Command::new("apitrace").arg("help").output().is_err() {
            // Not `eprintln`, whose output is suppressed if the test succeeds.
            let _ = writeln!(std::io::stderr(), "skipped: apitrace is not installed");
            return None;
        }
        Some(Self(tempfile::tempdir().unwrap()))
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
