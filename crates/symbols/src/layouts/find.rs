//! Which of several types of a name is meant.

use std::collections::HashMap;
use std::sync::Arc;

use anytrace_core::layout::{Layout, bare_name, canonical_name, without_arguments};

/// Chooses among different definitions of a name by the size of an element in the trace; notes when that is a guess.
pub(super) fn choose(
    candidates: Vec<Layout>,
    trace_name: &str,
    recorded_bytes: u64,
    file: &str,
    notes: &mut Vec<String>,
) -> Option<Layout> {
    if candidates.len() < 2 {
        return candidates.into_iter().next();
    }
    let count = candidates.len();
    let fits = |layout: &Layout, is_exact: bool| {
        layout.bytes > 0
            && recorded_bytes > 0
            && if is_exact { layout.bytes == recorded_bytes } else { recorded_bytes.is_multiple_of(layout.bytes) }
    };
    for is_exact in [true, false] {
        let mut fitting = candidates.iter().filter(|layout| fits(layout, is_exact));
        let (first, second) = (fitting.next(), fitting.next());
        if let Some(first) = first {
            if second.is_some() || count > 1 {
                let why = if second.is_some() { "the first that fits" } else { "the only one that fits" };
                notes.push(format!(
                    "{file}: {trace_name} has {count} definitions; using {why} {recorded_bytes} bytes ({}, {} bytes)",
                    first.name, first.bytes
                ));
            }
            return Some(first.clone());
        }
    }
    notes.push(format!("{file}: {trace_name} has {count} definitions, none of which matches {recorded_bytes} bytes"));
    None
}

/// The last part of a name, without the arguments of templates.
pub(super) fn short_names(name: &str) -> Vec<String> {
    let plain = without_arguments(name);
    let path = plain.as_deref().unwrap_or(name);
    let last = path.rsplit_once("::").map(|(_, last)| last.to_owned()).filter(|last| !last.is_empty());
    let mut names: Vec<String> = last.into_iter().collect();
    names.extend(plain);
    names
}

/// A list of layouts to look names up in.
pub(super) struct Finder {
    name: String,
    all: Vec<Arc<Layout>>,
    by_name: HashMap<String, Vec<usize>>,
    by_short_name: HashMap<String, Vec<usize>>,
    /// Names that were asked for, so that a note is made only once.
    answers: HashMap<(String, u64), Option<Arc<Layout>>>,
}

impl Finder {
    pub(super) fn new((name, all): (String, Vec<(Vec<String>, Layout)>)) -> Self {
        let mut finder = Self {
            name,
            all: Vec::new(),
            by_name: HashMap::new(),
            by_short_name: HashMap::new(),
            answers: HashMap::new(),
        };
        for (names, layout) in all {
            let at = finder.all.len();
            for name in names {
                let name = canonical_name(bare_name(&name));
                for short in short_names(&name) {
                    finder.by_short_name.entry(short).or_default().push(at);
                }
                finder.by_name.entry(name).or_default().push(at);
            }
            finder.all.push(Arc::new(layout));
        }
        finder
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Arc<Layout>> {
        self.all.iter().filter(|layout| !layout.fields.is_empty()).cloned()
    }

    pub(super) fn find(&mut self, trace_name: &str, recorded: u64, notes: &mut Vec<String>) -> Option<Arc<Layout>> {
        let key = (trace_name.to_owned(), recorded);
        if let Some(found) = self.answers.get(&key) {
            return found.clone();
        }
        let bare = canonical_name(bare_name(trace_name));
        let listed = self.by_name.get(&bare).or_else(|| self.by_short_name.get(&bare));
        let mut candidates: Vec<Layout> = Vec::new();
        for layout in listed.into_iter().flatten().filter_map(|at| self.all.get(*at)) {
            if !candidates.contains(layout) {
                candidates.push(Layout::clone(layout));
            }
        }
        let found = choose(candidates, trace_name, recorded, &self.name, notes).map(Arc::new);
        self.answers.insert(key, found.clone());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anytrace_core::layout::RecordKind;

    fn of(bytes: u64) -> Layout {
        Layout::new("T", RecordKind::Struct, bytes)
    }

    #[test]
    fn the_size_in_the_trace_decides_and_guesses_are_noted() {
        let mut notes = Vec::new();
        let mut chosen = |sizes: &[u64], recorded| {
            let candidates = sizes.iter().map(|bytes| of(*bytes)).collect();
            choose(candidates, "struct.T", recorded, "prog", &mut notes).map(|layout| layout.bytes)
        };
        assert_eq!(chosen(&[], 8), None);
        assert_eq!(chosen(&[12], 8), Some(12));
        assert_eq!(chosen(&[8, 24], 24), Some(24));
        assert_eq!(chosen(&[16, 10], 30), Some(10));
        assert_eq!(chosen(&[16, 8], 7), None);
        assert_eq!(notes.len(), 3);
    }

    #[test]
    fn short_names_are_the_last_part_and_the_one_without_arguments() {
        assert_eq!(short_names("std::vector<int,A<b::c>>"), ["vector", "std::vector"]);
        assert!(short_names("Foo").is_empty());
    }
}
