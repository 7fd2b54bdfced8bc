//! Events of the kernel: who ran on which processor, and what programs wrote into the kernel's trace
//! (`perfetto/trace/ftrace/ftrace_event_bundle.proto`, `ftrace_event.proto`, `sched.proto`, `ftrace.proto`).

use anytrace_core::Error;
use anytrace_core::span::Value;

use super::attributes;
use super::collector::Collector;
use super::store::{Item, Kept};
use crate::model::event::{Number, TrackKey};
use crate::model::names::{NameNumber, UNNAMED};
use crate::wire::proto::{self, Fields};

/// What a bundle says about all its events.
#[derive(Debug, Clone, Copy, Default)]
struct Bundle {
    processor: u32,
    /// Added to the times of events, which count on the kernel's clock.
    shift: i64,
    seq: u64,
}

/// Stores the events of a bundle.
pub(super) fn bundle(out: &mut Collector, bytes: &[u8], seq: u64) -> Result<(), Error> {
    let mut head = Bundle { seq, ..Bundle::default() };
    let (mut own_clock, mut ftrace, mut boot) = (0, 0_u64, 0_u64);
    for field in Fields::of(bytes) {
        let number = field.value.number();
        match field.number {
            1 => head.processor = u32::try_from(number).unwrap_or(u32::MAX),
            5 => own_clock = number,
            6 => ftrace = number,
            7 => boot = number,
            _ => {}
        }
    }
    if own_clock != 0 && boot != 0 {
        head.shift = boot.wrapping_sub(ftrace).cast_signed();
    }
    for field in Fields::of(bytes) {
        match field.number {
            2 => event(out, head, field.value.bytes())?,
            4 => compact(out, head, field.value.bytes())?,
            _ => {}
        }
    }
    Ok(())
}

/// An `FtraceEvent`.
fn event(out: &mut Collector, head: Bundle, bytes: &[u8]) -> Result<(), Error> {
    let (mut time, mut thread, mut kind, mut inner) = (0, 0, 0, &[][..]);
    for field in Fields::of(bytes) {
        match field.number {
            1 => time = field.value.number(),
            2 => thread = field.value.number() & u64::from(u32::MAX),
            5 => {}
            number => (kind, inner) = (number, field.value.bytes()),
        }
    }
    match kind {
        3 => {
            let text = Fields::of(inner).filter(|field| field.number == 2).last();
            mark(out, head, time, thread, text.map_or(&[], |field| field.value.bytes()))
        }
        4 => {
            let (mut name, mut next) = (&[][..], 0);
            for field in Fields::of(inner) {
                match field.number {
                    5 => name = field.value.bytes(),
                    6 => next = field.value.number() & u64::from(u32::MAX),
                    _ => {}
                }
            }
            switch(out, head, time, next, name)
        }
        17 | 20 | 114 => {
            let (mut name, mut woken) = (&[][..], 0);
            for field in Fields::of(inner) {
                match field.number {
                    1 => name = field.value.bytes(),
                    2 => woken = field.value.number() & u64::from(u32::MAX),
                    _ => {}
                }
            }
            let what: &[u8] = if kind == 20 { b"sched_waking" } else { b"sched_wakeup" };
            wake(out, head, time, what, woken, name)
        }
        _ => Ok(()),
    }
}

/// A `CompactSched`: the same in columns.
fn compact(out: &mut Collector, head: Bundle, bytes: &[u8]) -> Result<(), Error> {
    let mut names = Vec::new();
    let mut columns: [&[u8]; 13] = [&[]; 13];
    for field in Fields::of(bytes) {
        match (field.number, columns.get_mut(field.number as usize)) {
            (5, _) => names.push(field.value.bytes()),
            (_, Some(column)) => *column = field.value.bytes(),
            _ => {}
        }
    }
    let column = |number: usize| Column(columns.get(number).copied().unwrap_or_default(), 0);
    let name = |at: u64| usize::try_from(at).ok().and_then(|at| names.get(at)).copied().unwrap_or_default();
    let mut time = 0_u64;
    for ((step, thread), at) in column(1).zip(column(3)).zip(column(6)) {
        time = time.wrapping_add(step);
        switch(out, head, time, thread & u64::from(u32::MAX), name(at))?;
    }
    let mut time = 0_u64;
    for ((step, thread), at) in column(7).zip(column(8)).zip(column(11)) {
        time = time.wrapping_add(step);
        wake(out, head, time, b"sched_waking", thread & u64::from(u32::MAX), name(at))?;
    }
    Ok(())
}

/// Packed numbers.
struct Column<'a>(&'a [u8], usize);

impl Iterator for Column<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (number, next) = proto::varint(self.0, self.1)?;
        self.1 = next;
        Some(number)
    }
}

impl Bundle {
    fn item<'a>(&self, time: u64, name: NameNumber, kept: Kept, parts: &'a [u8]) -> Item<'a> {
        Item { time: time.saturating_add_signed(self.shift), seq: self.seq, name, kept, parts }
    }
}

/// A thread begins to run.
fn switch(out: &mut Collector, head: Bundle, time: u64, thread: u64, name: &[u8]) -> Result<(), Error> {
    let track = TrackKey::Processor(head.processor);
    if thread == 0 {
        return out.push(track, &head.item(time, UNNAMED, Kept::Idle, &[]));
    }
    out.session.tracks.thread(0, thread, name);
    let name = out.session.names.number(name);
    let parts = thread_part(out, thread);
    out.push(track, &head.item(time, name, Kept::Switch, &parts))
}

/// A thread is woken.
fn wake(out: &mut Collector, head: Bundle, time: u64, what: &[u8], thread: u64, name: &[u8]) -> Result<(), Error> {
    let what = out.session.names.number(what);
    let mut parts = thread_part(out, thread);
    if out.wanted.attributes {
        let key = out.session.names.number(b"comm");
        attributes::push(&mut parts, key, Value::Text(name));
    }
    out.push(TrackKey::Processor(head.processor), &head.item(time, what, Kept::Instant, &parts))
}

fn thread_part(out: &mut Collector, thread: u64) -> Vec<u8> {
    let mut parts = Vec::new();
    if out.wanted.attributes {
        let key = out.session.names.number(b"tid");
        attributes::push(&mut parts, key, Value::U64(thread));
    }
    parts
}

/// A line that a program wrote: `B|PROCESS|NAME`, `E`, `C|PROCESS|NAME|VALUE`, `S` and `F` with a cookie, `I`.
fn mark(out: &mut Collector, head: Bundle, time: u64, thread: u64, line: &[u8]) -> Result<(), Error> {
    let line = line.trim_ascii_end();
    let mut parts = line.splitn(4, |byte| *byte == b'|');
    let what = parts.next().unwrap_or_default();
    let process = parts.next().and_then(decimal).unwrap_or(0);
    let name = parts.next().unwrap_or_default();
    let last = parts.next().unwrap_or_default();
    let own = if process == 0 { out.session.tracks.process_of(thread) } else { process };
    let track = TrackKey::Thread(own, thread);
    if process != 0 && matches!(what, b"B") {
        out.session.tracks.thread(process, thread, &[]);
    }
    match what {
        b"B" => {
            // A name may have bars.
            let name = line.splitn(3, |byte| *byte == b'|').nth(2).unwrap_or_default();
            let name = out.session.names.number(name);
            out.push(track, &head.item(time, name, Kept::Begin, &[]))
        }
        b"E" => out.push(track, &head.item(time, UNNAMED, Kept::End, &[])),
        b"I" => {
            let name = out.session.names.number(name);
            out.push(track, &head.item(time, name, Kept::Instant, &[]))
        }
        b"C" => {
            let Some(value) = std::str::from_utf8(last).ok().and_then(|text| text.parse().ok()) else { return Ok(()) };
            let name = out.session.names.number(name);
            let kept = Kept::Counter(Number::Int(value));
            out.push(TrackKey::Counter(process, name), &head.item(time, name, kept, &[]))
        }
        b"S" | b"F" => {
            let kept = if what == b"S" { Kept::Begin } else { Kept::End };
            let name = out.session.names.number(name);
            let cookie = std::str::from_utf8(last).ok().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
            let track = TrackKey::Async(process, cookie.cast_unsigned(), name);
            out.push(track, &head.item(time, name, kept, &[]))
        }
        _ => Ok(()),
    }
}

fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
