//! A folder as an input: the archive of its files, made as it is read.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::RangeRead;
use crate::archive::{END, Header, padding};

/// The file that a folder must have, in it or below it, to be read as a trace. It comes before the others beside it.
const DESCRIPTION: &str = "metadata";

/// Most files, and deepest folders.
const FILES_MAX: usize = 1 << 16;
const DEPTH_MAX: usize = 16;

/// Bytes of the archive that are next to each other.
#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>),
    File(PathBuf, u64),
}

impl Piece {
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, length) => *length,
        }
    }
}

/// The files of a folder as one sequence of bytes.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Each with the offset at which it begins.
    pieces: Vec<(u64, Piece)>,
    length: u64,
    /// The file that was read last.
    open: Mutex<Option<(usize, File)>>,
}

impl Folder {
    /// The files of the traces in a folder and in those below it, in the order of their names: those beside a `metadata`
    /// and below it. `None` where there is none. Names that begin with a dot are left out.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        let mut files = Vec::new();
        collect(path, "", 0, &mut files)?;
        let described: BTreeSet<String> =
            files.iter().filter(|(name, ..)| is_description(name)).map(|(name, ..)| parent(name).to_owned()).collect();
        if described.is_empty() {
            return Ok(None);
        }
        files.retain(|(name, ..)| {
            let mut folders = std::iter::successors(Some(parent(name)), |of| (!of.is_empty()).then(|| parent(of)));
            folders.any(|folder| described.contains(folder))
        });
        let mut folder = Self { pieces: Vec::new(), length: 0, open: Mutex::new(None) };
        for (name, path, length) in files {
            folder.push(Piece::Bytes(Header::file(&name, length).to_bytes()));
            folder.push(Piece::File(path, length));
            folder.push(Piece::Bytes(vec![0; padding(length)]));
        }
        folder.push(Piece::Bytes(END.to_vec()));
        Ok(Some(folder))
    }

    fn push(&mut self, piece: Piece) {
        let length = piece.length();
        if length > 0 {
            self.pieces.push((self.length, piece));
            self.length += length;
        }
    }
}

/// The folder of a name; empty for the outermost.
fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn is_description(name: &str) -> bool {
    name.rsplit('/').next() == Some(DESCRIPTION)
}

fn collect(folder: &Path, prefix: &str, depth: usize, files: &mut Vec<(String, PathBuf, u64)>) -> io::Result<()> {
    let too_many = || io::Error::other("the folder has too many files, or folders inside each other");
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            entries.push((name != DESCRIPTION, name, entry));
        }
        if entries.len() + files.len() > FILES_MAX {
            return Err(too_many());
        }
    }
    entries.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    for (_, name, entry) in entries {
        let (kind, name) = (entry.file_type()?, format!("{prefix}{name}"));
        if kind.is_dir() {
            if depth >= DEPTH_MAX {
                return Err(too_many());
            }
            collect(&entry.path(), &format!("{name}/"), depth + 1, files)?;
        } else if let Ok(meta) = fs::metadata(entry.path())
            && meta.is_file()
        {
            files.push((name, entry.path(), meta.len()));
        }
    }
    Ok(())
}

impl RangeRead for Folder {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let at = self.pieces.partition_point(|(start, _)| *start <= offset).saturating_sub(1);
        let Some((start, piece)) = self.pieces.get(at) else { return Ok(0) };
        let inside = offset - start;
        let left = usize::try_from(piece.length().saturating_sub(inside)).unwrap_or(usize::MAX);
        let count = left.min(buffer.len());
        let buffer = buffer.get_mut(..count).unwrap_or_default();
        match piece {
            Piece::Bytes(bytes) => {
                let from = usize::try_from(inside).ok().and_then(|from| bytes.get(from..)).unwrap_or_default();
                from.take(count as u64).read(buffer)
            }
            Piece::File(path, _) => {
                let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                if open.as_ref().is_none_or(|(of, _)| *of != at) {
                    *open = Some((at, File::open(path)?));
                }
                let Some((_, file)) = open.as_mut() else { return Ok(0) };
                file.seek(SeekFrom::Start(inside))?;
                file.read(buffer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, InputOptions};

    #[test]
    fn a_folder_is_the_archive_of_the_traces_in_it() {
        let folder = std::env::temp_dir().join(format!("anytrace-folder-{}", std::process::id()));
        fs::create_dir_all(folder.join("b/c")).unwrap();
        for (name, bytes) in [("a", &b"first"[..]), ("b/c/stream", &[7; 513]), ("b/c/metadata", b"text"), (".x", b"-")]
        {
            fs::write(folder.join(name), bytes).unwrap();
        }
        let open = || Input::open(&folder, InputOptions::default());
        let mut archive = Vec::new();
        open().unwrap().into_read().read_to_end(&mut archive).unwrap();
        assert_eq!(archive.len(), 2 * 512 + 512 + 1024 + END.len());
        let unpacked = folder.join("out");
        crate::archive::unpack(archive.as_slice(), &unpacked).unwrap();
        assert_eq!(fs::read(unpacked.join("b/c/stream")).unwrap(), [7; 513]);
        // The description comes first, hidden files do not come.
        assert!(archive.starts_with(b"b/c/metadata\0"));
        assert!(!unpacked.join(".x").exists() && !unpacked.join("a").exists());
        fs::remove_file(folder.join("b/c/metadata")).unwrap();
        fs::remove_dir_all(&unpacked).unwrap();
        assert_eq!(open().err().unwrap().to_string(), format!("{} is a directory", folder.display()));
        fs::remove_dir_all(&folder).unwrap();
    }
}
