//! Cuts a dump into lines and hands them over in batches.

use std::io::Write;
use std::sync::mpsc::SyncSender;

use anytrace_analysis::diff::{Line, LineMaker};
use serde_json::{Map, Value};

/// Records handed from a reading thread to the comparison at once.
const BATCH_LINES: usize = 256;

/// Cuts the dump into lines and hands them over in batches.
pub(super) struct Splitter<'a> {
    pub(super) maker: LineMaker,
    pub(super) line_bytes: Vec<u8>,
    pub(super) ignore: &'a [String],
    pub(super) batch: Vec<Line>,
    pub(super) sender: SyncSender<Vec<Line>>,
}

impl Splitter<'_> {
    fn end_line(&mut self) -> std::io::Result<()> {
        let line = if self.ignore.is_empty() {
            std::mem::take(&mut self.maker).finish()
        } else {
            let line = Line::new(&without_fields(&self.line_bytes, self.ignore));
            self.line_bytes.clear();
            line
        };
        self.batch.push(line);
        if self.batch.len() >= BATCH_LINES { self.flush() } else { Ok(()) }
    }
}

impl Write for Splitter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = rest.iter().position(|&b| b == b'\n');
            let piece = &rest[..end.unwrap_or(rest.len())];
            if self.ignore.is_empty() {
                self.maker.push(piece);
            } else {
                self.line_bytes.extend_from_slice(piece);
            }
            match end {
                None => break,
                Some(at) => {
                    self.end_line()?;
                    rest = &rest[at + 1..];
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.sender
            .send(std::mem::take(&mut self.batch))
            .map_err(|_| std::io::Error::from(std::io::ErrorKind::BrokenPipe))
    }
}

/// The line as JSON without the fields that do not count; unchanged if it is not an object.
fn without_fields(line: &[u8], ignore: &[String]) -> Vec<u8> {
    match serde_json::from_slice::<Map<String, Value>>(line) {
        Ok(mut map) => {
            map.retain(|key, _| !ignore.iter().any(|name| name == key));
            serde_json::to_vec(&map).unwrap_or_else(|_| line.to_vec())
        }
        Err(_) => line.to_vec(),
    }
}
