//! Source files, as far as they are here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Most bytes of a source file; generated ones may have a few million.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Most characters shown of a line.
const LINE_CHARS_MAX: usize = 160;

/// Lines of files that were asked for.
#[derive(Debug, Default)]
pub struct Sources(BTreeMap<String, Option<Vec<String>>>);

impl Sources {
    /// A line, from 1; `None` where the file is not here or has fewer.
    pub fn line(&mut self, file: &str, number: u32) -> Option<&str> {
        let lines = self.0.entry(file.to_owned()).or_insert_with(|| read(file));
        lines.as_ref()?.get(number.checked_sub(1)? as usize).map(String::as_str)
    }

    /// True where the file is here.
    pub fn has(&mut self, file: &str) -> bool {
        self.line(file, 1).is_some()
    }
}

fn read(file: &str) -> Option<Vec<String>> {
    let path = Path::new(file);
    let meta = fs::metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= FILE_BYTES_MAX)?;
    let bytes = fs::read(path).ok()?;
    debug_assert!(bytes.len() as u64 <= meta.len().max(FILE_BYTES_MAX));
    let text = String::from_utf8_lossy(&bytes);
    Some(text.lines().map(shown).collect())
}

/// A line as a terminal can show it.
fn shown(line: &str) -> String {
    let line = line.replace('\t', "    ");
    let line: String = anytrace_core::text::printable(&line).to_string();
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// The lines to show of a file: those with figures, and so many around each, in runs.
pub fn runs(lines: impl Iterator<Item = u32>, context: u32) -> Vec<std::ops::RangeInclusive<u32>> {
    let wanted: BTreeSet<u32> = lines.filter(|line| *line > 0).collect();
    let mut runs: Vec<std::ops::RangeInclusive<u32>> = Vec::new();
    for line in wanted {
        let (from, to) = (line.saturating_sub(context).max(1), line.saturating_add(context));
        match runs.last_mut() {
            // A gap of one line is shown as that line.
            Some(last) if from <= last.end().saturating_add(2) => *last = *last.start()..=to,
            _ => runs.push(from..=to),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_their_context_and_meet_where_they_touch() {
        assert_eq!(runs([10, 12, 30, 0].into_iter(), 2), [8..=14, 28..=32]);
        assert_eq!(runs([1, 6].into_iter(), 2), [1..=8]);
        assert_eq!(runs([1, 7].into_iter(), 2), [1..=9]);
        assert_eq!(runs([1, 8].into_iter(), 2), [1..=3, 6..=10]);
        assert!(runs([0].into_iter(), 2).is_empty());
    }

    #[test]
    fn lines_are_those_of_the_file() {
        let mut sources = Sources::default();
        assert_eq!(sources.line("/nonexistent/a.c", 1), None);
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sources.rs");
        assert_eq!(sources.line(own, 1), Some("//! Source files, as far as they are here."));
        assert!(sources.has(own) && sources.line(own, 0).is_none() && sources.line(own, 99_999).is_none());
        assert_eq!(shown("\ta\u{1b}b"), "    a\\u{1b}b");
    }
}
