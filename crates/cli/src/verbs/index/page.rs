//! What an index contains, for people and for programs.

use std::ops::RangeInclusive;
use std::path::Path;

use anytrace_core::index::Index;
use anytrace_core::text::printable;
use anytrace_export::json::VERSION;
use serde_json::{Value, json};

use crate::units::grouped;

/// An index and how it is.
pub(super) struct Shown<'a> {
    pub(super) trace: &'a Path,
    pub(super) place: &'a Path,
    pub(super) index: &'a Index,
    /// Bytes of its file.
    pub(super) bytes: u64,
    /// `made`, `fits`, or why it does not.
    pub(super) state: &'a str,
}

impl Shown<'_> {
    fn damaged(&self) -> usize {
        self.index.chunks.iter().filter(|chunk| chunk.is_damaged).count()
    }

    /// Earliest and latest time.
    fn time(&self) -> Option<(i64, i64)> {
        self.index.time_range().map(RangeInclusive::into_inner)
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n", printable(&self.place.display().to_string()));
        let mut line = |name: &str, value: &str| text.push_str(&format!("  {name:<15}{value}\n"));
        let number = |number: u64| grouped(u128::from(number));
        line("state", &printable(self.state));
        line("format", &printable(&self.index.format));
        line("records", &number(self.index.rows()));
        line("chunks", &number(self.index.chunks.len() as u64));
        line("damaged chunks", &number(self.damaged() as u64));
        if let Some((first, last)) = self.time() {
            line("time", &format!("{first} to {last} ns"));
        }
        line("kinds", &printable(&self.index.kinds.join(", ")));
        line("file bytes", &number(self.index.pieces.file_bytes));
        line("index bytes", &number(self.bytes));
        text
    }

    pub(super) fn object(&self) -> Value {
        json!({
            "version": VERSION,
            "file": self.trace.display().to_string(),
            "index": self.place.display().to_string(),
            "state": self.state,
            "format": self.index.format,
            "records": self.index.rows(),
            "chunks": self.index.chunks.len(),
            "damaged_chunks": self.damaged(),
            "time_ns": self.time().map(|(first, last)| json!({"first": first, "last": last})),
            "kinds": self.index.kinds,
            "threads": self.index.threads,
            "file_bytes": self.index.pieces.file_bytes,
            "index_bytes": self.bytes,
        })
    }
}
