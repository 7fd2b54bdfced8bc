//! What the format explains in words: the violations of a trace, the states of its entries, the machine after a record,
//! and what happened to the entry that a record wrote.

use anytrace_core::hash::Map;
use anytrace_core::index::Open;
use anytrace_core::{Course, Error, Explanation, Lines, OpenOptions, Sink, Subject};

use super::check::CheckOptions;
use super::checkpoints::StateAt;
use super::explain::explain as stories;
use super::history::{Event, Where};
use super::machine::state_text;
use super::timeline::{Of, timeline};
use crate::model::{Checker, Options};
use crate::wire::record::Transition;
use crate::wire::walk::{Item, Walk};

/// The explanations of the format.
pub(crate) const EXPLANATIONS: &[Explanation] = &[
    Explanation { name: "breaches", title: "Explain", subject: Subject::Trace },
    Explanation { name: "entries", title: "Entries", subject: Subject::Trace },
    Explanation { name: "state", title: "Machine after this record", subject: Subject::Record },
    Explanation { name: "entry", title: "The entry that this record wrote", subject: Subject::Record },
];

/// Violations that are explained.
const EXPLAINED_MAX: u64 = 100;

/// Entries whose states are shown, those that are remembered to choose among, and states of one.
const ENTRIES_MAX: usize = 100;
const REMEMBERED_MAX: usize = 65_536;
const STATES_MAX: usize = 2000;

/// How checking goes on behind a violation.
const GOES_ON: Options = Options { goes_on: true, ..Options::ARCHITECTURE };

/// Begins what leads to a record; see [`Where::words`].
const RECORD: &str = "record ";

/// Writes an explanation.
pub(crate) fn explain(
    explanation: &str,
    at: Option<u64>,
    open: &Open<'_>,
    options: &OpenOptions,
    out: &mut dyn Lines,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let text = match explanation {
        "breaches" => {
            let check = CheckOptions { model: GOES_ON, limit: EXPLAINED_MAX, ..CheckOptions::default() };
            stories(open, options, &check, sink)?.text()
        }
        "entries" => return entries(open, options, out, sink),
        "entry" => return entry(at, open, options, out, sink),
        "state" => state_text(&state(at, open, options, sink)?, true),
        other => return Err(Error::usage(format!("casemate traces have no explanation {other}"))),
    };
    text.lines().try_for_each(|line| out.line(line, record_of(line)))
}

/// The machine after a record, or at the end.
fn state(at: Option<u64>, open: &Open<'_>, options: &OpenOptions, sink: &mut dyn Sink) -> Result<StateAt, Error> {
    let mut state = StateAt { checker: Checker::new(GOES_ON), at: None };
    let mut is_there = false;
    let read = Walk::new(open()?, options)?.for_each(sink, |item, place| {
        let Item::Record(record) = item else { return Ok(()) };
        state.checker.step(record.thread, &record.transition);
        is_there = at == Some(place.seq);
        if at.is_none() || is_there {
            state.at = Some(Where::of(record, place.seq));
        }
        if is_there { Err(Error::usage("the record is reached")) } else { Ok(()) }
    });
    match (read, at) {
        (Err(error), _) if !is_there => Err(error),
        (Ok(()), Some(record)) => Err(Error::usage(format!("there is no record {record}"))),
        _ => Ok(state),
    }
}

/// The states of the entries that changed most, one below the other.
fn entries(open: &Open<'_>, options: &OpenOptions, out: &mut dyn Lines, sink: &mut dyn Sink) -> Result<(), Error> {
    let mut states = States::default();
    timeline(open()?, options, GOES_ON, &Of::AllUnclean, sink, |event| {
        states.add(event);
        Ok(())
    })?;
    let last = records(open, options)?;
    let all = states.entries.len();
    if all == 0 {
        return out.line("No entry of a page table changes its state in this trace.", None);
    }
    let courses = states.finish(last);
    let more = if states.left_out > 0 { " and more" } else { "" };
    out.line(
        &format!("Entries that change: {all}{more}. V is valid, I invalid; IU is invalid while TLBs may still have the old value:"),
        None,
    )?;
    out.line("VS is valid while TLBs may still grant what the entry lost in place. After IU and VS:", None)?;
    out.line("n nothing done, d after a DSB, ti a TLBI by IPA, td with its DSB, ta all TLBIs done.", None)?;
    let title = match courses.len() {
        shown if shown == all => "States of the entries, by records".to_owned(),
        shown => format!("States of the {shown} entries with most changes, by records"),
    };
    out.courses(&title, courses)
}

/// How many records there are. What is damaged was reported before.
fn records(open: &Open<'_>, options: &OpenOptions) -> Result<u64, Error> {
    let mut count = 0;
    Walk::new(open()?, options)?.for_each(&mut anytrace_core::Collect::default(), |item, _| {
        count += u64::from(matches!(item, Item::Record(_)));
        Ok(())
    })?;
    Ok(count)
}

/// The states of entries, in order.
#[derive(Default)]
struct States {
    entries: Map<u64, Vec<(u64, &'static str)>>,
    /// Changes that were not remembered.
    left_out: u64,
}

impl States {
    fn add(&mut self, event: &Event) {
        let Some(state) = event.what.state() else { return };
        if self.entries.len() >= REMEMBERED_MAX && !self.entries.contains_key(&event.cell) {
            self.left_out += 1;
            return;
        }
        let states = self.entries.entry(event.cell).or_default();
        let has_room = states.len() < STATES_MAX;
        match states.last_mut() {
            Some((_, last)) if *last == state => {}
            // Of several at one record, the last is the one it leaves behind.
            Some((record, last)) if *record == event.at.index => *last = state,
            _ if has_room => states.push((event.at.index, state)),
            _ => self.left_out += 1,
        }
    }

    /// The entries with most changes, in the order of their addresses.
    fn finish(&mut self, last: u64) -> Vec<Course> {
        let mut entries: Vec<(u64, Vec<(u64, &'static str)>)> = self.entries.drain().collect();
        entries.sort_by_key(|(cell, states)| (std::cmp::Reverse(states.len()), *cell));
        entries.truncate(ENTRIES_MAX);
        entries.sort_by_key(|(cell, _)| *cell);
        entries.into_iter().map(|(cell, states)| course(cell, &states, last)).collect()
    }
}

/// Each state lasts until the next.
fn course(cell: u64, states: &[(u64, &'static str)], last: u64) -> Course {
    let ends = states.iter().skip(1).map(|(start, _)| *start).chain([last]);
    let states = states.iter().zip(ends).map(|((start, state), end)| (*start, end, *state)).collect();
    Course { name: format!("{cell:#x}"), states }
}

/// All that happens to the entry that a record wrote.
fn entry(
    at: Option<u64>,
    open: &Open<'_>,
    options: &OpenOptions,
    out: &mut dyn Lines,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let Some(cell) = written(at, open, options, sink)? else {
        return out.line("This record writes no entry of a page table.", None);
    };
    let mut states = States::default();
    let mut lines = 0_u64;
    timeline(open()?, options, GOES_ON, &Of::Locations(vec![cell]), &mut anytrace_core::Collect::default(), |event| {
        states.add(event);
        lines += 1;
        let state = event.what.state().map_or(String::new(), |state| format!(" [{state}]"));
        out.line(&format!("{}: {}{state}", event.at.words(), event.what.words()), Some(event.at.index))
    })?;
    if lines == 0 {
        return out.line(&format!("{cell:#x} is in no page table that the trace shows."), None);
    }
    let last = records(open, options)?;
    out.courses(&format!("States of the entry {cell:#x}, by records"), states.finish(last))
}

/// The address of the word that a record writes.
fn written(at: Option<u64>, open: &Open<'_>, options: &OpenOptions, sink: &mut dyn Sink) -> Result<Option<u64>, Error> {
    let mut found = None;
    let read = Walk::new(open()?, options)?.for_each(sink, |item, place| {
        let Item::Record(record) = item else { return Ok(()) };
        if at != Some(place.seq) {
            return Ok(());
        }
        found = Some(match record.transition {
            Transition::MemWrite { address, .. }
            | Transition::MemAtomic { address, .. }
            | Transition::MemSet { address, .. } => Some(address & !7),
            _ => None,
        });
        Err(Error::usage("the record is reached"))
    });
    match (found, read) {
        (Some(found), _) => Ok(found),
        (None, Err(error)) => Err(error),
        (None, Ok(())) => Err(Error::usage(format!("there is no record {}", at.unwrap_or(0)))),
    }
}

/// The first record that a line is about.
fn record_of(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(RECORD)?;
    let (number, rest) = rest.split_once(' ')?;
    if rest.starts_with("(id ") { number.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use anytrace_core::testing::{Explained, explained};

    use super::*;
    use crate::Casemate;

    fn example(explanation: &str, at: Option<u64>) -> Result<Explained, Error> {
        let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let bytes = std::fs::read(examples.join("tour/missing-tlbi.casemate")).unwrap();
        explained(&Casemate, &bytes, explanation, at)
    }

    fn lines(explanation: &str, at: Option<u64>) -> Result<Vec<(String, Option<u64>)>, Error> {
        Ok(example(explanation, at)?.lines)
    }

    /// Breaks no rule.
    const LOG: &[u8] = b"(mem-init 1 0 1000 1000)(hint 2 0 set_root_lock 1000 90000)(sysreg-write 3 0 vtcr_el2 2b)\
                         (sysreg-write 4 0 vttbr_el2 1000)(lock 5 0 90000)(mem-write 6 0 release 1008 0)\
                         (mem-write 7 0 release 1008 50003)(mem-write 8 0 release 1010 60003)(unlock 9 0 90000)";

    #[test]
    fn entries_have_their_states_from_record_to_record() {
        let found = explained(&Casemate, LOG, "entries", None).unwrap();
        let shown: Vec<_> = found.courses.iter().map(|one| (&*one.name, &one.states[..])).collect();
        assert_eq!(shown, [("0x1008", &[(6, 9, "V")][..]), ("0x1010", &[(7, 9, "V")][..])]);
        let none = explained(&Casemate, b"(barrier 0 0 dsb ish)", "entries", None).unwrap();
        assert!(none.courses.is_empty() && none.lines[0].0.starts_with("No entry"), "{none:?}");
        let broken = example("entries", None).unwrap();
        assert!(broken.courses.iter().any(|one| one.states.iter().any(|(.., state)| state.starts_with("IU"))));
    }

    #[test]
    fn an_entry_that_breaks_no_rule_has_a_history() {
        let found = explained(&Casemate, LOG, "entry", Some(6)).unwrap();
        assert!(found.lines.iter().any(|(text, at)| *at == Some(6) && text.contains("made valid")), "{found:?}");
        assert_eq!(found.courses[0].states, [(6, 9, "V")]);
        let barrier = explained(&Casemate, LOG, "entry", Some(4)).unwrap();
        assert_eq!(barrier.lines[0].0, "This record writes no entry of a page table.");
        assert!(explained(&Casemate, LOG, "entry", Some(99)).unwrap_err().to_string().contains("no record 99"));
    }

    #[test]
    fn breaches_lead_to_their_records() {
        let found = lines("breaches", None).unwrap();
        let at: Vec<u64> = found.iter().filter_map(|(_, record)| *record).collect();
        assert!(!at.is_empty(), "{found:?}");
        assert!(found.iter().any(|(text, _)| text.trim_start().starts_with("missing: ")), "{found:?}");
    }

    #[test]
    fn the_machine_is_that_after_the_record() {
        let found = lines("state", Some(3)).unwrap();
        assert_eq!(found.first().and_then(|(_, record)| *record), Some(3), "{found:?}");
        let last = lines("state", None).unwrap();
        assert!(last.first().and_then(|(_, record)| *record) > Some(3), "{last:?}");
        let missing = lines("state", Some(1 << 40)).unwrap_err();
        assert!(missing.to_string().contains("no record"), "{missing}");
        assert!(lines("nothing", None).is_err());
    }

    #[test]
    fn only_a_record_is_one() {
        assert_eq!(record_of("    record 12 (id 23), thread 0"), Some(12));
        assert_eq!(record_of("at record 7 (id 7)"), Some(7));
        for line in ["record x (id 3)", "a record 3 of", "record", ""] {
            assert_eq!(record_of(line), None, "{line}");
        }
    }
}
