//! `casemate diff`: are two traces equivalent, up to different addresses?
//!
//! Addresses of pages are matched in order of appearance: the first page on one side corresponds to the first on the
//! other, and so on. Ids, sources and spelling are ignored.

use std::collections::BTreeMap;

use anytrace_core::{Error, Input, OpenOptions, Sink};

use super::check::{short, source_text};
use super::history::Where;
use crate::wire::record::{HintKind, MemoryOrder, Record, Transition};
use crate::wire::walk::{Item, Walk};

/// A record of one side, as far as the comparison needs it.
struct Step {
    thread: u32,
    transition: Transition,
    at: Where,
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Records of each side.
    pub records: [u64; 2],
    /// The first pair of records that differ; `None` for a side that ended.
    pub first: Option<[Option<Where>; 2]>,
    /// Pages matched with different pages.
    pub renamed: u64,
}

impl Comparison {
    /// True when both sides are equivalent.
    pub fn is_same(&self) -> bool {
        self.first.is_none()
    }
}

/// Matches pages of one side with pages of the other.
#[derive(Default)]
struct Renaming {
    forward: BTreeMap<u64, u64>,
    back: BTreeMap<u64, u64>,
}

impl Renaming {
    fn address(&mut self, a: u64, b: u64) -> bool {
        if a & 0xfff != b & 0xfff {
            return false;
        }
        let (a, b) = (a >> 12, b >> 12);
        *self.forward.entry(a).or_insert(b) == b && *self.back.entry(b).or_insert(a) == a
    }

    /// A descriptor or base register: bits 47:12 are an address, the others must be equal. Values without bit 0 need
    /// not be descriptors, and may also be identical.
    fn value(&mut self, a: u64, b: u64, is_base: bool) -> bool {
        const ADDRESS: u64 = 0xffff_ffff_f000;
        if a & !ADDRESS != b & !ADDRESS {
            return false;
        }
        let (x, y) = (a & ADDRESS, b & ADDRESS);
        let is_number = x == 0 && y == 0 || !is_base && a & 1 == 0 && a == b;
        is_number || self.address(x, y)
    }

    fn same(&mut self, a: &Transition, b: &Transition) -> bool {
        use Transition as T;
        match (*a, *b) {
            (T::MemWrite { order: o, address: a, value: v }, T::MemWrite { order: p, address: b, value: w }) => {
                same_order(o, p) && self.address(a, b) && self.value(v, w, false)
            }
            (T::MemRead { address: a, value: v }, T::MemRead { address: b, value: w }) => {
                self.address(a, b) && self.value(v, w, false)
            }
            (T::MemInit { address: a, size: s }, T::MemInit { address: b, size: t })
            | (T::MemFree { address: a, size: s }, T::MemFree { address: b, size: t }) => s == t && self.address(a, b),
            (T::MemSet { address: a, size: s, value: v }, T::MemSet { address: b, size: t, value: w }) => {
                s == t && v == w && self.address(a, b)
            }
            (T::MemAtomic { op: o, .. }, T::MemAtomic { op: p, .. }) if o != p => false,
            (
                T::MemAtomic { order: o, address: a, value: v, read: r, .. },
                T::MemAtomic { order: p, address: b, value: w, read: s, .. },
            ) => same_order(o, p) && self.address(a, b) && self.value(r, s, false) && self.value(v, w, false),
            // Input addresses are not pages of memory: they must be equal.
            (T::Tlbi { op: a, operand: x }, T::Tlbi { op: b, operand: y }) => a == b && x.value() == y.value(),
            (T::OtherTlbi { name: a, operand: x }, T::OtherTlbi { name: b, operand: y }) => {
                a == b && x.value() == y.value()
            }
            (T::SysregWrite { register: a, value: v }, T::SysregWrite { register: b, value: w }) => {
                let is_base = a.is_base();
                a == b && if is_base { self.value(v, w, true) } else { v == w }
            }
            (T::Hint { hint: a, location: l, value: v }, T::Hint { hint: b, location: m, value: w }) => {
                let is_address = matches!(a, HintKind::SetRootLock | HintKind::SetOwnerRoot);
                a == b && self.address(l, m) && if is_address { self.address(v, w) } else { v == w }
            }
            (T::Lock { address: a }, T::Lock { address: b })
            | (T::Unlock { address: a }, T::Unlock { address: b })
            | (T::Trylock { address: a }, T::Trylock { address: b }) => self.address(a, b),
            (a, b) => a == b,
        }
    }
}

fn same_order(a: MemoryOrder, b: MemoryOrder) -> bool {
    a == b
}

fn steps(input: Input, open: &OpenOptions, sink: &mut dyn Sink) -> Result<Vec<Step>, Error> {
    let mut steps = Vec::new();
    Walk::new(input, open)?.for_each(sink, |item, place| {
        if let Item::Record(record) = item {
            steps.push(Step { thread: record.thread, transition: record.transition, at: at(record, place.seq) });
        }
        Ok(())
    })?;
    Ok(steps)
}

fn at(record: &Record<'_>, index: u64) -> Where {
    let (id, thread) = (record.id, record.thread);
    let (source, text) = (source_text(&record.source), short(record.text));
    Where { index, id, thread, source, text, step: String::new() }
}

/// Compares two traces record by record. Memory grows with the first trace.
///
/// # Errors
/// I/O errors, and whatever the sinks return.
pub fn compare(
    a: Input,
    b: Input,
    open: &OpenOptions,
    [sink_a, sink_b]: [&mut dyn Sink; 2],
) -> Result<Comparison, Error> {
    let left = steps(a, open, sink_a)?;
    let mut renaming = Renaming::default();
    let (mut first, mut count) = (None, 0_u64);
    Walk::new(b, open)?.for_each(sink_b, |item, place| {
        let Item::Record(record) = item else { return Ok(()) };
        count += 1;
        if first.is_some() {
            return Ok(());
        }
        let other = usize::try_from(place.seq).ok().and_then(|index| left.get(index));
        let is_same = other
            .is_some_and(|other| other.thread == record.thread && renaming.same(&other.transition, &record.transition));
        if !is_same {
            first = Some([other.map(|other| other.at.clone()), Some(at(record, place.seq))]);
        }
        Ok(())
    })?;
    if first.is_none()
        && let Some(more) = usize::try_from(count).ok().and_then(|count| left.get(count))
    {
        first = Some([Some(more.at.clone()), None]);
    }
    let renamed = renaming.forward.iter().filter(|(a, b)| a != b).count() as u64;
    Ok(Comparison { records: [left.len() as u64, count], first, renamed })
}

#[cfg(test)]
mod tests {
    use anytrace_core::Collect;

    use super::*;

    const LOG: &str = "(mem-init 1 0 1000 1000)(hint 2 0 set_root_lock 1000 90000)(mem-write 3 0 plain 1008 2003)\
                       (sysreg-write 4 0 vttbr_el2 5000000001000)(lock 5 0 90000)";

    fn run(a: &str, b: &str) -> Comparison {
        let input = |text: &str| Input::from_bytes("t", text.as_bytes().to_vec());
        let (mut sink_a, mut sink_b) = (Collect::default(), Collect::default());
        compare(input(a), input(b), &OpenOptions::default(), [&mut sink_a, &mut sink_b]).unwrap()
    }

    #[test]
    fn other_addresses_are_no_difference_and_other_structure_is() {
        let moved = LOG.replace("1000 1000", "71000 1000").replace("lock 1000 90000", "lock 71000 a0000");
        let moved = moved.replace("1008 2003", "71008 f2003").replace("5000000001000", "5000000071000");
        let moved = moved.replace("(lock 5 0 90000)", "(lock 77 0 a0000)");
        let same = run(LOG, &moved);
        assert!(same.is_same(), "{same:?}");
        assert_eq!(same.renamed, 3);
        let other = run(LOG, &moved.replace("(lock 77 0 a0000)", "(lock 77 0 b0000)"));
        assert_eq!(other.first.map(|first| first.map(|at| at.map(|at| at.id))), Some([Some(5), Some(77)]));
        assert_eq!(run(LOG, &format!("{LOG}(barrier 6 0 isb)")).first.map(|first| first[0].is_none()), Some(true));
        assert!(!run(LOG, &LOG.replace("1008 2003", "1010 2003")).is_same());
    }
}
