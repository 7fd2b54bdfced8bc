//! The program that is to be recorded, as a file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Which of the texts an ELF file has in it; `None` if it is not such a file.
pub(crate) fn contains<const N: usize>(path: &Path, texts: [&str; N]) -> Option<[bool; N]> {
    /// More than the longest text: what a window ends with may begin one.
    const OVERLAP: usize = 64;
    let texts = regex::bytes::RegexSet::new(texts.map(regex::escape)).ok()?;
    let mut file = File::open(path).ok()?;
    let mut window = Vec::new();
    let mut found = [false; N];
    let mut is_first = true;
    loop {
        let n = Read::by_ref(&mut file).take(1 << 20).read_to_end(&mut window).ok()?;
        if is_first && !window.starts_with(b"\x7fELF") {
            return None;
        }
        is_first = false;
        for text in &texts.matches(&window) {
            if let Some(found) = found.get_mut(text) {
                *found = true;
            }
        }
        if n == 0 {
            return Some(found);
        }
        window.drain(..window.len().saturating_sub(OVERLAP));
    }
}

/// Where a program's file is.
pub(crate) fn which(program: &OsStr) -> PathBuf {
    let direct = PathBuf::from(program);
    if program.as_bytes().contains(&b'/') {
        return direct;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file()).unwrap_or(direct)
}
