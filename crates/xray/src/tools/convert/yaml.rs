//! `convert -f yaml`: the peer's YAML.

use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use anytrace_core::text::push_dec;
use anytrace_core::{Diagnostic, Error};

use super::batch::{Batch, Entry, Interner, NONE, Name, Naming, Owner, Shared, push};
use super::pool::{self, Turns, Worker};
use super::stage::{Formatter, Stage};
use super::{Counts, Feed};
use crate::lanes::ordered::Windows;
use crate::wire::moment::{Moment, MomentKind, Moments};
use crate::wire::record::FunctionKind;
use crate::wire::yaml::YamlHeader;
use crate::wire::yaml_write::{
    put_arguments, put_data, put_function, put_kind, put_owner, put_yaml_end, put_yaml_header,
};

/// Kinds of entries, by number.
const KINDS: [MomentKind; 6] = [
    MomentKind::Function(FunctionKind::Enter),
    MomentKind::Function(FunctionKind::Exit),
    MomentKind::Function(FunctionKind::TailExit),
    MomentKind::Function(FunctionKind::EnterArgs),
    MomentKind::Custom,
    MomentKind::Typed(0),
];

/// The peer writes every record with arguments as an entry with arguments.
fn kind_number(moment: &Moment<'_>, compat: bool) -> u8 {
    match moment.kind {
        MomentKind::Function(_) if compat && !moment.arguments.is_empty() => FunctionKind::EnterArgs as u8,
        MomentKind::Function(kind) => kind as u8,
        MomentKind::Custom => 4,
        MomentKind::Typed(_) => 5,
    }
}

/// Text of entries.
#[derive(Clone)]
pub(super) struct Entries {
    compat: bool,
    names: Vec<Box<[u8]>>,
    owners: Vec<Box<[u8]>>,
    kinds: [Box<[u8]>; 6],
}

impl Entries {
    pub(super) fn new(compat: bool) -> Self {
        let kinds = KINDS.map(|kind| {
            let mut out = Vec::new();
            put_kind(&mut out, kind.name());
            out.into()
        });
        Self { compat, names: Vec::new(), owners: Vec::new(), kinds }
    }

    #[inline]
    fn entry(&self, batch: &Batch, entry: &Entry, out: &mut Vec<u8>) {
        match (self.names.get(entry.name as usize), batch.name(entry)) {
            // The cached part has type 0.
            (Some(part), _) if entry.event_type == 0 => out.extend_from_slice(part),
            (Some(part), _) => put_typed(part, entry.event_type, out),
            (None, Some(name)) => put_name(name, entry.event_type, out),
            (None, None) => debug_assert!(false, "a name is in the table or travels with its entry"),
        }
        let (arguments, data) = batch.payload(entry);
        put_arguments(out, arguments);
        out.extend_from_slice(b", cpu: ");
        push_dec(out, entry.cpu);
        match (self.owners.get(entry.owner as usize), batch.owner(entry)) {
            (Some(part), _) => out.extend_from_slice(part),
            (None, Some(owner)) => put_owner(out, owner.thread, owner.process),
            (None, None) => debug_assert!(false, "a thread is in the table or travels with its entry"),
        }
        if let Some(part) = self.kinds.get(usize::from(entry.kind)) {
            out.extend_from_slice(part);
        }
        push_dec(out, entry.tsc);
        if data.is_empty() {
            out.extend_from_slice(b", data: '' }");
        } else {
            put_data(out, data, self.compat);
        }
    }
}

fn put_name(name: &Name, event_type: u16, out: &mut Vec<u8>) {
    put_function(out, u32::from(event_type), name.function, &name.text, true);
}

/// The cached part, with another type.
#[cold]
fn put_typed(part: &[u8], event_type: u16, out: &mut Vec<u8>) {
    const UNTYPED: &[u8] = b"\n  - { type: 0";
    out.extend_from_slice(UNTYPED.get(..UNTYPED.len() - 1).unwrap_or_default());
    push_dec(out, event_type);
    out.extend_from_slice(part.get(UNTYPED.len()..).unwrap_or_default());
}

impl Formatter for Entries {
    type Memory = ();

    fn complete(_memory: &mut (), _batch: &mut Batch) {}

    fn format(&mut self, batch: &Batch, shared: &Shared, out: &mut Vec<u8>) {
        let (names, owners) = (&mut self.names, &mut self.owners);
        shared.names_from(names.len(), batch, |name| {
            let mut part = Vec::new();
            put_name(name, 0, &mut part);
            names.push(part.into());
        });
        shared.owners_from(owners.len(), batch, |owner| {
            let mut part = Vec::new();
            put_owner(&mut part, owner.thread, owner.process);
            owners.push(part.into());
        });
        batch.entries.iter().for_each(|entry| self.entry(batch, entry, out));
    }
}

/// A value of the last record of a thread that has one, and the previous value.
#[derive(Debug, Clone, Copy, Default)]
struct Last<T> {
    value: T,
    before: T,
    seq: u64,
}

impl<T: Copy> Last<T> {
    fn set(&mut self, value: T, seq: u64) {
        *self = Self { value, before: self.value, seq };
    }

    /// The value when a record was read: old custom events have their own time, and may be emitted after a later
    /// record.
    fn at(&self, seq: u64) -> T {
        if seq < self.seq { self.before } else { self.value }
    }
}

/// State that the peer fails to reset: events have the function of their thread's last function record, and every
/// record after a typed event has that event's type (page, section 1.6).
#[derive(Debug, Default)]
pub(super) struct Staleness(std::collections::HashMap<Owner, (Last<u32>, Last<u16>)>);

impl Staleness {
    /// The function id and the type that the peer writes for a moment.
    pub(super) fn of(&mut self, moment: &Moment<'_>) -> (u32, u16) {
        let (owner, seq) = (Owner { process: moment.process, thread: moment.thread }, moment.at.seq);
        let (function, event_type) = self.0.entry(owner).or_default();
        match moment.kind {
            MomentKind::Function(_) => function.set(moment.function, seq),
            MomentKind::Typed(own) => event_type.set(own, seq),
            MomentKind::Custom => {}
        }
        (function.at(seq), event_type.at(seq))
    }
}

/// Feeds the formatter.
pub(super) struct Yaml<'a> {
    stage: Stage<'a, Entries>,
    interner: Interner<'a>,
    batch: Batch,
    header: YamlHeader,
    staleness: Option<Staleness>,
    entries: u64,
}

impl<'a> Yaml<'a> {
    pub(super) fn new(stage: Stage<'a, Entries>, interner: Interner<'a>, header: YamlHeader, compat: bool) -> Self {
        let staleness = compat.then(Staleness::default);
        Self { stage, interner, batch: Batch::default(), header, staleness, entries: 0 }
    }

    fn pass(&mut self) -> Result<(), Error> {
        self.interner.close(&mut self.batch);
        self.batch = self.stage.pass(std::mem::take(&mut self.batch))?;
        Ok(())
    }
}

impl Feed for Yaml<'_> {
    fn begin(&mut self) -> Result<(), Error> {
        let mut out = Vec::new();
        put_yaml_header(&mut out, &self.header);
        self.stage.put(&out)
    }

    #[inline]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        let (function, event_type) = match (&mut self.staleness, moment.kind) {
            (Some(staleness), _) => staleness.of(moment),
            (None, MomentKind::Typed(event_type)) => (moment.function, event_type),
            (None, _) => (moment.function, 0),
        };
        let kind = kind_number(moment, self.staleness.is_some());
        add(&mut self.batch, &mut self.interner, moment, (function, event_type, kind));
        self.entries += 1;
        if self.batch.is_full() { self.pass() } else { Ok(()) }
    }

    fn end(mut self) -> Result<Counts, Error> {
        self.pass()?;
        let mut out = Vec::new();
        put_yaml_end(&mut out, self.entries);
        self.stage.put(&out)?;
        Ok(Counts::default())
    }
}

/// Adds a moment to a batch, with the function, the type and the kind to be shown.
#[inline(always)]
fn add(
    batch: &mut Batch,
    interner: &mut Interner<'_>,
    moment: &Moment<'_>,
    (function, event_type, kind): (u32, u16, u8),
) {
    let owner = Owner { process: moment.process, thread: moment.thread };
    let known = interner.know(function, moment.name, owner);
    let entry =
        Entry { tsc: moment.tsc, name: NONE, owner: NONE, frame: NONE, extra: NONE, event_type, cpu: moment.cpu, kind };
    push(batch, entry, &known, moment.arguments, moment.data);
}

/// Formats windows, each independently.
struct Windowed<'a> {
    windows: &'a Windows<'a>,
    /// Names by the numbers that this worker assigned.
    interner: Interner<'a>,
    shared: &'a Shared,
    entries: Entries,
    batch: Batch,
    count: &'a AtomicU64,
}

impl Worker for Windowed<'_> {
    fn window(&mut self, window: usize, _turns: &Turns<'_>, text: &mut Vec<u8>) -> Result<Vec<Batch>, Error> {
        let Self { windows, interner, shared, entries, batch, count } = self;
        let mut gather = Gather { interner, shared, entries, batch, text, count: 0 };
        windows.emit(window, &mut gather)?;
        gather.pass();
        count.fetch_add(gather.count, Ordering::Relaxed);
        Ok(Vec::new())
    }

    fn rest(&mut self, batch: &Batch, text: &mut Vec<u8>) {
        self.entries.format(batch, self.shared, text);
    }
}

/// Collects the moments of a window.
struct Gather<'w, 'i> {
    interner: &'w mut Interner<'i>,
    shared: &'w Shared,
    entries: &'w mut Entries,
    batch: &'w mut Batch,
    text: &'w mut Vec<u8>,
    count: u64,
}

impl Gather<'_, '_> {
    fn pass(&mut self) {
        self.interner.close(self.batch);
        self.count += self.batch.entries.len() as u64;
        self.entries.format(self.batch, self.shared, self.text);
        self.batch.clear();
    }
}

impl Moments for Gather<'_, '_> {
    #[inline]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        let event_type = if let MomentKind::Typed(event_type) = moment.kind { event_type } else { 0 };
        add(self.batch, self.interner, moment, (moment.function, event_type, kind_number(moment, false)));
        if self.batch.is_full() {
            self.pass();
        }
        Ok(())
    }

    // A trace that can be cut was read once, and its diagnostics were reported then.
    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

/// Writes a trace that is cut into windows, by several threads; not in compatible form, because the peer's entries
/// depend on those before them.
pub(super) fn write_windows(
    windows: &Windows<'_>,
    naming: Naming<'_>,
    header: &YamlHeader,
    threads: usize,
    out: &mut dyn Write,
) -> Result<Counts, Error> {
    let mut text = Vec::new();
    put_yaml_header(&mut text, header);
    out.write_all(&text)?;
    let mut tables = Vec::new();
    tables.resize_with(threads.max(1), Shared::default);
    let (count, begun, none) = (AtomicU64::new(0), AtomicUsize::new(0), Shared::default());
    let make = || {
        let shared = tables.get(begun.fetch_add(1, Ordering::Relaxed)).unwrap_or(&none);
        let (interner, entries) = (Interner::new(naming, shared), Entries::new(false));
        Windowed { windows, interner, shared, entries, batch: Batch::default(), count: &count }
    };
    pool::run(windows.count(), threads, make, out)?;
    text.clear();
    put_yaml_end(&mut text, count.into_inner());
    out.write_all(&text)?;
    Ok(Counts::default())
}
