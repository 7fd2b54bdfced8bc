//! `casemate minimise`: the smallest trace with the same verdict, by delta debugging.
//!
//! First, complete units are removed: threads, pages, rounds under a lock, kinds. Then runs of records, ever shorter,
//! until no single record can be removed. A candidate counts when its first violation breaks the same rule at the same
//! location.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anytrace_core::{Error, Input, OpenOptions, Sink};

use crate::model::{Checker, Options};
use crate::wire::record::{Kind, Record, Transition};
use crate::wire::walk::{Item, Walk};

/// A trace made smaller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minimised {
    /// The records as they are in the trace, one per line.
    pub bytes: Vec<u8>,
    /// How many records there are.
    pub records: usize,
    /// How many records there were.
    pub records_before: usize,
    /// The reference's message.
    pub message: &'static str,
    /// The location of the violation.
    pub location: Option<u64>,
    /// How many candidates were checked.
    pub candidates: u64,
    /// True when no single record can be removed; false when the time limit was reached before.
    pub is_minimal: bool,
}

#[derive(Clone)]
struct Step {
    thread: u32,
    transition: Transition,
    text: Vec<u8>,
}

/// What must not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Verdict {
    breach: &'static str,
    message: &'static str,
    location: Option<u64>,
    /// The bits of a live entry that decide.
    deciding: Option<u64>,
}

struct Search<'a> {
    steps: &'a [Step],
    options: Options,
    wanted: Verdict,
    candidates: u64,
    end: Instant,
}

/// Minimises a trace; `None` when it breaks no rule. `patience` bounds the search. Memory grows with the trace up to
/// its first violation.
///
/// # Errors
/// I/O errors, and whatever the sink returns.
pub fn minimise(
    input: Input,
    open: &OpenOptions,
    options: Options,
    patience: Duration,
    sink: &mut dyn Sink,
) -> Result<Option<Minimised>, Error> {
    let options = Options { goes_on: false, ..options };
    let (steps, wanted) = match failing(input, open, options, sink)? {
        (_, None) => return Ok(None),
        (steps, Some(wanted)) => (steps, wanted),
    };
    let mut search = Search { steps: &steps, options, wanted, candidates: 0, end: Instant::now() + patience };
    let mut kept: Vec<usize> = (0..steps.len()).collect();
    loop {
        let before = kept.len();
        for units in [by_thread, by_page, by_round, by_kind] {
            kept = search.without_units(kept, units);
        }
        kept = search.without_runs(kept);
        if kept.len() == before || search.is_late() {
            break;
        }
    }
    let mut bytes = Vec::new();
    for step in kept.iter().filter_map(|at| steps.get(*at)) {
        bytes.extend_from_slice(&step.text);
        bytes.push(b'\n');
    }
    Ok(Some(Minimised {
        bytes,
        records: kept.len(),
        records_before: steps.len(),
        message: wanted.message,
        location: wanted.location,
        candidates: search.candidates,
        is_minimal: !search.is_late(),
    }))
}

/// The records up to the first violation. The rest is read too: damage there is reported like any other.
fn failing(
    input: Input,
    open: &OpenOptions,
    options: Options,
    sink: &mut dyn Sink,
) -> Result<(Vec<Step>, Option<Verdict>), Error> {
    let mut checker = Checker::new(options);
    let (mut steps, mut wanted) = (Vec::new(), None);
    Walk::new(input, open)?.for_each(sink, |item, _| {
        if let (Item::Record(record), None) = (item, &wanted) {
            steps.push(Step::of(record));
            wanted = verdict_of(&mut checker, record.thread, &record.transition);
        }
        Ok(())
    })?;
    Ok((steps, wanted))
}

fn verdict_of(checker: &mut Checker, thread: u32, transition: &Transition) -> Option<Verdict> {
    let found = checker.step(thread, transition).iter().find(|found| found.is_error())?;
    Some(Verdict {
        breach: found.breach.rule.code,
        message: found.breach.message,
        location: found.location,
        deciding: found.change.map(|change| change.deciding),
    })
}

impl Step {
    fn of(record: &Record<'_>) -> Self {
        Self { thread: record.thread, transition: record.transition, text: record.text.to_vec() }
    }

    /// The page that the step concerns, if there is one.
    fn page(&self) -> Option<u64> {
        match self.transition {
            Transition::MemWrite { address, .. }
            | Transition::MemAtomic { address, .. }
            | Transition::MemRead { address, .. }
            | Transition::MemInit { address, .. }
            | Transition::MemFree { address, .. }
            | Transition::MemSet { address, .. }
            | Transition::Lock { address }
            | Transition::Unlock { address }
            | Transition::Trylock { address } => Some(address >> 12),
            Transition::Hint { location, .. } => Some(location >> 12),
            Transition::SysregWrite { value, .. } => Some((value & 0xffff_ffff_ffff) >> 12),
            _ => None,
        }
    }
}

/// Divides records into units, by number.
type Units = fn(&[Step], &[usize]) -> Vec<u64>;

fn by_thread(steps: &[Step], kept: &[usize]) -> Vec<u64> {
    kept.iter().map(|at| u64::from(steps[*at].thread)).collect()
}

fn by_page(steps: &[Step], kept: &[usize]) -> Vec<u64> {
    let mut none = 1 << 60;
    let of = |at: &usize| {
        none += 1;
        // A record that concerns no page is a unit of its own.
        steps[*at].page().unwrap_or(none)
    };
    kept.iter().map(of).collect()
}

fn by_kind(steps: &[Step], kept: &[usize]) -> Vec<u64> {
    kept.iter().map(|at| steps[*at].transition.kind() as u64).collect()
}

/// From a lock to the unlock of the same thread; records outside are units of their own.
fn by_round(steps: &[Step], kept: &[usize]) -> Vec<u64> {
    let mut open: BTreeMap<u32, u64> = BTreeMap::new();
    let mut next = 0;
    let mut units = Vec::with_capacity(kept.len());
    for at in kept {
        let step = &steps[*at];
        next += 1;
        let unit = match step.transition.kind() {
            Kind::Lock | Kind::Trylock => *open.entry(step.thread).or_insert(next),
            Kind::Unlock => open.remove(&step.thread).unwrap_or(next),
            _ => open.get(&step.thread).copied().unwrap_or(next),
        };
        units.push(unit);
    }
    units
}

impl Search<'_> {
    fn is_late(&self) -> bool {
        Instant::now() >= self.end
    }

    /// True when these records give the same verdict.
    fn holds(&mut self, kept: &[usize]) -> bool {
        self.candidates += 1;
        let mut checker = Checker::new(self.options);
        for at in kept {
            let Some(step) = self.steps.get(*at) else { continue };
            if let Some(verdict) = verdict_of(&mut checker, step.thread, &step.transition) {
                return verdict == self.wanted;
            }
        }
        false
    }

    /// Leaves out units, in halves, quarters and so on, then one by one.
    fn without_units(&mut self, kept: Vec<usize>, units: Units) -> Vec<usize> {
        let of = units(self.steps, &kept);
        let mut names: Vec<u64> = of.clone();
        names.sort_unstable();
        names.dedup();
        let unit: BTreeMap<usize, u64> = kept.iter().copied().zip(of).collect();
        let mut kept = kept;
        let mut size = names.len().div_ceil(2);
        while size > 0 && !self.is_late() {
            let mut at = 0;
            while at < names.len() && !self.is_late() {
                let end = (at + size).min(names.len());
                let gone: std::collections::BTreeSet<u64> = names[at..end].iter().copied().collect();
                let rest: Vec<usize> = kept
                    .iter()
                    .copied()
                    .filter(|step| unit.get(step).is_none_or(|unit| !gone.contains(unit)))
                    .collect();
                if rest.len() < kept.len() && self.holds(&rest) {
                    kept = rest;
                    names.drain(at..end);
                } else {
                    at = end;
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        kept
    }

    /// Leaves out runs of records, ever shorter.
    fn without_runs(&mut self, mut kept: Vec<usize>) -> Vec<usize> {
        let mut size = kept.len().div_ceil(2);
        while size > 0 && !self.is_late() {
            let mut end = kept.len();
            let mut has_shrunk = false;
            // From the end: later steps depend on earlier ones.
            while end > 0 && !self.is_late() {
                let start = end.saturating_sub(size);
                let rest: Vec<usize> = kept[..start].iter().chain(&kept[end..]).copied().collect();
                if self.holds(&rest) {
                    kept = rest;
                    has_shrunk = true;
                }
                end = start;
            }
            if size == 1 && has_shrunk {
                continue;
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::Collect;

    use super::*;

    fn run(log: &str) -> Option<Minimised> {
        let input = Input::from_bytes("t.log", log.as_bytes().to_vec());
        // More than it takes on any machine: a search that is cut short gives another result.
        let patience = Duration::from_secs(600);
        minimise(input, &OpenOptions::default(), Options::ARCHITECTURE, patience, &mut Collect::default()).unwrap()
    }

    /// A tree of four tables under VMID 1, and `rounds` correct rounds of page changes on it.
    fn log(rounds: u64) -> String {
        let mut log = String::from(
            "(mem-init 1 0 1000 4000)(hint 2 0 set_root_lock 1000 90000)(mem-write 3 0 plain 1000 2003)\
             (mem-write 4 0 plain 2000 3003)(mem-write 5 0 plain 3000 4003)(sysreg-write 6 0 vttbr_el2 1000000001000)",
        );
        for n in 0..rounds {
            let cell = 0x4000 + 8 * (n % 500);
            log.push_str(&format!(
                "(lock 7 0 90000)(mem-write 8 0 release {cell:x} 0)(barrier 9 0 dsb ish)(tlbi 10 0 vmalls12e1is)\
                 (barrier 11 0 dsb ish)(mem-write 12 0 release {cell:x} {:x})(unlock 13 0 90000)",
                (0x100_0000 + n * 0x1000) | 0x7c3
            ));
        }
        log
    }

    #[test]
    fn a_long_failing_trace_becomes_short_and_fails_alike() {
        let bad = "(lock 90 0 90000)(mem-write 91 0 release 4008 0)(mem-write 92 0 release 4008 5007c3)";
        let small = run(&format!("{}{bad}", log(1700))).unwrap();
        assert!(
            small.is_minimal && small.records <= 12,
            "{}: {}",
            small.records,
            String::from_utf8_lossy(&small.bytes)
        );
        assert_eq!((small.message, small.location), ("BBM invalid unclean->valid", Some(0x4008)));
        assert_eq!(small.records_before, 6 + 1700 * 7 + 3);
        let again = run(&String::from_utf8(small.bytes.clone()).unwrap()).unwrap();
        assert_eq!((again.bytes, again.location), (small.bytes, small.location));
    }

    #[test]
    fn damage_behind_the_violation_is_reported_and_changes_nothing_else() {
        let bad = "(lock 90 0 90000)(mem-write 91 0 release 4008 0)(mem-write 92 0 release 4008 5007c3)";
        let complete = format!("{}{bad}", log(2));
        let damaged = format!("{complete}\n(barrier 93 0 nonsense)\n(barrier 94 0 dsb ish)\n");
        let mut sink = Collect::default();
        let input = Input::from_bytes("t.log", damaged.into_bytes());
        let patience = Duration::from_secs(600);
        let small = minimise(input, &OpenOptions::default(), Options::ARCHITECTURE, patience, &mut sink).unwrap();
        assert_eq!(small, run(&complete));
        let codes: Vec<_> = sink.0.iter().map(anytrace_core::Diagnostic::code).collect();
        assert_eq!(codes, ["casemate/unknown-barrier"]);
    }

    #[test]
    fn a_trace_without_violation_has_nothing_to_minimise() {
        assert_eq!(run(&log(3)), None);
    }
}
