//! The raw stream of any container as a window, with its gaps.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use anytrace_core::{Cursor, Diagnostic, Error, Input, Layer, OpenOptions, Refill};

use crate::rules;
use crate::wire::container::{self, Container};
#[cfg(feature = "tools")]
use crate::wire::pieces::Pieces;
use crate::wire::snappy::{Chunk, Chunks, SNAPPY_MAGIC};

/// How many decoded chunks may be queued between the two threads.
const CHUNKS_AHEAD: usize = 3;

/// How much is decompressed from Brotli at once.
const BROTLI_STEP_BYTES: usize = 256 * 1024;

/// How much the Brotli decompressor reads at once. It emits its output when it asks for more input, so this bounds what
/// is lost before damage.
const BROTLI_INPUT_BYTES: usize = 1024;

/// Most chunk starts remembered between two calls of [`Stream::place`].
const PLACES_MAX: usize = 1 << 16;

/// Where decoding can begin: an offset in the file, and the corresponding offset in the raw stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DecodeStart {
    pub(crate) file: u64,
    pub(crate) raw: u64,
}

/// The raw stream. It ends at each place where bytes are missing; [`Self::next_segment`] continues after it.
pub(crate) struct Stream {
    cursor: Cursor,
    base: u64,
    shared: Option<Arc<Mutex<Shared>>>,
    layers: Vec<Layer>,
    own: Container,
    /// Known in advance for a stream that is opened at a place inside.
    is_seekable: Option<bool>,
}

/// What the refilling side and the reader share.
struct Shared {
    /// `None` while it is being read, so that the lock is not held during I/O.
    source: Option<Source>,
    damage: Vec<Diagnostic>,
    file_bytes: u64,
    is_at_gap: bool,
    is_over: bool,
    /// Starts of the chunks returned so far, if they are tracked.
    places: Option<VecDeque<DecodeStart>>,
    raw_bytes: u64,
}

enum Source {
    Chunks(Box<Chunks>),
    Ahead(Ahead),
    Brotli(Box<Brotli>),
    #[cfg(feature = "tools")]
    Pieces(Pieces),
}

impl Stream {
    pub(crate) fn new(input: Input, own: Container, options: &OpenOptions) -> Result<Self, Error> {
        let layers = input.layers().to_vec();
        let source = match own {
            Container::Snappy => return Self::of_chunks(Chunks::new(input, &options.limits), layers, 0, options),
            Container::Brotli => Source::Brotli(Box::new(Brotli::new(input))),
            _ => return Ok(Self::plain(Cursor::new(input), layers)),
        };
        Ok(Self::of_source(source, layers, 0, own))
    }

    /// Opens the stream at a place inside. For zstd the input begins there; for the others the input is sought. `None`
    /// if it is not seekable.
    pub(crate) fn at(
        input: Input,
        own: Container,
        place: DecodeStart,
        is_seekable: bool,
        options: &OpenOptions,
    ) -> Result<Option<Self>, Error> {
        let layers = input.layers().to_vec();
        let mut stream = match own {
            Container::Snappy => {
                let mut chunks = Chunks::new(input, &options.limits);
                if !chunks.seek(place.file) {
                    return Ok(None);
                }
                Self::of_chunks(chunks, layers, place.raw, options)?
            }
            Container::Raw if layers.is_empty() => {
                let mut cursor = Cursor::new(input);
                if place.file != place.raw || !cursor.seek(place.file) {
                    return Ok(None);
                }
                Self::plain(cursor, layers)
            }
            Container::Raw => {
                layers.iter().for_each(|layer| layer.begins_behind(place.file, place.raw));
                Self { base: place.raw, ..Self::plain(Cursor::new(input), layers) }
            }
            _ => return Ok(None),
        };
        stream.is_seekable = Some(is_seekable);
        Ok(Some(stream))
    }

    fn of_chunks(chunks: Chunks, layers: Vec<Layer>, base: u64, options: &OpenOptions) -> Result<Self, Error> {
        let source = match options.threads {
            0 | 1 => Source::Chunks(Box::new(chunks)),
            _ => Source::Ahead(Ahead::start(chunks)?),
        };
        Ok(Self::of_source(source, layers, base, Container::Snappy))
    }

    /// A raw stream that comes in pieces from elsewhere.
    #[cfg(feature = "tools")]
    pub(crate) fn of_pieces(pieces: Pieces) -> Self {
        Self::of_source(Source::Pieces(pieces), Vec::new(), 0, Container::Raw)
    }

    fn of_source(source: Source, layers: Vec<Layer>, base: u64, own: Container) -> Self {
        let (is_at_gap, is_over) = (false, false);
        let shared = Shared {
            source: Some(source),
            damage: Vec::new(),
            file_bytes: 0,
            is_at_gap,
            is_over,
            places: None,
            raw_bytes: base,
        };
        let shared = Arc::new(Mutex::new(shared));
        let cursor = Cursor::from_refill(Box::new(Feed(Arc::clone(&shared))));
        Self { cursor, base, shared: Some(shared), layers, own, is_seekable: None }
    }

    fn plain(cursor: Cursor, layers: Vec<Layer>) -> Self {
        Self { cursor, base: 0, shared: None, layers, own: Container::Raw, is_seekable: None }
    }

    /// Tracks where chunks start from here on; must be called before anything is read.
    pub(crate) fn track_places(&mut self) {
        if let Some(shared) = &self.shared {
            lock(shared).places = Some(VecDeque::new());
        }
    }

    /// The last place at or before the current position. Places of zstd frames are not known here; only the raw offset
    /// counts. `None` if there is damage that was not taken yet, or if there are no places.
    pub(crate) fn place(&mut self) -> Option<DecodeStart> {
        let offset = self.offset();
        let Some(shared) = &self.shared else { return Some(DecodeStart { file: offset, raw: offset }) };
        let mut shared = lock(shared);
        if !shared.damage.is_empty() {
            return None;
        }
        let places = shared.places.as_mut()?;
        while places.get(1).is_some_and(|next| next.raw <= offset) {
            places.pop_front();
        }
        places.front().copied()
    }

    /// Moves forward by any distance. Returns false if the data end before.
    pub(crate) fn skip(&mut self, bytes: u64) -> Result<bool, Error> {
        Ok(self.cursor.skip(bytes)? == bytes)
    }

    #[inline]
    pub(crate) fn window(&self) -> &[u8] {
        self.cursor.window()
    }

    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.cursor.offset()
    }

    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.cursor.advance(bytes);
    }

    pub(crate) fn fill(&mut self, need: usize) -> Result<usize, Error> {
        self.cursor.fill(need)
    }

    /// Continues after a gap, discarding the rest of the window. Returns false at the end of the data.
    pub(crate) fn next_segment(&mut self) -> bool {
        let Some(shared) = &self.shared else { return false };
        if !std::mem::take(&mut lock(shared).is_at_gap) {
            return false;
        }
        self.base += self.cursor.offset() + self.cursor.window().len() as u64;
        self.cursor = Cursor::from_refill(Box::new(Feed(Arc::clone(shared))));
        true
    }

    /// Damage of the container found since the last call.
    pub(crate) fn take_damage(&mut self) -> Vec<Diagnostic> {
        match &self.shared {
            Some(shared) => std::mem::take(&mut lock(shared).damage),
            None => Vec::new(),
        }
    }

    /// Bytes of the trace without any gzip or zstd layer; exact at the end.
    pub(crate) fn trace_bytes(&self) -> u64 {
        match &self.shared {
            Some(shared) => lock(shared).file_bytes,
            None => self.offset(),
        }
    }

    pub(crate) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// True when the outer layer is zstd with a table of frames; known at the end.
    pub(crate) fn is_seekable(&self) -> bool {
        if let Some(is_seekable) = self.is_seekable {
            return is_seekable;
        }
        self.layers.first().is_some_and(|layer| {
            layer.compression == anytrace_core::Compression::Zstd && container::is_seekable(layer.tail())
        })
    }

    /// The container to write if none is chosen.
    pub(crate) fn container(&self) -> Container {
        match (self.own, self.layers.first()) {
            (Container::Raw, Some(layer)) => container::of_layer(layer.compression),
            (own, _) => own,
        }
    }

    /// True where the bytes of the file can be decoded from a place inside.
    #[cfg(feature = "lanes")]
    pub(crate) fn can_begin_inside(&self) -> bool {
        self.layers.is_empty() && matches!(self.own, Container::Raw | Container::Snappy)
    }

    /// True where nothing but the outer compression has to be removed.
    #[cfg(feature = "lanes")]
    pub(crate) fn is_raw(&self) -> bool {
        self.own == Container::Raw
    }

    /// The container inside any gzip or zstd: Snappy, Brotli or raw.
    #[cfg(feature = "tools")]
    pub(crate) fn container_inside(&self) -> Container {
        self.own
    }

    /// All containers, outermost first, joined by `+`.
    pub(crate) fn container_names(&self) -> String {
        let mut names: Vec<&str> =
            self.layers.iter().map(|layer| container::of_layer(layer.compression).name()).collect();
        if self.is_seekable()
            && let Some(first) = names.first_mut()
        {
            *first = Container::ZstdSeekable.name();
        }
        if self.own != Container::Raw || names.is_empty() {
            names.push(self.own.name());
        }
        names.join("+")
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // A poisoned lock only means that the other side panicked between two plain stores.
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Refills a cursor from the shared source, up to the next gap.
struct Feed(Arc<Mutex<Shared>>);

impl Refill for Feed {
    fn refill(&mut self, buffer: &mut Vec<u8>, at: usize) -> Result<usize, Error> {
        loop {
            let mut shared = lock(&self.0);
            if shared.is_at_gap || shared.is_over {
                return Ok(0);
            }
            let (mut damage, mut file_bytes) = (Vec::new(), shared.file_bytes);
            // The magic precedes the first chunk.
            let at_file = file_bytes.max(SNAPPY_MAGIC.len() as u64);
            let Some(mut source) = shared.source.take() else { return Ok(0) };
            drop(shared);
            let chunk = source.next(buffer, at, &mut damage, &mut file_bytes);
            let mut shared = lock(&self.0);
            shared.source = Some(source);
            shared.damage.append(&mut damage);
            let chunk = chunk?;
            shared.file_bytes = file_bytes;
            if let Chunk::Data(n) | Chunk::Broken(n) = chunk {
                shared.note(n, at_file);
            }
            match chunk {
                Chunk::Data(0) => {}
                Chunk::Data(n) => return Ok(n),
                Chunk::Broken(n) => {
                    shared.is_at_gap = true;
                    return Ok(n);
                }
                Chunk::End => shared.is_over = true,
            }
        }
    }
}

impl Source {
    fn next(
        &mut self,
        buffer: &mut Vec<u8>,
        at: usize,
        damage: &mut Vec<Diagnostic>,
        file_bytes: &mut u64,
    ) -> Result<Chunk, Error> {
        match self {
            Self::Chunks(chunks) => {
                let chunk = chunks.next(buffer, at, damage)?;
                *file_bytes = chunks.file_bytes();
                Ok(chunk)
            }
            Self::Ahead(ahead) => ahead.next(buffer, at, damage, file_bytes),
            Self::Brotli(brotli) => brotli.next(buffer, at, damage, file_bytes),
            #[cfg(feature = "tools")]
            Self::Pieces(pieces) => Ok(pieces.next(buffer, at, damage, file_bytes)),
        }
    }
}

impl Shared {
    /// Records a chunk of this many raw bytes.
    fn note(&mut self, bytes: usize, file: u64) {
        let raw = self.raw_bytes;
        self.raw_bytes += bytes as u64;
        let Some(places) = &mut self.places else { return };
        places.push_back(DecodeStart { file, raw });
        if places.len() > PLACES_MAX {
            // The place is not asked for while a blob of many chunks is read. An earlier place is as good, only farther
            // away.
            let mut is_kept = false;
            places.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }
}

/// Chunks decoded by a second thread.
struct Ahead {
    ready: Receiver<Result<Decoded, Error>>,
    /// Returns used buffers to the thread.
    spare: SyncSender<Vec<u8>>,
}

struct Decoded {
    bytes: Vec<u8>,
    chunk: Chunk,
    damage: Vec<Diagnostic>,
    file_bytes: u64,
}

impl Ahead {
    fn start(mut chunks: Chunks) -> Result<Self, Error> {
        let (send, ready) = sync_channel(CHUNKS_AHEAD);
        let (spare, returned) = sync_channel::<Vec<u8>>(CHUNKS_AHEAD + 1);
        // The thread ends with the data, or when the receiver is dropped.
        thread::Builder::new()
            .name("decompress".to_owned())
            .spawn(move || {
                loop {
                    let mut bytes = returned.try_recv().unwrap_or_default();
                    let mut damage = Vec::new();
                    let message = chunks.next(&mut bytes, 0, &mut damage).map(|chunk| Decoded {
                        bytes,
                        chunk,
                        damage,
                        file_bytes: chunks.file_bytes(),
                    });
                    let is_last = !matches!(&message, Ok(decoded) if decoded.chunk != Chunk::End);
                    if send.send(message).is_err() || is_last {
                        return;
                    }
                }
            })
            .map_err(|error| Error::io("cannot start a thread", error))?;
        Ok(Self { ready, spare })
    }

    fn next(
        &mut self,
        buffer: &mut Vec<u8>,
        at: usize,
        damage: &mut Vec<Diagnostic>,
        file_bytes: &mut u64,
    ) -> Result<Chunk, Error> {
        // The thread sends an end mark. A thread that ended without it must not look like the end of the data.
        let Ok(message) = self.ready.recv() else {
            return Err(Error::io("cannot decompress", std::io::Error::other("a thread ended early")));
        };
        let Decoded { mut bytes, chunk, damage: found, file_bytes: read } = message?;
        damage.extend(found);
        *file_bytes = read;
        if let Chunk::Data(n) | Chunk::Broken(n) = chunk {
            let n = n.min(bytes.len());
            if at == 0 {
                std::mem::swap(buffer, &mut bytes);
            } else {
                let end = at + n;
                if buffer.len() < end {
                    buffer.resize(end, 0);
                }
                if let (Some(place), Some(from)) = (buffer.get_mut(at..end), bytes.get(..n)) {
                    place.copy_from_slice(from);
                }
            }
        }
        // If the channel is full, the buffer is freed.
        let _dropped_when_full = self.spare.try_send(bytes);
        Ok(chunk)
    }
}

/// A Brotli stream.
struct Brotli {
    decoder: brotli::Decompressor<Counted>,
}

/// Counts the compressed bytes.
struct Counted {
    inner: Box<dyn Read + Send>,
    bytes: u64,
    is_at_end: bool,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.bytes += n as u64;
        self.is_at_end |= n == 0;
        Ok(n)
    }
}

impl Brotli {
    fn new(input: Input) -> Self {
        let counted = Counted { inner: input.into_read(), bytes: 0, is_at_end: false };
        Self { decoder: brotli::Decompressor::new(counted, BROTLI_INPUT_BYTES) }
    }

    fn next(
        &mut self,
        buffer: &mut Vec<u8>,
        at: usize,
        damage: &mut Vec<Diagnostic>,
        file_bytes: &mut u64,
    ) -> Result<Chunk, Error> {
        let end = at + BROTLI_STEP_BYTES;
        if buffer.len() < end {
            buffer.resize(end, 0);
        }
        let place = buffer.get_mut(at..end).unwrap_or_default();
        let result = self.decoder.read(place);
        let &Counted { bytes, is_at_end, .. } = self.decoder.get_ref();
        *file_bytes = bytes;
        match result {
            Ok(0) => Ok(Chunk::End),
            Ok(n) => Ok(Chunk::Data(n)),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(Chunk::Data(0)),
            Err(error) => {
                // The decoder calls both cases invalid data.
                let rule = match error.kind() {
                    std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData if is_at_end => {
                        &rules::BROTLI_TRUNCATED
                    }
                    std::io::ErrorKind::InvalidData => &rules::BROTLI_CORRUPT,
                    _ => return Err(Error::io("cannot read the Brotli stream", error)),
                };
                damage.push(rule.at(*file_bytes).found(error.to_string()));
                Ok(Chunk::End)
            }
        }
    }
}
