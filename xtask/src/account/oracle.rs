//! Counts the events in files, by nothing but the frames of their packets.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Events of all these files and folders, each stream and counter once.
pub(super) fn unique_events(paths: &[&Path]) -> Result<u64, String> {
    let mut seen = HashSet::new();
    for path in files(paths)? {
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let word =
            |at: usize| bytes.get(at..at + 4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
        let mut at = 0;
        while let (Some(magic), Some(size)) = (word(at), word(at + 4)) {
            let end = at + size as usize;
            // The last packet of a file may be cut.
            if size < 8 || end > bytes.len() {
                break;
            }
            if magic == 0xC1FC_1FB7
                && let (Some(stream), Some(counter)) = (word(at + 8), word(at + 12))
            {
                seen.insert((stream, counter));
            }
            at = end;
        }
    }
    Ok(seen.len() as u64)
}

fn files(paths: &[&Path]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let names = entries.filter_map(Result::ok).map(|entry| entry.path());
            files.extend(names.filter(|path| path.to_string_lossy().contains(".heph")));
        } else {
            files.push(path.to_path_buf());
        }
    }
    Ok(files)
}
