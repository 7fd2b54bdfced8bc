//! Which files are at the addresses of the processes, as the recording says from time to time.

use std::collections::BTreeMap;
use std::sync::Arc;

use anytrace_core::Room;
use anytrace_core::hash::Map;

use crate::wire::event::Mapping;

/// The process of mappings of the kernel: -1.
pub(super) const KERNEL: u32 = u32::MAX;

/// Most ranges of all processes.
const AREAS_MAX: usize = 1 << 20;

/// A file that is mapped somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) path: Vec<u8>,
    pub(super) build_id: Vec<u8>,
}

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    end: u64,
    /// Offset of its first byte in the file.
    offset: u64,
    file: u32,
}

type Areas = BTreeMap<u64, Area>;

/// The address spaces of all processes, and the names of all threads.
#[derive(Debug, Default)]
pub(super) struct Space {
    processes: Map<u32, Arc<Areas>>,
    pub(super) files: Vec<File>,
    known: Map<(Vec<u8>, Vec<u8>), u32>,
    names: Map<u32, Vec<u8>>,
    /// Ranges that were made, less those of processes that ended.
    areas: usize,
    distinct_max: usize,
    /// For paths of files and names of threads.
    room: Room,
    /// The file of all for which there is no room.
    other: Option<u32>,
    is_full: bool,
}

impl Space {
    pub(super) fn new(distinct_max: usize) -> Self {
        Self { distinct_max: distinct_max.max(1), ..Self::default() }
    }

    /// A file is mapped: what was in its place is not any more.
    pub(super) fn map(&mut self, mapping: &Mapping<'_>, build_id: &[u8]) {
        let end = mapping.start.saturating_add(mapping.bytes);
        let is_known = self.processes.contains_key(&mapping.process);
        if end == mapping.start || self.areas >= AREAS_MAX || (!is_known && self.processes.len() >= self.distinct_max) {
            self.is_full |= end != mapping.start;
            return;
        }
        let file = self.file(mapping.path, build_id);
        let areas = Arc::make_mut(self.processes.entry(mapping.process).or_default());
        let before = areas.len();
        let first = areas.range(..mapping.start).next_back().map(|(start, _)| *start);
        let hit: Vec<u64> = first.into_iter().chain(areas.range(mapping.start..end).map(|(start, _)| *start)).collect();
        for start in hit {
            let Some(area) = areas.get(&start).copied().filter(|area| area.end > mapping.start) else { continue };
            areas.remove(&start);
            if start < mapping.start {
                areas.insert(start, Area { end: mapping.start, ..area });
            }
            if area.end > end {
                areas.insert(end, Area { offset: area.offset.wrapping_add(end - start), ..area });
            }
        }
        areas.insert(mapping.start, Area { end, offset: mapping.offset, file });
        self.areas = (self.areas + areas.len()).saturating_sub(before);
    }

    fn file(&mut self, path: &[u8], build_id: &[u8]) -> u32 {
        let key = (path.to_vec(), build_id.to_vec());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let next = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        // As a key, and in the list.
        if self.files.len() >= self.distinct_max || !self.room.takes(2 * (path.len() + build_id.len())) {
            self.is_full = true;
            return self.other_file(next);
        }
        self.files.push(File { path: key.0.clone(), build_id: key.1.clone() });
        self.known.insert(key, next);
        next
    }

    /// The file of all for which there is no room.
    fn other_file(&mut self, next: u32) -> u32 {
        if self.other.is_none() {
            self.files.push(File { path: b"(other)".to_vec(), build_id: Vec::new() });
        }
        *self.other.get_or_insert(next)
    }

    /// True when something did not get a place.
    pub(super) fn is_full(&self) -> bool {
        self.is_full || self.room.refused() > 0
    }

    /// A process begins as a copy of another. A new thread is none.
    pub(super) fn fork(&mut self, process: u32, parent: u32) {
        if process == parent || self.processes.len() >= self.distinct_max {
            return;
        }
        if let Some(areas) = self.processes.get(&parent).cloned() {
            self.areas += areas.len();
            self.processes.insert(process, areas);
        }
    }

    pub(super) fn exit(&mut self, process: u32, thread: u32) {
        if process == thread
            && let Some(areas) = self.processes.remove(&process)
        {
            self.areas = self.areas.saturating_sub(areas.len());
        }
    }

    /// A thread has another name; a program that begins has nothing mapped.
    pub(super) fn rename(&mut self, process: u32, thread: u32, name: &[u8], is_exec: bool) {
        if is_exec {
            self.exit(process, process);
        }
        // A name for which there is no room is none: the one before is wrong now.
        if let Some(before) = self.names.remove(&thread) {
            self.room.returns(before.len());
        }
        if self.names.len() < self.distinct_max && self.room.takes(name.len()) {
            self.names.insert(thread, name.to_vec());
        }
    }

    /// The name of a thread.
    pub(super) fn name(&self, thread: u32) -> Option<String> {
        self.names.get(&thread).map(|name| anytrace_core::text::shown(name).into_owned())
    }

    /// The number of the file at an address, and the offset in it.
    pub(super) fn find(&self, process: u32, address: u64) -> Option<(u32, u64)> {
        let areas = self.processes.get(&process)?;
        let (start, area) = areas.range(..=address).next_back()?;
        (address < area.end).then(|| (area.file, area.offset.wrapping_add(address - start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(process: u32, start: u64, bytes: u64, offset: u64, path: &[u8]) -> Mapping<'_> {
        Mapping { process, start, bytes, offset, build_id: &[], path }
    }

    #[test]
    fn paths_and_names_are_bounded_in_bytes() {
        let mut space = Space::new(100_000);
        for n in 0..3000_u32 {
            let text = [vec![b'x'; 1 << 20], n.to_le_bytes().to_vec()].concat();
            space.map(&mapping(1, u64::from(n) * 10, 10, 0, &text), b"");
            space.rename(1, n, &text, false);
        }
        let bytes: usize = space.files.iter().map(|file| file.path.len()).sum();
        let names: usize = space.names.values().map(Vec::len).sum();
        assert!(2 * bytes + names < 25 << 20 && space.is_full(), "{bytes} {names}");
        // What has no room is one file, and has no name.
        let last = space.find(1, 29_990).and_then(|(file, _)| space.files.get(file as usize));
        assert_eq!((last.map(|file| file.path.as_slice()), space.name(2999)), (Some(&b"(other)"[..]), None));
        assert!(space.name(0).is_some() && space.find(1, 5).is_some_and(|(file, _)| file == 0));
        // Short ones still have a place, and room is returned.
        space.rename(1, 0, b"short", false);
        space.rename(1, 2999, b"also", false);
        assert_eq!((space.name(0).as_deref(), space.name(2999).as_deref()), (Some("short"), Some("also")));
    }

    #[test]
    fn a_mapping_takes_the_place_of_others() {
        let mut space = Space::new(10);
        space.map(&mapping(1, 100, 100, 1000, b"a"), b"");
        space.map(&mapping(1, 140, 20, 0, b"b"), b"");
        let at = |space: &Space, address| space.find(1, address);
        assert_eq!((at(&space, 99), at(&space, 100), at(&space, 139)), (None, Some((0, 1000)), Some((0, 1039))));
        assert_eq!((at(&space, 140), at(&space, 160), at(&space, 200)), (Some((1, 0)), Some((0, 1060)), None));
        space.fork(2, 1);
        space.map(&mapping(2, 0, 300, 7, b"c"), b"");
        assert_eq!((space.find(2, 150), space.find(1, 150)), (Some((2, 157)), Some((1, 10))));
        space.rename(2, 2, b"new", true);
        assert_eq!((space.find(2, 150), space.name(2).as_deref()), (None, Some("new")));
        space.exit(1, 3);
        assert!(space.find(1, 150).is_some(), "only a thread ended");
        space.exit(1, 1);
        assert_eq!((space.find(1, 150), space.areas), (None, 0));
    }
}
