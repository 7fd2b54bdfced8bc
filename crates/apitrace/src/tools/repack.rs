//! Rewrites a trace in another container: the raw stream stays the same to the byte, whatever it contains.

mod reading;

use anytrace_core::{Diagnostic, Error, Severity, Sink, Target};

use crate::wire::container::Container;
use crate::wire::container_writer::ContainerWriter;
use crate::wire::reader::Reader;
use reading::Reading;

/// Most threads that compress: each takes two pieces and its tables.
const WORKERS_MAX: usize = 4;

/// Longest piece of the raw stream that is copied at once.
const PIECE_BYTES_MAX: usize = 1 << 20;

/// Options of [`repack`].
#[derive(Debug, Clone, Copy)]
pub struct RepackOptions {
    /// The container to write.
    pub container: Container,
    /// Its level of compression; `None`: the container's usual one.
    pub level: Option<i32>,
    /// Number of threads that compress, besides the one that reads; at most 4. Brotli and raw streams are written by
    /// that one. The output does not depend on it.
    pub workers: usize,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repacked {
    /// Bytes of the raw stream.
    pub raw_bytes: u64,
    /// Where in the raw stream bytes are missing because the source is damaged.
    pub gaps: Vec<u64>,
    /// The raw stream begins with a header, if only of a version to come. Without one it is not a trace.
    pub has_header: bool,
    /// How many errors went to the sink.
    pub errors: u64,
    /// Where the first of them is, in words.
    pub first_error: Option<String>,
}

/// Writes the raw stream of a trace into another container. Bytes that the source has lost are reported to the sink;
/// what precedes and follows them is written without a gap.
///
/// ```
/// use anytrace_apitrace::tools::repack::{RepackOptions, repack};
/// use anytrace_apitrace::{Container, Reader};
/// use anytrace_core::{Collect, Input, MemoryTarget, OpenOptions};
///
/// let bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00\x01\x00\x00".to_vec();
/// let reader = Reader::new(Input::from_bytes("x", bytes), &OpenOptions::default()).unwrap();
/// let options = RepackOptions { container: Container::Snappy, level: None, workers: 0 };
/// let mut out = MemoryTarget::default();
/// let done = repack(reader, &options, &mut out, &mut Collect::default()).unwrap();
/// assert_eq!((done.raw_bytes, done.errors, &out.0[..2]), (13, 0, &b"at"[..]));
/// ```
///
/// # Errors
/// A level that the container does not have, I/O, and what the sink returns.
pub fn repack(
    mut reader: Reader,
    options: &RepackOptions,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Repacked, Error> {
    let workers = options.workers.min(WORKERS_MAX);
    let mut writer = ContainerWriter::with_workers(out, options.container, options.level, workers)?;
    let mut done = Repacked::default();
    let mut sink = Counting { inner: sink, errors: 0, first: None };
    let mut reading = Reading::start(&reader.limits)?;
    loop {
        while reader.stream.fill(1)? > 0 {
            let window = reader.stream.window();
            let length = window.len().min(PIECE_BYTES_MAX);
            let piece = window.get(..length).unwrap_or_default();
            writer.write(piece)?;
            reading.give(piece, &mut sink)?;
            done.raw_bytes += length as u64;
            reader.stream.advance(length);
        }
        let damage = reader.stream.take_damage();
        let file_bytes = reader.stream.trace_bytes();
        if !reader.stream.next_segment() {
            reading.give_end(damage, file_bytes, &mut sink)?;
            break;
        }
        reading.give_gap(damage, &mut sink)?;
        done.gaps.push(done.raw_bytes);
    }
    done.has_header = reading.finish(&mut sink)?;
    // What is left to report are the layers of compression.
    reader.finish(&mut sink)?;
    (done.errors, done.first_error) = (sink.errors, sink.first);
    writer.finish(options.container == Container::ZstdSeekable)?;
    Ok(done)
}

/// Counts errors on their way.
struct Counting<'a> {
    inner: &'a mut dyn Sink,
    errors: u64,
    first: Option<String>,
}

impl Sink for Counting<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
            self.first.get_or_insert_with(|| {
                let of = diagnostic.within.as_ref().map_or(String::new(), |stream| format!(" of the {stream}"));
                format!("byte {:#x}{of}", diagnostic.offset)
            });
        }
        self.inner.report(diagnostic)
    }
}
