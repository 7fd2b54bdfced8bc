//! Traces emitted as spans.

#![cfg(feature = "lanes")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anytrace_core::span::{
    EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, Symbols, TimeUnit, Track, TrackId, Value,
};
use anytrace_core::testing::{dripping, mutations, shared_corpus, truncations};
use anytrace_core::{
    Collect, Error, Format, ImportOptions, Input, Limits, MemoryTarget, OpenOptions, SpanOptions, SpanSink,
};
use anytrace_xray::Xray;

/// Checks that the contract of the span lane is kept, and records edges as lines.
#[derive(Default)]
struct SpanLog {
    source: Option<SpanSource>,
    tracks: Vec<Track>,
    names: Vec<String>,
    /// Open spans and last time of each track.
    open: Vec<(Vec<NameId>, u64)>,
    lines: String,
}

impl SpanSink for SpanLog {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        assert!(self.source.replace(*source).is_none(), "the source is reported once");
        Ok(())
    }
    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        assert!(self.source.is_some() && id as usize == self.tracks.len());
        self.tracks.push(track.clone());
        self.open.push((Vec::new(), 0));
        Ok(())
    }
    fn name(&mut self, id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        assert!(self.source.is_some() && id as usize == self.names.len());
        let place = location.map(|place| format!("@{}:{}", place.file, place.line));
        self.names.push(String::from_utf8_lossy(name).into_owned() + &place.unwrap_or_default());
        Ok(())
    }
    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        assert!(!batch.is_empty());
        for edge in batch.edges() {
            let (open, last) = &mut self.open[edge.track as usize];
            assert!(edge.time >= *last, "time goes back on a track");
            *last = edge.time;
            let sign = match edge.kind {
                EdgeKind::Begin => {
                    open.push(edge.name);
                    "+"
                }
                EdgeKind::End => {
                    assert_eq!(open.pop(), Some(edge.name), "an end is that of the innermost span");
                    "-"
                }
                _ => "!",
            };
            let track = &self.tracks[edge.track as usize];
            let indent = " ".repeat(open.len() + usize::from(edge.kind == EdgeKind::End));
            let time = edge.time - self.source.unwrap().origin.min(edge.time);
            let name = &self.names[edge.name as usize];
            write!(self.lines, "{}/{}{indent}{sign}{name} {time}", track.process, track.thread).unwrap();
            for word in edge.flags.words() {
                write!(self.lines, " {word}").unwrap();
            }
            for (key, value) in batch.attributes(edge) {
                let shown = match value {
                    Value::Text(text) => format!("'{}'", String::from_utf8(text.to_vec()).unwrap()),
                    other => format!("{other:?}"),
                };
                write!(self.lines, " {}={shown}", self.names[key as usize]).unwrap();
            }
            self.lines.push('\n');
        }
        Ok(())
    }
}

fn log_of_input(input: Input, options: &SpanOptions) -> (SpanLog, Collect) {
    let (mut log, mut sink) = (SpanLog::default(), Collect::default());
    let trace = Xray.open(input, &OpenOptions::default()).unwrap();
    trace.spans(options, &mut log, &mut sink).unwrap();
    assert!(log.source.is_some(), "the source is always reported");
    assert!(log.open.iter().all(|(open, _)| open.is_empty()), "nothing stays open");
    (log, sink)
}

fn log_of(bytes: &[u8]) -> SpanLog {
    log_of_input(Input::from_bytes("x", bytes.to_vec()), &SpanOptions::default()).0
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(corpus().join(name)).unwrap()
}

#[test]
fn every_trace_keeps_the_promises_of_the_lane() {
    assert!(Xray.has_spans());
    let mut folders = vec![corpus(), corpus().join("bad"), corpus().join("found")];
    if let Some(shared) = shared_corpus("xray") {
        folders.extend(["real", "synth", "bad"].map(|folder| shared.join(folder)));
    }
    for folder in folders {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if !path.extension().is_some_and(|e| e == "xray" || e == "yaml") {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let log = log_of(&bytes);
            let slow = log_of_input(dripping("x", &bytes, 101), &SpanOptions::default()).0;
            assert!(log.lines == slow.lines, "{}", path.display());
            let options = SpanOptions { tail_chains: true, symbols: None, ..SpanOptions::default() };
            log_of_input(Input::from_bytes("x", bytes), &options);
        }
    }
}

#[test]
fn damaged_traces_keep_them_too() {
    for name in ["customs.xray", "typed-tinybuf.xray", "basic-v3.xray", "ring.xray", "v5.yaml"] {
        let bytes = sample(name);
        truncations(&bytes, 48, |_, part| drop(log_of(part)));
        mutations(&bytes, 11, 60, |changed| drop(log_of(changed)));
    }
}

#[test]
fn calls_events_and_arguments_are_emitted_in_full() {
    let log = log_of(&sample("v5.xray"));
    let golden = corpus().join("v5.xray.spans");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&golden, &log.lines).unwrap();
    }
    assert_eq!(log.lines, std::fs::read_to_string(golden).unwrap());
    let source = log.source.unwrap();
    assert_eq!((source.format, source.epoch_ns), ("xray", None));
    assert!(matches!(source.unit, TimeUnit::Ticks { per_second: Some(hz) } if hz > 0));
}

#[test]
fn payloads_are_text_where_they_can_be_read() {
    let log = log_of(&sample("customs.xray"));
    let line = |what: &str| log.lines.lines().find(|line| line.contains(what)).unwrap_or_default().to_owned();
    assert!(line("data='").contains("!custom event "), "{}", log.lines);
    assert!(line("data=Bytes([").contains("!custom event "), "{}", log.lines);
    let typed = log_of(&sample("typed-tinybuf.xray"));
    assert!(typed.names.iter().any(|name| name.starts_with("typed event ")), "{:?}", typed.names);
}

#[test]
fn missing_exits_and_entries_are_flagged() {
    let exc = log_of(&sample("basic-exc.xray"));
    assert!(exc.lines.contains(" deduced"), "{}", exc.lines);
    let ring = log_of(&sample("ring.xray"));
    assert!(ring.lines.lines().any(|line| line.contains('!') && line.ends_with(" orphan")), "{}", ring.lines);
}

#[test]
fn tail_calls_are_chained_on_request() {
    let bytes = sample("tail.xray");
    let plain = log_of(&bytes).lines;
    assert!(plain.contains(" tail") && !plain.contains(" chained"));
    let options = SpanOptions { tail_chains: true, symbols: None, ..SpanOptions::default() };
    let chained = log_of_input(Input::from_bytes("x", bytes), &options).0.lines;
    assert!(chained.contains(" chained"), "{chained}");
    let count = |lines: &str, sign: char| {
        lines.lines().filter(|line| line.trim_start_matches(|c: char| c != ' ').trim_start().starts_with(sign)).count()
    };
    assert_eq!(count(&plain, '+'), count(&chained, '+'));
}

struct Fixed(Location);

impl Symbols for Fixed {
    fn symbol(&self, id: u64) -> Option<(&str, Option<&Location>)> {
        match id {
            1 => Some(("main", Some(&self.0))),
            2 => Some(("other", None)),
            _ => None,
        }
    }
}

#[test]
fn names_come_from_the_trace_then_from_symbols_then_from_numbers() {
    let place = Location { file: "a.cpp".into(), line: 7 };
    let options =
        || SpanOptions { tail_chains: false, symbols: Some(Box::new(Fixed(place.clone()))), ..SpanOptions::default() };
    let names = |name: &str| log_of_input(Input::from_bytes("x", sample(name)), &options()).0.names;
    let binary = names("basic-exc.xray");
    assert!(binary.contains(&"main@a.cpp:7".to_owned()) && binary.contains(&"other".to_owned()), "{binary:?}");
    assert!(binary.contains(&"#3".to_owned()), "{binary:?}");
    // The peer writes the id in place of an unknown name.
    let text = names("args.yaml");
    assert!(text.contains(&"main@a.cpp:7".to_owned()) && text.contains(&"#3".to_owned()), "{text:?}");
    let entry = "---\nheader:\n  version: 3\n  type: 0\n  constant-tsc: true\n  nonstop-tsc: true\n  cycle-frequency: 5\n\
        records:\n  - { type: 0, func-id: 1, function: own, cpu: 0, thread: 7, kind: function-enter, tsc: 9, data: '' }\n...\n";
    let own = log_of_input(Input::from_bytes("x", entry.into()), &options()).0;
    assert_eq!(own.names, ["own"]);
}

#[test]
fn an_empty_input_is_a_source_without_edges() {
    let log = log_of(&[]);
    assert!(log.tracks.is_empty() && log.lines.is_empty());
    assert_eq!(log.source.unwrap().unit, TimeUnit::Ticks { per_second: None });
}

#[test]
fn an_emulated_clock_gives_the_date() {
    let log = log_of(&sample("basic-dso.xray"));
    let source = log.source.unwrap();
    let is_emulated = source.unit == TimeUnit::Ticks { per_second: Some(1_000_000_000) };
    assert_eq!(source.epoch_ns.is_some(), is_emulated && source.origin > 1_000_000_000_000_000_000);
    assert!(!EdgeFlags::NONE.has(EdgeFlags::TAIL));
}

/// The wall times of a trace's buffers against the counter, read from its JSON lines.
fn wall_times(bytes: &[u8]) -> Vec<(i128, i128)> {
    let target = common::target(Some("jsonl"), None, None);
    let lines = String::from_utf8(common::convert(bytes, target)).unwrap();
    let (mut wall, mut pairs) = (None, Vec::new());
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let number = |key: &str| i128::from(line[key].as_u64().unwrap());
        match line["kind"].as_str() {
            Some("new-buffer") => wall = None,
            Some("wall-time") => wall = Some(number("seconds") * 1_000_000_000 + number("micros") * 1_000),
            Some("new-cpu-id") => pairs.extend(wall.take().map(|wall| (wall, number("tsc")))),
            _ => {}
        }
    }
    pairs
}

#[test]
fn wall_times_relate_the_counter_to_the_machines_uptime() {
    for name in ["v5.xray", "v1.xray", "ring.xray", "customs.xray"] {
        let bytes = sample(name);
        let source = log_of(&bytes).source.unwrap();
        let TimeUnit::Ticks { per_second: Some(hz) } = source.unit else { panic!("{name}") };
        let zero = |(wall, tsc): (i128, i128)| wall - (tsc * 1_000_000_000 + i128::from(hz / 2)) / i128::from(hz);
        let mut zeros: Vec<i128> = wall_times(&bytes).into_iter().map(zero).collect();
        zeros.sort_unstable();
        let uptime = source.uptime.unwrap();
        assert_eq!(uptime.zero_ns, zeros[zeros.len() / 2], "{name}");
        assert_eq!(i128::from(uptime.spread_ns), zeros[zeros.len() - 1] - zeros[0], "{name}");
    }
    assert_eq!(log_of(&sample("basic-v3.xray")).source.unwrap().uptime, None, "it has no wall times");
}

#[test]
fn a_wall_time_that_no_uptime_can_be_is_a_date() {
    let bytes = sample("v5.xray");
    let target = common::target(Some("jsonl"), None, None);
    let lines = String::from_utf8(common::convert(&bytes, target)).unwrap();
    let mut dated = String::new();
    for line in lines.lines() {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        if record["kind"] == "wall-time" {
            record["seconds"] = (1_700_000_000 + record["seconds"].as_u64().unwrap()).into();
        }
        writeln!(dated, "{record}").unwrap();
    }
    let plain = log_of(&bytes).source.unwrap();
    let input = Input::from_bytes("dated.jsonl", dated.into_bytes());
    let (target, mut out) = (common::target(None, None, None), MemoryTarget::default());
    let options = ImportOptions { target: &target, limits: Limits::default() };
    Xray.import(input, &options, &mut out, &mut Collect::default()).unwrap();
    let source = log_of(&out.0).source.unwrap();
    let epoch = plain.uptime.unwrap().zero_ns + 1_700_000_000_000_000_000;
    assert_eq!((source.epoch_ns, source.uptime), (Some(epoch), None));
}
