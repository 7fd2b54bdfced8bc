//! Compares two traces in two passes: first their frames, then the calls of the frames that differ.

use std::collections::HashMap;
use std::thread;

use anytrace_analysis::diff::{Step, align_steps};
use anytrace_core::{Diagnostic, Error, Sink};
use names::pair_by_name;

use crate::tools::diff::entry::Entry;
use crate::tools::diff::frames::{Fate, Frames, align, frame_slot};
use crate::tools::diff::side::{Calls, Property, Sender, Source, read};
use crate::tools::diff::{DiffOptions, DiffTotals};

/// Most pointers whose counterparts are remembered. Beyond this, all are forgotten.
const POINTERS_MAX: usize = 1 << 18;

/// Shows differences as they are found.
pub(crate) trait Show {
    /// Takes the properties of both.
    fn properties(&mut self, a: &[Property], b: &[Property]) -> Result<(), Error>;

    /// Frames whose calls come next; `None` if a side has none.
    fn frame(&mut self, a: Option<u64>, b: Option<u64>) -> Result<(), Error>;

    /// A call both have.
    fn same(&mut self, a: Entry, b: Entry) -> Result<(), Error>;

    /// A call of the same function with other values. The parts in `forced` differ although their keys are equal.
    fn changed(&mut self, a: Entry, b: Entry, forced: &[u32]) -> Result<(), Error>;

    /// A call only the first has.
    fn removed(&mut self, a: Entry) -> Result<(), Error>;

    /// A call only the second has.
    fn added(&mut self, b: Entry) -> Result<(), Error>;

    /// The calls so far correspond to each other; unrelated calls follow.
    fn settle(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Everything has been reported.
    fn finish(&mut self, totals: &DiffTotals) -> Result<(), Error>;
}

/// Discards diagnostics that the first pass reported already.
struct Discard;

impl Sink for Discard {
    fn report(&mut self, _: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

/// Compares and shows.
pub(crate) fn run(
    a: Source<'_>,
    b: Source<'_>,
    options: &DiffOptions,
    show: &mut dyn Show,
) -> Result<DiffTotals, Error> {
    let (first, second) = (options.make_options(0), options.make_options(1));
    let (open, calls) = ([a.open, b.open], [&a.calls, &b.calls]);
    let (sink_a, sink_b) = (a.sink, b.sink);
    let (mut in_a, mut in_b) = (Frames::default(), Frames::default());
    thread::scope(|scope| {
        let other = scope.spawn(|| read(open[0], calls[0], first, &mut in_a, sink_a));
        let here = read(open[1], calls[1], second, &mut in_b, sink_b);
        joined(other.join()).and(here)
    })?;
    let fates = align(&in_a.rows, &in_b.rows);
    let mut compare = Compare { show, totals: DiffTotals::default(), pointers: Counterparts::default(), options };
    compare.show.properties(&in_a.properties, &in_b.properties)?;
    compare.totals.properties = differing(&in_a.properties, &in_b.properties).len() as u64;
    let walks_all = options.shows_common() || options.ignores_pointers;
    let is_needed = walks_all || fates.iter().any(|fate| !matches!(fate, Fate::Same(..)));
    if !is_needed {
        compare.pass_over(&fates, &in_a);
        compare.show.finish(&compare.totals)?;
        return Ok(compare.totals);
    }
    let (wanted_a, wanted_b) = (wanted(&fates, walks_all, true), wanted(&fates, walks_all, false));
    let is_wanted = [of(&wanted_a), of(&wanted_b)];
    thread::scope(|scope| {
        let (mut sender_a, mut from_a) = Sender::new(&is_wanted[0]);
        let (mut sender_b, mut from_b) = Sender::new(&is_wanted[1]);
        let other_a = scope.spawn(move || {
            read(open[0], calls[0], first, &mut sender_a, &mut Discard)?;
            sender_a.flush();
            Ok(())
        });
        let other_b = scope.spawn(move || {
            read(open[1], calls[1], second, &mut sender_b, &mut Discard)?;
            sender_b.flush();
            Ok(())
        });
        let result = compare.all(&fates, walks_all, (&in_a, &in_b), &mut from_a, &mut from_b);
        // Dropping these ends the threads.
        drop((from_a, from_b));
        let ends = joined(other_a.join()).and(joined(other_b.join()));
        result.and(ends)
    })?;
    compare.show.finish(&compare.totals)?;
    Ok(compare.totals)
}

fn joined(result: thread::Result<Result<(), Error>>) -> Result<(), Error> {
    result.unwrap_or_else(|_| Err(Error::limit("a reading thread failed")))
}

fn of(wanted: &[bool]) -> impl Fn(u64) -> bool + Sync {
    move |frame| wanted.get(frame_slot(frame)).copied().unwrap_or(true)
}

/// Which frames of a side the second pass reads.
fn wanted(fates: &[Fate], walks_all: bool, is_first: bool) -> Vec<bool> {
    let mut wanted = Vec::new();
    for fate in fates {
        let (i, j, is_same) = match fate {
            Fate::Same(i, j) => (Some(i), Some(j), true),
            Fate::Changed(i, j) => (Some(i), Some(j), false),
            Fate::Removed(i) => (Some(i), None, false),
            Fate::Added(j) => (None, Some(j), false),
        };
        if (if is_first { i } else { j }).is_some() {
            wanted.push(walks_all || !is_same);
        }
    }
    wanted
}

/// A property's name, old and new value.
pub(crate) type PropertyChange = (Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>);

/// The properties that differ.
pub(crate) fn differing(a: &[Property], b: &[Property]) -> Vec<PropertyChange> {
    let mut rows: std::collections::BTreeMap<&[u8], [Option<&Vec<u8>>; 2]> = std::collections::BTreeMap::new();
    for (name, value) in a {
        rows.entry(name).or_default()[0] = Some(value);
    }
    for (name, value) in b {
        rows.entry(name).or_default()[1] = Some(value);
    }
    rows.retain(|_, [old, new]| old != new);
    rows.into_iter().map(|(name, [old, new])| (name.to_vec(), old.cloned(), new.cloned())).collect()
}

/// Which pointer of the second trace corresponds to which of the first.
#[derive(Default)]
struct Counterparts {
    there: HashMap<u64, u64>,
    back: HashMap<u64, u64>,
}

impl Counterparts {
    /// True when two pointers correspond. If not, they do from now on, because memory is reused.
    fn agree(&mut self, a: u64, b: u64) -> bool {
        if self.there.len() >= POINTERS_MAX || self.back.len() >= POINTERS_MAX {
            *self = Self::default();
        }
        let (old, new) = (self.there.insert(a, b), self.back.insert(b, a));
        old.is_none_or(|known| known == b) && new.is_none_or(|known| known == a)
    }

    /// For two calls that are equal except for pointers: the parts whose pointers do not correspond as before.
    fn disagreeing(&mut self, a: &Entry, b: &Entry) -> Vec<u32> {
        let mut parts = Vec::new();
        for ((part, x), (other, y)) in a.pointers.iter().zip(&b.pointers) {
            let is_same_part = part == other && a.key(*part as usize) == b.key(*part as usize);
            if is_same_part && !self.agree(*x, *y) && !parts.contains(part) {
                parts.push(*part);
            }
        }
        parts
    }
}

struct Compare<'a> {
    show: &'a mut dyn Show,
    totals: DiffTotals,
    pointers: Counterparts,
    options: &'a DiffOptions,
}

impl Compare<'_> {
    /// Counts frames that are the same.
    fn pass_over(&mut self, fates: &[Fate], a: &Frames) {
        for fate in fates {
            if let Fate::Same(i, _) = fate {
                self.totals.frames[0] += 1;
                self.totals.same += a.rows.get(*i).map_or(0, |row| row.calls);
            }
        }
    }

    fn all(
        &mut self,
        fates: &[Fate],
        walks_all: bool,
        (in_a, in_b): (&Frames, &Frames),
        a: &mut Calls,
        b: &mut Calls,
    ) -> Result<(), Error> {
        // Calls beyond the tracked frames belong to the last one.
        let until = |at: usize, frames: &Frames| if at + 1 == frames.rows.len() { u64::MAX } else { at as u64 };
        for fate in fates {
            match *fate {
                Fate::Same(..) if !walks_all => self.pass_over(&[*fate], in_a),
                Fate::Same(i, j) | Fate::Changed(i, j) => {
                    self.show.frame(Some(i as u64), Some(j as u64))?;
                    let before = self.totals;
                    self.frame(a.up_to(until(i, in_a)), b.up_to(until(j, in_b)))?;
                    let is_same = DiffTotals { same: 0, ..before } == DiffTotals { same: 0, ..self.totals };
                    self.totals.frames[if is_same { 0 } else { 3 }] += 1;
                }
                Fate::Removed(i) => {
                    self.show.frame(Some(i as u64), None)?;
                    self.totals.frames[1] += 1;
                    for entry in a.up_to(until(i, in_a)) {
                        self.totals.removed += 1;
                        self.show.removed(entry)?;
                    }
                }
                Fate::Added(j) => {
                    self.show.frame(None, Some(j as u64))?;
                    self.totals.frames[2] += 1;
                    for entry in b.up_to(until(j, in_b)) {
                        self.totals.added += 1;
                        self.show.added(entry)?;
                    }
                }
            }
            self.show.settle()?;
        }
        Ok(())
    }

    /// Compares the calls of two frames.
    fn frame(&mut self, a: impl Iterator<Item = Entry>, b: impl Iterator<Item = Entry>) -> Result<(), Error> {
        align_steps(a, b, &mut |step| match step {
            Step::Same((_, a), (_, b)) => {
                let forced = if self.options.ignores_pointers { self.pointers.disagreeing(&a, &b) } else { Vec::new() };
                if forced.is_empty() {
                    self.totals.same += 1;
                    self.show.same(a, b)
                } else {
                    self.totals.changed += 1;
                    self.show.changed(a, b, &forced)
                }
            }
            Step::Differ(removed, added) => {
                let removed = removed.into_iter().map(|(_, entry)| entry).collect();
                self.gap(removed, added.into_iter().map(|(_, entry)| entry).collect())
            }
        })
    }

    /// Reports the calls between two equal ones. Calls of the same function are paired, in order.
    fn gap(&mut self, removed: Vec<Entry>, added: Vec<Entry>) -> Result<(), Error> {
        let pairs = pair_by_name(&removed, &added);
        let (mut removed, mut added) = (removed.into_iter(), added.into_iter());
        for (before_a, before_b, is_pair) in pairs {
            for entry in removed.by_ref().take(before_a) {
                self.totals.removed += 1;
                self.show.removed(entry)?;
            }
            for entry in added.by_ref().take(before_b) {
                self.totals.added += 1;
                self.show.added(entry)?;
            }
            if is_pair && let (Some(old), Some(new)) = (removed.next(), added.next()) {
                let forced =
                    if self.options.ignores_pointers { self.pointers.disagreeing(&old, &new) } else { Vec::new() };
                self.totals.changed += 1;
                self.show.changed(old, new, &forced)?;
            }
        }
        self.show.settle()
    }
}

mod names {
    //! Pairs of calls of the same function.

    use anytrace_analysis::diff::{Record, Step, align_steps};

    use super::Entry;

    #[derive(Clone, Copy)]
    struct Name(u64);

    impl Record for Name {
        fn hash(&self) -> u64 {
            self.0
        }

        fn buffered_bytes(&self) -> usize {
            size_of::<Self>()
        }
    }

    /// How many unpaired calls of each side precede the next pair, and whether a pair follows.
    pub(super) fn pair_by_name(removed: &[Entry], added: &[Entry]) -> Vec<(usize, usize, bool)> {
        let names = |entries: &[Entry]| entries.iter().map(|entry| Name(entry.name_hash)).collect::<Vec<_>>();
        let (a, b) = (names(removed), names(added));
        let mut found = Vec::new();
        let result: Result<(), std::convert::Infallible> = align_steps(a.into_iter(), b.into_iter(), &mut |step| {
            found.push(match step {
                Step::Same(..) => (0, 0, true),
                Step::Differ(x, y) => (x.len(), y.len(), false),
            });
            Ok(())
        });
        match result {
            Ok(()) => found,
        }
    }
}
