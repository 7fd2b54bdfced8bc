//! The state, compared with the reference's own, and the preamble, compared with the state it rebuilds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anytrace_core::testing::{rewrite, shared_corpus};
use anytrace_core::{Collect, Error, Input, Limits, OpenOptions, Plan, Selection, TargetOptions};

use crate::verbs::preamble::is_preamble;
use crate::verbs::state::{MachineState, Progress};
use crate::wire::record::Source;
use crate::wire::walk::{Here, Item, Walk};
use crate::{Casemate, Kind};

fn visit(bytes: &[u8], take: impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error>) -> Result<(), Error> {
    let input = Input::from_bytes("bytes", bytes.to_vec());
    Walk::new(input, &OpenOptions::default())?.for_each(&mut Collect::default(), take)
}

/// The state after the records that `wanted` selects by number and source.
fn state_of(bytes: &[u8], wanted: impl Fn(u64, &Source<'_>) -> bool) -> MachineState {
    let mut state = MachineState::new(Limits::default());
    visit(bytes, |item, place| {
        if let Item::Record(record) = item
            && wanted(place.seq, &record.source)
        {
            state.apply(record);
        }
        Ok(())
    })
    .unwrap();
    state
}

/// How many records come before the one with this id.
fn records_before(bytes: &[u8], id: &str) -> u64 {
    let mut before = u64::MAX;
    visit(bytes, |item, place| {
        if let Item::Record(record) = item
            && record.id.to_string() == id
        {
            before = before.min(place.seq);
        }
        Ok(())
    })
    .unwrap();
    before
}

fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// Traces of the corpus: name, bytes, and how many records the reference accepts.
fn accepted_parts(corpus: &Path) -> Vec<(String, Vec<u8>, u64)> {
    let mut parts = Vec::new();
    for row in rows(&corpus.join("verdicts.tsv")) {
        let bytes = std::fs::read(corpus.join("traces").join(&row[0])).unwrap();
        let before = if row[4] == "ok" { u64::MAX } else { records_before(&bytes, &row[5]) };
        // Without lock checks, defaults or initialization the model differs.
        if row[2] == "-" && bytes.len() < 300_000 {
            parts.push((row[0].clone(), bytes, before));
        }
    }
    parts
}

fn unclean_text(state: &MachineState) -> BTreeSet<String> {
    let lis = |progress| match progress {
        Progress::Unguarded => "n",
        Progress::Dsbed => "d",
        Progress::TlbiIpa => "ti",
        Progress::TlbiIpaDsbed => "td",
        Progress::Tlbied => "ta",
    };
    state.unclean.iter().map(|(word, u)| format!("{word:#x}={}/{}", lis(u.progress), u.thread)).collect()
}

#[test]
fn the_state_is_the_references_after_the_last_good_step() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    let expected: BTreeMap<String, Vec<String>> =
        rows(&corpus.join("final_state.tsv")).into_iter().map(|row| (row[0].clone(), row)).collect();
    let (mut compared, mut holders) = (0, 0);
    for (name, bytes, end) in accepted_parts(&corpus) {
        let Some(row) = expected.get(&name) else { continue };
        let state = state_of(&bytes, |seq, _| seq < end);
        let unclean = row[3].split([',', ' ']).filter(|cell| !cell.is_empty() && *cell != "-");
        assert_eq!(unclean_text(&state), unclean.map(str::to_owned).collect(), "{name}");
        let mut roots: Vec<_> = state.roots.iter().map(|r| format!("{:#x}/{}", r.base, r.value >> 48)).collect();
        let mut named: Vec<_> = row[1].split(',').filter(|r| *r != "-" && !r.is_empty()).collect();
        roots.sort();
        named.sort();
        assert_eq!(roots, named, "{name}");
        for (root, lock) in &state.root_locks {
            assert!(row[2].contains(&format!("({root:#x},{lock:#x}")), "{name}: {root:#x} {}", row[2]);
            // The reference shows a holder only when it is the thread that acted last.
            let shown = row[2].split(&format!("({root:#x},{lock:#x}, locked ")).nth(1);
            if let (Some(shown), Some(held)) = (shown, state.locks.get(lock)) {
                let auth = if held.is_spent { "not authorized" } else { "authorized" };
                let text = format!("{} times by thread {}, write {auth})", held.count, held.thread);
                assert!(shown.starts_with(&text), "{name}: {text} {shown}");
                holders += 1;
            }
        }
        compared += 1;
    }
    assert!(holders > 20, "{holders}");
    assert!(compared > 200, "{compared}");
}

fn trimmed(bytes: &[u8], from: u64) -> Vec<u8> {
    let selection = Selection { records: Some(from..from + 1), ..Selection::default() };
    rewrite(&Casemate, bytes, &Plan::Trim(selection, TargetOptions::default())).unwrap().0
}

fn assert_rebuilt(name: &str, bytes: &[u8], from: u64) {
    let original = state_of(bytes, |seq, _| seq < from);
    let part = trimmed(bytes, from);
    let rebuilt = state_of(&part, |_, source| is_preamble(source));
    let at = format!("{name} at {from}");
    assert_eq!(rebuilt.memory, original.memory, "{at}");
    assert_eq!(rebuilt.tables, original.tables, "{at}");
    let roots = |state: &MachineState| state.roots.iter().map(|r| (r.base, r.stage, r.value)).collect::<Vec<_>>();
    assert_eq!(roots(&rebuilt), roots(&original), "{at}");
    assert_eq!(rebuilt.was_table, original.was_table, "{at}");
    assert_eq!(rebuilt.root_locks, original.root_locks, "{at}");
    assert_eq!(rebuilt.owner_roots, original.owner_roots, "{at}");
    assert_eq!(unclean_text(&rebuilt), unclean_text(&original), "{at}");
    let olds = |state: &MachineState| state.unclean.iter().map(|(word, u)| (*word, u.old)).collect::<Vec<_>>();
    assert_eq!(olds(&rebuilt), olds(&original), "{at}");
    let owners = |state: &MachineState| state.thread_owners.iter().map(|(w, s)| (*w, s.transition)).collect::<Vec<_>>();
    assert_eq!(owners(&rebuilt), owners(&original), "{at}");
    let held =
        |state: &MachineState| state.locks.iter().map(|(l, h)| (*l, h.thread, h.count, h.is_spent)).collect::<Vec<_>>();
    assert_eq!(held(&rebuilt), held(&original), "{at}");
    let registers = |state: &MachineState| {
        let of = |thread: &crate::verbs::state::Thread| (thread.registers.clone(), thread.current);
        state.threads.iter().map(|(id, thread)| (*id, of(thread))).collect::<Vec<_>>()
    };
    assert_eq!(registers(&rebuilt), registers(&original), "{at}");
}

#[test]
fn a_preamble_rebuilds_the_state_at_its_record() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    let mut compared = 0;
    for (name, bytes, end) in accepted_parts(&corpus) {
        let mut records = 0;
        visit(&bytes, |item, _| {
            records += u64::from(matches!(item, Item::Record(_)));
            Ok(())
        })
        .unwrap();
        let end = end.min(records.saturating_sub(1));
        for from in (1..=end).step_by((end / 12).max(1) as usize) {
            assert_rebuilt(&name, &bytes, from);
            compared += 1;
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn a_preamble_rebuilds_the_state_of_every_small_sample() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for name in ["head_good_bbm", "head_good_trylock", "condensed_good_bbm", "joined_c0015", "multiline_c0003"] {
        let bytes = std::fs::read(folder.join(name).with_extension("log")).unwrap();
        let mut records = 0;
        visit(&bytes, |item, _| {
            records += u64::from(matches!(item, Item::Record(_)));
            Ok(())
        })
        .unwrap();
        (1..records).for_each(|from| assert_rebuilt(name, &bytes, from));
    }
}

#[test]
fn a_part_that_begins_with_the_trace_has_no_preamble() {
    let bytes = b"(mem-init 0 0 1000 1000)\n(lock 1 0 42)\n";
    assert_eq!(trimmed(bytes, 0), b"(mem-init 0 0 1000 1000)\n");
    let part = trimmed(bytes, 1);
    let state = state_of(&part, |_, source| is_preamble(source));
    assert!(state.memory.initialised.contains(0x1ff8) && !state.memory.initialised.contains(0x2000));
    assert!(Kind::ALL.len() == 13);
}
