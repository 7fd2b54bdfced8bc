//! Random traces with one changed byte: what else is lost, and what a repair makes of them.
//!
//! Three things can cost more than the changed event. Its definitions are lost with it, so that events that use them
//! cannot be read; without a type table this cannot be helped. It may be read as a longer event, which contains the start
//! of the next one. And where reading resumes, three leaves must fit, which the last few events do not have.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod model;
mod random;

use std::collections::BTreeMap;

use anytrace_apitrace::{Apitrace, Pairing, Reader};
use anytrace_core::testing::rewrite_with;
use anytrace_core::{Input, OpenOptions, Plan, Settings, Step, TargetOptions};
use model::{decode, encode, random_trace};
use random::Random;

/// An event: the number of its call, how a leave fits, and its bytes.
type Row = (Option<u64>, Option<Pairing>, Vec<u8>);

/// The events of a raw stream by offset, and how many places are damaged.
fn rows(bytes: &[u8]) -> (BTreeMap<usize, Row>, usize) {
    let mut reader = Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &OpenOptions::default()).unwrap();
    let (mut rows, mut damaged) = (BTreeMap::new(), 0);
    while let Some(step) = reader.next().unwrap() {
        match step {
            Step::Record(place, event) => {
                rows.insert(place.offset as usize, (event.call(), event.pairing(), event.bytes().to_vec()));
            }
            Step::Damage(_) => damaged += 1,
        }
    }
    (rows, damaged)
}

/// Leaves of calls that do not wait for one.
fn stray_leaves(rows: &BTreeMap<usize, Row>) -> usize {
    rows.values().filter(|(_, pairing, _)| *pairing != Some(Pairing::Paired)).count()
}

fn repaired(bytes: &[u8]) -> Vec<u8> {
    let own = Settings::default().with("container", "raw");
    let plan = Plan::Repair(TargetOptions { own, ..TargetOptions::default() });
    rewrite_with(&Apitrace, &OpenOptions::default(), bytes, &plan).unwrap().0
}

#[test]
fn one_changed_byte_costs_few_other_events_and_can_be_repaired() {
    let mut random = Random(41);
    let (mut others, mut kept) = (0, 0);
    for round in 0..60 {
        let raw = encode(&random_trace(&mut random, 40));
        let (before, damaged) = rows(&raw);
        assert_eq!((damaged, stray_leaves(&before)), (0, 0), "round {round}");
        let offsets: Vec<usize> = before.keys().copied().collect();
        for _ in 0..40 {
            let changed = random.below(offsets.len() as u64) as usize;
            let (start, end) = (offsets[changed], offsets.get(changed + 1).copied().unwrap_or(raw.len()));
            let at = start + random.below((end - start) as u64) as usize;
            let mut bytes = raw.clone();
            bytes[at] = bytes[at].wrapping_add(1 + random.below(255) as u8);
            let what = format!("round {round}: byte {at} of the event {start}..{end}, {} -> {}", raw[at], bytes[at]);

            let (after, _) = rows(&bytes);
            assert!(before.range(..start).eq(after.range(..start)), "{what}: what precedes it changes");
            others += before.len() - 1;
            kept += before.iter().filter(|(at, row)| **at != start && after.get(at) == Some(row)).count();

            // The model's decoder accepts no byte that does not fit.
            let out = repaired(&bytes);
            let events = decode(&out).events.len();
            let (found, damaged) = rows(&out);
            assert_eq!((found.len(), damaged), (events, 0), "{what}: the repaired trace");
            assert!(stray_leaves(&found) <= stray_leaves(&after), "{what}: leaves without a call");
        }
    }
    assert!(kept * 100 >= others * 93, "{kept} of {others} other events were kept");
}
