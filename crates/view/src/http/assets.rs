//! The page and its files: built into the program, or from a folder.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};

use crate::answers::{Problem, Reply};

/// Largest file that is served from a folder.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The files of the page, by the path under which the page names them.
static FILES: &[(&str, &[u8])] = &[
    ("index.html", include_bytes!("../../assets/index.html")),
    ("favicon.svg", include_bytes!("../../assets/favicon.svg")),
    ("assets/editor.js", include_bytes!("../../assets/assets/editor.js")),
    ("assets/index.css", include_bytes!("../../assets/assets/index.css")),
    ("assets/viewer.js", include_bytes!("../../assets/assets/viewer.js")),
];

/// A file of the page.
pub(super) fn file(path: &str, folder: Option<&Path>) -> Result<Reply, Problem> {
    let path = if path.is_empty() { "index.html" } else { path };
    let missing = || Problem::new(404, "there is no such page");
    let kind = kind_of(path);
    match folder {
        Some(folder) => from_folder(folder, path).map(|bytes| Reply::Bytes(kind, bytes)).ok_or_else(missing),
        None => {
            let file = FILES.iter().find(|(name, _)| *name == path);
            file.map(|(_, bytes)| Reply::Static(kind, bytes)).ok_or_else(missing)
        }
    }
}

/// A file of a folder; only one whose path stays inside.
fn from_folder(folder: &Path, path: &str) -> Option<Vec<u8>> {
    let is_inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let is_plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
    if !is_inside || !is_plain {
        return None;
    }
    let (root, full) = (folder.canonicalize().ok()?, folder.join(path).canonicalize().ok()?);
    if !full.starts_with(root) || !full.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(full).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn kind_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "json" | "map" => "application/json",
        _ => "application/octet-stream",
    }
}

/// The bytes of a file as they are asked for.
pub(super) fn stream(file: File) -> Body {
    Body::new(FileBody { file })
}

/// Bytes that are read from a file at once.
const BLOCK_BYTES: usize = 1 << 16;

/// A file as the body of a response. It is a temporary one, which the system still has in memory in most cases.
struct FileBody {
    file: File,
}

impl HttpBody for FileBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, std::io::Error>>> {
        let mut block = vec![0; BLOCK_BYTES];
        Poll::Ready(match self.file.read(&mut block) {
            Ok(0) => None,
            Ok(length) => {
                block.truncate(length);
                Some(Ok(http_body::Frame::data(Bytes::from(block))))
            }
            Err(error) => Some(Err(error)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_page_are_served() {
        assert!(matches!(file("", None), Ok(Reply::Static("text/html; charset=utf-8", _))));
        for path in ["../Cargo.toml", "/etc/passwd", "assets/../index.html", "index.html/", "%2e%2e/x", "a\0b"] {
            assert!(file(path, None).is_err(), "{path}");
            assert!(file(path, Some(Path::new("src"))).is_err(), "{path}");
        }
        assert!(file("lib.rs", Some(Path::new("src"))).is_ok());
    }

    #[test]
    fn every_file_of_the_page_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let mut found = Vec::new();
        for (prefix, folder) in [("", folder.clone()), ("assets/", folder.join("assets"))] {
            let files = std::fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file());
            found.extend(files.map(|entry| format!("{prefix}{}", entry.file_name().to_string_lossy())));
        }
        found.sort();
        let mut listed: Vec<_> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        listed.sort();
        assert_eq!(found, listed);
    }
}
