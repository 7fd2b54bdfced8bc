//! Where bytes come from: a file, a pipe or memory. Compression is removed on the way.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::file::{FileMap, OpenFile, RangeRead};
use crate::folder::Folder;
use crate::layer::{Compression, Layer};
use crate::{Error, Head};

/// How much of the start a probe may look at.
const HEAD_BYTES: usize = 64 * 1024;

/// Most layers of compression removed; bounds a file that unpacks to itself.
const LAYERS_MAX: usize = 4;

/// The file of a folder that is read in its place, where it has no description of others.
const FOLDER_FILE: &str = "data";

/// Options for [`Input::open`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputOptions {
    /// Treat the file as a stream and never map it: for files that other programs write to at the same time. Readers
    /// that need random access then copy the file or load it into memory.
    pub no_map: bool,
}

/// An opened source of bytes, with its first 64 KiB buffered for probing.
pub struct Input {
    name: String,
    file_bytes: Option<u64>,
    layers: Vec<Layer>,
    progress: Arc<AtomicU64>,
    pub(crate) body: Body,
    /// Of compressed bytes that can be read again.
    origin: Option<Origin>,
    /// For tests: hand a cursor this many bytes at a time, as a slow pipe would.
    pub(crate) drip_bytes: Option<usize>,
}

/// Where compressed bytes are.
#[derive(Clone)]
enum Origin {
    File(PathBuf),
    Bytes(Arc<[u8]>),
    Ranges(Arc<dyn RangeRead>),
}

pub(crate) enum Body {
    Map(FileMap),
    Bytes(Vec<u8>),
    /// A file's first bytes, which were read for probing, and the file itself.
    File {
        head: Vec<u8>,
        file: OpenFile,
    },
    /// Bytes already read for probing, then the rest.
    Stream {
        head: Vec<u8>,
        rest: Box<dyn Read + Send>,
        /// The data need not end with a short head.
        is_live: bool,
    },
}

impl Input {
    /// Opens a file, or standard input for `-`; compression layers are recognized and removed. A folder with a file
    /// `metadata` is read as the archive of its files ([`crate::archive`]), one with a file `data` as that file, to which
    /// [`crate::Format::completed`] may add those beside it.
    ///
    /// # Errors
    /// [`crate::Kind::Io`] when the file cannot be opened or read.
    pub fn open(path: &Path, options: InputOptions) -> Result<Self, Error> {
        if path.as_os_str() == "-" {
            return Self::from_read("-", Box::new(io::stdin()), None);
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| Error::io(format_args!("cannot open {name}"), error))?;
        let meta = file.metadata().map_err(|error| Error::io(format_args!("cannot read {name}"), error))?;
        if meta.is_dir() {
            let folder = Folder::open(path).map_err(|error| Error::io(format_args!("cannot read {name}"), error))?;
            let main = path.join(FOLDER_FILE);
            return match folder {
                None if main.is_file() => Ok(Self { name, ..Self::open(&main, options)? }),
                Some(folder) => Self::from_ranges_as_is(&name, Arc::new(folder)),
                None => Err(Error::usage(format!("{name} is a directory"))),
            };
        }
        let length = meta.is_file().then_some(meta.len());
        if length.is_none_or(|bytes| bytes == 0) {
            return Self::from_read(&name, Box::new(file), length);
        }
        let mut file = OpenFile::new(&name, file, meta.len());
        if options.no_map {
            return Self::from_read(&name, Box::new(file), length);
        }
        let head = read_head(&mut file).map_err(|error| Error::io(format_args!("cannot read {name}"), error))?;
        if Compression::detect(&head).is_some() {
            file.seek(0);
            let input = Self::from_read(&name, Box::new(file), length)?;
            return Ok(Self { origin: Some(Origin::File(path.to_owned())), ..input });
        }
        Ok(Self {
            name,
            file_bytes: length,
            layers: Vec::new(),
            progress: Arc::default(),
            body: Body::File { head, file },
            origin: None,
            drip_bytes: None,
        })
    }

    /// Takes bytes that are read by ranges; compression layers are recognized and removed.
    ///
    /// # Errors
    /// [`crate::Kind::Io`] when the first bytes cannot be read.
    pub fn from_ranges(name: &str, ranges: Arc<dyn RangeRead>) -> Result<Self, Error> {
        let input = Self::from_ranges_as_is(name, Arc::clone(&ranges))?;
        let Body::File { head, mut file } = input.body else { return Ok(input) };
        if head.is_empty() || Compression::detect(&head).is_some() {
            file.seek(0);
            let decoded = Self::from_read(name, Box::new(file), input.file_bytes)?;
            return Ok(Self { origin: Some(Origin::Ranges(ranges)), ..decoded });
        }
        Ok(Self { body: Body::File { head, file }, ..input })
    }

    fn from_ranges_as_is(name: &str, ranges: Arc<dyn RangeRead>) -> Result<Self, Error> {
        let mut file = OpenFile::of_ranges(name, ranges);
        let file_bytes = Some(file.length());
        let head = read_head(&mut file).map_err(|error| Error::io(format_args!("cannot read {name}"), error))?;
        let (layers, progress, body) = (Vec::new(), Arc::default(), Body::File { head, file });
        Ok(Self { name: name.to_owned(), file_bytes, layers, progress, body, origin: None, drip_bytes: None })
    }

    /// Maps the input where it is a file that can be mapped, so that [`Self::as_slice`] has all bytes; otherwise
    /// returns it unchanged.
    ///
    /// For readers that need random access. Changes that another program makes to a mapped file are visible here: where
    /// the file is truncated, the lost bytes read as zeros, and [`crate::cut_short`] has the error.
    pub fn at_hand(self) -> Self {
        let Self { body: Body::File { head, file }, .. } = self else { return self };
        let body = match file.map() {
            Ok(map) => Body::Map(map),
            Err(file) => Body::File { head, file },
        };
        Self { body, ..self }
    }

    /// True for a file that can be read more than once, and for bytes in memory.
    pub fn is_file_or_memory(&self) -> bool {
        !matches!(self.body, Body::Stream { .. })
    }

    /// Maps a file as it is on disk, compressed or not, for measurements and searches in the bytes of the file itself.
    ///
    /// # Errors
    /// [`crate::Kind::Io`] when the file cannot be opened or mapped, as pipes and empty files cannot.
    pub fn open_as_is(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| Error::io(format_args!("cannot open {name}"), error))?;
        let meta = file.metadata().map_err(|error| Error::io(format_args!("cannot read {name}"), error))?;
        let is_mapped = if meta.is_file() { OpenFile::new(&name, file, meta.len()).map().ok() } else { None };
        let Some(map) = is_mapped else {
            return Err(Error::io(format_args!("cannot map {name}"), io::Error::from(io::ErrorKind::Unsupported)));
        };
        let (layers, progress, file_bytes) = (Vec::new(), Arc::default(), Some(map.len() as u64));
        Ok(Self { name, file_bytes, layers, progress, body: Body::Map(map), origin: None, drip_bytes: None })
    }

    /// Takes the bytes of a file in memory without decompressing them.
    pub fn from_bytes_as_is(name: &str, bytes: Vec<u8>) -> Self {
        let (layers, progress, file_bytes) = (Vec::new(), Arc::default(), Some(bytes.len() as u64));
        Self {
            name: name.to_owned(),
            file_bytes,
            layers,
            progress,
            body: Body::Bytes(bytes),
            origin: None,
            drip_bytes: None,
        }
    }

    /// The bytes of a compressed file, or of compressed bytes in memory, as they are; `None` for others and for pipes.
    ///
    /// # Errors
    /// As [`Self::open_as_is`].
    pub fn still_compressed(&self) -> Option<Result<Self, Error>> {
        Some(match self.origin.as_ref()? {
            Origin::File(path) => Self::open_as_is(path),
            Origin::Bytes(bytes) => Ok(Self::from_bytes_as_is(&self.name, bytes.to_vec())),
            Origin::Ranges(ranges) => Self::from_ranges_as_is(&self.name, Arc::clone(ranges)),
        })
    }

    /// The input from an offset on, as if it began there: compression layers are recognized and removed.
    ///
    /// # Errors
    /// As [`Self::from_read`].
    pub fn from_offset(self, offset: u64) -> Result<Self, Error> {
        let (name, file_bytes) = (self.name.clone(), self.file_bytes);
        fn late<T>(bytes: T, offset: u64) -> io::Cursor<T> {
            let mut reader = io::Cursor::new(bytes);
            reader.set_position(offset);
            reader
        }
        let reader: Box<dyn Read + Send> = match self.body {
            Body::Map(map) => Box::new(late(map, offset)),
            Body::Bytes(bytes) => Box::new(late(bytes, offset)),
            Body::File { mut file, .. } => match file.seek(offset) {
                true => Box::new(file),
                false => Box::new(io::empty()),
            },
            Body::Stream { .. } => {
                let mut reader = self.into_read();
                io::copy(&mut (&mut reader).take(offset), &mut io::sink())
                    .map_err(|error| Error::io(format_args!("cannot read {name}"), error))?;
                reader
            }
        };
        Self::from_read(&name, reader, file_bytes)
    }

    /// Takes bytes in memory; compression layers are removed.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Self {
        let length = bytes.len() as u64;
        if Compression::detect(&bytes).is_some()
            && let Ok(input) = Self::from_read(name, Box::new(io::Cursor::new(bytes.clone())), Some(length))
        {
            return Self { origin: Some(Origin::Bytes(bytes.into())), ..input };
        }
        Self::from_bytes_as_is(name, bytes)
    }

    /// Takes any reader; compression layers are removed. `file_bytes` is the length, if known.
    ///
    /// # Errors
    /// [`crate::Kind::Io`] when the first bytes cannot be read.
    pub fn from_read(name: &str, reader: Box<dyn Read + Send>, file_bytes: Option<u64>) -> Result<Self, Error> {
        let progress = Arc::new(AtomicU64::new(0));
        let mut rest: Box<dyn Read + Send> = Box::new(Metered { inner: reader, progress: Arc::clone(&progress) });
        let mut layers = Vec::new();
        let failed = |error| Error::io(format_args!("cannot read {name}"), error);
        loop {
            let head = read_head(&mut rest).map_err(failed)?;
            let compression = Compression::detect(&head);
            let Some(compression) = compression.filter(|_| layers.len() < LAYERS_MAX) else {
                return Ok(Self {
                    name: name.to_owned(),
                    file_bytes,
                    layers,
                    progress,
                    body: Body::Stream { head, rest, is_live: false },
                    origin: None,
                    drip_bytes: None,
                });
            };
            let (layer, decoder) =
                Layer::decode(compression, Box::new(io::Cursor::new(head).chain(rest))).map_err(failed)?;
            layers.push(layer);
            rest = decoder;
        }
    }

    /// Takes a trace that is still being written: its first bytes, however few of them there are yet, and the reader of
    /// the rest, which returns what there is and waits only where there is nothing. Compression is not removed.
    pub fn live(name: &str, mut head: Vec<u8>, rest: Box<dyn Read + Send>) -> Self {
        let after = head.split_off(head.len().min(HEAD_BYTES));
        let rest: Box<dyn Read + Send> =
            if after.is_empty() { rest } else { Box::new(io::Cursor::new(after).chain(rest)) };
        let (layers, progress) = (Vec::new(), Arc::default());
        let body = Body::Stream { head, rest, is_live: true };
        Self { name: name.to_owned(), file_bytes: None, layers, progress, body, origin: None, drip_bytes: None }
    }

    /// The name of the input: the path as given, or `-`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Length of the file on disk, compressed or not; unknown for pipes.
    pub fn file_bytes(&self) -> Option<u64> {
        self.file_bytes
    }

    /// Compression layers, outermost first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// A counter of file bytes consumed, for a progress bar. It is shared and stays valid after the input is dropped.
    pub fn progress(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.progress)
    }

    /// The head for [`crate::Format::probe`].
    pub fn head(&self) -> Head<'_> {
        let (bytes, total_bytes) = match &self.body {
            Body::Map(map) => (&map[..map.len().min(HEAD_BYTES)], Some(map.len() as u64)),
            Body::Bytes(bytes) => (&bytes[..bytes.len().min(HEAD_BYTES)], Some(bytes.len() as u64)),
            Body::File { head, file } => (head.as_slice(), Some(file.length())),
            // A head shorter than asked for means that the data end there.
            Body::Stream { head, is_live, .. } => {
                (head.as_slice(), (head.len() < HEAD_BYTES && !is_live).then_some(head.len() as u64))
            }
        };
        Head { bytes, total_bytes, name: &self.name, layers: &self.layers }
    }

    /// All bytes, where they are in memory or mapped by [`Self::at_hand`]: for readers that split the file.
    pub fn as_slice(&self) -> Option<&[u8]> {
        match &self.body {
            Body::Map(map) => Some(map),
            Body::Bytes(bytes) => Some(bytes),
            Body::File { .. } | Body::Stream { .. } => None,
        }
    }

    /// The decompressed bytes as a plain reader.
    pub fn into_read(self) -> Box<dyn Read + Send> {
        match self.body {
            Body::Map(map) => Box::new(io::Cursor::new(map)),
            Body::Bytes(bytes) => Box::new(io::Cursor::new(bytes)),
            Body::File { head, file } => Box::new(io::Cursor::new(head).chain(file)),
            Body::Stream { head, rest, .. } => Box::new(io::Cursor::new(head).chain(rest)),
        }
    }
}

/// Reads up to [`HEAD_BYTES`]; fewer only at the end of the data.
fn read_head(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    reader.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Counts file bytes for the progress bar.
struct Metered {
    inner: Box<dyn Read + Send>,
    progress: Arc<AtomicU64>,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.progress.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_removed_from_memory_and_named_outermost_first() {
        let inner = zstd::encode_all(&b"payload"[..], 1).unwrap();
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut encoder, &inner).unwrap();
        let input = Input::from_bytes("x", encoder.finish().unwrap());
        let names: Vec<_> = input.layers().iter().map(|l| l.compression.name()).collect();
        assert_eq!(names, ["gzip", "zstd"]);
        assert_eq!(input.head().bytes, b"payload");
        assert_eq!(input.head().total_bytes, Some(7));
        let mut out = Vec::new();
        input.into_read().read_to_end(&mut out).unwrap();
        assert_eq!(out, b"payload");
    }

    #[derive(Debug)]
    struct Ranges(Vec<u8>);

    impl RangeRead for Ranges {
        fn length(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.get(offset as usize..).unwrap_or_default().read(buffer)
        }
    }

    #[test]
    fn an_input_can_begin_at_a_later_frame() {
        let folder = std::env::temp_dir().join(format!("anytrace-input-{}", std::process::id()));
        let [one, two] = [&b"one"[..], b"two"].map(|bytes| zstd::encode_all(bytes, 1).unwrap());
        std::fs::write(&folder, [one.as_slice(), &two].concat()).unwrap();
        let as_is = Input::open_as_is(&folder).unwrap();
        assert_eq!((as_is.layers().len(), as_is.as_slice().map(<[u8]>::len)), (0, Some(one.len() + two.len())));
        let later = as_is.from_offset(one.len() as u64).unwrap();
        assert_eq!((later.layers().len(), later.head().bytes), (1, &b"two"[..]));
        let bytes = std::fs::read(&folder).unwrap();
        let file = Input::open(&folder, InputOptions::default()).unwrap();
        let memory = Input::from_bytes("memory", bytes.clone());
        let ranges = Input::from_ranges("ranges", Arc::new(Ranges(bytes))).unwrap();
        for input in [file, memory, ranges] {
            assert_eq!(input.head().bytes, b"onetwo", "{}", input.name());
            let later = input.still_compressed().unwrap().unwrap().from_offset(one.len() as u64).unwrap();
            assert_eq!((later.layers().len(), later.head().bytes), (1, &b"two"[..]), "{}", input.name());
        }
        assert!(Input::from_bytes("memory", b"plain".to_vec()).still_compressed().is_none());
        std::fs::remove_file(&folder).unwrap();
    }

    #[test]
    fn a_missing_file_is_an_io_error_that_names_it() {
        let error = Input::open(Path::new("no/such.file"), InputOptions::default()).err().unwrap();
        assert_eq!(error.kind(), crate::Kind::Io);
        assert!(error.to_string().contains("no/such.file"));
    }

    #[test]
    fn a_quine_of_layers_stops() {
        let mut bytes = b"x".to_vec();
        for _ in 0..6 {
            bytes = zstd::encode_all(&bytes[..], 1).unwrap();
        }
        assert_eq!(Input::from_bytes("x", bytes).layers().len(), LAYERS_MAX);
    }
}
