//! Tracks, processes and threads, as descriptors and process trees name them.

use anytrace_core::hash::Map;

use crate::wire::proto::Fields;

/// Most bytes of stored names, and the overhead of a descriptor.
const ROOM_BYTES: usize = 32 << 20;
const ENTRY_BYTES: usize = 128;

/// Most parents of a track that are followed.
const PARENTS_MAX: usize = 32;

/// What a track belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Whatever its parent belongs to.
    Parent,
    Process(u64),
    /// Process and thread.
    Thread(u64, u64),
}

/// How a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CounterForm {
    /// Values are differences to the one before.
    pub(crate) is_incremental: bool,
    /// What values are multiplied by.
    pub(crate) multiplier: i64,
}

/// A `TrackDescriptor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) parent: u64,
    pub(crate) owner: Owner,
    pub(crate) name: Option<Box<[u8]>>,
    pub(crate) counter: Option<CounterForm>,
}

/// Everything that has a name.
#[derive(Debug)]
pub(crate) struct Tracks {
    descriptors: Map<u64, Descriptor>,
    processes: Map<u64, Box<[u8]>>,
    threads: Map<(u64, u64), Box<[u8]>>,
    process_of: Map<u64, u64>,
    room_bytes: usize,
    pub(crate) is_full: bool,
}

impl Default for Tracks {
    fn default() -> Self {
        Self {
            descriptors: Map::default(),
            processes: Map::default(),
            threads: Map::default(),
            process_of: Map::default(),
            room_bytes: ROOM_BYTES,
            is_full: false,
        }
    }
}

impl Tracks {
    pub(crate) fn descriptor(&self, uuid: u64) -> Option<&Descriptor> {
        self.descriptors.get(&uuid)
    }

    pub(crate) fn len(&self) -> usize {
        self.descriptors.len()
    }

    pub(crate) fn process_name(&self, process: u64) -> Option<&[u8]> {
        self.processes.get(&process).map(|name| &**name)
    }

    pub(crate) fn thread_name(&self, process: u64, thread: u64) -> Option<&[u8]> {
        let any = || self.threads.get(&(0, thread));
        self.threads.get(&(process, thread)).or_else(any).map(|name| &**name)
    }

    /// The process of a thread; 0 if nothing says so.
    pub(crate) fn process_of(&self, thread: u64) -> u64 {
        self.process_of.get(&thread).copied().unwrap_or(0)
    }

    /// What a track belongs to: its own thread or process, or that of the tracks it is below.
    pub(crate) fn owner(&self, uuid: u64) -> Owner {
        let mut at = uuid;
        for _ in 0..PARENTS_MAX {
            let Some(track) = self.descriptors.get(&at) else { break };
            if track.owner != Owner::Parent {
                return track.owner;
            }
            at = track.parent;
        }
        Owner::Parent
    }

    fn takes(&mut self, bytes: usize) -> bool {
        match self.room_bytes.checked_sub(bytes + ENTRY_BYTES) {
            Some(left) => self.room_bytes = left,
            None => self.is_full = true,
        }
        !self.is_full
    }

    /// Learns which process a thread belongs to, and its name, if that is given.
    pub(crate) fn thread(&mut self, process: u64, thread: u64, name: &[u8]) {
        if process != 0 && self.process_of.get(&thread) != Some(&process) && self.takes(0) {
            self.process_of.insert(thread, process);
        }
        let known = self.threads.get(&(process, thread)).map(|name| &**name);
        if !name.is_empty() && known != Some(name) && self.takes(name.len()) {
            self.threads.insert((process, thread), name.into());
        }
    }

    fn process(&mut self, process: u64, name: &[u8]) {
        if !name.is_empty() && self.process_name(process) != Some(name) && self.takes(name.len()) {
            self.processes.insert(process, name.into());
        }
    }

    /// Learns from a `TrackDescriptor`.
    pub(crate) fn learn(&mut self, bytes: &[u8]) {
        let (mut uuid, mut name) = (0, &[][..]);
        let mut new = Descriptor { parent: 0, owner: Owner::Parent, name: None, counter: None };
        for field in Fields::of(bytes) {
            match field.number {
                1 => uuid = field.value.number(),
                5 => new.parent = field.value.number(),
                2 | 10 | 13 if name.is_empty() => name = field.value.bytes(),
                3 => {
                    let process = self.learn_process(field.value.bytes());
                    if new.owner == Owner::Parent {
                        new.owner = Owner::Process(process);
                    }
                }
                4 => {
                    let (process, thread) = self.learn_thread(field.value.bytes());
                    new.owner = Owner::Thread(process, thread);
                }
                8 => new.counter = Some(read_counter(field.value.bytes())),
                _ => {}
            }
        }
        new.name = (!name.is_empty()).then(|| name.into());
        if self.descriptors.get(&uuid) != Some(&new) && self.takes(name.len()) {
            self.descriptors.insert(uuid, new);
        }
    }

    /// Learns from a `ProcessDescriptor`; returns its number.
    pub(crate) fn learn_process(&mut self, bytes: &[u8]) -> u64 {
        let (mut process, mut name, mut command) = (0, &[][..], &[][..]);
        for field in Fields::of(bytes) {
            match field.number {
                1 => process = pid(field.value.number()),
                2 if command.is_empty() => command = field.value.bytes(),
                6 => name = field.value.bytes(),
                _ => {}
            }
        }
        self.process(process, if name.is_empty() { command } else { name });
        process
    }

    /// Learns from a `ThreadDescriptor`; returns its process and its own number.
    pub(crate) fn learn_thread(&mut self, bytes: &[u8]) -> (u64, u64) {
        let (mut process, mut thread, mut name) = (0, 0, &[][..]);
        for field in Fields::of(bytes) {
            match field.number {
                1 => process = pid(field.value.number()),
                2 => thread = field.value.number(),
                5 => name = field.value.bytes(),
                _ => {}
            }
        }
        self.thread(process, thread, name);
        (process, thread)
    }

    /// Learns from a `ProcessTree`.
    pub(crate) fn learn_tree(&mut self, bytes: &[u8]) {
        for field in Fields::of(bytes) {
            let (mut first, mut name, mut process) = (0, &[][..], 0);
            let is_process = field.number == 1;
            for part in Fields::of(field.value.bytes()) {
                match (is_process, part.number) {
                    (_, 1) => first = pid(part.value.number()),
                    (true, 3) | (false, 2) if name.is_empty() => name = part.value.bytes(),
                    (false, 3) => process = pid(part.value.number()),
                    _ => {}
                }
            }
            match field.number {
                1 => {
                    self.process(first, name);
                    self.thread(first, first, &[]);
                }
                2 => self.thread(process, first, name),
                _ => {}
            }
        }
    }
}

fn read_counter(bytes: &[u8]) -> CounterForm {
    let mut form = CounterForm { is_incremental: false, multiplier: 1 };
    for field in Fields::of(bytes) {
        match field.number {
            4 => form.multiplier = Some(field.value.number().cast_signed()).filter(|by| *by != 0).unwrap_or(1),
            5 => form.is_incremental = field.value.is_true(),
            _ => {}
        }
    }
    form
}

/// A process number, which is a signed number of 32 bits on the wire.
fn pid(value: u64) -> u64 {
    value & u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_name_threads_processes_and_counters() {
        let mut tracks = Tracks::default();
        tracks.learn(b"\x08\x01\x1a\x07\x08\x05\x32\x03app");
        tracks.learn(b"\x08\x02\x28\x01\x22\x08\x08\x05\x10\x06\x2a\x02io");
        tracks.learn(b"\x08\x03\x28\x02\x12\x04heap\x42\x04\x20\x0a\x28\x01");
        assert_eq!(tracks.descriptor(1).map(|one| one.owner), Some(Owner::Process(5)));
        assert_eq!(tracks.descriptor(2).map(|one| (one.owner, one.parent)), Some((Owner::Thread(5, 6), 1)));
        let counter = tracks.descriptor(3).and_then(|one| one.counter);
        assert_eq!(counter, Some(CounterForm { is_incremental: true, multiplier: 10 }));
        assert_eq!((tracks.process_name(5), tracks.thread_name(5, 6)), (Some(&b"app"[..]), Some(&b"io"[..])));
        assert_eq!((tracks.process_of(6), tracks.process_of(7)), (5, 0));
    }

    #[test]
    fn a_process_tree_names_threads() {
        let mut tracks = Tracks::default();
        tracks.learn_tree(b"\x0a\x06\x08\x05\x1a\x02sh\x12\x07\x08\x06\x12\x01t\x18\x05");
        assert_eq!((tracks.process_name(5), tracks.thread_name(5, 6)), (Some(&b"sh"[..]), Some(&b"t"[..])));
        assert_eq!((tracks.process_of(6), tracks.process_of(5)), (5, 5));
    }
}
