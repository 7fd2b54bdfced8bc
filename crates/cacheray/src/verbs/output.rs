//! Where rewritten records go: the same bytes, another layout, or JSON lines.

use std::io::Write;

use anytrace_core::{Error, Place, TargetOptions};

use crate::options::OPTIONS;
use crate::verbs::lines::{LONG_NAME_BYTES, Line, push_jsonl_header};
use crate::wire::parse::parse_record;
use crate::wire::reader::after;
use crate::wire::record::{Body, Layout, Record, Width};
use crate::wire::writer::{Unfit, encode_head};

/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 1 << 16;

/// The form records are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A trace of this layout.
    Trace(Layout),
    /// JSON lines whose header names this layout.
    Jsonl(Layout),
}

impl Form {
    /// Reads the target options; those left open stay as in the source.
    pub(crate) fn new(target: &TargetOptions, source: Layout) -> Result<Self, Error> {
        target.only(crate::NAME, &["to-endian"], OPTIONS)?;
        let width = target.own.word("to-pointer-width").and_then(Width::from_name).unwrap_or(source.width);
        let layout = Layout { endian: target.endian.unwrap_or(source.endian), width };
        match target.to.as_deref() {
            None | Some(crate::NAME) => Ok(Self::Trace(layout)),
            Some("jsonl") => Ok(Self::Jsonl(layout)),
            Some(other) => {
                Err(Error::usage(format!("--to {other}: a cacheray trace converts to {} or jsonl", crate::NAME)))
            }
        }
    }
}

impl Form {
    /// True for traces.
    pub(crate) fn is_trace(self) -> bool {
        matches!(self, Self::Trace(_))
    }
}

/// Writes records of one layout in a form.
pub(crate) struct Output<'a> {
    out: &'a mut dyn Write,
    source: Layout,
    form: Form,
    buffer: Vec<u8>,
    records: u64,
}

impl<'a> Output<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, source: Layout, form: Form) -> Self {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES + 256);
        if let Form::Jsonl(layout) = form {
            push_jsonl_header(&mut buffer, layout);
        }
        Self { out, source, form, buffer, records: 0 }
    }

    /// Writes complete accesses, one after another, with the bytes of the source.
    pub(crate) fn accesses(&mut self, run: &[u8], at: Place) -> Result<(), Error> {
        let stride = self.source.access_bytes();
        if self.form == Form::Trace(self.source) {
            self.records += (run.len() / stride) as u64;
            return self.raw(run);
        }
        for (n, bytes) in run.chunks_exact(stride).enumerate() {
            if let Ok((record, _)) = parse_record(bytes, self.source) {
                self.record(&record, after(at, n, stride))?;
            }
        }
        Ok(())
    }

    /// Writes a record; `at` is its place in the source, for diagnostics.
    pub(crate) fn record(&mut self, record: &Record<'_>, at: Place) -> Result<(), Error> {
        let long_name = match record.body {
            Body::Add { name, .. } if name.len() > LONG_NAME_BYTES => Some(name),
            _ => None,
        };
        match self.form {
            Form::Trace(layout) => {
                let unfit = |unfit| unfit_error(unfit, at);
                encode_head(record, layout, &mut self.buffer).map_err(unfit)?;
                match (long_name, record.body) {
                    (Some(name), _) => self.raw(name)?,
                    (None, Body::Add { name, .. }) => self.buffer.extend_from_slice(name),
                    (None, _) => {}
                }
            }
            Form::Jsonl(layout) => {
                if record.address > layout.width.address_max() {
                    return Err(unfit_error(Unfit::Address(record.address), at));
                }
                let line = Line::Jsonl { has_offset: false };
                match long_name {
                    None => line.push(&mut self.buffer, record, at),
                    Some(name) => {
                        self.out.write_all(&self.buffer)?;
                        self.buffer.clear();
                        line.write_long(self.out, record, name, at)?;
                    }
                }
            }
        }
        self.records += 1;
        self.spill()
    }

    /// Writes the buffered records; returns how many records were written.
    pub(crate) fn finish(mut self) -> Result<u64, Error> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(self.records)
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() >= BUFFER_BYTES / 8 {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
            self.out.write_all(bytes)?;
            return Ok(());
        }
        self.buffer.extend_from_slice(bytes);
        self.spill()
    }

    fn spill(&mut self) -> Result<(), Error> {
        if self.buffer.len() >= BUFFER_BYTES {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

#[cold]
fn unfit_error(unfit: Unfit, at: Place) -> Error {
    unfit.error(format_args!("record {} at byte {:#x}", at.seq, at.offset))
}
