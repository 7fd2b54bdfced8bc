//! Rewrites a trace in another container: the raw stream stays the same to the byte, whatever it contains.

use anytrace_core::{Error, Sink, Target};

use crate::container::Container;
use crate::container_writer::ContainerWriter;
use crate::reader::Reader;

/// Most threads that compress: each takes two pieces and its tables.
const WORKERS_MAX: usize = 4;

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
/// assert_eq!((done.raw_bytes, &out.0[..2]), (13, &b"at"[..]));
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
    loop {
        while reader.stream.fill(1)? > 0 {
            let window = reader.stream.window();
            let length = window.len();
            writer.write(window)?;
            done.raw_bytes += length as u64;
            reader.stream.advance(length);
        }
        reader.report_container(sink)?;
        if !reader.stream.next_segment() {
            break;
        }
        done.gaps.push(done.raw_bytes);
    }
    reader.finish(sink)?;
    writer.finish(options.container == Container::ZstdSeekable)?;
    Ok(done)
}
