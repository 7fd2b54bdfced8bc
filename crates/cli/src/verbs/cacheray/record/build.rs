//! What a program was linked with, as far as its bytes show.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a program was linked with, as far as its bytes show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Build {
    /// The recorder is in it.
    Recorder,
    /// ThreadSanitizer's own library is in it, or is asked for.
    Sanitizer,
    /// It calls the hooks, and expects them from elsewhere.
    Hooks,
    /// A script, or something that is found otherwise.
    Unknown,
    /// It calls no hooks.
    Plain,
}

impl Build {
    pub(super) fn of(path: &Path) -> Self {
        let wanted = [
            "anytrace cacheray recorder is linked in",
            "libtsan.so",
            "ThreadSanitizer: ",
            "libanytrace_cacheray_recorder.so",
            "__tsan_",
        ];
        let Some([is_linked, is_tsan, is_static_tsan, is_needed, has_hooks]) = contains(path, wanted) else {
            return Self::Unknown;
        };
        match () {
            () if is_linked || is_needed => Self::Recorder,
            () if is_tsan || is_static_tsan => Self::Sanitizer,
            () if has_hooks => Self::Hooks,
            () => Self::Plain,
        }
    }
}

/// Which of the texts an ELF file has in it; `None` if it is not such a file.
fn contains<const N: usize>(path: &Path, texts: [&str; N]) -> Option<[bool; N]> {
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
pub(super) fn which(program: &OsStr) -> PathBuf {
    let direct = PathBuf::from(program);
    if program.as_bytes().contains(&b'/') {
        return direct;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file()).unwrap_or(direct)
}
