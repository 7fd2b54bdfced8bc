//! Test bytes from a labeled builder that shares no code with the crate's writer, and small helpers.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::{Path, PathBuf};

use anytrace_core::testing::examine;
use anytrace_core::testing::public::Sample;
use anytrace_core::{DumpForm, DumpOptions, Format, Input, OpenOptions, Selection, Severity};
use anytrace_heph::Heph;

/// Bytes with labels: where each field of the packet last begun is.
#[derive(Default, Clone)]
pub(crate) struct Bytes {
    pub(crate) bytes: Vec<u8>,
    start: usize,
}

impl Bytes {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u8(self, value: u8) -> Self {
        self.raw(&[value])
    }

    pub(crate) fn u16(self, value: u16) -> Self {
        self.raw(&[(value >> 8) as u8, value as u8])
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.u16((value >> 16) as u16).u16(value as u16)
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.u32((value >> 32) as u32).u32(value as u32)
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.u16(text.len() as u16).raw(text.as_bytes())
    }

    pub(crate) fn event(
        mut self,
        stream: u32,
        counter: u32,
        substream: u64,
        start: u64,
        end: u64,
        description: &str,
    ) -> Self {
        self.start = self.bytes.len();
        self.u32(0xC1FC1FB7).u32(0).u32(stream).u32(counter).u64(substream).u64(start).u64(end).text(description)
    }

    pub(crate) fn metadata(mut self, option: &str, value: &[u8]) -> Self {
        self.start = self.bytes.len();
        self.u32(0x75D11D4D).u32(0).text(option).raw(value).end()
    }

    pub(crate) fn epoch(self) -> Self {
        self.metadata("epoch", &1_610_113_734_118_010_000_u64.to_be_bytes())
    }

    /// A type byte after a name.
    pub(crate) fn attribute(self, name: &str, kind: u8) -> Self {
        self.text(name).u8(kind)
    }

    /// Writes the size of the packet last begun.
    pub(crate) fn end(self) -> Self {
        let size = (self.bytes.len() - self.start) as u32;
        self.sized(size)
    }

    /// Writes any size.
    pub(crate) fn sized(mut self, size: u32) -> Self {
        self.bytes[self.start + 4..self.start + 8].copy_from_slice(&size.to_be_bytes());
        self
    }

    /// A plain, complete event.
    pub(crate) fn poll(self, stream: u32, counter: u32) -> Self {
        let start = u64::from(counter) * 1000;
        self.event(stream, counter, 0, start, start + 500, "poll").attribute("n", 1).u64(7).end()
    }
}

pub(crate) fn own_corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The available corpora: the crate's own and, if it exists, the shared one.
pub(crate) fn corpora() -> Vec<PathBuf> {
    std::iter::once(own_corpus()).chain(anytrace_core::testing::shared_corpus("heph")).collect()
}

/// Every trace of the crate's own corpus.
pub(crate) fn sample_files() -> Vec<Sample> {
    let found = Sample::all(&own_corpus(), &["seed", "valid", "broken", "real"], &["heph", "log"]);
    assert!(found.len() > 45, "{}", found.len());
    found
}

/// Their names and bytes.
pub(crate) fn samples() -> Vec<(String, Vec<u8>)> {
    sample_files().into_iter().map(|sample| (sample.name, sample.bytes)).collect()
}

/// Code, severity, offset and found value of every diagnostic of `check`.
pub(crate) fn diagnostics(bytes: &[u8]) -> Vec<(&'static str, Severity, u64, String)> {
    let exam = examine(&Heph, bytes);
    exam.check.iter().map(|d| (d.code(), d.severity, d.offset, d.found.clone().unwrap_or_default().into())).collect()
}

pub(crate) fn dump(bytes: &[u8], options: &OpenOptions, form: DumpForm, selection: Selection) -> String {
    let mut out = Vec::new();
    let options_of_dump = DumpOptions { form, selection, ..DumpOptions::default() };
    let trace = Heph.open(Input::from_bytes("x", bytes.to_vec()), options).unwrap();
    trace.dump(&options_of_dump, &mut out, &mut anytrace_core::Collect::default()).unwrap();
    String::from_utf8(out).unwrap()
}

impl Bytes {
    /// Overwrites bytes already made.
    pub(crate) fn patched(mut self, at: usize, with: &[u8]) -> Self {
        self.bytes[at..at + with.len()].copy_from_slice(with);
        self
    }
}
