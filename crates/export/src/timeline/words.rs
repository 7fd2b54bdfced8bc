//! Names, labels and values as the outputs show them.

use std::borrow::Cow;

pub(crate) use anytrace_core::span::push_json_value;
use anytrace_core::span::{EdgeFlags, Location, NO_CPU, Track};
pub(crate) use anytrace_core::text::shown;

/// The label of a track: its own name or its thread's number, and its lane if that is not the first.
pub(crate) fn label(track: &Track) -> String {
    let base = track.name.clone().unwrap_or_else(|| format!("thread {}", track.thread));
    if track.lane == 0 { base } else { format!("{base} (lane {})", track.lane) }
}

/// A track's label with its process first, for outputs that list tracks of all processes together.
pub(crate) fn full_label(track: &Track) -> String {
    match (&track.process_name, track.process) {
        (Some(name), 0) => format!("{name}, {}", label(track)),
        (Some(name), process) => format!("{name} ({process}), {}", label(track)),
        (None, 0) => label(track),
        (None, process) => format!("process {process}, {}", label(track)),
    }
}

/// Place in source code: `FILE:LINE`, or the file alone.
pub(crate) fn place(location: &Location) -> String {
    if location.line == 0 { location.file.clone() } else { format!("{}:{}", location.file, location.line) }
}

/// Words of flags, separated by spaces.
pub(crate) fn push_flags(out: &mut Vec<u8>, flags: EdgeFlags) {
    for (n, word) in flags.words().enumerate() {
        if n > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(word.as_bytes());
    }
}

/// The key of an attribute: its name, made distinct from the keys `cpu`, `flags` and `src` that anytrace itself adds.
pub(crate) fn key(name: &str) -> Cow<'_, str> {
    match name {
        "cpu" | "flags" | "src" => Cow::Owned(format!("{name} (attribute)")),
        other => Cow::Borrowed(other),
    }
}

/// A processor, if known.
pub(crate) fn cpu(number: u16) -> Option<u16> {
    (number != NO_CPU).then_some(number)
}

/// Byte strings by number, in one piece of memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fragments {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Fragments {
    /// Adds the next: what `append` appends.
    pub(crate) fn add(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        append(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// One of them; empty for a number that was not announced.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        let at = number as usize;
        let Some(&end) = self.ends.get(at) else { return &[] };
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.bytes.get(start..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_name_lane_and_process() {
        let mut track =
            Track { process: 7, thread: 12, lane: 2, name: None, process_name: Some("app".to_owned()), is_task: false };
        assert_eq!(full_label(&track), "app (7), thread 12 (lane 2)");
        track = Track { name: Some("main".to_owned()), process_name: None, process: 0, lane: 0, ..track };
        assert_eq!(full_label(&track), "main");
    }

    #[test]
    fn fragments_are_found_by_number() {
        let mut fragments = Fragments::default();
        for text in ["a", "", "bcd"] {
            fragments.add(|out| out.extend_from_slice(text.as_bytes()));
        }
        assert_eq!((fragments.get(0), fragments.get(1), fragments.get(2)), (&b"a"[..], &b""[..], &b"bcd"[..]));
        assert_eq!(fragments.get(3), b"");
    }
}
