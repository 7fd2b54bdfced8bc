//! Which tracks of the trace are one row of the output, and what it is called.

use std::collections::BTreeMap;

use anytrace_core::Room;
use anytrace_core::span::Track;

use crate::model::event::TrackKey;
use crate::model::names::NameNumber;
use crate::model::session::Session;
use crate::model::tracks::Owner;

/// A row of the output: the tracks whose events are on it.
pub(super) struct OutputRow {
    pub(super) track: Track,
    /// Tracks by their numbers in the store, with the name of the counter if it is one.
    pub(super) members: Vec<(usize, Option<NameNumber>)>,
}

/// What tracks of the trace are one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RowKey {
    Thread(u64, u64),
    Own(u64),
    Processor(u32),
    Async(u64, u64, NameNumber),
    Counters(u64),
}

/// Finds the rows for all tracks that have events, in the order of their first events. True where there is no room for
/// the names of all.
pub(super) fn rows(tracks: &[(TrackKey, NameNumber)], session: &mut Session) -> (Vec<OutputRow>, bool) {
    let mut finder = Finder {
        session,
        rows: Vec::new(),
        index: BTreeMap::new(),
        groups: BTreeMap::new(),
        lanes: BTreeMap::new(),
        room: Room::default(),
    };
    for (number, (track, first_name)) in tracks.iter().enumerate() {
        let (key, counter) = finder.key(*track);
        let at = match finder.index.get(&key) {
            Some(&at) => at,
            None => {
                let track = finder.track(key, *first_name);
                let track = finder.room.track(track);
                finder.rows.push(OutputRow { track, members: Vec::new() });
                finder.index.insert(key, finder.rows.len() - 1);
                finder.rows.len() - 1
            }
        };
        if let Some(row) = finder.rows.get_mut(at) {
            row.members.push((number, counter));
        }
    }
    (finder.rows, finder.room.refused() > 0)
}

struct Finder<'a> {
    session: &'a mut Session,
    rows: Vec<OutputRow>,
    index: BTreeMap<RowKey, usize>,
    /// Groups of tasks by process and name: the number of the group, and how many are in it.
    groups: BTreeMap<(u64, String), (u64, u32)>,
    /// Further lanes of threads.
    lanes: BTreeMap<(u64, u64), u32>,
    /// For the names of rows: many threads have that of one process.
    room: Room,
}

impl Finder<'_> {
    fn key(&mut self, track: TrackKey) -> (RowKey, Option<NameNumber>) {
        match track {
            TrackKey::Thread(process, thread) => (self.thread(process, thread), None),
            TrackKey::Processor(number) => (RowKey::Processor(number), None),
            TrackKey::Async(process, id, scope) => (RowKey::Async(process, id, scope), None),
            TrackKey::Counter(process, name) => (RowKey::Counters(process), Some(name)),
            TrackKey::Uuid(uuid) => self.uuid(uuid),
        }
    }

    fn thread(&self, process: u64, thread: u64) -> RowKey {
        let process = if process == 0 { self.session.tracks.process_of(thread) } else { process };
        RowKey::Thread(process, thread)
    }

    fn uuid(&mut self, uuid: u64) -> (RowKey, Option<NameNumber>) {
        let Some(track) = self.session.tracks.descriptor(uuid) else { return (RowKey::Own(uuid), None) };
        if let Owner::Thread(process, thread) = track.owner {
            return (self.thread(process, thread), None);
        }
        if track.counter.is_none() {
            return (RowKey::Own(uuid), None);
        }
        // Counters are on the track they count for.
        let (parent, name) = (track.parent, track.name.clone());
        let name = self.session.names.number(name.as_deref().unwrap_or(b"counter"));
        let key = match self.session.tracks.descriptor(parent) {
            Some(outer) if outer.counter.is_none() => self.uuid(parent).0,
            _ => RowKey::Counters(0),
        };
        (key, Some(name))
    }

    fn text(bytes: Option<&[u8]>) -> Option<String> {
        bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    fn track(&mut self, key: RowKey, first_name: NameNumber) -> Track {
        match key {
            RowKey::Thread(process, thread) => self.thread_track(process, thread),
            RowKey::Processor(number) => self.task(0, format!("processor {number}")),
            RowKey::Async(process, ..) => {
                let name = String::from_utf8_lossy(self.session.names.get(first_name)).into_owned();
                self.task(process, name)
            }
            RowKey::Counters(process) => self.task(process, "counters".to_owned()),
            RowKey::Own(uuid) => self.own_track(uuid),
        }
    }

    fn thread_track(&self, process: u64, thread: u64) -> Track {
        let tracks = &self.session.tracks;
        let name = Self::text(tracks.thread_name(process, thread));
        let process_name = Self::text(tracks.process_name(process));
        Track { process, thread, lane: 0, name, process_name, is_task: false }
    }

    /// A track with a descriptor that is no thread's, or without one.
    fn own_track(&mut self, uuid: u64) -> Track {
        let tracks = &self.session.tracks;
        let name = tracks.descriptor(uuid).and_then(|track| Self::text(track.name.as_deref()));
        let is_process = tracks.descriptor(uuid).is_some_and(|track| matches!(track.owner, Owner::Process(_)));
        let owner = tracks.owner(uuid);
        match owner {
            Owner::Thread(process, thread) => {
                let RowKey::Thread(process, thread) = self.thread(process, thread) else { return Track::default() };
                self.lane(process, thread, name)
            }
            Owner::Process(process) => {
                let own = if is_process { "process".to_owned() } else { format!("track {uuid:#x}") };
                self.task(process, name.unwrap_or(own))
            }
            Owner::Parent => {
                let own = if uuid == 0 { "default track".to_owned() } else { format!("track {uuid:#x}") };
                self.task(0, name.unwrap_or(own))
            }
        }
    }

    /// A track below a thread. Those that anytrace wrote are called after their thread and their lane.
    fn lane(&mut self, process: u64, thread: u64, name: Option<String>) -> Track {
        let lane = self.lanes.entry((process, thread)).or_insert(0);
        *lane += 1;
        let lane = *lane;
        let outer = self.thread_track(process, thread);
        let is_lane = name.as_deref().is_none_or(|name| {
            let base = outer.name.clone().unwrap_or_else(|| format!("thread {thread}"));
            name.strip_prefix(base.as_str()).is_some_and(|rest| rest.starts_with(" (lane "))
        });
        Track { lane, name: if is_lane { outer.name.clone() } else { name }, ..outer }
    }

    /// A track that is no thread's: those of one name are of one group.
    fn task(&mut self, process: u64, name: String) -> Track {
        let next = self.groups.len() as u64;
        let is_known = self.groups.contains_key(&(process, name.clone()));
        let name = if is_known || self.room.takes(name.len()) { name } else { "(other)".to_owned() };
        let group = self.groups.entry((process, name.clone())).or_insert((next, 0));
        let (thread, lane) = *group;
        group.1 += 1;
        let process_name = Self::text(self.session.tracks.process_name(process));
        Track { process, thread, lane, name: Some(name), process_name, is_task: true }
    }
}
