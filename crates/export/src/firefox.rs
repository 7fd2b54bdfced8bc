//! Firefox Profiler's processed profile, version 55: for profiler.firefox.com and `profiler-cli`.
//!
//! Each change of a track's stack is a sample weighted with the time until the next (`tracing-ms`), so the call tree
//! and the flame graph have exact times and the stack chart shows every call. Instants are markers. The form needs
//! columns, so samples are buffered in the spool until the end; memory grows with distinct names, tracks and distinct
//! stacks of each. Times are milliseconds with six decimals since the trace's origin. Attributes, counters and flows
//! cannot be expressed. Format: the types of the `fxprof-processed-profile` crate and the profiler's own documentation.

use std::collections::BTreeMap;

use anytrace_core::span::{Edge, EdgeBatch, EdgeKind, Location, NameId, SpanSource, Track, TrackId};
use anytrace_core::{Error, SpanSink, text};

use crate::formatters::Formatters;
use crate::pen::Pen;
use crate::spool::{Item, Lanes};
use crate::stacks::{EMPTY, StackId, Stacks};
use crate::timeline::clock::Clock;
use crate::timeline::output::{Outlet, Timeline};
use crate::timeline::words::{self, Fragments, shown};

/// `preprocessedProfileVersion`: the version of the form.
const VERSION: &str = "55";

/// Numbers of a column that are formatted at once.
const COLUMN_BATCH: usize = 32 * 1024;

/// A profile being written.
pub struct Firefox<'a> {
    pen: Pen<'a>,
    clock: Clock,
    title: String,
    lanes: Lanes<'a>,
    threads: Vec<Thread>,
    /// Each name as a JSON string.
    names: Fragments,
    /// File of each name as a JSON string, and its line; empty where unknown.
    files: Fragments,
    lines: Vec<u32>,
    formatters: Formatters<Numbers>,
}

#[derive(Debug, Default)]
struct Thread {
    track: Track,
    stacks: Stacks,
    open: Vec<StackId>,
    markers: u64,
}

/// The meaning of a [`Item::word`]: the stack from now on, or a marker.
enum Word {
    /// The stack and whether a call has just begun.
    Stack(StackId, bool),
    Marker(NameId),
}

impl Word {
    fn number(&self) -> u64 {
        match *self {
            Self::Stack(stack, is_begin) => u64::from(stack) << 2 | u64::from(is_begin),
            Self::Marker(name) => u64::from(name) << 2 | 2,
        }
    }

    fn of(number: u64) -> Self {
        let id = u32::try_from(number >> 2).unwrap_or(EMPTY);
        if number & 2 == 0 { Self::Stack(id, number & 1 == 1) } else { Self::Marker(id) }
    }
}

impl<'a> Firefox<'a> {
    /// Begins a profile; all is written in [`Timeline::finish`].
    pub fn new(outlet: Outlet<'a>) -> Self {
        Self {
            pen: Pen::new(outlet.out),
            clock: Clock::default(),
            title: outlet.title.to_owned(),
            lanes: Lanes::new(outlet.spool),
            threads: Vec::new(),
            names: Fragments::default(),
            files: Fragments::default(),
            lines: Vec::new(),
            formatters: Formatters::new(outlet.threads, Numbers::format),
        }
    }

    fn edge(&mut self, edge: &Edge) -> Result<(), Error> {
        let Some(thread) = self.threads.get_mut(edge.track as usize) else { return Ok(()) };
        let top = thread.open.last().copied().unwrap_or(EMPTY);
        let word = match edge.kind {
            EdgeKind::Begin => {
                let stack = thread.stacks.push(top, edge.name);
                thread.open.push(stack);
                Word::Stack(stack, true)
            }
            EdgeKind::End => {
                thread.open.pop();
                Word::Stack(thread.open.last().copied().unwrap_or(EMPTY), false)
            }
            EdgeKind::Instant => {
                thread.markers += 1;
                Word::Marker(edge.name)
            }
            EdgeKind::Counter | EdgeKind::FlowOut | EdgeKind::FlowIn => return Ok(()),
        };
        self.lanes.push(edge.track, Item { time: self.clock.since_origin(edge.time), word: word.number() })
    }

    fn head(&mut self) {
        let start_ns = self.clock.origin_epoch_ns().unwrap_or(0);
        let start_ns = i64::try_from(start_ns).unwrap_or(0);
        self.pen.push("{\"meta\":{\"version\":24,\"preprocessedProfileVersion\":");
        self.pen.push(VERSION);
        self.pen.push(",\"interval\":0.000001,\"startTime\":");
        push_ms(&mut self.pen.bytes, start_ns);
        self.pen.push(",\"product\":");
        text::push_json_str(&mut self.pen.bytes, if self.title.is_empty() { "anytrace" } else { &self.title });
        for (key, value) in self.clock.facts() {
            self.pen.push(&format!(",\"anytrace-{key}\":"));
            text::push_json_str(&mut self.pen.bytes, &value);
        }
        self.pen.push(
            ",\"processType\":0,\"debug\":false,\"symbolicated\":true,\"usesOnlyOneStackType\":true,\
             \"sourceCodeIsNotOnSearchfox\":true,\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\
             \"threadCPUDelta\":\"µs\"},\"extensions\":{\"length\":0,\"baseURL\":[],\"id\":[],\"name\":[]},\
             \"categories\":[{\"name\":\"Other\",\"color\":\"blue\",\"subcategories\":[\"Other\"]}],\
             \"markerSchema\":[{\"name\":\"Instant\",\"display\":[\"marker-chart\",\"marker-table\"],\
             \"tooltipLabel\":\"{marker.name}\",\"tableLabel\":\"{marker.name}\",\"chartLabel\":\"{marker.name}\",\
             \"fields\":[]}],\"pausedRanges\":[]},\"libs\":[],\"pages\":[],\"profilerOverhead\":[],\"counters\":[],\
             \"threads\":[",
        );
    }

    fn thread(&mut self, number: usize) -> Result<(), Error> {
        let Some(thread) = self.threads.get_mut(number) else { return Ok(()) };
        let Thread { track, stacks, markers, .. } = std::mem::take(thread);
        // Names of this thread by number of their function, in order of first use.
        let mut functions: Vec<NameId> = Vec::new();
        let mut function_of = BTreeMap::new();
        for &(_, name) in stacks.nodes() {
            function_of.entry(name).or_insert_with(|| {
                functions.push(name);
                functions.len() - 1
            });
        }
        let end = self.lanes.range(number);
        // Where the trace does not name it, that of the file tells it from others.
        let process = if self.title.is_empty() { "process" } else { self.title.as_str() };
        let pen = &mut self.pen;
        pen.push("\n{\"name\":");
        text::push_json_str(&mut pen.bytes, &words::label(&track));
        pen.push(",\"isMainThread\":");
        pen.push(if track.lane == 0 && track.thread == track.process { "true" } else { "false" });
        pen.push(&format!(",\"pid\":\"{}\",\"tid\":", track.process));
        text::push_json_str(&mut pen.bytes, &tid(&track));
        pen.push(",\"processName\":");
        text::push_json_str(&mut pen.bytes, track.process_name.as_deref().unwrap_or(process));
        pen.push(
            ",\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":",
        );
        push_ms(&mut pen.bytes, end.0);
        pen.push(
            ",\"unregisterTime\":null,\"pausedRanges\":[],\"showMarkersInTimeline\":true,\"nativeSymbols\":{\
             \"length\":0,\"address\":[],\"functionSize\":[],\"libIndex\":[],\"name\":[]},\"resourceTable\":{\
             \"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]}",
        );
        self.functions(&functions)?;
        let pen = &mut self.pen;
        pen.push(&format!(",\n\"stackTable\":{{\"length\":{},\"prefix\":[", stacks.nodes().len()));
        column(pen, stacks.nodes(), |out, (below, _)| push_stack(out, *below))?;
        pen.push("],\"frame\":[");
        column(pen, stacks.nodes(), |out, (_, name)| {
            text::push_dec(out, function_of.get(name).copied().unwrap_or(0));
        })?;
        pen.push("]}");
        self.samples(number)?;
        self.markers(number, markers, functions)?;
        self.pen.push("}");
        Ok(())
    }

    /// `frameTable` and `funcTable`: one frame a function, one function a name.
    fn functions(&mut self, functions: &[NameId]) -> Result<(), Error> {
        let Self { pen, files, lines, .. } = self;
        let count = functions.len();
        pen.push(&format!(",\n\"frameTable\":{{\"length\":{count}"));
        for (name, value) in [
            ("address", "-1"),
            ("inlineDepth", "0"),
            ("category", "0"),
            ("subcategory", "0"),
            ("nativeSymbol", "null"),
            ("innerWindowID", "0"),
            ("column", "null"),
        ] {
            pen.push(&format!(",\"{name}\":["));
            column(pen, functions, |out, _| out.extend_from_slice(value.as_bytes()))?;
            pen.push("]");
        }
        pen.push(",\"func\":[");
        let numbers: Vec<usize> = (0..count).collect();
        column(pen, &numbers, |out, n| text::push_dec(out, *n))?;
        pen.push("],\"line\":[");
        let push_line = |out: &mut Vec<u8>, name: &NameId| match lines.get(*name as usize) {
            Some(&line) if line > 0 => text::push_dec(out, line),
            _ => out.extend_from_slice(b"null"),
        };
        column(pen, functions, push_line)?;
        pen.push(&format!("]}},\n\"funcTable\":{{\"length\":{count},\"name\":["));
        column(pen, &numbers, |out, n| text::push_dec(out, *n))?;
        for (name, value) in
            [("isJS", "false"), ("relevantForJS", "false"), ("resource", "-1"), ("columnNumber", "null")]
        {
            pen.push(&format!("],\"{name}\":["));
            column(pen, functions, |out, _| out.extend_from_slice(value.as_bytes()))?;
        }
        pen.push("],\"lineNumber\":[");
        column(pen, functions, push_line)?;
        // File names follow the functions' names in the thread's strings, one for each function that has one.
        pen.push("],\"fileName\":[");
        let mut next = count;
        column(pen, functions, |out, name| {
            if files.get(*name).is_empty() {
                out.extend_from_slice(b"null");
            } else {
                text::push_dec(out, next);
                next += 1;
            }
        })?;
        pen.push("]}");
        Ok(())
    }

    fn samples(&mut self, number: usize) -> Result<(), Error> {
        let Self { pen, lanes, formatters, .. } = self;
        let mut length = 0_u64;
        each_sample(lanes, number, |_| {
            length += 1;
            Ok(())
        })?;
        pen.push(&format!(",\n\"samples\":{{\"length\":{length},\"weightType\":\"tracing-ms\",\"stack\":["));
        let mut column = Column::new(pen, formatters, |out, stack| match StackId::try_from(stack) {
            Ok(EMPTY) | Err(_) => out.extend_from_slice(b"null"),
            Ok(stack) => text::push_dec(out, stack),
        });
        each_sample(lanes, number, |sample| column.push(sample.stack.into()))?;
        column.end("],\"time\":[")?;
        let mut column = Column::new(pen, formatters, push_ms);
        each_sample(lanes, number, |sample| column.push(sample.time))?;
        column.end("],\"weight\":[")?;
        let mut column = Column::new(pen, formatters, push_ms);
        each_sample(lanes, number, |sample| column.push(if sample.stack == EMPTY { 0 } else { sample.length }))?;
        // What the thread worked since the sample before, which is how the profiler draws its activity.
        column.end("],\"threadCPUDelta\":[")?;
        let mut works = 0;
        let mut column = Column::new(pen, formatters, |out, ns| push_decimal(out, ns.unsigned_abs(), 1000));
        each_sample(lanes, number, |sample| {
            let own = if sample.stack == EMPTY { 0 } else { sample.length.max(0) };
            column.push(std::mem::replace(&mut works, own))
        })?;
        column.end("]}")?;
        Ok(())
    }

    /// `markers` and `stringArray`, which contains their names too.
    fn markers(&mut self, number: usize, count: u64, functions: Vec<NameId>) -> Result<(), Error> {
        let Self { pen, lanes, names, files, .. } = self;
        let mut strings = BTreeMap::new();
        let with_file: Vec<NameId> = functions.iter().copied().filter(|name| !files.get(*name).is_empty()).collect();
        let mut marker_names: Vec<NameId> = Vec::new();
        let first = functions.len() + with_file.len();
        pen.push(&format!(",\n\"markers\":{{\"length\":{count},\"name\":["));
        let mut items = Items::default();
        each_marker(lanes, number, |_, name| {
            let string = *strings.entry(name).or_insert_with(|| {
                marker_names.push(name);
                first + marker_names.len() - 1
            });
            items.next(pen, |out| text::push_dec(out, string))
        })?;
        pen.push("],\"startTime\":[");
        items = Items::default();
        each_marker(lanes, number, |time, _| items.next(pen, |out| push_ms(out, time)))?;
        for (name, value) in
            [("endTime", "null"), ("phase", "0"), ("category", "0"), ("data", "{\"type\":\"Instant\"}")]
        {
            pen.push(&format!("],\"{name}\":["));
            items = Items::default();
            each_marker(lanes, number, |_, _| items.next(pen, |out| out.extend_from_slice(value.as_bytes())))?;
        }
        pen.push("]},\n\"stringArray\":[");
        items = Items::default();
        for name in &functions {
            items.next(pen, |out| out.extend_from_slice(names.get(*name)))?;
        }
        for name in &with_file {
            items.next(pen, |out| out.extend_from_slice(files.get(*name)))?;
        }
        for name in &marker_names {
            items.next(pen, |out| out.extend_from_slice(names.get(*name)))?;
        }
        pen.push("]");
        Ok(())
    }
}

/// A stretch of a track's time with one stack.
struct Sample {
    time: i64,
    stack: StackId,
    length: i64,
}

/// Visits a track's samples: stretches of some length, calls without any length, and the end.
fn each_sample(
    lanes: &mut Lanes<'_>,
    track: usize,
    mut visit: impl FnMut(Sample) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut open: Option<(i64, StackId, bool)> = None;
    lanes.each(track, |item| {
        let Word::Stack(stack, is_begin) = Word::of(item.word) else { return Ok(()) };
        if let Some((time, stack, was_begin)) = open {
            let length = item.time.saturating_sub(time);
            if length > 0 || (was_begin && !is_begin) {
                visit(Sample { time, stack, length })?;
            }
        }
        open = Some((item.time, stack, is_begin));
        Ok(())
    })?;
    match open {
        Some((time, stack, _)) => visit(Sample { time, stack, length: 0 }),
        None => Ok(()),
    }
}

fn each_marker(
    lanes: &mut Lanes<'_>,
    track: usize,
    mut visit: impl FnMut(i64, NameId) -> Result<(), Error>,
) -> Result<(), Error> {
    lanes.each(track, |item| match Word::of(item.word) {
        Word::Marker(name) => visit(item.time, name),
        Word::Stack(..) => Ok(()),
    })
}

/// How a number of a column is written.
type Write = fn(&mut Vec<u8>, i64);

/// Numbers of a column, and how they are written; the first has no comma before it.
#[derive(Default)]
struct Numbers {
    numbers: Vec<i64>,
    write: Option<Write>,
    is_first: bool,
}

impl Numbers {
    fn format(&self, out: &mut Vec<u8>) {
        let Some(write) = self.write else { return };
        for (n, number) in self.numbers.iter().enumerate() {
            if n > 0 || !self.is_first {
                out.push(b',');
            }
            write(out, *number);
        }
    }
}

/// A column of many numbers being written.
struct Column<'c, 'p> {
    pen: &'c mut Pen<'p>,
    formatters: &'c mut Formatters<Numbers>,
    numbers: Numbers,
}

impl<'c, 'p> Column<'c, 'p> {
    fn new(pen: &'c mut Pen<'p>, formatters: &'c mut Formatters<Numbers>, write: Write) -> Self {
        Self { pen, formatters, numbers: Numbers { numbers: Vec::new(), write: Some(write), is_first: true } }
    }

    #[inline]
    fn push(&mut self, number: i64) -> Result<(), Error> {
        self.numbers.numbers.push(number);
        if self.numbers.numbers.len() >= COLUMN_BATCH { self.give() } else { Ok(()) }
    }

    fn give(&mut self) -> Result<(), Error> {
        let mut next = self.formatters.spare().unwrap_or_default();
        next.numbers.clear();
        (next.write, next.is_first) = (self.numbers.write, false);
        self.formatters.give(std::mem::replace(&mut self.numbers, next), self.pen)
    }

    fn end(mut self, after: &str) -> Result<(), Error> {
        self.give()?;
        self.formatters.finish(self.pen)?;
        self.pen.push(after);
        Ok(())
    }
}

/// Items of a JSON array, with commas between.
#[derive(Default)]
struct Items {
    is_later: bool,
}

impl Items {
    #[inline]
    fn next(&mut self, pen: &mut Pen<'_>, append: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
        if self.is_later {
            pen.bytes.push(b',');
        }
        self.is_later = true;
        append(&mut pen.bytes);
        pen.rest()
    }
}

/// The items of a column.
fn column<T>(pen: &mut Pen<'_>, rows: &[T], mut append: impl FnMut(&mut Vec<u8>, &T)) -> Result<(), Error> {
    let mut items = Items::default();
    rows.iter().try_for_each(|row| items.next(pen, |out| append(out, row)))
}

fn push_stack(out: &mut Vec<u8>, stack: StackId) {
    if stack == EMPTY { out.extend_from_slice(b"null") } else { text::push_dec(out, stack) }
}

/// Nanoseconds as milliseconds with as many decimals as they need.
fn push_ms(out: &mut Vec<u8>, ns: i64) {
    if ns < 0 {
        out.push(b'-');
    }
    push_decimal(out, ns.unsigned_abs(), 1_000_000);
}

/// A number of a thousandth, or a millionth, of a unit in that unit, with as many decimals as it needs.
fn push_decimal(out: &mut Vec<u8>, number: u64, per_unit: u64) {
    text::push_dec(out, number / per_unit);
    let rest = number % per_unit;
    if rest > 0 {
        // One digit more than there are decimals: the first gives its place to the point.
        let start = out.len();
        text::push_dec(out, per_unit + rest);
        if let Some(point) = out.get_mut(start) {
            *point = b'.';
        }
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

/// The profiler's thread ids are text; a further lane appends its number.
fn tid(track: &Track) -> String {
    if track.lane == 0 { track.thread.to_string() } else { format!("{}.{}", track.thread, track.lane) }
}

impl SpanSink for Firefox<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.clock = Clock::new(source);
        Ok(())
    }

    fn wants_attributes(&self) -> bool {
        false
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        self.threads.push(Thread { track: track.clone(), ..Thread::default() });
        self.lanes.add();
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        self.names.add(|out| text::push_json_str(out, &shown(name)));
        self.files.add(|out| {
            if let Some(location) = location {
                text::push_json_str(out, &location.file);
            }
        });
        self.lines.push(location.map_or(0, |location| location.line));
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        batch.edges().iter().try_for_each(|edge| self.edge(edge))
    }
}

impl Timeline for Firefox<'_> {
    fn finish(&mut self) -> Result<(), Error> {
        self.head();
        for number in 0..self.threads.len() {
            if number > 0 {
                self.pen.push(",");
            }
            self.thread(number)?;
        }
        self.pen.push("\n]}\n");
        self.pen.finish()
    }
}
