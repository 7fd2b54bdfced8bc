//! Reads a trace once and records where reading can begin.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anytrace_core::index::{Digest, Digester, Pieces};
use anytrace_core::{Compression, Error, Input, OpenOptions, Sink};

use crate::lanes::points::{Finder, Status, Tee};
use crate::lanes::zstd_frames;
use crate::tools::index::{Index, IndexTotals, Obstacle};
use crate::wire::container::Container;
use crate::wire::reader::{Reader, Totals};
use crate::wire::stream::DecodeStart;

/// Options of [`build`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct IndexOptions {
    /// Distance between points, in bytes of the raw stream. Default 1 MiB: the size of a chunk in Snappy.
    pub every_bytes: u64,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self { every_bytes: 1 << 20 }
    }
}

impl IndexOptions {
    /// Sets [`Self::every_bytes`]; at least 1.
    #[must_use]
    pub fn every_bytes(mut self, bytes: u64) -> Self {
        self.every_bytes = bytes.max(1);
        self
    }
}

/// Makes the index of a file. `None` if it contains no trace, not even a header.
///
/// The file is read, not mapped; `watch` sees the input first, for a progress bar. Damage is reported to the sink; the
/// index covers the part before it.
///
/// # Errors
/// I/O, limits, and what the sink returns.
pub fn build_file(
    path: &Path,
    options: &OpenOptions,
    how: IndexOptions,
    watch: &mut dyn FnMut(&Input),
    sink: &mut dyn Sink,
) -> Result<Option<Index>, Error> {
    let name = path.display().to_string();
    let failed = |error| Error::io(format_args!("cannot read {name}"), error);
    let file = File::open(path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Err(Error::usage(format!("{name}: only files can be indexed")));
    }
    let mut places = Vec::new();
    if meta.len() > 0 {
        let as_is = Input::open_as_is(path)?;
        let bytes = as_is.as_slice().unwrap_or_default();
        if Compression::detect(bytes) == Some(Compression::Zstd) {
            places = zstd_frames::places(bytes);
        }
    }
    let (input, digest) = open(&name, Box::new(file), meta.len())?;
    watch(&input);
    read(input, &digest, places, options, how, sink)
}

/// Makes the index of a trace in memory; otherwise as [`build_file`].
///
/// # Errors
/// As [`build_file`].
pub fn build(
    name: &str,
    bytes: Vec<u8>,
    options: &OpenOptions,
    how: IndexOptions,
    sink: &mut dyn Sink,
) -> Result<Option<Index>, Error> {
    let is_zstd = Compression::detect(&bytes) == Some(Compression::Zstd);
    let places = if is_zstd { zstd_frames::places(&bytes) } else { Vec::new() };
    let length = bytes.len() as u64;
    let (input, digest) = open(name, Box::new(std::io::Cursor::new(bytes)), length)?;
    read(input, &digest, places, options, how, sink)
}

fn open(name: &str, file: Box<dyn Read + Send>, file_bytes: u64) -> Result<(Input, Digest), Error> {
    let (digester, digest) = Digester::new(file, file_bytes);
    Ok((Input::from_read(name, Box::new(digester), Some(file_bytes))?, digest))
}

fn read(
    input: Input,
    digest: &Digest,
    zstd_places: Vec<DecodeStart>,
    options: &OpenOptions,
    how: IndexOptions,
    sink: &mut dyn Sink,
) -> Result<Option<Index>, Error> {
    let (name, file_bytes) = (input.name().to_owned(), input.file_bytes());
    let layers: Vec<Compression> = input.layers().iter().map(|layer| layer.compression).collect();
    let mut reader = Reader::new(input, options)?;
    let own = reader.stream.container_inside();
    let is_zstd = own == Container::Raw && layers == [Compression::Zstd] && zstd_places.len() > 1;
    let can_seek = is_zstd || layers.is_empty() && matches!(own, Container::Raw | Container::Snappy);
    reader.track_places();
    let status = Status::default();
    let mut finder = Finder::new(&status, how.every_bytes.max(1), options.limits.record_bytes_max);
    finder.zstd_places = zstd_places;
    if !can_seek {
        finder.close_container();
    }
    let mut tee = Tee { sink, status: &status };
    let totals = reader.read(&mut finder, &mut tee)?;
    if reader.header().raw.is_empty() || totals.events == 0 && status.errors.get() > 0 {
        return Ok(None);
    }
    let pieces = digest.pieces();
    if Some(pieces.file_bytes) != file_bytes {
        return Err(Error::usage(format!("{name} changed while it was read")));
    }
    Ok(Some(index(finder, &reader, &totals, pieces, is_zstd)))
}

/// Makes the index of what was found.
fn index(mut finder: Finder<'_>, reader: &Reader, totals: &Totals, pieces: Pieces, is_zstd: bool) -> Index {
    let (definitions, enters) = finder.take_known(reader.signatures());
    let is_damaged = finder.status.disturbing.get();
    if is_damaged && finder.obstacle.is_none() {
        let at = finder.status.first_error.get().filter(|(_, is_raw)| *is_raw);
        finder.obstacle = Some((at.map_or(totals.raw_bytes, |(offset, _)| offset), Obstacle::Damage));
    }
    Index {
        totals: IndexTotals {
            file_bytes: pieces.file_bytes,
            raw_bytes: totals.raw_bytes,
            events: totals.events,
            calls: totals.calls,
            frames: finder.frames_begun,
            incomplete: totals.incomplete,
            errors: finder.status.errors.get(),
            warnings: finder.status.warnings.get(),
        },
        pieces,
        own: reader.stream.container_inside(),
        is_zstd,
        is_seekable: reader.stream.is_seekable(),
        record_bytes_max: finder.record_bytes_max,
        longest_event: finder.longest_event,
        most_open: finder.most_open,
        first_error: finder.status.first_error.get(),
        obstacle: finder.obstacle,
        header: reader.header().clone(),
        definitions,
        frame_step: finder.frame_step,
        frames: finder.frames,
        has_plain_frames: finder.has_plain_frames,
        points: finder.points,
        enters,
    }
}
