//! The raw stream as a window, whatever container it comes from, with its gaps.

use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use anytrace_core::{Cursor, Diagnostic, Error, Input, Layer, Limits, OpenOptions, Refill};

use crate::container::{self, Container};
use crate::rules;
use crate::snappy::{Chunk, Chunks};

/// How many decoded chunks may wait between the two threads.
const CHUNKS_AHEAD: usize = 3;

/// How much is decompressed from Brotli at once.
const BROTLI_STEP_BYTES: usize = 256 * 1024;

/// How much the Brotli decompressor reads at once. It gives out what it has when it asks for more, so this bounds what
/// is lost before damage.
const BROTLI_INPUT_BYTES: usize = 1024;

/// The raw stream. It ends at each place where bytes are missing; [`Self::next_segment`] goes on behind it.
pub(crate) struct Stream {
    cursor: Cursor,
    base: u64,
    shared: Option<Arc<Mutex<Shared>>>,
    layers: Vec<Layer>,
    own: Container,
}

/// What the refilling side and the reader share.
struct Shared {
    source: Source,
    damage: Vec<Diagnostic>,
    file_bytes: u64,
    is_at_gap: bool,
    is_over: bool,
}

enum Source {
    Chunks(Box<Chunks>),
    Ahead(Ahead),
    Brotli(Box<Brotli>),
}

impl Stream {
    pub(crate) fn new(input: Input, own: Container, options: &OpenOptions) -> Result<Self, Error> {
        let layers = input.layers().to_vec();
        let source = match own {
            Container::Snappy if options.threads > 1 => Source::Ahead(Ahead::start(input, options.limits)?),
            Container::Snappy => Source::Chunks(Box::new(Chunks::new(input, &options.limits))),
            Container::Brotli => Source::Brotli(Box::new(Brotli::new(input))),
            _ => return Ok(Self { cursor: Cursor::new(input), base: 0, shared: None, layers, own: Container::Raw }),
        };
        let shared = Shared { source, damage: Vec::new(), file_bytes: 0, is_at_gap: false, is_over: false };
        let shared = Arc::new(Mutex::new(shared));
        let cursor = Cursor::from_refill(Box::new(Feed(Arc::clone(&shared))));
        Ok(Self { cursor, base: 0, shared: Some(shared), layers, own })
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

    /// Goes on behind a gap; false at the end of the data. What is left of the window is dropped.
    pub(crate) fn next_segment(&mut self) -> bool {
        let Some(shared) = &self.shared else { return false };
        if !std::mem::take(&mut lock(shared).is_at_gap) {
            return false;
        }
        self.base += self.cursor.offset() + self.cursor.window().len() as u64;
        self.cursor = Cursor::from_refill(Box::new(Feed(Arc::clone(shared))));
        true
    }

    /// Damage of the container met since the last call.
    pub(crate) fn take_damage(&mut self) -> Vec<Diagnostic> {
        match &self.shared {
            Some(shared) => std::mem::take(&mut lock(shared).damage),
            None => Vec::new(),
        }
    }

    /// Bytes of the trace without gzip or zstd around it; exact at the end.
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
        self.layers.first().is_some_and(|layer| {
            layer.compression == anytrace_core::Compression::Zstd && container::is_seekable(layer.tail())
        })
    }

    /// The container to write when none is asked for.
    pub(crate) fn container(&self) -> Container {
        match (self.own, self.layers.first()) {
            (Container::Raw, Some(layer)) => container::of_layer(layer.compression),
            (own, _) => own,
        }
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
        let mut shared = lock(&self.0);
        loop {
            if shared.is_at_gap || shared.is_over {
                return Ok(0);
            }
            let Shared { source, damage, file_bytes, .. } = &mut *shared;
            let chunk = match source {
                Source::Chunks(chunks) => {
                    let chunk = chunks.next(buffer, at, damage)?;
                    *file_bytes = chunks.file_bytes();
                    chunk
                }
                Source::Ahead(ahead) => ahead.next(buffer, at, damage, file_bytes)?,
                Source::Brotli(brotli) => brotli.next(buffer, at, damage, file_bytes)?,
            };
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

/// Chunks decoded by a second thread.
struct Ahead {
    ready: Receiver<Result<Decoded, Error>>,
    /// Buffers on their way back.
    spare: SyncSender<Vec<u8>>,
}

struct Decoded {
    bytes: Vec<u8>,
    chunk: Chunk,
    damage: Vec<Diagnostic>,
    file_bytes: u64,
}

impl Ahead {
    fn start(input: Input, limits: Limits) -> Result<Self, Error> {
        let (send, ready) = sync_channel(CHUNKS_AHEAD);
        let (spare, returned) = sync_channel::<Vec<u8>>(CHUNKS_AHEAD + 1);
        let mut chunks = Chunks::new(input, &limits);
        // The thread ends when the data end or when nobody takes what it sends.
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
        let Ok(message) = self.ready.recv() else { return Ok(Chunk::End) };
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
        // When the way back is full the buffer is dropped.
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
