//! tar, gzip and ar, written into memory.

use std::collections::BTreeSet;
use std::io::Write;

use flate2::{Compression, GzBuilder};

/// A file of an archive.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// From the archive's root, without a slash in front.
    pub(super) path: String,
    pub(super) is_program: bool,
    pub(super) bytes: Vec<u8>,
    /// It is a symbolic link to this path.
    pub(super) link: Option<String>,
}

impl Entry {
    pub(super) fn file(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), is_program: false, bytes: bytes.into(), link: None }
    }

    pub(super) fn program(path: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { is_program: true, ..Self::file(path, bytes) }
    }

    pub(super) fn link(path: impl Into<String>, to: &str) -> Self {
        Self { link: Some(to.to_owned()), ..Self::file(path, "") }
    }
}

/// A compressed tar with the folders of all entries, owned by root. `top` begins each path.
pub(super) fn tar_gz(top: &str, entries: &[Entry], time_s: u64) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("tar: {error}");
    let mut builder = tar::Builder::new(Vec::new());
    let mut folders = BTreeSet::new();
    for entry in entries {
        let path = format!("{top}/{}", entry.path);
        let ends = path.match_indices('/').map(|(end, _)| path[..=end].to_owned());
        folders.extend(ends);
    }
    for folder in folders {
        let mut header = header(tar::EntryType::Directory, 0o755, 0, time_s);
        builder.append_data(&mut header, folder, std::io::empty()).map_err(failed)?;
    }
    for entry in entries {
        if let Some(to) = &entry.link {
            let mut header = header(tar::EntryType::Symlink, 0o777, 0, time_s);
            builder.append_link(&mut header, format!("{top}/{}", entry.path), to).map_err(failed)?;
            continue;
        }
        let mode = if entry.is_program { 0o755 } else { 0o644 };
        let mut header = header(tar::EntryType::Regular, mode, entry.bytes.len() as u64, time_s);
        builder.append_data(&mut header, format!("{top}/{}", entry.path), entry.bytes.as_slice()).map_err(failed)?;
    }
    gzip(&builder.into_inner().map_err(failed)?)
}

fn header(kind: tar::EntryType, mode: u32, size_bytes: u64, time_s: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size_bytes);
    header.set_mtime(time_s);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Without a name and a time inside, so that the same bytes give the same bytes.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|error| format!("gzip: {error}"))
}

/// An archive of `ar`, as the outermost layer of a Debian package: short names only.
pub(super) fn ar(members: &[(&str, Vec<u8>)], time_s: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        debug_assert!(name.len() <= 16, "longer names need a table");
        let length = bytes.len();
        archive.extend(format!("{name:<16}{time_s:<12}{:<6}{:<6}{:<8}{length:<10}`\n", 0, 0, "100644").into_bytes());
        archive.extend(bytes);
        if length % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tar_has_each_folder_once_before_its_files() {
        let entries = [Entry::file("a/b", "1"), Entry::file("a/c", "22"), Entry::link("a/d", "b")];
        let bytes = tar_gz(".", &entries, 7).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        let seen: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.path().unwrap().display().to_string(), entry.header().mtime().unwrap(), entry.size())
            })
            .collect();
        let expected = [("./", 0), ("a/", 0), ("a/b", 1), ("a/c", 2), ("a/d", 0)];
        assert_eq!(seen, expected.map(|(path, size)| (path.to_owned(), 7, size)));
    }

    #[test]
    fn a_member_of_odd_length_is_padded() {
        let archive = ar(&[("one", b"x".to_vec()), ("two", b"yy".to_vec())], 7);
        assert_eq!(archive.len(), 8 + 60 + 2 + 60 + 2);
        assert_eq!(&archive[8..68], b"one             7           0     0     100644  1         `\n");
    }
}
