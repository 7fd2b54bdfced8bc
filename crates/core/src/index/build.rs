//! Makes the index of a trace.

use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::describe::{self, Described};
use super::fit::piece_bytes;
use super::{Chunk, ChunkSpans, Digester, Index, Mark, MarkSink, Open, Pieces, RowGroup, VERSION};
use crate::table::EVENTS;
use crate::{Diagnostic, Error, Format, Input, InputOptions, OpenOptions, Sink};

/// Bytes read at once to compute digests.
const BLOCK_BYTES: usize = 1 << 20;

/// Most chunks; if there are more marks, every second one is kept.
const CHUNKS_MAX: usize = 1 << 20;

/// Makes the index of a file, with a mark for about `every_bytes` bytes. Damage is reported to `sink`.
///
/// `watch` sees the input first, for a progress bar. The trace is read once if its format hands out rows with the marks
/// ([`MarkSink::rows`]), otherwise twice, the second time on all threads of `options`; and its file once more for the
/// digests, at the same time.
///
/// # Errors
/// I/O, limits, and what the sink returns; [`crate::Kind::Usage`] for a file that changes while it is read, and for one
/// whose trace goes on in another file.
pub fn build(
    format: &dyn Format,
    path: &Path,
    options: &OpenOptions,
    every_bytes: u64,
    watch: &mut dyn FnMut(&Input),
    sink: &mut dyn Sink,
) -> Result<Index, Error> {
    let name = path.display().to_string();
    let meta = || std::fs::metadata(path).map_err(|error| Error::io(format_args!("cannot read {name}"), error));
    let before = meta()?;
    if !before.is_file() {
        return Err(Error::usage(format!("{name}: only files can be indexed")));
    }
    if !is_whole(format, path)? {
        return Err(Error::usage(format!("{name}: the trace goes on in a file beside it, which an index cannot have")));
    }
    let open = || Input::open(path, InputOptions::default());
    let (made, pieces) = std::thread::scope(|scope| {
        let digests = scope.spawn(|| digests(path, before.len()));
        let made = from_input(format, &open, options, every_bytes, watch, sink);
        (made, digests.join().unwrap_or_else(|_| Err(Error::usage("the digests could not be computed"))))
    });
    let mut index = made?;
    index.pieces = pieces?;
    let after = meta()?;
    if after.len() != before.len() || after.modified().ok() != before.modified().ok() {
        return Err(Error::usage(format!("{name} changed while it was read")));
    }
    Ok(index)
}

/// True for a trace that is all in its file: only of such a one is the index right.
///
/// # Errors
/// I/O.
pub fn is_whole(format: &dyn Format, path: &Path) -> Result<bool, Error> {
    // What can be read but once has no index, and must not be read for the question.
    if !path.is_file() {
        return Ok(true);
    }
    // Only its first bytes are needed, and where it goes on, what is beside it.
    let input = Input::open(path, InputOptions::default())?;
    Ok(format.completed(path, input)?.1.is_none())
}

/// Makes the index of a trace in memory; otherwise as [`build`].
///
/// # Errors
/// As [`build`].
pub fn build_bytes(
    format: &dyn Format,
    bytes: &[u8],
    options: &OpenOptions,
    every_bytes: u64,
    sink: &mut dyn Sink,
) -> Result<Index, Error> {
    let open = || Ok(Input::from_bytes("index", bytes.to_vec()));
    let mut index = from_input(format, &open, options, every_bytes, &mut |_| {}, sink)?;
    index.pieces = pieces_of(Box::new(std::io::Cursor::new(bytes.to_vec())), bytes.len() as u64)?;
    Ok(index)
}

/// Makes the index of a trace that is not a file, without digests: whoever keeps it must know what it is of. Otherwise
/// as [`build`].
///
/// # Errors
/// As [`build`].
pub fn build_by(
    format: &dyn Format,
    open: &Open<'_>,
    options: &OpenOptions,
    every_bytes: u64,
    sink: &mut dyn Sink,
) -> Result<Index, Error> {
    from_input(format, open, options, every_bytes, &mut |_| {}, sink)
}

/// The same index, with what its chunks contain found from the rows of `events`: what a format that hands out rows with
/// the marks is compared with.
///
/// # Errors
/// As [`build`].
#[cfg(feature = "testing")]
pub(crate) fn describe_again(
    format: &dyn Format,
    bytes: &[u8],
    options: &OpenOptions,
    index: &Index,
) -> Result<Index, Error> {
    let mut again = Index { threads: Vec::new(), kinds: Vec::new(), ..index.clone() };
    describe::describe(format, &|| Ok(Input::from_bytes("index", bytes.to_vec())), options, &mut again)?;
    Ok(again)
}

fn digests(path: &Path, file_bytes: u64) -> Result<Pieces, Error> {
    let file = File::open(path).map_err(|error| Error::io(format_args!("cannot open {}", path.display()), error))?;
    pieces_of(Box::new(file), file_bytes)
}

fn pieces_of(from: Box<dyn Read + Send>, file_bytes: u64) -> Result<Pieces, Error> {
    let (mut digester, digest) = Digester::new(from, file_bytes);
    let mut block = vec![0; BLOCK_BYTES];
    while digester.read(&mut block).map_err(|error| Error::io("cannot read the file", error))? > 0 {}
    Ok(digest.pieces())
}

fn from_input(
    format: &dyn Format,
    open: &Open<'_>,
    options: &OpenOptions,
    every_bytes: u64,
    watch: &mut dyn FnMut(&Input),
    sink: &mut dyn Sink,
) -> Result<Index, Error> {
    let input = open()?;
    watch(&input);
    // Most compressed data can only be read from their start.
    let can_begin_late = match input.layers() {
        [] => true,
        [layer] => format.part_compressions().contains(&layer.compression),
        _ => false,
    };
    let has_parts = can_begin_late && format.part_tables().contains(&EVENTS.name);
    let seen = Cell::new(0);
    let mut found = Found::new(&seen);
    let mut tee = Tee { inner: sink, seen: &seen };
    if has_parts {
        format.open(input, options)?.marks(every_bytes.max(1), &mut found, &mut tee)?;
    }
    found.note();
    let Found { chunks, described, has_rows, shared, .. } = found;
    let mut index = Index {
        format: format.name().to_owned(),
        version: VERSION.to_owned(),
        pieces: Pieces { file_bytes: 0, piece_bytes: piece_bytes(0), digests: Vec::new() },
        chunks,
        threads: Vec::new(),
        kinds: Vec::new(),
        shared: shared.map(Arc::from),
    };
    if has_rows {
        describe::name(&mut index, described);
    } else if has_parts {
        describe::describe(format, open, options, &mut index)?;
    } else {
        describe::describe_all(format, open, options, &mut index, &mut tee)?;
        index.chunks.iter_mut().for_each(|chunk| chunk.is_damaged = seen.get() > 0);
    }
    Ok(index)
}

/// Counts diagnostics and passes them on.
struct Tee<'a> {
    inner: &'a mut dyn Sink,
    /// Diagnostics so far.
    seen: &'a Cell<u64>,
}

impl Sink for Tee<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.seen.set(self.seen.get() + 1);
        self.inner.report(diagnostic)
    }
}

/// The chunks so far.
struct Found<'a> {
    seen: &'a Cell<u64>,
    /// Diagnostics before the last chunk.
    noted: u64,
    chunks: Vec<Chunk>,
    /// The rows of each chunk, if the format hands them out.
    described: Vec<Described>,
    has_rows: bool,
    shared: Option<Vec<u8>>,
    /// One in so many marks begins a chunk.
    step: u64,
    /// Marks since the last chunk began.
    passed: u64,
}

impl<'a> Found<'a> {
    fn new(seen: &'a Cell<u64>) -> Self {
        let (chunks, described) = (vec![Chunk::default()], vec![Described::default()]);
        Self { seen, noted: 0, chunks, described, has_rows: false, shared: None, step: 1, passed: 0 }
    }

    /// Marks the last chunk as damaged if something was reported since it began.
    fn note(&mut self) {
        let reports = self.seen.get();
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.is_damaged |= reports > self.noted;
        }
        self.noted = reports;
    }

    fn keep_every_second(&mut self) {
        let pairs = self.chunks.chunks(2);
        let join = |pair: &[Chunk]| {
            let mut chunk = pair.first().cloned().unwrap_or_default();
            chunk.is_damaged |= pair.iter().any(|one| one.is_damaged);
            chunk
        };
        self.chunks = pairs.map(join).collect();
        let join = |pair: &[Described]| {
            let mut described = pair.first().cloned().unwrap_or_default();
            pair.iter().skip(1).for_each(|next| described.join(next));
            described
        };
        self.described = self.described.chunks(2).map(join).collect();
        self.step *= 2;
    }
}

impl MarkSink for Found<'_> {
    fn mark(&mut self, mark: Mark) -> Result<(), Error> {
        self.note();
        self.passed += 1;
        if self.passed < self.step {
            return Ok(());
        }
        self.passed = 0;
        if self.chunks.len() >= CHUNKS_MAX {
            self.keep_every_second();
        }
        self.chunks.push(Chunk { mark, ..Chunk::default() });
        self.described.push(Described::default());
        Ok(())
    }

    fn share(&mut self, bytes: Vec<u8>) {
        self.shared = Some(bytes);
    }

    fn spans(&mut self, spans: Vec<ChunkSpans>) {
        // Where marks were left out, the states there are of other chunks.
        if spans.len() != self.chunks.len() || self.step > 1 {
            return;
        }
        for (chunk, mut spans) in self.chunks.iter_mut().zip(spans) {
            chunk.is_damaged |= std::mem::take(&mut spans.is_damaged);
            chunk.spans = Some(spans);
        }
    }

    fn rows(&mut self, rows: &RowGroup<'_>) {
        self.has_rows = true;
        if let Some(described) = self.described.last_mut() {
            described.add(rows);
        }
    }
}
