//! `convert -f trace_event`: the JSON that Chrome's and Perfetto's viewers read.
//!
//! One thread follows the stacks and makes entries; [`Events`] turns them into text, in other threads if there are any.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use anytrace_core::Error;
use anytrace_core::text::{push_dec, push_hex_bytes, push_json_str};

use super::batch::{Batch, Entry, Interner, Known, NONE, Name, Owner, Shared, push};
use super::micros::{Micros, push_as_peer};
use super::part::Part;
use super::pool::{self, Turns, Worker};
use super::stacks::{Frame, Match, OUTSIDE, Open, Places, STACKS_MAX, Stacks, UNNUMBERED, is_numbered};
use super::stage::{Formatter, Stage, put_all};
use super::taken::Taken;
use super::{Counts, Feed};
use crate::lanes::ordered::Windows;
use crate::wire::moment::{Moment, MomentKind};

/// Kinds of entries.
const BEGIN: u8 = 0;
const END: u8 = 1;
/// The end of a frame without an exit: an outer one was left.
const DEDUCED: u8 = 2;
/// An exit without an open frame.
const ORPHAN: u8 = 3;
const CUSTOM: u8 = 4;
const TYPED: u8 = 5;

/// As many stacks as identical output may need, at whatever cost of memory.
const STACKS_MAX_COMPAT: usize = 1 << 30;

/// Numbers up to this are exact in a double.
const EXACT_MAX: u64 = 1 << 53;

/// The part of the header that matters here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    pub(super) version: u32,
    pub(super) hz: u64,
}

/// Text of entries.
#[derive(Clone)]
pub(super) struct Events {
    clock: Clock,
    compat: bool,
    micros: Micros,
    names: Vec<Part>,
    /// By owner: after the phases `B`, `E`, and `i`.
    owners: Vec<[Part; 3]>,
}

impl Events {
    pub(super) fn new(clock: Clock, compat: bool) -> Self {
        Self { clock, compat, micros: Micros::new(clock.hz), names: Vec::new(), owners: Vec::new() }
    }

    /// The end of the previous entry, and the start of an entry.
    fn name_part(&self, name: &Name) -> Part {
        let mut out = b",\n    { \"name\" : ".to_vec();
        put_name(&mut out, &name.text, self.compat);
        out.extend_from_slice(b", \"ph\" : \"");
        Part::new(&out)
    }

    /// From the phase to the time.
    fn owner_part(&self, phase: &str, owner: Owner) -> Part {
        // Before version 3 there are no process ids (page, section 4).
        let process = if self.clock.version < 3 { 1 } else { owner.process };
        let (quote, is_instant) = (if self.compat { "\"" } else { "" }, phase == "i");
        let scope = if is_instant { ", \"s\" : \"t\"" } else { "" };
        let Owner { thread, .. } = owner;
        let text = format!(
            "{phase}\"{scope}, \"tid\" : {quote}{thread}{quote}, \"pid\" : {quote}{process}{quote}, \"ts\" : {quote}"
        );
        Part::new(text.as_bytes())
    }

    fn owner_parts(&self, owner: Owner) -> [Part; 3] {
        ["B", "E", "i"].map(|phase| self.owner_part(phase, owner))
    }

    fn follow(&mut self, batch: &Batch, shared: &Shared) {
        let (mut names, mut owners) = (Vec::new(), Vec::new());
        shared.names_from(self.names.len(), batch, |name| names.push(self.name_part(name)));
        shared.owners_from(self.owners.len(), batch, |owner| owners.push(self.owner_parts(owner)));
        self.names.append(&mut names);
        self.owners.append(&mut owners);
    }

    #[inline]
    fn entry(&mut self, batch: &Batch, entry: &Entry, out: &mut Vec<u8>) {
        match entry.kind {
            CUSTOM => out.extend_from_slice(b",\n    { \"name\" : \"custom event\", \"ph\" : \""),
            TYPED => {
                out.extend_from_slice(b",\n    { \"name\" : \"typed event ");
                push_dec(out, entry.event_type);
                out.extend_from_slice(b"\", \"ph\" : \"");
            }
            _ => match (self.names.get(entry.name as usize), batch.name(entry)) {
                (Some(part), _) => part.put(out),
                (None, Some(name)) => self.name_part(name).put(out),
                (None, None) => debug_assert!(false, "a name is in the table or travels with its entry"),
            },
        }
        let phase = match entry.kind {
            BEGIN => 0,
            END | DEDUCED => 1,
            _ => 2,
        };
        match (self.owners.get(entry.owner as usize), batch.owner(entry)) {
            (Some(parts), _) => parts[phase].put(out),
            (None, Some(owner)) => self.owner_parts(owner)[phase].put(out),
            (None, None) => debug_assert!(false, "a thread is in the table or travels with its entry"),
        }
        if self.compat {
            push_as_peer(out, self.clock.hz, entry.tsc, if self.clock.version < 3 { 3 } else { 4 });
            out.extend_from_slice(b"\", \"sf\" : \"");
            push_dec(out, entry.frame);
            out.extend_from_slice(b"\" }");
            return;
        }
        self.micros.push(out, entry.tsc);
        if is_numbered(entry.frame) {
            out.extend_from_slice(b", \"sf\" : ");
            push_dec(out, entry.frame);
        }
        if entry.extra != NONE || entry.kind > END {
            put_arguments(batch, entry, out);
        }
        out.extend_from_slice(b" }");
    }
}

/// Numbers of stacks, from batch to batch.
#[derive(Debug)]
pub(super) struct Frames {
    stacks: Stacks,
    places: Places,
}

impl Frames {
    pub(super) fn new(compat: bool) -> Self {
        let stacks = Stacks::new(if compat { STACKS_MAX_COMPAT } else { STACKS_MAX });
        Self { stacks, places: Places::default() }
    }
}

impl Formatter for Events {
    type Memory = Frames;

    fn complete(memory: &mut Frames, batch: &mut Batch) {
        let Frames { stacks, places } = memory;
        for entry in &mut batch.entries {
            // The field has the thread until this point.
            let thread = std::mem::replace(&mut entry.frame, UNNUMBERED);
            if thread == NONE {
                continue;
            }
            entry.frame = match entry.kind {
                BEGIN => places.enter(thread, entry.name, stacks),
                END | DEDUCED => places.leave(thread),
                _ => places.innermost(thread).map_or(UNNUMBERED, |place| place.stack),
            };
        }
        stacks.resolve();
        places.resolve(stacks);
        for entry in &mut batch.entries {
            entry.frame = stacks.number(entry.frame);
        }
    }

    fn format(&mut self, batch: &Batch, shared: &Shared, out: &mut Vec<u8>) {
        self.follow(batch, shared);
        if !self.compat {
            self.micros.set_origin(Micros::origin(self.clock.hz, batch.origin));
        }
        batch.entries.iter().for_each(|entry| self.entry(batch, entry, out));
        if batch.is_first && !batch.entries.is_empty() {
            // No earlier entry has to be ended.
            out.drain(..2);
        }
    }
}

/// A name in quotes; the peer escapes nothing.
fn put_name(out: &mut Vec<u8>, name: &[u8], compat: bool) {
    if compat {
        out.push(b'"');
        out.extend_from_slice(name);
        out.push(b'"');
    } else {
        push_json_str(out, &String::from_utf8_lossy(name));
    }
}

#[cold]
fn put_arguments(batch: &Batch, entry: &Entry, out: &mut Vec<u8>) {
    let (arguments, data) = batch.payload(entry);
    let start = out.len();
    let key = |out: &mut Vec<u8>, name: &str| {
        let is_first = out.len() == start;
        out.extend_from_slice(if is_first { b", \"args\" : { \"" } else { b", \"" });
        out.extend_from_slice(name.as_bytes());
    };
    for (n, &value) in arguments.iter().enumerate() {
        key(out, "arg");
        push_dec(out, n);
        // A double would change larger numbers.
        let quote: &[u8] = if value > EXACT_MAX { b"\"" } else { b"" };
        out.extend_from_slice(b"\" : ");
        out.extend_from_slice(quote);
        push_dec(out, value);
        out.extend_from_slice(quote);
    }
    match entry.kind {
        DEDUCED => key(out, "deduced\" : true"),
        ORPHAN => key(out, "orphan exit\" : true"),
        TYPED => {
            key(out, "type\" : ");
            push_dec(out, entry.event_type);
        }
        _ => {}
    }
    if matches!(entry.kind, CUSTOM | TYPED) {
        match std::str::from_utf8(data) {
            Ok(text) => {
                key(out, "data\" : ");
                push_json_str(out, text);
            }
            Err(_) => {
                key(out, "data hex\" : \"");
                push_hex_bytes(out, data);
                out.push(b'"');
            }
        }
    }
    if out.len() > start {
        out.extend_from_slice(b" }");
    }
}

/// Follows the stacks and makes entries.
struct Matcher<'a> {
    interner: Interner<'a>,
    batch: Batch,
    /// Batches that are full.
    full: Vec<Batch>,
    /// Empty batches.
    spare: Vec<Batch>,
    compat: bool,
    open: Open,
    /// The owner whose stack an owner uses: the peer distinguishes only thread ids.
    by_thread: std::collections::HashMap<u32, u32>,
    has_origin: bool,
    counts: Counts,
}

impl<'a> Matcher<'a> {
    fn new(interner: Interner<'a>, compat: bool) -> Self {
        Self {
            interner,
            batch: Batch::first(),
            full: Vec::new(),
            spare: Vec::new(),
            compat,
            open: Open::default(),
            by_thread: std::collections::HashMap::new(),
            has_origin: false,
            counts: Counts::default(),
        }
    }

    #[inline(always)]
    fn take(&mut self, moment: &Moment<'_>) {
        if !self.has_origin {
            (self.has_origin, self.batch.origin) = (true, moment.tsc);
        }
        let owner = Owner { process: moment.process, thread: moment.thread };
        let known = self.interner.know(moment.function, moment.name, owner);
        let thread = self.thread(moment, &known);
        match moment.kind {
            MomentKind::Function(kind) if thread == NONE => {
                // For a thread beyond the limit, only what the trace contains is emitted.
                let kind = if kind.is_entry() { BEGIN } else { END };
                self.push(kind, moment.tsc, NONE, &known, (moment.arguments, &[]));
            }
            MomentKind::Function(kind) if kind.is_entry() => self.enter(moment, &known, thread),
            MomentKind::Function(_) => self.exit(moment, &known, thread),
            MomentKind::Custom | MomentKind::Typed(_) => self.event(moment, &known),
        }
        if self.batch.is_full() {
            self.close();
        }
    }

    #[inline]
    fn push(&mut self, kind: u8, tsc: u64, thread: u32, known: &Known, payload: (&[u64], &[u8])) {
        let entry = Entry { tsc, frame: thread, kind, name: NONE, owner: NONE, extra: NONE, event_type: 0, cpu: 0 };
        push(&mut self.batch, entry, known, payload.0, payload.1);
    }

    fn enter(&mut self, moment: &Moment<'_>, known: &Known, thread: u32) {
        let is_kept = self.open.push(thread, Frame { function: moment.function, name: known.name });
        let arguments = if self.compat { &[] } else { moment.arguments };
        self.push(BEGIN, moment.tsc, if is_kept { thread } else { NONE }, known, (arguments, &[]));
    }

    fn exit(&mut self, moment: &Moment<'_>, known: &Known, thread: u32) {
        if self.open.pop_surplus(thread) {
            self.push(END, moment.tsc, NONE, known, (&[], &[]));
            return;
        }
        match self.open.matching(thread, moment.function) {
            Match::Frames(1) => {
                self.open.pop(thread);
                let arguments = if self.compat { &[] } else { moment.arguments };
                self.push(END, moment.tsc, thread, known, (arguments, &[]));
            }
            Match::Frames(count) => self.unwind(moment, known, thread, count),
            Match::Nothing if self.compat => {
                // The peer ends all open frames.
                let count = self.open.depth(thread);
                self.unwind(moment, known, thread, count);
            }
            Match::Nothing => {
                self.counts.orphans += 1;
                self.push(ORPHAN, moment.tsc, NONE, known, (moment.arguments, &[]));
            }
        }
    }

    /// Ends several frames.
    fn unwind(&mut self, moment: &Moment<'_>, known: &Known, thread: u32, count: usize) {
        for left in (0..count).rev() {
            let Some(frame) = self.open.pop(thread) else { break };
            let kind = if left == 0 || self.compat { END } else { DEDUCED };
            self.counts.deduced += u64::from(left > 0);
            let known = self.interner.of_function(frame.function, frame.name, known);
            self.push(kind, moment.tsc, thread, &known, (&[], &[]));
            if self.batch.is_full() {
                // A deep stack that ends at once must not make a batch that is formatted at once.
                self.close();
            }
        }
    }

    /// Moves the batch to the full ones, and begins another.
    fn close(&mut self) {
        if self.batch.entries.is_empty() {
            return;
        }
        self.interner.close(&mut self.batch);
        let origin = self.batch.origin;
        let next = self.spare.pop().unwrap_or_default();
        self.full.push(std::mem::replace(&mut self.batch, next));
        (self.batch.origin, self.batch.is_first) = (origin, false);
    }

    /// The number of the stack that a moment changes.
    #[inline]
    fn thread(&mut self, moment: &Moment<'_>, known: &Known) -> u32 {
        if !self.compat {
            return known.owner;
        }
        let next = u32::try_from(self.by_thread.len()).unwrap_or(NONE);
        *self.by_thread.entry(moment.thread).or_insert(next)
    }

    fn event(&mut self, moment: &Moment<'_>, known: &Known) {
        if self.compat {
            return;
        }
        let (kind, event_type) = match moment.kind {
            MomentKind::Typed(event_type) => (TYPED, event_type),
            _ => (CUSTOM, 0),
        };
        let frame = known.owner;
        let entry =
            Entry { tsc: moment.tsc, frame, kind, name: NONE, owner: NONE, extra: NONE, event_type, cpu: moment.cpu };
        push(&mut self.batch, entry, known, &[], moment.data);
    }
}

/// Follows the stacks and feeds the formatter.
pub(super) struct TraceEvents<'a> {
    stage: Stage<'a, Events>,
    matcher: Matcher<'a>,
    clock: Clock,
}

impl<'a> TraceEvents<'a> {
    pub(super) fn new(stage: Stage<'a, Events>, interner: Interner<'a>, clock: Clock, compat: bool) -> Self {
        Self { stage, matcher: Matcher::new(interner, compat), clock }
    }

    #[cold]
    fn pass(&mut self) -> Result<(), Error> {
        for batch in self.matcher.full.drain(..) {
            self.matcher.spare.push(self.stage.pass(batch)?);
        }
        // A deep stack that ended at once needed more.
        self.matcher.spare.truncate(1);
        Ok(())
    }
}

/// The text before all entries.
const HEAD: &[u8] = b"{\n  \"traceEvents\": [\n";

/// A document without events.
pub(super) const NOTHING: &[u8] = b"{\n  \"traceEvents\": [\n  ],\n  \"displayTimeUnit\": \"ns\"\n}\n";

impl Feed for TraceEvents<'_> {
    fn begin(&mut self) -> Result<(), Error> {
        self.stage.put(HEAD)
    }

    #[inline]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        self.matcher.take(moment);
        if self.matcher.full.is_empty() { Ok(()) } else { self.pass() }
    }

    fn end(mut self) -> Result<Counts, Error> {
        self.matcher.close();
        self.pass()?;
        let memory = self.stage.memory()?;
        let (out, threads) = self.stage.out();
        finish(self.matcher, &memory.1, self.clock, threads, out)
    }
}

/// Writes the text after all entries.
fn finish(
    mut matcher: Matcher<'_>,
    frames: &Frames,
    clock: Clock,
    threads: usize,
    out: &mut dyn Write,
) -> Result<Counts, Error> {
    matcher.counts.unfinished = matcher.open.len();
    matcher.counts.stacks_left_out = frames.stacks.is_full();
    out.write_all(b"\n  ],\n  \"displayTimeUnit\": \"ns\",\n  \"stackFrames\": {")?;
    put_frames(&matcher, &frames.stacks, threads, out)?;
    if matcher.compat {
        out.write_all(b"\n  }\n}\n")?;
        return Ok(matcher.counts);
    }
    let origin = if matcher.has_origin { Micros::origin(clock.hz, matcher.batch.origin) } else { 0 };
    let unit = if clock.hz == 0 { "tick" } else { "us" };
    let hz = clock.hz;
    let tail = format!(
        "\n  }},\n  \"otherData\": {{ \"cycle-frequency\" : \"{hz}\", \"origin-tsc\" : \"{origin}\", \"ts-unit\" : \
         \"{unit}\" }}\n}}\n"
    );
    out.write_all(tail.as_bytes())?;
    Ok(matcher.counts)
}

/// Writes the dictionary of stack frames.
fn put_frames(matcher: &Matcher<'_>, stacks: &Stacks, threads: usize, out: &mut dyn Write) -> Result<(), Error> {
    let compat = matcher.compat;
    let names = matcher.interner.all_names().into_iter().map(|name| {
        let mut out = b"\" : { \"name\" : ".to_vec();
        put_name(&mut out, &name.text, compat);
        out.into()
    });
    let (names, all) = (names.collect::<Vec<Box<[u8]>>>(), stacks.all());
    let put = |number: usize, out: &mut Vec<u8>| {
        let Some(stack) = all.get(number) else { return };
        out.extend_from_slice(if number == 0 { b"\n    \"" } else { b",\n    \"" });
        push_dec(out, number);
        out.extend_from_slice(names.get(stack.name as usize).map_or(&[], |name| &**name));
        if stack.parent != OUTSIDE {
            out.extend_from_slice(b", \"parent\": \"");
            push_dec(out, stack.parent);
            out.push(b'"');
        }
        out.extend_from_slice(b" }");
    };
    if !compat {
        return put_all(threads, all.len(), put, out);
    }
    let slots = peer_slots(all.len());
    put_all(threads, slots, |slot, out| put(peer_frame(slot, slots), out), out)
}

/// Batches of a window that are formatted at once; further ones are formatted when they are written.
const FORMATTED_MAX: usize = 64;

/// The turn in which stacks are followed, and the turn in which they are numbered.
const MATCH: usize = 0;
const NUMBER: usize = 1;

/// Formats windows.
struct Windowed<'a, 'i> {
    windows: &'a Windows<'a>,
    moments: Taken,
    matcher: &'a Mutex<Matcher<'i>>,
    frames: &'a Mutex<Frames>,
    events: Events,
    shared: &'a Shared,
    batches: Vec<Batch>,
}

impl Worker for Windowed<'_, '_> {
    fn window(&mut self, window: usize, turns: &Turns<'_>, text: &mut Vec<u8>) -> Result<Vec<Batch>, Error> {
        self.moments.clear();
        self.windows.emit(window, &mut self.moments)?;
        let (moments, spare) = (&self.moments, &mut self.batches);
        let mut batches = turns.take(MATCH, self.matcher, |matcher| {
            matcher.spare.append(spare);
            moments.each(|moment| matcher.take(moment));
            matcher.close();
            std::mem::take(&mut matcher.full)
        })?;
        turns.take(NUMBER, self.frames, |frames| {
            batches.iter_mut().for_each(|batch| Events::complete(frames, batch));
        })?;
        let rest = batches.split_off(batches.len().min(FORMATTED_MAX));
        for batch in &mut batches {
            self.events.format(batch, self.shared, text);
            batch.clear();
        }
        self.batches = batches;
        Ok(rest)
    }

    fn rest(&mut self, batch: &Batch, text: &mut Vec<u8>) {
        self.events.format(batch, self.shared, text);
    }
}

/// Writes a trace that is cut into windows, by several threads.
pub(super) fn write_windows(
    windows: &Windows<'_>,
    (interner, shared): (Interner<'_>, &Shared),
    (clock, compat): (Clock, bool),
    threads: usize,
    out: &mut dyn Write,
) -> Result<Counts, Error> {
    out.write_all(HEAD)?;
    let (matcher, frames) = (Mutex::new(Matcher::new(interner, compat)), Mutex::new(Frames::new(compat)));
    let make = || Windowed {
        windows,
        moments: Taken::default(),
        matcher: &matcher,
        frames: &frames,
        events: Events::new(clock, compat),
        shared,
        batches: Vec::new(),
    };
    pool::run(windows.count(), threads, make, out)?;
    let matcher = matcher.into_inner().unwrap_or_else(PoisonError::into_inner);
    let frames = frames.into_inner().unwrap_or_else(PoisonError::into_inner);
    finish(matcher, &frames, clock, threads, out)
}

/// Slots of the hash table in whose order the peer lists that many stack frames; it doubles when it would become three
/// quarters full.
fn peer_slots(count: usize) -> usize {
    let mut slots = 64;
    while count * 4 >= slots * 3 {
        slots *= 2;
    }
    slots
}

/// The frame in a slot of the peer's table, if there are that many frames. The slot of a number is 37 times the number,
/// and consecutive numbers never collide.
fn peer_frame(slot: usize, slots: usize) -> usize {
    // Inverse of 37 modulo 2 to the 32nd, and so modulo any smaller power.
    const INVERSE: u64 = 0x914c_1bad;
    (slot as u64).wrapping_mul(INVERSE) as usize & (slots - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_in_the_order_of_the_corpus() {
        // synth/v5.trace_event.json.
        let order = |count| {
            let slots = peer_slots(count);
            (0..slots).map(move |slot| peer_frame(slot, slots)).filter(move |&number| number < count)
        };
        assert_eq!(order(5).collect::<Vec<_>>(), [0, 2, 4, 1, 3]);
        let mut many: Vec<_> = order(100_000).collect();
        many.sort_unstable();
        assert_eq!(many, (0..100_000).collect::<Vec<_>>());
    }
}
