//! The tracks and names of a trace, for engines and printers.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use anytrace_core::span::{Location, NameId, SpanSource, TimeUnit, Track, TrackId};

/// Number of a thread, from 0 in order of first appearance: tracks of one thread (lanes) share it.
pub type ThreadIndex = u32;

/// One thread of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Process id; 0 where unknown.
    pub process: u64,
    /// Thread id.
    pub thread: u64,
    /// Name, where the trace has one.
    pub name: Option<String>,
    /// Name of the process, where the trace has one.
    pub process_name: Option<String>,
}

impl Thread {
    /// The thread for people: its name and number; the process's too where `with_process`.
    pub fn label(&self, with_process: bool) -> String {
        let number = match &self.process_name {
            Some(name) if with_process => format!("{name}/{}", self.thread),
            None if with_process => format!("{}/{}", self.process, self.thread),
            _ => self.thread.to_string(),
        };
        match &self.name {
            Some(name) => format!("{name} ({number})"),
            None => number,
        }
    }
}

/// Tracks, threads and names, as announced. Grows with their number.
#[derive(Debug)]
pub struct Directory {
    source: SpanSource,
    tracks: Vec<Track>,
    thread_of: Vec<ThreadIndex>,
    threads: Vec<Thread>,
    has_processes: bool,
    thread_numbers: HashMap<(u64, u64), ThreadIndex>,
    name_ends: Vec<usize>,
    name_bytes: Vec<u8>,
    locations: HashMap<NameId, Location>,
}

impl Default for Directory {
    fn default() -> Self {
        let source = SpanSource { format: "unknown", unit: TimeUnit::Order, origin: 0, epoch_ns: None, uptime: None };
        Self {
            source,
            tracks: Vec::new(),
            thread_of: Vec::new(),
            threads: Vec::new(),
            has_processes: false,
            thread_numbers: HashMap::new(),
            name_ends: Vec::new(),
            name_bytes: Vec::new(),
            locations: HashMap::new(),
        }
    }
}

impl Directory {
    /// Takes the source, which a format announces first.
    pub fn set_source(&mut self, source: &SpanSource) {
        self.source = *source;
    }

    /// Takes the next track.
    pub fn add_track(&mut self, track: &Track) {
        let next = ThreadIndex::try_from(self.threads.len()).unwrap_or(ThreadIndex::MAX);
        let index = *self.thread_numbers.entry((track.process, track.thread)).or_insert(next);
        if index == next {
            let (name, process_name) = (track.name.clone(), track.process_name.clone());
            // Comparing with the first thread suffices: two that differ from each other cannot both equal it.
            self.has_processes |= self.threads.first().is_some_and(|first| first.process != track.process);
            self.threads.push(Thread { process: track.process, thread: track.thread, name, process_name });
        }
        self.tracks.push(track.clone());
        self.thread_of.push(index);
    }

    /// Takes the next name.
    pub fn add_name(&mut self, name: &[u8], location: Option<&Location>) {
        if let (Some(location), Ok(id)) = (location, NameId::try_from(self.name_ends.len())) {
            self.locations.insert(id, location.clone());
        }
        // All names in one allocation: a trace may have hundreds of thousands of short ones.
        self.name_bytes.extend_from_slice(name);
        self.name_ends.push(self.name_bytes.len());
    }

    /// True when no two names have one text.
    pub(crate) fn has_different_names(&self) -> bool {
        let mut known = HashSet::with_capacity(self.name_count());
        self.ids().all(|id| known.insert(self.name(id)))
    }

    /// Adds the names of another part of the same trace; returns their numbers here. `None`, and nothing is added, where
    /// its tracks are others. No two names of a directory have one text ([`Self::has_different_names`]).
    pub(crate) fn join(&mut self, other: &Self) -> Option<Vec<NameId>> {
        if self.tracks != other.tracks {
            return None;
        }
        let own: HashMap<Vec<u8>, NameId> = self.ids().map(|id| (self.name(id).to_vec(), id)).collect();
        let join = |id| match own.get(other.name(id)) {
            Some(&known) => known,
            None => {
                self.add_name(other.name(id), other.location(id));
                self.ids().end - 1
            }
        };
        Some(other.ids().map(join).collect())
    }

    fn ids(&self) -> Range<NameId> {
        0..NameId::try_from(self.name_count()).unwrap_or(NameId::MAX)
    }

    /// The source.
    pub fn source(&self) -> &SpanSource {
        &self.source
    }

    /// A track.
    pub fn track(&self, id: TrackId) -> Option<&Track> {
        self.tracks.get(id as usize)
    }

    /// How many tracks there are.
    pub fn track_count(&self) -> usize {
        self.tracks.len()
    }

    /// The threads, in order of first appearance.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The thread of a track. Tracks that were never announced belong to thread 0.
    #[inline]
    pub fn thread_of(&self, track: TrackId) -> ThreadIndex {
        self.thread_of.get(track as usize).copied().unwrap_or_default()
    }

    /// True when threads of several processes are in the trace, so that a thread's number alone may mislead.
    pub fn has_processes(&self) -> bool {
        self.has_processes
    }

    /// A thread for people.
    pub fn thread_label(&self, index: ThreadIndex) -> String {
        match self.threads.get(index as usize) {
            Some(thread) => thread.label(self.has_processes()),
            None => format!("thread {index}"),
        }
    }

    /// A name, as the trace has it; empty where it was never announced.
    pub fn name(&self, id: NameId) -> &[u8] {
        let id = id as usize;
        let start = id.checked_sub(1).and_then(|before| self.name_ends.get(before)).copied().unwrap_or_default();
        let end = self.name_ends.get(id).copied().unwrap_or(start);
        self.name_bytes.get(start..end).unwrap_or_default()
    }

    /// A name for people, with nothing in it that can control a terminal.
    pub fn shown_name(&self, id: NameId) -> String {
        anytrace_core::text::printable(&String::from_utf8_lossy(self.name(id)))
    }

    /// The location of a name in source code, if known.
    pub fn location(&self, id: NameId) -> Option<&Location> {
        self.locations.get(&id)
    }

    /// How many names there are.
    pub fn name_count(&self) -> usize {
        self.name_ends.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_of_one_thread_are_one_thread() {
        let mut directory = Directory::default();
        for (process, thread, lane) in [(1, 7, 0), (1, 8, 0), (1, 7, 1), (2, 7, 0)] {
            directory.add_track(&Track { process, thread, lane, ..Track::default() });
        }
        assert_eq!((0..4).map(|track| directory.thread_of(track)).collect::<Vec<_>>(), [0, 1, 0, 2]);
        assert_eq!(directory.thread_label(2), "2/7");
        assert_eq!(directory.track_count(), 4);
        assert_eq!(directory.thread_of(99), 0);
    }

    #[test]
    fn names_are_kept_as_they_came() {
        let mut directory = Directory::default();
        let place = Location { file: "a.c".to_owned(), line: 3 };
        directory.add_name(b"", None);
        directory.add_name(b"fib\x1b", Some(&place));
        assert_eq!((directory.name(0), directory.name(1), directory.name(2)), (&b""[..], &b"fib\x1b"[..], &b""[..]));
        assert_eq!(directory.shown_name(1), "fib\\u{1b}");
        assert_eq!((directory.location(1), directory.location(0)), (Some(&place), None));
    }
}
