//! Traces as spans: every call once, with the times of its events.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod traces;

use std::collections::BTreeMap;

use anytrace_apitrace::{Apitrace, EventKind, Pairing, Reader, Record};
use anytrace_core::span::{
    EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, TimeUnit, Track, TrackId, Value,
};
use anytrace_core::testing::dripping;
use anytrace_core::{Collect, Error, Format, Input, OpenOptions, Place, SpanOptions, SpanSink, Step};
use build::{Build, string, uint};
use proptest::prelude::*;

/// A span as it was emitted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    start: u64,
    /// `None`: unfinished.
    end: Option<u64>,
    thread: u64,
    name: String,
    /// Number of the call; groups have none.
    call: Option<u64>,
    is_deduced: bool,
    /// Names of the spans around it, outermost first.
    around: Vec<String>,
}

/// Checks the guarantees of lanes, and collects spans.
#[derive(Default)]
struct CollectedSpans {
    source: Option<SpanSource>,
    tracks: Vec<Track>,
    names: Vec<String>,
    open: Vec<(Vec<Span>, u64)>,
    spans: Vec<Span>,
    frames: Vec<(u64, u64)>,
    text: BTreeMap<String, String>,
    leaves_out_attributes: bool,
}

impl SpanSink for CollectedSpans {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        assert!(self.source.replace(*source).is_none(), "the source is announced once");
        Ok(())
    }

    fn wants_attributes(&self) -> bool {
        !self.leaves_out_attributes
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        assert_eq!(id as usize, self.tracks.len());
        self.tracks.push(track.clone());
        self.open.push((Vec::new(), 0));
        Ok(())
    }

    fn name(&mut self, id: NameId, name: &[u8], _: Option<&Location>) -> Result<(), Error> {
        assert_eq!(id as usize, self.names.len());
        self.names.push(String::from_utf8_lossy(name).into_owned());
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            let (open, last) = &mut self.open[edge.track as usize];
            assert!(edge.time >= *last, "time goes back on a track");
            *last = edge.time;
            let name = self.names[edge.name as usize].clone();
            let attribute = |wanted: &str| {
                let found = batch.attributes(edge).find(|(key, _)| self.names[*key as usize] == wanted);
                found.map(|(_, value)| value)
            };
            match edge.kind {
                EdgeKind::Begin => {
                    let call = match attribute("call") {
                        Some(Value::U64(call)) => Some(call),
                        _ => None,
                    };
                    for (key, value) in batch.attributes(edge) {
                        let value = match value {
                            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
                            other => format!("{other:?}"),
                        };
                        self.text.insert(format!("{}.{}", call.unwrap(), self.names[key as usize]), value);
                    }
                    let around = open.iter().map(|span: &Span| span.name.clone()).collect();
                    let thread = self.tracks[edge.track as usize].thread;
                    open.push(Span { start: edge.time, end: None, thread, name, call, is_deduced: false, around });
                }
                EdgeKind::End => {
                    let span = open.pop().unwrap();
                    assert_eq!(span.name, name, "an end is that of the innermost span");
                    let end = (!edge.flags.has(EdgeFlags::UNFINISHED)).then_some(edge.time);
                    self.spans.push(Span { end, is_deduced: edge.flags.has(EdgeFlags::DEDUCED), ..span });
                }
                _ => {
                    assert_eq!(name, "end of frame");
                    let Some(Value::U64(frame)) = attribute("frame") else { panic!("no number") };
                    self.frames.push((frame, edge.time));
                }
            }
        }
        Ok(())
    }
}

/// The calls according to the events, collected in the slow way.
#[derive(Default)]
struct Slow {
    calls: BTreeMap<u64, Span>,
    frames: Vec<u64>,
}

impl Slow {
    fn take(&mut self, place: Place, event: &Record<'_>) {
        let number = event.call().unwrap();
        match event.kind() {
            EventKind::Enter => {
                let known = event.function().map(|row| row.name().split(|byte| *byte == 0).next().unwrap());
                let name = known.map_or("?".to_owned(), |name| String::from_utf8_lossy(name).into_owned());
                let (start, thread, call) = (place.seq, event.thread().unwrap(), Some(number));
                let span = Span { start, end: None, thread, name, call, is_deduced: false, around: Vec::new() };
                self.calls.insert(number, span);
                if event.function().is_some_and(|row| row.ends_frame) {
                    self.frames.push(event.frame().unwrap());
                }
            }
            EventKind::Leave if event.pairing() == Some(Pairing::Paired) => {
                self.calls.get_mut(&number).unwrap().end = Some(place.seq);
            }
            EventKind::Leave => {}
        }
    }
}

fn spans(input: Input) -> (CollectedSpans, Collect) {
    let (mut collected, mut damage) = (CollectedSpans::default(), Collect::default());
    let trace = Apitrace.open(input, &OpenOptions::default()).unwrap();
    trace.spans(&SpanOptions::default(), &mut collected, &mut damage).unwrap();
    assert!(collected.open.iter().all(|(open, _)| open.is_empty()), "something is open at the end");
    (collected, damage)
}

fn input(bytes: &[u8]) -> Input {
    Input::from_bytes("x.trace", bytes.to_vec())
}

/// Compares the spans with the events. Returns how many ends were deduced.
fn assert_spans(name: &str, bytes: &[u8]) -> usize {
    let (collected, damage) = spans(input(bytes));
    let mut slow = Slow::default();
    let mut slow_damage = Collect::default();
    let mut reader = Reader::new(input(bytes), &OpenOptions::default()).unwrap();
    while let Some(step) = reader.next().unwrap() {
        match step {
            Step::Record(place, event) => slow.take(place, &event),
            Step::Damage(diagnostic) => slow_damage.0.push(diagnostic),
        }
    }
    let codes = |damage: &Collect| damage.0.iter().map(|one| (one.code(), one.offset)).collect::<Vec<_>>();
    assert_eq!(codes(&damage), codes(&slow_damage), "{name}");
    assert_eq!(collected.source.unwrap().unit, TimeUnit::Order);
    let calls: Vec<&Span> = collected.spans.iter().filter(|span| span.call.is_some()).collect();
    assert_eq!(calls.len(), slow.calls.len(), "{name}");
    for span in calls {
        let wanted = &slow.calls[&span.call.unwrap()];
        let found = (span.start, span.thread, &span.name);
        assert_eq!(found, (wanted.start, wanted.thread, &wanted.name), "{name}: {span:?}");
        assert!(span.is_deduced || span.end == wanted.end, "{name}: {span:?} for {wanted:?}");
    }
    let mut frames: Vec<u64> = collected.frames.iter().map(|(frame, _)| *frame).collect();
    frames.sort_unstable();
    assert_eq!(frames, slow.frames, "{name}");
    collected.spans.iter().filter(|span| span.is_deduced && span.call.is_some()).count()
}

#[test]
fn spans_of_every_sample_match_its_events() {
    let found = traces::all();
    assert!(found.len() > 20);
    for path in found {
        let bytes = std::fs::read(&path).unwrap();
        let deduced = assert_spans(&path.display().to_string(), &bytes);
        assert_eq!(deduced, 0, "{}", path.display());
    }
}

#[test]
fn pieces_of_any_size_give_the_same_spans() {
    let bytes = build::rich().snappy(50);
    let (all, _) = spans(input(&bytes));
    for step in [1, 7, 4096] {
        let (parts, _) = spans(dripping("x.trace", &bytes, step));
        assert_eq!((&all.spans, &all.text), (&parts.spans, &parts.text));
    }
    for at in 0..bytes.len() {
        assert_spans("cut", &bytes[..at]);
    }
}

#[test]
fn arguments_keep_their_types() {
    let (collected, _) = spans(input(&build::rich().bytes));
    let value = |key: &str| collected.text[key].as_str();
    assert_eq!(value("0.a"), "GL_ONE");
    assert_eq!(value("0.b"), "blob(7)");
    assert_eq!(value("0.c"), "A | B");
    assert_eq!(value("0.fake"), "Bool(true)");
    assert_eq!(value("1.s"), "{x = 1, y = {NULL, true}}");
    assert_eq!(value("2.d"), "Address(128)");
    assert_eq!(value("3.b"), "\"h\"");
    assert_eq!(value("3.return"), "I64(-1)");
    assert_eq!(value("4.s"), "L\"w\\u0100\"");
    assert_eq!(collected.tracks[0].process_name.as_deref(), Some("/bin/x"));
}

#[test]
fn attributes_nobody_wants_are_not_made() {
    let (mut collected, bytes) =
        (CollectedSpans { leaves_out_attributes: true, ..CollectedSpans::default() }, build::rich().bytes);
    let trace = Apitrace.open(input(&bytes), &OpenOptions::default()).unwrap();
    trace.spans(&SpanOptions::default(), &mut collected, &mut Collect::default()).unwrap();
    assert!(collected.text.is_empty() && collected.spans.len() == 8 && collected.frames.len() == 2);
}

/// A call with a message and one without arguments, each left at once.
fn grouped() -> Build {
    let mut b = Build::version(6);
    b.enter_new(0, 1, "glPushDebugGroup", &["message"]).argument(0, &string("shadows")).end().leave(0).end();
    b.enter_new(0, 2, "glDrawArrays", &[]).end().leave(1).end();
    b.enter(0, 1).argument(0, &string("inner")).end().leave(2).end();
    b.enter(0, 2).end().leave(3).end();
    b.enter_new(0, 3, "glPopDebugGroup", &[]).end().leave(4).end();
    b.enter(0, 3).end().leave(5).end();
    b
}

fn lines(collected: &CollectedSpans) -> Vec<String> {
    let mut spans = collected.spans.clone();
    spans.sort();
    let end = |span: &Span| span.end.map_or("…".to_owned(), |end| end.to_string());
    spans.iter().map(|s| format!("{}{} {}-{}", ">".repeat(s.around.len()), s.name, s.start, end(s))).collect()
}

#[test]
fn groups_are_spans_around_the_calls_between_push_and_pop() {
    let (collected, _) = spans(input(&grouped().bytes));
    assert_eq!(
        lines(&collected),
        [
            "glPushDebugGroup 0-1",
            "shadows 1-10",
            ">glDrawArrays 2-3",
            ">glPushDebugGroup 4-5",
            ">inner 5-8",
            ">>glDrawArrays 6-7",
            ">glPopDebugGroup 8-9",
            "glPopDebugGroup 10-11",
        ]
    );
}

#[test]
fn groups_without_an_end_are_unfinished_and_ends_without_a_group_only_calls() {
    let mut b = grouped();
    b.enter(0, 3).end().leave(6).end();
    b.enter(0, 1).argument(0, &string("open")).end().leave(7).end();
    b.enter(0, 2).end().leave(8).end();
    let (collected, _) = spans(input(&b.bytes));
    let lines = lines(&collected);
    assert!(lines.contains(&"glPopDebugGroup 12-13".to_owned()) && lines.contains(&"open 15-…".to_owned()));
    assert!(lines.contains(&">glDrawArrays 16-17".to_owned()));
}

#[test]
fn groups_pushed_for_ever_neither_nest_for_ever_nor_forget_their_ends() {
    let mut b = Build::version(6);
    b.enter_new(0, 1, "glPushGroupMarkerEXT", &["marker"]).argument(0, &string("g")).end().leave(0).end();
    b.enter_new(0, 2, "glPopGroupMarkerEXT", &[]).end().leave(1).end();
    for call in 2..5002 {
        b.enter(0, 1).argument(0, &string("g")).end().leave(call).end();
    }
    for call in 5002..10_002 {
        b.enter(0, 2).end().leave(call).end();
    }
    b.enter(0, 2).end().leave(10_002).end();
    let (collected, _) = spans(input(&b.bytes));
    let deepest = collected.spans.iter().map(|span| span.around.len()).max().unwrap();
    assert_eq!((deepest, collected.spans.last().unwrap().around.len()), (256, 0));
    assert!(collected.spans.iter().all(|span| span.end.is_some()));
}

#[test]
fn a_call_around_more_than_the_buffer_still_encloses_them() {
    for is_left in [true, false] {
        let mut b = Build::version(6);
        b.enter_new(0, 1, "main", &[]).end();
        b.enter_new(0, 2, "glInner", &["n"]).end().leave(1).end();
        b.calls(2, 2, 20_000);
        if is_left {
            b.leave(0).end();
        }
        assert_eq!(assert_spans("long", &b.bytes), 0);
        let (collected, _) = spans(input(&b.bytes));
        assert!(collected.spans.iter().all(|span| span.around.len() == usize::from(span.name != "main")));
    }
}

#[test]
fn indistinguishable_threads_overlap_on_lanes() {
    // Before version 4 events do not contain their thread.
    let mut b = Build::version(3);
    b.add(&[0, 1, 1, b'a', 0, 0]).add(&[0, 2, 1, b'b', 0, 0]);
    b.leave(0).end().add(&[0, 1, 0]).leave(1).end().leave(2).end();
    assert_eq!(assert_spans("lanes", &b.bytes), 0);
    let (collected, _) = spans(input(&b.bytes));
    assert_eq!(collected.tracks.iter().map(|track| (track.thread, track.lane)).collect::<Vec<_>>(), [(0, 0), (0, 1)]);
    assert_eq!(lines(&collected), ["a 0-2", "b 1-4", "a 3-5"]);
}

/// A trace of random enters and leaves: threads, and which call is left. `nests`: the innermost of its thread.
fn random(version: u64, steps: &[(u8, u8)], nests: bool) -> Vec<u8> {
    const NAMES: [&str; 5] = ["glClear", "glXSwapBuffers", "glPushDebugGroup", "glPopDebugGroup", "f"];
    let mut b = Build::version(version);
    let mut known = [false; NAMES.len()];
    let mut open: Vec<(u64, u64)> = Vec::new();
    let mut next = 0;
    for &(what, which) in steps {
        if what % 5 < 3 || open.is_empty() {
            let thread = u64::from(which % 3);
            let id = usize::from(what) / 5 % NAMES.len();
            b.add(&[0]);
            if version >= 4 {
                b.add(&build::leb(thread));
            }
            b.add(&build::leb(id as u64));
            if !std::mem::replace(&mut known[id], true) {
                b.add(&build::text(NAMES[id])).add(&[1]).add(&build::text("x"));
            }
            b.argument(0, &uint(next)).end();
            open.push((next, thread));
            next += 1;
        } else {
            let at = if nests {
                let thread = open[usize::from(which) % open.len()].1;
                open.iter().rposition(|(_, own)| *own == thread).unwrap()
            } else {
                usize::from(which) % open.len()
            };
            let (call, _) = open.remove(at);
            b.leave(call).end();
        }
    }
    b.bytes
}

proptest! {
    #[test]
    fn spans_of_random_traces_match_their_events(
        steps in proptest::collection::vec((0..=255_u8, 0..=255_u8), 0..300), nests: bool, version in 3..7_u64
    ) {
        assert_eq!(assert_spans("random", &random(version, &steps, nests)), 0);
    }

    #[test]
    fn spoiled_traces_do_not_panic(
        steps in proptest::collection::vec((0..=255_u8, 0..=255_u8), 0..100), at in 0..1000_usize, bit in 0..8_u32
    ) {
        let mut bytes = random(6, &steps, false);
        let length = bytes.len();
        bytes[at % length] ^= 1 << bit;
        spans(input(&bytes));
    }
}
