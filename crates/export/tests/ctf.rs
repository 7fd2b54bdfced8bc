//! The Common Trace Format, read back by a reader of the test's own.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::BTreeMap;

use anytrace_core::span::{EdgeKind, TimeUnit};
use anytrace_export::timeline::by_name;
use common::{Played, hard, random};

/// An event as the stream has it.
#[derive(Debug, Clone, PartialEq)]
struct Event {
    id: u8,
    time: u64,
    track: u32,
    process: u64,
    thread: u64,
    label: String,
    cpu: i32,
    name: String,
    /// Place, value, number or, of a track, its other fields.
    own: String,
    flags: String,
    attributes: Vec<(String, String)>,
}

/// Takes fields off the front of some bytes.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_first_chunk().expect("a field is cut short");
        self.0 = rest;
        *taken
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).expect("a string ends");
        let text = String::from_utf8(self.0[..end].to_vec()).unwrap();
        self.0 = &self.0[end + 1..];
        text
    }

    fn value(&mut self) -> String {
        match self.take::<1>()[0] {
            0 => self.u64().to_string(),
            1 => self.u64().cast_signed().to_string(),
            2 => f64::from_bits(self.u64()).to_string(),
            3 => (self.take::<1>()[0] != 0).to_string(),
            4 => format!("{:#x}", self.u64()),
            5 | 7 => self.text(),
            6 => {
                let length = self.u32() as usize;
                let text = format!("{:?}", &self.0[..length]);
                self.0 = &self.0[length..];
                text
            }
            other => panic!("kind {other}"),
        }
    }

    fn event(&mut self) -> Event {
        let (id, time) = (self.take::<1>()[0], self.u64());
        let (track, process, thread, label) = (self.u32(), self.u64(), self.u64(), self.text());
        let cpu = self.u32().cast_signed();
        let name = self.text();
        let own = match id {
            0 => format!("{} lane {} task {}", self.text(), self.u32(), self.take::<1>()[0]),
            1 => self.text(),
            4 => self.value(),
            5 | 6 => self.u64().to_string(),
            _ => String::new(),
        };
        let (mut flags, mut attributes) = (String::new(), Vec::new());
        if id != 0 {
            flags = self.text();
            for _ in 0..u16::from_le_bytes(self.take()) {
                attributes.push((self.text(), self.value()));
            }
        }
        Event { id, time, track, process, thread, label, cpu, name, own, flags, attributes }
    }
}

/// The events of a stream; checks what its packets say of themselves.
fn events(stream: &[u8]) -> Vec<Event> {
    let (mut rest, mut events) = (stream, Vec::<Event>::new());
    while !rest.is_empty() {
        let mut head = Fields(rest);
        assert_eq!((head.u32(), head.u32()), (0xC1FC_1FC1, 0));
        let (first, last, content, size, discarded) = (head.u64(), head.u64(), head.u64(), head.u64(), head.u64());
        assert!(content == size && size % 8 == 0 && discarded == 0);
        let (packet, next) = rest.split_at(usize::try_from(size / 8).unwrap());
        let (mut fields, before) = (Fields(&packet[48..]), events.len());
        while !fields.0.is_empty() {
            events.push(fields.event());
        }
        assert_eq!((events[before].time, events.last().unwrap().time), (first, last));
        rest = next;
    }
    assert!(events.is_sorted_by_key(|event| event.time));
    events
}

/// What an edge is in the stream: track, kind, time since the first, name.
type Row = (u32, u8, u64, String);

fn rows(events: &[Event]) -> BTreeMap<u32, Vec<Row>> {
    let mut rows = BTreeMap::<u32, Vec<Row>>::new();
    for event in events.iter().filter(|event| event.id != 0) {
        let row = (event.track, event.id, event.time - events[0].time, event.name.clone());
        rows.entry(event.track).or_default().push(row);
    }
    rows
}

fn of_edges(played: &Played) -> BTreeMap<u32, Vec<Row>> {
    let first = played.edges.iter().map(|(edge, _)| edge.time).min().unwrap();
    let mut rows = BTreeMap::<u32, Vec<Row>>::new();
    for (edge, _) in &played.edges {
        let id = match edge.kind {
            EdgeKind::Begin => 1,
            EdgeKind::End => 2,
            EdgeKind::Instant => 3,
            EdgeKind::Counter => 4,
            EdgeKind::FlowOut => 5,
            EdgeKind::FlowIn => 6,
        };
        let name = String::from_utf8(played.names[edge.name as usize].0.clone()).unwrap();
        rows.entry(edge.track).or_default().push((edge.track, id, edge.time - first, name));
    }
    rows
}

#[test]
fn each_track_has_its_edges_in_their_order() {
    // More than fits in memory at once, so that runs on disk are merged.
    for (seed, edges) in [(5, 4_000), (6, 900_000)] {
        let played = random(seed, edges, TimeUnit::Nanoseconds);
        let events = events(&played.written_in("ctf", 1024));
        assert!(rows(&events) == of_edges(&played), "{edges}");
        assert_eq!(events.iter().filter(|event| event.id == 0).count(), 3);
    }
}

#[test]
fn everything_hard_keeps_its_values() {
    let events = events(&hard().written("ctf"));
    let early = events.iter().find(|event| event.id == 1 && event.name == "early").unwrap();
    let wanted = [
        ("text", "\u{202e} \"x\"\\xfe"),
        ("bytes", "[0, 1, 255]"),
        ("big", "18446744073709551615"),
        ("small", "-1"),
        ("real", "0.1"),
        ("nothing", "NaN"),
        ("at", "0xffff800000001000"),
        ("is", "true"),
        ("cpu", "9"),
    ];
    assert_eq!(early.attributes, wanted.map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!((early.process, early.thread, early.cpu, early.label.as_str()), (7, 7, 3, "main \"thread\""));
    let with = |id: u8, flags: &str| events.iter().filter(|one| one.id == id && one.flags == flags).count();
    assert_eq!((with(2, "tail"), with(3, "orphan"), with(2, "deduced"), with(2, "unfinished")), (1, 1, 1, 1));
    let counters: Vec<_> = events.iter().filter(|one| one.id == 4).map(|one| one.own.as_str()).collect();
    assert_eq!(counters, ["12", "0.5"]);
    let arrows: Vec<_> = events.iter().filter(|one| one.id >= 5).map(|one| (one.id, one.own.as_str())).collect();
    assert_eq!(arrows, [(5, "77"), (6, "77")]);
    let tracks: Vec<_> = events.iter().filter(|one| one.id == 0).collect();
    assert_eq!(tracks.len(), 4);
    assert_eq!((tracks[0].name.as_str(), tracks[0].own.as_str()), ("app", "main \"thread\" lane 0 task 0"));
    assert!(tracks.iter().any(|track| track.process == u64::MAX));
    assert!(events.iter().any(|event| event.own == "src/\"a\".c:42"));
}

#[test]
fn a_zero_inside_a_name_does_not_end_it() {
    let mut played = Played::new(TimeUnit::Order, 0);
    let track = played.track(1, 1, 0, None, None);
    played.edge(track, EdgeKind::Instant, 3, b"a\0b");
    let events = events(&played.written("ctf"));
    assert_eq!(events.last().unwrap().name, "a\\x00b");
}

#[test]
fn metadata_says_what_the_clock_is() {
    let metadata = |played: &Played| String::from_utf8(played.beside("ctf")).unwrap();
    let with_epoch = metadata(&hard());
    assert!(with_epoch.starts_with("/* CTF 1.8 */\n"));
    // 1,800,000,000 s and 1,000 ns after 1970, less the day of room before the origin.
    assert!(with_epoch.contains("offset_s = 1799913600;\n\toffset = 1000;"), "{with_epoch}");
    let mut order = Played::new(TimeUnit::Order, 4);
    order.track(1, 1, 0, None, None);
    assert!(metadata(&order).contains("the format has no clock: 1 record is shown as 1 ns"));
    let folder = by_name("ctf").unwrap().folder.unwrap();
    assert_eq!((folder.main, folder.beside), ("stream", "metadata"));
}
