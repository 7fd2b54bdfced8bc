//! Threads and groups of asynchronous spans, and their names.

use anytrace_core::Room;
use anytrace_core::hash::Map;
use anytrace_core::span::Track;

use crate::wire::event::Id;

/// Numbers of what has no number of its own: groups of asynchronous spans, threads and processes that are text.
const MADE_FIRST: u64 = 1 << 32;

/// What spans nest in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Home {
    process: u32,
    thread: u64,
    /// The thread's name as its number, or the categories of asynchronous spans.
    text: Option<String>,
    is_async: bool,
    /// The latest time of its events.
    last_ns: i64,
    name: Option<String>,
    /// Numbers in a `thread_name` event of anytrace: process, thread and lane of the source.
    source: Option<(u64, u64, u32)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    number: u64,
    text: Option<String>,
    name: Option<String>,
}

/// All homes, by number in order of their first event.
#[derive(Debug, Default)]
pub(super) struct Homes {
    known: Map<Box<[u8]>, u32>,
    processes_known: Map<Box<[u8]>, u32>,
    homes: Vec<Home>,
    processes: Vec<Process>,
    distinct_max: usize,
    /// For ids that are text, and names.
    room: Room,
    is_full: bool,
    key: Vec<u8>,
    last: (Vec<u8>, u32),
}

/// Gives a name in the place of the one before; none where there is no room.
fn rename(room: &mut Room, slot: &mut Option<String>, name: &[u8]) {
    if let Some(before) = slot.take() {
        room.returns(before.len());
    }
    *slot = Some(shown(name)).filter(|name| room.takes(name.len()));
}

fn push_id(key: &mut Vec<u8>, id: Id<'_>) {
    match id {
        Id::Number(number) => {
            key.push(b'n');
            key.extend_from_slice(&number.to_le_bytes());
        }
        Id::Text(text) => {
            key.push(b't');
            key.extend_from_slice(text);
            key.push(0xff);
        }
    }
}

fn shown(text: &[u8]) -> String {
    anytrace_core::text::shown(text).into_owned()
}

impl Homes {
    pub(super) fn new(distinct_max: usize) -> Self {
        Self { distinct_max, ..Self::default() }
    }

    /// The number of a thread. Threads beyond the limit share the last one's.
    #[inline]
    pub(super) fn thread(&mut self, process: Id<'_>, thread: Id<'_>) -> u32 {
        self.key.clear();
        push_id(&mut self.key, process);
        push_id(&mut self.key, thread);
        if self.last.0 == self.key && !self.homes.is_empty() {
            return self.last.1;
        }
        let found = self.find(process, thread);
        std::mem::swap(&mut self.last.0, &mut self.key);
        self.last.1 = found;
        found
    }

    /// The number of the group of asynchronous spans with these categories.
    pub(super) fn group(&mut self, process: Id<'_>, category: &[u8]) -> u32 {
        self.key.clear();
        push_id(&mut self.key, process);
        self.key.push(b'a');
        self.key.extend_from_slice(category);
        if let Some(&known) = self.known.get(self.key.as_slice()) {
            return known;
        }
        let text = shown(category);
        self.add(process, MADE_FIRST, Some(text), true)
    }

    fn find(&mut self, process: Id<'_>, thread: Id<'_>) -> u32 {
        if let Some(&known) = self.known.get(self.key.as_slice()) {
            return known;
        }
        match thread {
            Id::Number(number) => self.add(process, number, None, false),
            Id::Text(text) => self.add(process, MADE_FIRST, Some(shown(text)), false),
        }
    }

    fn add(&mut self, process: Id<'_>, thread: u64, text: Option<String>, is_async: bool) -> u32 {
        let next = u32::try_from(self.homes.len()).unwrap_or(u32::MAX);
        // The first one always has a place: others may share it.
        let bytes = 2 * self.key.len() + text.as_ref().map_or(0, String::len);
        let has_room = self.homes.len() < self.distinct_max && (self.room.takes(bytes) || next == 0);
        if !has_room {
            self.is_full = true;
            return next.saturating_sub(1);
        }
        self.known.insert(self.key.as_slice().into(), next);
        let thread = if text.is_some() { thread + u64::from(next) } else { thread };
        let process = self.process(process);
        self.homes.push(Home { process, thread, text, is_async, last_ns: i64::MIN, name: None, source: None });
        next
    }

    fn process(&mut self, id: Id<'_>) -> u32 {
        let mut key = Vec::new();
        push_id(&mut key, id);
        if let Some(&known) = self.processes_known.get(key.as_slice()) {
            return known;
        }
        let next = u32::try_from(self.processes.len()).unwrap_or(u32::MAX);
        self.processes_known.insert(key.into(), next);
        self.processes.push(match id {
            Id::Number(number) => Process { number, text: None, name: None },
            Id::Text(text) => Process { number: MADE_FIRST + u64::from(next), text: Some(shown(text)), name: None },
        });
        next
    }

    pub(super) fn name_process(&mut self, process: Id<'_>, name: &[u8]) {
        // Names of processes without a thread grow no list beyond that of the threads.
        if self.processes.len() >= self.distinct_max {
            return;
        }
        let mut key = Vec::new();
        push_id(&mut key, process);
        if !self.processes_known.contains_key(key.as_slice()) && !self.room.takes(2 * key.len()) {
            return;
        }
        let number = self.process(process) as usize;
        if let Some(process) = self.processes.get_mut(number) {
            rename(&mut self.room, &mut process.name, name);
        }
    }

    /// True when something did not get a place or a name of its own.
    pub(super) fn is_full(&self) -> bool {
        self.is_full || self.room.refused() > 0
    }

    pub(super) fn name_thread(&mut self, home: u32, name: &[u8], source: Option<(u64, u64, u32)>) {
        if let Some(home) = self.homes.get_mut(home as usize) {
            rename(&mut self.room, &mut home.name, name);
            home.source = source;
        }
    }

    #[inline]
    pub(super) fn see(&mut self, home: u32, time_ns: i64) {
        if let Some(home) = self.homes.get_mut(home as usize) {
            home.last_ns = home.last_ns.max(time_ns);
        }
    }

    /// The latest time of a home's events.
    pub(super) fn last_ns(&self, home: u32) -> i64 {
        self.homes.get(home as usize).map_or(i64::MIN, |home| home.last_ns)
    }

    /// The track of a home's lane.
    pub(super) fn track(&self, home: u32, lane: u32) -> Track {
        let Some(home) = self.homes.get(home as usize) else { return Track::default() };
        let process = self.processes.get(home.process as usize);
        let name = match (&home.name, &home.text) {
            (_, Some(categories)) if home.is_async && categories.is_empty() => Some("async".to_owned()),
            (_, Some(categories)) if home.is_async => Some(format!("async: {categories}")),
            (Some(name), _) => Some(name.clone()),
            (None, text) => text.clone(),
        };
        let mut track = Track {
            process: process.map_or(0, |process| process.number),
            thread: home.thread,
            lane,
            name,
            process_name: process.and_then(|process| process.name.clone().or_else(|| process.text.clone())),
            is_task: home.is_async,
        };
        if let Some(source) = home.source {
            restore(&mut track, source);
        }
        track
    }
}

/// Undoes what the export does to tracks whose numbers timelines cannot take.
fn restore(track: &mut Track, (process, thread, lane): (u64, u64, u32)) {
    let made = [format!("process {process}"), "unknown process".to_owned()];
    track.process_name = track.process_name.take().filter(|name| !made.contains(name));
    let label = track.name.take().unwrap_or_default();
    let name = label.strip_suffix(&format!(" (lane {lane})")).unwrap_or(&label);
    track.name = (name != format!("thread {thread}")).then(|| name.to_owned());
    (track.process, track.thread, track.lane) = (process, thread, track.lane + lane);
}
