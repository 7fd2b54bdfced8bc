//! How traces are read: files and objects, only those that are allowed, and indexes of those that have none.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use anytrace_core::index::{self, Choice, Depth, Index, Lookup, Part};
use anytrace_core::{Diagnostic, Error, Format, Input, InputOptions, OpenOptions, Sink};
use anytrace_query::{Access, Place};
use log::info;
use twox_hash::XxHash3_64;

use crate::status::Status;
use crate::store::{Stores, parts};

/// Largest index that is read from a store.
const INDEX_BYTES_MAX: u64 = 1 << 30;

/// Bytes between the marks of an index that is made here.
const EVERY_BYTES: u64 = 1 << 20;

/// Indexes that are kept in memory.
const INDEXES_MAX: usize = 64;

/// Which traces a process may open.
#[derive(Debug, Clone)]
pub(crate) enum Allowed {
    /// Those that its user may.
    All,
    /// Files below these folders and objects of these buckets.
    Only { roots: Vec<PathBuf>, buckets: Vec<String> },
}

/// An index that was made, or is about to be.
type Slot = Arc<Mutex<Option<Arc<Index>>>>;

/// Reads files and objects.
pub(crate) struct Reader {
    allowed: Allowed,
    stores: Stores,
    /// Where indexes that are made here are kept.
    indexes: Option<PathBuf>,
    known: Mutex<HashMap<u64, Slot>>,
    status: Arc<Status>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

impl Reader {
    /// Reads what is allowed; `indexes` is a folder for the indexes that are made here.
    pub(crate) fn new(allowed: Allowed, indexes: Option<PathBuf>, status: Arc<Status>) -> Result<Self, String> {
        let allowed = match allowed {
            Allowed::All => Allowed::All,
            Allowed::Only { roots, buckets } => {
                let real = |root: &PathBuf| {
                    fs::canonicalize(root).map_err(|error| format!("--root {}: {error}", root.display()))
                };
                Allowed::Only { roots: roots.iter().map(real).collect::<Result<_, _>>()?, buckets }
            }
        };
        Ok(Self { allowed, stores: Stores::new(), indexes, known: Mutex::default(), status })
    }

    /// The file at a path, if it may be opened.
    fn file(&self, path: &Path) -> Result<PathBuf, Error> {
        let Allowed::Only { roots, .. } = &self.allowed else { return Ok(path.to_owned()) };
        let refused = || Error::usage(format!("{} is not below a --root of the executor", path.display()));
        // Before the file system is asked, so that nobody learns which other files there are.
        if !path.is_absolute() || !roots.iter().any(|root| path.starts_with(root)) && !is_below(path, roots) {
            return Err(refused());
        }
        let real =
            fs::canonicalize(path).map_err(|error| Error::io(format_args!("cannot open {}", path.display()), error))?;
        if roots.iter().any(|root| real.starts_with(root)) { Ok(real) } else { Err(refused()) }
    }

    fn object<'a>(&self, path: &'a Path) -> Result<Option<(&'a str, &'a str)>, Error> {
        let Some((bucket, key)) = path.to_str().and_then(parts) else { return Ok(None) };
        match &self.allowed {
            Allowed::Only { buckets, .. } if !buckets.iter().any(|known| known == bucket) => {
                Err(Error::usage(format!("{}: the executor has no --bucket {bucket}", path.display())))
            }
            _ => Ok(Some((bucket, key))),
        }
    }

    /// What an index that was made here is of: the name, the length and the time of the last change.
    fn identity(&self, path: &Path, format: &str) -> Result<u64, Error> {
        let text = match self.object(path)? {
            Some((bucket, key)) => {
                let meta = self.stores.meta(bucket, key)?;
                format!("{bucket}/{key} {} {:?} {:?}", meta.size, meta.last_modified, meta.e_tag)
            }
            None => {
                let real = self.file(path)?;
                let meta = fs::metadata(&real)
                    .map_err(|error| Error::io(format_args!("cannot read {}", path.display()), error))?;
                format!("{} {} {:?}", real.display(), meta.len(), meta.modified().ok())
            }
        };
        Ok(XxHash3_64::oneshot(format!("{} {format} {text}", index::VERSION).as_bytes()))
    }

    fn make(&self, path: &Path, format: &dyn Format, identity: u64) -> Result<Index, Error> {
        let stored = self.indexes.as_ref().map(|folder| folder.join(format!("{identity:016x}.atx")));
        if let Some(index) = stored.as_ref().and_then(|file| Index::decode(&fs::read(file).ok()?).ok()) {
            return Ok(index);
        }
        info!("making an index of {}", path.display());
        self.status.indexes.fetch_add(1, Ordering::Relaxed);
        let open = || self.open(path, None);
        // The scan of the parts reports the damage.
        let index = index::build_by(format, &open, &OpenOptions::default(), EVERY_BYTES, &mut Silent)?;
        if let Some(file) = stored {
            // Without it the index is made again after a restart.
            let _ = store(&file, &index.encode());
        }
        Ok(index)
    }
}

/// Takes diagnostics that something else reports.
struct Silent;

impl Sink for Silent {
    fn report(&mut self, _: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

/// Writes a file completely or not at all.
fn store(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut made = tempfile::NamedTempFile::new_in(folder)?;
    made.write_all(bytes)?;
    made.persist(file).map_err(|error| error.error)?;
    Ok(())
}

/// Whether a path is below a root by another name of its folder.
fn is_below(path: &Path, roots: &[PathBuf]) -> bool {
    let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
    folder.is_some_and(|folder| roots.iter().any(|root| folder.starts_with(root)))
}

impl Access for Reader {
    fn expand(&self, name: PathBuf) -> Result<Vec<PathBuf>, Error> {
        let text = name.to_str().unwrap_or("");
        if let Some((bucket, key)) = parts(text) {
            let Some(at) = key.find(['*', '?']) else { return Ok(vec![name]) };
            let keys = self.stores.list(bucket, key.get(..at).unwrap_or(""))?;
            let fits = keys.iter().filter(|found| matches(key.as_bytes(), found.as_bytes()));
            return some(fits.map(|key| PathBuf::from(format!("s3://{bucket}/{key}"))).collect(), text);
        }
        if !text.contains(['*', '?']) || name.exists() {
            return absolute(name).map(|name| vec![name]);
        }
        // Folders are as they are written, as most patterns have it.
        let folder = name.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let pattern = name.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let failed = |error| Error::io(format_args!("cannot list {}", folder.display()), error);
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let own = entry.file_name();
            if own.to_str().is_some_and(|own| matches(pattern.as_bytes(), own.as_bytes()))
                && !own.as_encoded_bytes().ends_with(b".atx")
            {
                found.push(absolute(entry.path())?);
            }
        }
        found.sort_unstable();
        some(found, text)
    }

    fn open(&self, path: &Path, until: Option<u64>) -> Result<Input, Error> {
        match self.object(path)? {
            Some((bucket, key)) => {
                Input::from_ranges(&path.display().to_string(), self.stores.open(bucket, key, until)?)
            }
            None => Input::open(&self.file(path)?, InputOptions::default()),
        }
    }

    fn bytes(&self, path: &Path) -> Result<u64, Error> {
        match self.object(path)? {
            Some((bucket, key)) => Ok(self.stores.meta(bucket, key)?.size),
            None => {
                let meta = fs::metadata(self.file(path)?);
                let failed = |error| Error::io(format_args!("cannot read {}", path.display()), error);
                meta.map(|meta| meta.len()).map_err(failed)
            }
        }
    }

    fn index(&self, path: &Path, format: &str, choice: &Choice) -> Result<Lookup, Error> {
        let (Some((bucket, key)), Choice::Auto(None)) = (self.object(path)?, choice) else {
            return index::find(&self.file(path)?, format, choice);
        };
        let name = format!("{key}.atx");
        let Some((meta, bytes)) = self.stores.bytes(bucket, &name, INDEX_BYTES_MAX)? else {
            return Ok(Lookup::Nothing);
        };
        let unused = |why: String| Ok(Lookup::Unused(format!("s3://{bucket}/{name}").into(), why));
        let index = match Index::decode(&bytes) {
            Ok(index) => index,
            Err(fault) => return unused(fault.to_string()),
        };
        if index.version != index::VERSION {
            return unused(format!("it was made by version {}, this is {}", index.version, index::VERSION));
        }
        if index.format != format {
            return unused(format!("it is of a trace of the format {}, this is one of {format}", index.format));
        }
        let object = self.stores.open(bucket, key, Some(0))?;
        let is_older = self.stores.meta(bucket, key)?.last_modified <= meta.last_modified;
        let depth = if is_older { Depth::Samples } else { Depth::Full };
        let fit = index.pieces.check_ranges(object.as_ref(), depth);
        match fit.map_err(|error| Error::io(format_args!("cannot read {}", path.display()), error))? {
            Ok(()) => Ok(Lookup::Found(Box::new(index))),
            Err(misfit) => unused(misfit.to_string()),
        }
    }

    fn made_index(&self, path: &Path, format: &dyn Format) -> Result<Arc<Index>, Error> {
        let identity = self.identity(path, format.name())?;
        let slot = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= INDEXES_MAX && !known.contains_key(&identity) {
                known.clear();
            }
            Arc::clone(known.entry(identity).or_default())
        };
        // Tasks that need the same index wait for the one that makes it.
        let mut made = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = &*made {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(self.make(path, format, identity)?);
        *made = Some(Arc::clone(&index));
        Ok(index)
    }

    fn create(&self, path: &Path, is_replaced: bool) -> Result<Box<dyn Place>, Error> {
        match (path.to_str().and_then(parts), &self.allowed) {
            (Some((bucket, key)), Allowed::All) => Ok(Box::new(self.stores.create(bucket, key, is_replaced)?)),
            _ => Err(Error::unsupported(format!("{}: this process writes no such object", path.display()))),
        }
    }

    fn note(&self, path: &Path, part: &Part, length: u64) {
        let from = part.from.as_ref().map_or(0, |mark| mark.offset);
        self.status.parts.fetch_add(1, Ordering::Relaxed);
        self.status.bytes.fetch_add(part.until.unwrap_or(length).saturating_sub(from), Ordering::Relaxed);
        match part.until {
            Some(until) => info!("reading {} from {from} to {until}", path.display()),
            None => info!("reading {} from {from} to its end", path.display()),
        }
    }
}

/// Other processes know no working directory of this one.
fn absolute(path: PathBuf) -> Result<PathBuf, Error> {
    std::path::absolute(&path).map_err(|error| Error::io(format_args!("cannot find {}", path.display()), error))
}

fn some(found: Vec<PathBuf>, pattern: &str) -> Result<Vec<PathBuf>, Error> {
    if found.is_empty() { Err(Error::usage(format!("{pattern}: no trace has such a name"))) } else { Ok(found) }
}

/// Whether a name fits a pattern: `*` is any text without `/`, `?` any one byte but that.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // Where the last `*` was, and what it stands for so far.
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(b'?') if name[from] != b'/' => (at, from) = (at + 1, from + 1),
            Some(byte) if *byte == name[from] && *byte != b'?' => (at, from) = (at + 1, from + 1),
            _ => match star {
                Some((pattern_at, name_at)) if name[name_at] != b'/' => {
                    star = Some((pattern_at, name_at + 1));
                    (at, from) = (pattern_at + 1, name_at + 1);
                }
                _ => return false,
            },
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(roots: Vec<PathBuf>) -> Reader {
        let allowed = Allowed::Only { roots, buckets: vec!["mine".to_owned()] };
        Reader::new(allowed, None, Arc::new(Status::new(Box::new(|| true)))).unwrap()
    }

    #[tokio::test]
    async fn only_files_below_a_root_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a"), "x").unwrap();
        fs::write(folder.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(folder.path().join("secret"), root.join("link")).unwrap();
        let reader = reader(vec![root.clone()]);
        assert!(reader.open(&root.join("a"), None).is_ok());
        for path in [folder.path().join("secret"), root.join("link"), root.join("../secret"), "relative".into()] {
            let error = reader.open(&path, None).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("is not below a --root"), "{}: {error}", path.display());
        }
        let error = reader.open(&root.join("missing"), None).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("missing") && error.contains("cannot open"), "{error}");
        let error =
            reader.open(Path::new("s3://other/x"), None).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("no --bucket other"), "{error}");
    }

    #[test]
    fn patterns_stay_in_their_folder() {
        for (pattern, name, fits) in [
            ("a/*.xray", "a/b.xray", true),
            ("a/*.xray", "a/b/c.xray", false),
            ("*b*", "abcb", true),
            ("*b*c", "abcb", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("**", "", true),
            ("a", "ab", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), fits, "{pattern} {name}");
        }
    }
}
