//! An observer that records what happens to chosen entries.

use std::collections::BTreeMap;

use crate::model::{Change, Miss, Progress, TableChange, TablePlace, Watch};
use crate::wire::record::{Barrier, Record, Transition};

use super::check::{short, source_text};

/// Most misses, and most changes in place, stored for one entry; older ones are dropped.
const SAME_MAX: usize = 64;

/// What happened to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Its state or value changed.
    Change(Change),
    /// It entered or left a tree, or froze.
    Table(TableChange, TablePlace),
    /// A barrier or TLBI did not count for it.
    Miss(Miss),
    /// A step broke a rule about it; later events at the same record are assumed, so that checking can continue.
    Violation(&'static str),
}

impl What {
    /// A short description.
    pub fn words(&self) -> String {
        match self {
            Self::Change(Change::Invalidated { old }) => format!("made invalid; TLBs may still hold {old:#x}"),
            Self::Change(Change::Advanced(progress)) => progress_words(*progress).to_owned(),
            Self::Change(Change::Cleaned) => "clean: no TLB holds its old value".to_owned(),
            Self::Change(Change::MadeValid) => "made valid".to_owned(),
            Self::Change(Change::Rewritten(change)) => match change.words(false) {
                Some(words) => format!("changed in place, which needs no break: {words}"),
                None => "rewritten with the same value".to_owned(),
            },
            Self::Change(Change::Stale { old, lost, .. }) if lost.is_empty() => {
                format!("TLBs may contain it in its old size: {old:#x}")
            }
            Self::Change(Change::Stale { lost, above: Some(above), .. }) => {
                format!("stale permissions: TLBs may still grant {}, which the table at {above:#x} took", lost.words())
            }
            Self::Change(Change::Stale { old, lost, .. }) => {
                format!("stale permissions: TLBs may still hold {old:#x} and grant {}", lost.words())
            }
            Self::Change(Change::StaleAdvanced(progress)) => progress_words(*progress).to_owned(),
            Self::Change(Change::Fresh) => "fresh: TLBs hold nothing but its value".to_owned(),
            Self::Change(Change::RewrittenInvalid) => "a different invalid value".to_owned(),
            Self::Change(Change::Forced { is_valid }) => {
                format!("taken as {} from here on", if *is_valid { "valid" } else { "invalid" })
            }
            Self::Table(TableChange::Entered, place) => {
                format!("became a level {} entry under root {:#x} (stage {})", place.level, place.root, place.stage)
            }
            Self::Table(TableChange::Left, _) => "left its tree".to_owned(),
            Self::Table(TableChange::Frozen, _) => "frozen: an entry above it is being removed".to_owned(),
            Self::Miss(miss) => format!("had no effect: {}", miss_words(*miss)),
            Self::Violation(message) => format!("VIOLATION: {message}; the rest of this record is assumed"),
        }
    }

    /// The letters of the state it is in after, as the reference prints them; nothing if it does not change.
    pub fn state(&self) -> Option<&'static str> {
        Some(match self {
            Self::Change(Change::Invalidated { .. }) => "IU n",
            Self::Change(Change::Advanced(Progress::Unguarded)) => "IU n",
            Self::Change(Change::Advanced(Progress::Dsbed)) => "IU d",
            Self::Change(Change::Advanced(Progress::TlbiIpa)) => "IU ti",
            Self::Change(Change::Advanced(Progress::TlbiIpaDsbed)) => "IU td",
            Self::Change(Change::Advanced(Progress::Tlbied)) => "IU ta",
            Self::Change(Change::Cleaned) => "I",
            Self::Change(Change::Stale { .. } | Change::StaleAdvanced(Progress::Unguarded)) => "VS n",
            Self::Change(Change::StaleAdvanced(Progress::Dsbed)) => "VS d",
            Self::Change(Change::StaleAdvanced(Progress::TlbiIpa)) => "VS ti",
            Self::Change(Change::StaleAdvanced(Progress::TlbiIpaDsbed)) => "VS td",
            Self::Change(Change::StaleAdvanced(Progress::Tlbied)) => "VS ta",
            Self::Change(Change::MadeValid | Change::Rewritten(_) | Change::Fresh) => "V",
            Self::Change(Change::Forced { is_valid }) => ["I", "V"][usize::from(*is_valid)],
            _ => return None,
        })
    }
}

fn progress_words(progress: Progress) -> &'static str {
    match progress {
        Progress::Unguarded => "unguarded",
        Progress::Dsbed => "the write is complete (DSB took effect)",
        Progress::TlbiIpa => "a TLBI for stage 2 was sent (TLBI took effect)",
        Progress::TlbiIpaDsbed => "stage 2 is dropped (DSB counted)",
        Progress::Tlbied => "all TLBs were invalidated (TLBI counted)",
    }
}

/// The reason why a barrier or TLBI did not count.
pub fn miss_words(miss: Miss) -> &'static str {
    match miss {
        Miss::NotLocked => "the thread does not hold the lock of the entry's root",
        Miss::OtherThread => "a different thread invalidated the entry",
        Miss::OtherWriter => "the thread neither wrote the entry nor holds the lock of its root",
        Miss::WeakBarrier => "the DSB is too weak here: a full one (ISH) is needed",
        Miss::LocalBarrier => "the DSB is for this core only",
        Miss::NoTlbiBefore => "a TLBI must come before the next DSB takes effect",
        Miss::NotBroadcast => "the TLBI is not broadcast (no IS)",
        Miss::WrongStage => "the TLBI is for the other stage",
        Miss::StageOneOnly => "the TLBI drops stage 1 only, and stage 2 must come first",
        Miss::StageTwoAgain => "the TLBI drops stage 2, which was already dropped; stage 1 is missing",
        Miss::NoBarrierBefore => "there is no DSB between the write (or the last TLBI) and this TLBI",
        Miss::WrongId => "the TLBI names a VMID or ASID other than that of the entry's root",
        Miss::WrongAddress => "the TLBI names an address outside the entry's range",
        Miss::TableByAddress => "a TLBI by address does not drop what was below a table",
        Miss::WrongLevel => "the TLBI names a level other than the entry's",
        Miss::PartOfStageOne => "the TLBI drops one address or ASID of stage 1 only",
        Miss::XsAccesses => "with nXS it does not wait for accesses that may have the XS attribute",
        Miss::WrongGranule => "the TLBI's range is in pages of another granule",
        Miss::TableAbove => "the TLBI is for the last level, and a table above changed too",
        Miss::NotModelled => "the TLBI is not modelled: what it drops is not known",
        Miss::AlreadyDone => "a TLBI already took effect; a DSB is missing",
    }
}

/// A record, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Where {
    /// Its number in the trace, from 0.
    pub index: u64,
    /// Its own number.
    pub id: u64,
    /// Its thread.
    pub thread: u32,
    /// Its place in the traced program.
    pub source: Option<String>,
    /// The record as it is in the trace.
    pub text: String,
    /// What it does, in a word or two: `dsb ish`.
    pub step: String,
}

impl Where {
    pub(crate) fn of(record: &Record<'_>, index: u64) -> Self {
        Self {
            index,
            id: record.id,
            thread: record.thread,
            source: source_text(&record.source),
            text: short(record.text),
            step: step_words(&record.transition),
        }
    }

    /// `record 12 (id 23), thread 0, a.c:17`.
    pub fn words(&self) -> String {
        let source = self.source.as_ref().map_or(String::new(), |source| format!(", {source}"));
        format!("record {} (id {}), thread {}{source}", self.index, self.id, self.thread)
    }
}

/// A step in a word or two, without what it concerns.
fn step_words(transition: &Transition) -> String {
    match *transition {
        Transition::MemWrite { value, .. } => format!("write {value:#x}"),
        Transition::MemAtomic { value, .. } => format!("atomic {value:#x}"),
        Transition::MemSet { value, .. } => format!("set {value:#x}"),
        Transition::Barrier(Barrier::Isb) => "isb".to_owned(),
        Transition::Barrier(Barrier::Dsb(domain)) => format!("dsb {}", domain.name()),
        Transition::Tlbi { op, .. } => format!("tlbi {}", op.name()),
        Transition::OtherTlbi { name, .. } => format!("tlbi {name}"),
        Transition::SysregWrite { register, .. } => register.name().to_owned(),
        Transition::OtherSysreg { name, .. } => name.to_string(),
        Transition::Hint { hint, .. } => hint.name().to_owned(),
        Transition::MemRead { .. }
        | Transition::MemInit { .. }
        | Transition::MemFree { .. }
        | Transition::Lock { .. }
        | Transition::Trylock { .. }
        | Transition::Unlock { .. } => transition.kind().name().to_owned(),
    }
}

/// Something that happened to an entry at a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The entry.
    pub cell: u64,
    /// What happened.
    pub what: What,
    /// At which record.
    pub at: Where,
}

/// The entries that are observed.
#[derive(Debug, Clone)]
pub(crate) enum Filter {
    /// These entries.
    Cells(std::collections::BTreeSet<u64>),
    /// All entries, from when they become invalid until they are valid again; misses are left out.
    Unclean,
}

/// The observer: what happened in the current step. Its owner takes the events after each step.
#[derive(Debug, Clone)]
pub(crate) struct Notes {
    filter: Filter,
    pub(crate) step: Vec<(u64, What)>,
}

impl Notes {
    pub(crate) fn new(filter: Filter) -> Self {
        Self { filter, step: Vec::new() }
    }

    fn wants(&self, cell: u64) -> bool {
        match &self.filter {
            Filter::Cells(cells) => cells.contains(&cell),
            Filter::Unclean => true,
        }
    }
}

impl Watch for Notes {
    const IS_ON: bool = true;

    fn change(&mut self, cell: u64, change: Change) {
        if self.wants(cell) {
            self.step.push((cell, What::Change(change)));
        }
    }

    fn miss(&mut self, cell: u64, miss: Miss) {
        if matches!(self.filter, Filter::Cells(_)) && self.wants(cell) {
            self.step.push((cell, What::Miss(miss)));
        }
    }

    fn table(&mut self, page: u64, entry: Option<usize>, table: &TablePlace, change: TableChange) {
        let Filter::Cells(cells) = &self.filter else { return };
        let found: Vec<u64> = match entry {
            Some(at) => cells.get(&(page + 8 * at as u64)).copied().into_iter().collect(),
            None => cells.range(page..page.saturating_add(4096)).copied().collect(),
        };
        self.step.extend(found.into_iter().map(|cell| (cell, What::Table(change, *table))));
    }
}

fn is_miss(event: &Event) -> bool {
    matches!(event.what, What::Miss(_))
}

fn is_rewrite(event: &Event) -> bool {
    matches!(event.what, What::Change(Change::Rewritten(_) | Change::RewrittenInvalid))
}

/// What happened to entries since they last became valid or entered their tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    events: BTreeMap<u64, Vec<Event>>,
}

impl History {
    pub(crate) fn add(&mut self, event: Event) {
        let events = self.events.entry(event.cell).or_default();
        let begins =
            matches!(event.what, What::Change(Change::Invalidated { .. }) | What::Table(TableChange::Entered, _));
        if begins {
            events.clear();
        }
        for is_such in [is_miss, is_rewrite] {
            if is_such(&event) && events.iter().filter(|event| is_such(event)).count() >= SAME_MAX {
                let oldest = events.iter().position(is_such).unwrap_or(0);
                events.remove(oldest);
            }
        }
        events.push(event);
    }

    pub(crate) fn of(&self, cell: u64) -> &[Event] {
        self.events.get(&cell).map_or(&[], Vec::as_slice)
    }
}
