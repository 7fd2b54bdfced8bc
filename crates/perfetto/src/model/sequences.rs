//! What a sequence of packets has said so far: interned data, defaults, clocks.

use anytrace_core::hash::Map;

use super::clocks::OwnClock;
use super::names::Names;
use crate::wire::proto::{Fields, each_number};

/// Most entries of interned data in all sequences together.
const ENTRIES_MAX: usize = 1 << 22;

/// Numbers by interning id (`iid`): small ones in a row, others in a map.
#[derive(Debug, Default)]
pub(crate) struct Interned {
    row: Vec<Option<u32>>,
    /// How many of them are set: the row is at most twice as long, and a little.
    used: usize,
    others: Map<u64, u32>,
}

impl Interned {
    #[inline]
    pub(crate) fn get(&self, iid: u64) -> Option<u32> {
        match usize::try_from(iid).ok().and_then(|at| self.row.get(at)) {
            Some(Some(number)) => Some(*number),
            _ if self.others.is_empty() => None,
            _ => self.others.get(&iid).copied(),
        }
    }

    fn set(&mut self, iid: u64, number: u32) {
        // Ids are given out one after the other; room for a few gaps.
        match usize::try_from(iid) {
            Ok(at) if at < self.used * 2 + 64 => {
                if at >= self.row.len() {
                    self.row.resize(at + 1, None);
                }
                if let Some(slot) = self.row.get_mut(at) {
                    self.used += usize::from(slot.is_none());
                    *slot = Some(number);
                }
            }
            _ => _ = self.others.insert(iid, number),
        }
    }

    fn len(&self) -> usize {
        self.row.len() + self.others.len()
    }

    fn clear(&mut self) {
        self.row.clear();
        self.used = 0;
        self.others.clear();
    }
}

/// The state of a sequence.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    /// True from the packet that clears the state to the loss of one.
    pub(crate) is_valid: bool,
    /// The clock of packets that name none.
    pub(crate) clock: Option<u32>,
    /// The track of events that name none.
    pub(crate) track: Option<u64>,
    pub(crate) counter_tracks: Vec<u64>,
    pub(crate) double_counter_tracks: Vec<u64>,
    /// A counter's track whose row is known for good, and that row.
    pub(crate) placed: Option<(u64, usize)>,
    pub(crate) clocks: Vec<OwnClock>,
    /// The thread of events without a track, in old traces: process and thread.
    pub(crate) thread: Option<(u64, u64)>,
    /// The last time of track events that count differences themselves, in microseconds.
    pub(crate) last_us: u64,
    pub(crate) event_names: Interned,
    pub(crate) categories: Interned,
    pub(crate) annotation_names: Interned,
    pub(crate) strings: Interned,
    pub(crate) places: Interned,
    pub(crate) bodies: Interned,
    /// Sums of counters that count differences, by track.
    pub(crate) sums: Map<u64, i64>,
}

impl Sequence {
    fn entries(&self) -> usize {
        let all =
            [&self.event_names, &self.categories, &self.annotation_names, &self.strings, &self.places, &self.bodies];
        all.into_iter().map(Interned::len).sum()
    }

    /// Forgets what packets with `SEQ_INCREMENTAL_STATE_CLEARED` make invalid.
    fn clear(&mut self) {
        let all = [
            &mut self.event_names,
            &mut self.categories,
            &mut self.annotation_names,
            &mut self.strings,
            &mut self.places,
            &mut self.bodies,
        ];
        all.into_iter().for_each(Interned::clear);
        self.clock = None;
        self.track = None;
        self.counter_tracks.clear();
        self.double_counter_tracks.clear();
        self.sums.clear();
        self.is_valid = true;
    }

    /// Learns from a `TracePacketDefaults`.
    fn learn_defaults(&mut self, defaults: &[u8]) {
        (self.clock, self.track) = (None, None);
        self.counter_tracks.clear();
        self.double_counter_tracks.clear();
        for field in Fields::of(defaults) {
            match field.number {
                58 => self.clock = u32::try_from(field.value.number()).ok(),
                11 => {
                    for event in Fields::of(field.value.bytes()) {
                        match event.number {
                            11 => self.track = Some(event.value.number()),
                            31 => each_number(event.value, |uuid| push_track(&mut self.counter_tracks, uuid)),
                            45 => each_number(event.value, |uuid| push_track(&mut self.double_counter_tracks, uuid)),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Learns from an `InternedData`.
    fn learn_interned(&mut self, data: &[u8], names: &mut Names) {
        for field in Fields::of(data) {
            let bytes = field.value.bytes();
            let table = match field.number {
                1 => &mut self.categories,
                2 => &mut self.event_names,
                3 => &mut self.annotation_names,
                20 => &mut self.bodies,
                29 => &mut self.strings,
                4 => {
                    let (iid, place) = read_place(bytes, names);
                    if let Some(place) = place {
                        self.places.set(iid, place);
                    }
                    continue;
                }
                _ => continue,
            };
            let (mut iid, mut text) = (0, &[][..]);
            for part in Fields::of(bytes) {
                match part.number {
                    1 => iid = part.value.number(),
                    2 => text = part.value.bytes(),
                    _ => {}
                }
            }
            table.set(iid, names.number(text));
        }
    }
}

/// Most counters that one event may have beside its own.
const COUNTERS_MAX: usize = 256;

fn push_track(tracks: &mut Vec<u64>, uuid: u64) {
    if tracks.len() < COUNTERS_MAX {
        tracks.push(uuid);
    }
}

/// A `SourceLocation`: its iid and its place.
pub(crate) fn read_place(bytes: &[u8], names: &mut Names) -> (u64, Option<u32>) {
    let (mut iid, mut file, mut line) = (0, &[][..], 0);
    for part in Fields::of(bytes) {
        match part.number {
            1 => iid = part.value.number(),
            2 => file = part.value.bytes(),
            4 => line = part.value.number(),
            _ => {}
        }
    }
    (iid, names.place(file, line))
}

/// All sequences of a trace.
#[derive(Debug)]
pub(crate) struct Sequences {
    index: Map<u32, usize>,
    all: Vec<Sequence>,
    last: Option<(u32, usize)>,
    sequences_max: usize,
    entries: usize,
    pub(crate) is_full: bool,
}

impl Sequences {
    pub(crate) fn new(sequences_max: usize) -> Self {
        Self { index: Map::default(), all: Vec::new(), last: None, sequences_max, entries: 0, is_full: false }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The state of a sequence; `None` beyond the limit.
    #[inline]
    pub(crate) fn find(&mut self, id: u32) -> Option<usize> {
        match self.last {
            Some((last, at)) if last == id => Some(at),
            _ => self.find_other(id),
        }
    }

    fn find_other(&mut self, id: u32) -> Option<usize> {
        let at = match self.index.get(&id) {
            Some(&at) => at,
            None if self.all.len() >= self.sequences_max => {
                self.is_full = true;
                return None;
            }
            None => {
                self.all.push(Sequence::default());
                self.index.insert(id, self.all.len() - 1);
                self.all.len() - 1
            }
        };
        self.last = Some((id, at));
        Some(at)
    }

    #[inline]
    pub(crate) fn get(&mut self, at: usize) -> Option<&mut Sequence> {
        self.all.get_mut(at)
    }

    /// Forgets what a sequence said.
    pub(crate) fn clear(&mut self, at: usize) {
        let Some(sequence) = self.all.get_mut(at) else { return };
        self.entries = self.entries.saturating_sub(sequence.entries());
        sequence.clear();
    }

    /// Learns from a packet's defaults and interned data.
    pub(crate) fn learn(&mut self, at: usize, defaults: Option<&[u8]>, interned: Option<&[u8]>, names: &mut Names) {
        let Some(sequence) = self.all.get_mut(at) else { return };
        if let Some(defaults) = defaults {
            sequence.learn_defaults(defaults);
        }
        let Some(interned) = interned else { return };
        if self.entries >= ENTRIES_MAX {
            self.is_full = true;
            return;
        }
        let before = sequence.entries();
        sequence.learn_interned(interned, names);
        self.entries += sequence.entries().saturating_sub(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_far_apart_take_no_room_between_them() {
        let mut interned = Interned::default();
        for (iid, number) in [(1, 10), (2, 11), (1 << 40, 12), (u64::MAX, 13), (70, 14), (1_000_000, 15)] {
            interned.set(iid, number);
        }
        let found: Vec<_> = [1, 2, 3, 70, 1_000_000, 1 << 40, u64::MAX].map(|iid| interned.get(iid)).into();
        assert_eq!(found, [Some(10), Some(11), None, Some(14), Some(15), Some(12), Some(13)]);
        assert!(interned.row.len() < 100);
        // Ids that double never make the row long.
        (6..40).for_each(|bit| interned.set((1 << bit) - 1, bit));
        assert!(interned.row.len() < 400 && interned.get((1 << 39) - 1) == Some(39), "{}", interned.row.len());
    }

    #[test]
    fn a_sequence_learns_and_forgets() {
        let mut names = Names::default();
        let mut all = Sequences::new(2);
        let at = all.find(5).unwrap_or(9);
        let interned = b"\x12\x05\x08\x01\x12\x01a\x22\x07\x08\x03\x12\x01f\x20\x09";
        all.learn(at, Some(b"\x5a\x02\x58\x07\xd0\x03\x40"), Some(interned), &mut names);
        let sequence = all.get(at).unwrap_or_else(|| panic!("it is there"));
        assert_eq!((sequence.clock, sequence.track), (Some(64), Some(7)));
        assert_eq!(sequence.event_names.get(1).map(|number| names.get(number)), Some(&b"a"[..]));
        let place = sequence.places.get(3).and_then(|place| names.place_of(place));
        assert_eq!(place.map(|place| (place.file.as_str(), place.line)), Some(("f", 9)));
        all.clear(at);
        assert!(all.get(at).is_some_and(|s| s.is_valid && s.track.is_none() && s.event_names.get(1).is_none()));
        assert_eq!((all.find(6), all.find(7), all.find(5), all.is_full), (Some(1), None, Some(0), true));
    }
}
