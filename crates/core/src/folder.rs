//! A folder as an input: the archive of its files, made as it is read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::archive::{END, Header, padding};
use crate::pieces::Pieces;

/// The file that a folder must have, in it or below it, to be read as a trace. It comes before the others beside it.
const DESCRIPTION: &str = "metadata";

/// Most files, and deepest folders.
const FILES_MAX: usize = 1 << 16;
const DEPTH_MAX: usize = 16;

/// The files of a folder as one sequence of bytes.
pub(crate) struct Folder;

impl Folder {
    /// The files of the traces in a folder and in those below it, in the order of their names: those beside a `metadata`
    /// and below it. `None` where there is none. Names that begin with a dot are left out.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Pieces>> {
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
        let mut folder = Pieces::default();
        for (name, path, length) in files {
            folder.push_bytes(Header::file(&name, length).to_bytes());
            folder.push_file(path, 0..length);
            folder.push_bytes(vec![0; padding(length)]);
        }
        folder.push_bytes(END.to_vec());
        Ok(Some(folder))
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

#[cfg(test)]
mod tests {
    use std::io::Read;

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
