//! Samples as spans: sums compared with an independent count of the stacks, positions with the times of the samples.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use anytrace_core::span::{EdgeBatch, EdgeKind, Location, NameId, SpanSource, TimeUnit, Track, TrackId};
use anytrace_core::testing::mutations;
use anytrace_core::{Collect, Error, Format, Input, OpenOptions, Settings, SpanOptions, SpanSink};
use anytrace_perf::Perf;

const TEXT: &[u8] = include_bytes!("../corpus/stacks.perf");
const INLINED: &[u8] = include_bytes!("../corpus/inlined.perf");
const SWITCHES: &[u8] = include_bytes!("../corpus/switches.perf");
const LINES: &[u8] = include_bytes!("../corpus/lines.perf");
const DATA: &[u8] = include_bytes!("../corpus/callgraph.data");
const TWO: &[u8] = include_bytes!("../corpus/two-events.data");

type Stacks = BTreeMap<String, u64>;

/// Checks what the lane promises, and adds up the time of each stack without that of the stacks above it.
#[derive(Default)]
struct Seen {
    sums: bool,
    names: Vec<String>,
    tracks: Vec<Track>,
    source: Option<SpanSource>,
    /// For each track: open names, and the time of the last edge.
    open: BTreeMap<TrackId, (Vec<NameId>, u64)>,
    stacks: Stacks,
    begins: Vec<u64>,
}

impl SpanSink for Seen {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        assert!(self.source.replace(*source).is_none());
        Ok(())
    }
    fn wants_lives(&self) -> bool {
        !self.sums
    }
    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        assert_eq!(id as usize, self.tracks.len());
        self.tracks.push(track.clone());
        Ok(())
    }
    fn name(&mut self, id: NameId, name: &[u8], _location: Option<&Location>) -> Result<(), Error> {
        assert_eq!(id as usize, self.names.len());
        self.names.push(String::from_utf8_lossy(name).into_owned());
        Ok(())
    }
    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            let (open, last) = self.open.entry(edge.track).or_default();
            assert!(*last <= edge.time && (edge.track as usize) < self.tracks.len());
            if !open.is_empty() && *last < edge.time {
                let names: Vec<_> = open.iter().map(|name| self.names[*name as usize].as_str()).collect();
                *self.stacks.entry(names.join(";")).or_default() += edge.time - *last;
            }
            *last = edge.time;
            match edge.kind {
                EdgeKind::Begin => {
                    open.push(edge.name);
                    self.begins.push(edge.time);
                }
                EdgeKind::End => assert_eq!(open.pop(), Some(edge.name)),
                _ => {}
            }
        }
        Ok(())
    }
}

fn read(bytes: &[u8], sums: bool, event: Option<i64>) -> (Seen, Vec<&'static str>) {
    let (mut seen, mut sink) = (Seen { sums, ..Seen::default() }, Collect::default());
    let own = event.map_or_else(Settings::default, |event| Settings::default().with("event", event));
    let options = OpenOptions { own, ..OpenOptions::default() };
    let trace = Perf.open(Input::from_bytes("x", bytes.to_vec()), &options).unwrap();
    trace.spans(&SpanOptions::default(), &mut seen, &mut sink).unwrap();
    assert!(seen.open.values().all(|(open, _)| open.is_empty()), "all spans end");
    assert!(seen.source.is_some());
    (seen, sink.codes())
}

/// The stacks of a text by the words of its lines, as scripts count them.
fn collapse(text: &[u8], only: &str) -> Stacks {
    let text = std::str::from_utf8(text).unwrap();
    let mut stacks = Stacks::new();
    for sample in text.split("\n\n") {
        let lines: Vec<_> =
            sample.lines().filter(|line| !line.starts_with('#') && !line.contains("PERF_RECORD")).collect();
        let Some((head, frames)) = lines.split_first() else { continue };
        if !head.contains(only) {
            continue;
        }
        let period = head.split(only).next().unwrap().split_whitespace().last().unwrap();
        let weight = period.parse().unwrap_or(1);
        let names = frames.iter().filter(|line| line.contains('(')).map(|line| {
            let rest = line.trim().split_once(' ').unwrap().1;
            let (symbol, file) = rest.rsplit_once(" (").unwrap();
            let file = file.trim_end_matches(')').rsplit('/').next().unwrap();
            match symbol.split("+0x").next().unwrap() {
                "[unknown]" if file.starts_with('[') => file.to_owned(),
                "[unknown]" => format!("[{file}]"),
                symbol => symbol.to_owned(),
            }
        });
        let mut names: Vec<String> = names.collect();
        names.reverse();
        *stacks.entry(names.join(";")).or_default() += weight;
    }
    stacks
}

#[test]
fn sums_are_those_of_an_independent_count() {
    for (bytes, event, unit) in [
        (TEXT, "cpu-clock:", TimeUnit::Nanoseconds),
        (INLINED, "cycles:u:", TimeUnit::Ticks { per_second: None }),
        (SWITCHES, "sched:sched_switch:", TimeUnit::Ticks { per_second: None }),
    ] {
        let (seen, _) = read(bytes, true, None);
        let expected = collapse(bytes, event);
        assert!(!expected.is_empty());
        assert_eq!(seen.stacks, expected, "{event}");
        assert_eq!(seen.source.unwrap().unit, unit, "{event}");
    }
}

#[test]
fn clocks_have_the_same_sums_for_what_shows_times() {
    let (sums, times) = (read(TEXT, true, None).0, read(TEXT, false, None).0);
    assert_eq!(sums.stacks, times.stacks);
    assert_eq!(sums.source, times.source);
    assert_eq!(times.begins.iter().min(), Some(&times.source.unwrap().origin));
}

#[test]
fn other_events_last_to_the_next_sample_where_times_are_shown() {
    let text = "t 1 1.000: cycles: 1 a (x)\nt 1 1.004: cycles: 1 b (x)\nt 1 2.000: cycles: 1 a (x)\nt 2 2.000: cycles: 1 c (x)\n";
    let (seen, _) = read(text.as_bytes(), false, None);
    // At most 10 ms; the last of a thread as long as the step before it, and a single one 1 ms.
    let expected = [("a", 4_000_000 + 10_000_000), ("b", 10_000_000), ("c", 1_000_000)];
    assert_eq!(seen.stacks, expected.map(|(name, ns)| (name.to_owned(), ns)).into());
    assert_eq!(seen.begins, [1_000_000_000, 1_004_000_000, 2_000_000_000, 2_000_000_000]);
    assert_eq!(seen.source.unwrap().unit, TimeUnit::Nanoseconds);
}

#[test]
fn samples_of_one_line_have_one_function() {
    let (seen, codes) = read(LINES, true, None);
    assert!(codes.is_empty(), "{codes:?}");
    let samples = std::str::from_utf8(LINES).unwrap().lines().count() as u64;
    assert_eq!(seen.stacks.values().sum::<u64>(), samples * 5_000_000);
    assert!(seen.stacks.contains_key("fib"), "{:?}", seen.stacks);
    assert_eq!(seen.tracks.len(), 2);
    assert_eq!(seen.tracks[0].name.as_deref(), Some("fib"));
}

/// Periods of the samples of `perf.data`, and the stacks as file and offset, by code that shares nothing with the
/// crate's.
mod slow {
    use std::collections::BTreeMap;

    fn word(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    /// Only of recordings whose samples have IP, TID, TIME, CALLCHAIN and PERIOD.
    pub(super) fn stacks(file: &[u8]) -> BTreeMap<String, u64> {
        let (mut at, size) = (word(file, 40) as usize, word(file, 48) as usize);
        let end = at + size;
        let mut maps: Vec<(u32, u64, u64, u64, String)> = Vec::new();
        let mut stacks = BTreeMap::new();
        let mut samples = Vec::new();
        while at < end {
            let (kind, length) = (word(file, at) as u32, (word(file, at) >> 48) as usize);
            let body = &file[at + 8..at + length];
            at += length;
            let text = |at: usize| String::from_utf8(body[at..].split(|b| *b == 0).next().unwrap().to_vec()).unwrap();
            match kind {
                1 => maps.push((word(body, 0) as u32, word(body, 8), word(body, 16), word(body, 24), text(32))),
                10 => maps.push((word(body, 0) as u32, word(body, 8), word(body, 16), word(body, 24), text(64))),
                9 => samples.push(body),
                _ => {}
            }
        }
        // Nothing was mapped in the place of something else.
        for body in samples {
            let (process, count, mut space) = (word(body, 8) as u32, word(body, 32) as usize, u32::MAX);
            let mut names = Vec::new();
            for address in (0..count).map(|n| word(body, 40 + n * 8)) {
                if address == u64::MAX - 127 {
                    space = u32::MAX;
                } else if address == u64::MAX - 511 {
                    space = process;
                } else {
                    let own = maps
                        .iter()
                        .find(|(of, start, bytes, ..)| *of == space && address >= *start && address - start < *bytes);
                    names.push(own.map_or("[unknown]".to_owned(), |(_, start, _, offset, path)| {
                        let base = path.rsplit('/').next().unwrap();
                        let base = base.strip_suffix("_text").unwrap_or(base);
                        format!("{base}+{:#x}", offset + (address - start))
                    }));
                }
            }
            names.reverse();
            *stacks.entry(names.join(";")).or_default() += word(body, 24);
        }
        stacks
    }
}

#[test]
fn binary_samples_have_the_stacks_of_a_slow_reading() {
    let expected = slow::stacks(DATA);
    assert!(expected.len() > 5 && expected.keys().any(|stack| stack.contains("fib+0x")), "{expected:?}");
    let (seen, codes) = read(DATA, true, None);
    assert_eq!((seen.stacks, codes.len()), (expected, 0));
    let track = seen.tracks.first().unwrap();
    assert_eq!((track.name.as_deref(), track.process_name.as_deref()), (Some("fib"), Some("fib")));
}

#[test]
fn one_event_is_shown_and_the_others_are_counted() {
    let (first, codes) = read(TWO, true, None);
    assert_eq!(codes, ["perf/other-event"]);
    let (clock, codes) = read(TWO, true, Some(0));
    assert!(codes.is_empty());
    let (faults, _) = read(TWO, true, Some(1));
    let sum = |seen: &Seen| seen.stacks.values().sum::<u64>();
    assert_eq!(clock.source.unwrap().unit, TimeUnit::Nanoseconds);
    assert_eq!(faults.source.unwrap().unit, TimeUnit::Ticks { per_second: None });
    assert!([sum(&clock), sum(&faults)].contains(&sum(&first)) && sum(&clock) == 62_500_000 && sum(&faults) == 450_165);
    assert!(read(TWO, true, Some(9)).0.stacks.is_empty());
}

#[test]
fn a_damaged_stack_is_no_other_stack() {
    let text = b"t 1 1.0: e: \n\t1 a (x)\nnoise\n\t2 b (x)\n\nt 1 2.0: e: 1 c (x)\nnoise\nt 1 3.0: e: \n\t1 d (x)\n";
    let (seen, codes) = read(text, true, None);
    assert_eq!(codes, ["perf/bad-record", "perf/bad-record"]);
    assert_eq!(seen.stacks.keys().collect::<Vec<_>>(), ["c", "d"]);
}

#[test]
fn changed_samples_keep_the_promises_of_spans() {
    for sample in [TEXT, INLINED, DATA, TWO, SWITCHES] {
        mutations(sample, 11, 150, |changed| {
            read(changed, true, None);
            read(changed, false, None);
        });
    }
}

#[test]
fn names_of_functions_and_threads_are_bounded_in_bytes() {
    let long = "x".repeat(900_000);
    let samples = (0..30).map(|n| {
        format!("{n}{long} {} 29974.{:06}: 1000 cpu-clock: \n\t56429d05c180 f{n}{long}+0x27 (/tmp/fib)\n\n", n + 1, n)
    });
    let (seen, codes) = read(samples.collect::<String>().as_bytes(), true, None);
    assert_eq!((seen.begins.len(), seen.tracks.len(), codes), (30, 30, vec!["perf/limit"]));
    assert_eq!(seen.stacks.values().sum::<u64>(), 30_000, "all samples count");
    let names: usize = seen.names.iter().map(String::len).sum();
    assert!(names <= 13 << 20 && seen.stacks.get("(other)").is_some_and(|time| *time > 10_000), "{names}");
    let tracks: usize = seen.tracks.iter().filter_map(|track| track.name.as_ref()).map(String::len).sum();
    assert!((10 << 20..24 << 20).contains(&tracks), "{tracks}");
}

#[test]
fn events_whose_names_have_no_room_are_no_other_events() {
    let long = "x".repeat(900_000);
    let samples = (0..30).map(|n| format!("t 1 {n}.000000: 1000 e{n}{long}: \n\t1 a (x)\n\n"));
    let text = samples.collect::<String>();
    let sum = |event| {
        let (seen, codes) = read(text.as_bytes(), true, Some(event));
        assert!(codes.contains(&"perf/limit"), "{codes:?}");
        seen.stacks.values().sum::<u64>()
    };
    // 24 MiB are room for the names of 13, as keys and in a list; the others are one event more.
    let counts: Vec<_> = (0..14).map(sum).collect();
    assert_eq!((&counts[..13], counts[13]), (&[1000; 13][..], 17_000));
}
