//! Reading in parts gives the rows and the diagnostics of reading at once.

#![cfg(feature = "lanes")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;

use anytrace_core::index::{Mark, Part};
use anytrace_core::testing::parts::examine_parts;
use anytrace_core::testing::{bit_flips, mutations, truncations};
use anytrace_core::{Format, Input, Kind, OpenOptions, Step};
use anytrace_heph::{Heph, Reader};
use common::{Bytes, samples};

fn sample(name: &str) -> Vec<u8> {
    samples().into_iter().find(|sample| sample.0 == name).unwrap().1
}

fn marks(bytes: &[u8], every_bytes: u64) -> Vec<Mark> {
    let mut marks = Vec::new();
    let trace = Heph.open(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
    trace.marks(every_bytes, &mut marks, &mut anytrace_core::Collect::default()).unwrap();
    marks
}

#[test]
fn every_sample_is_the_same_in_parts() {
    let parts: Vec<usize> = samples().iter().map(|(_, bytes)| examine_parts(&Heph, bytes)).collect();
    assert!(parts.iter().any(|parts| *parts >= 64), "{parts:?}");
}

#[test]
fn cut_and_changed_traces_are_the_same_in_parts() {
    let bytes = sample("real/attrs_special.bin.log");
    truncations(&bytes, 30, |_, cut| {
        examine_parts(&Heph, cut);
    });
    mutations(&bytes, 5, 40, |bytes| {
        examine_parts(&Heph, bytes);
    });
    let mut fewest = usize::MAX;
    bit_flips(&sample("real/relay_new.bin.log"), 60, |_, bytes| fewest = fewest.min(examine_parts(&Heph, bytes)));
    assert!(fewest >= 7, "{fewest}");
}

/// Events, some of which are damaged in one way each; the epoch comes late.
fn damaged() -> Vec<u8> {
    let mut made = Bytes::new();
    for n in 0..600_u32 {
        made = made.poll(n % 3, n / 3);
        let start = made.bytes.len();
        match n % 70 {
            9 => made = made.raw(&[b'x'; 3]),
            19 => made.bytes.truncate(start - 5),
            29 => made = made.event(1, n, 0, 1, 2, "bad").attribute("n", 9).u64(0).end(),
            39 => made = made.event(1, n, 0, 1, 2, "short").sized(40),
            49 => made = made.event(1, n, 0, 1, 2, "overrun").text("inside").sized(5000),
            59 => made = made.raw(&0xC1FC_1FB7_u32.to_be_bytes()),
            69 => made = made.epoch(),
            _ => {}
        }
    }
    made.bytes
}

#[test]
fn damage_beside_marks_is_the_same_in_parts() {
    let bytes = damaged();
    assert!(examine_parts(&Heph, &bytes) >= 64);
    mutations(&bytes, 11, 6, |bytes| {
        examine_parts(&Heph, bytes);
    });
}

#[test]
fn marks_are_at_packets_and_as_far_apart_as_wanted() {
    // Each is 63 bytes: 42 of fixed fields, 4 of description, 17 for the attribute.
    let bytes = (0..10).fold(Bytes::new(), |made, n| made.poll(1, n)).bytes;
    assert_eq!(bytes.len() % 10, 0);
    let packet = bytes.len() as u64 / 10;
    let offsets = |every| marks(&bytes, every).iter().map(|mark| (mark.offset / packet, mark.seq)).collect::<Vec<_>>();
    assert_eq!(offsets(1), (1..10).map(|n| (n, n)).collect::<Vec<_>>());
    assert_eq!(offsets(2 * packet + 1), [(3, 3), (6, 6), (9, 9)]);
    assert!(marks(&bytes, 1).iter().all(|mark| mark.offset % packet == 0 && mark.state.is_empty()));
    assert_eq!(offsets(u64::MAX), []);
}

#[test]
fn steps_of_parts_are_the_steps_of_the_trace() {
    let bytes = damaged();
    let steps = |part: Option<Part>| {
        let options = OpenOptions { part, ..OpenOptions::default() };
        let mut reader = Reader::new(Input::from_bytes("x", bytes.clone()), &options).unwrap();
        let mut seen = Vec::new();
        while let Some(step) = reader.next().unwrap() {
            seen.push(match step {
                Step::Record(place, record) => format!("{place:?} {record:?}"),
                Step::Damage(diagnostic) => diagnostic.to_string(),
            });
        }
        seen
    };
    let marks = marks(&bytes, 900);
    let froms = std::iter::once(None).chain(marks.iter().cloned().map(Some));
    let untils = marks.iter().map(|mark| Some(mark.offset)).chain([None]);
    let joined: Vec<_> = froms
        .zip(untils)
        .flat_map(|(from, until)| steps(Some(Part { from, until, shared: None, ..Part::default() })))
        .collect();
    assert!(marks.len() > 30 && joined == steps(None));
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let bytes = sample("real/relay_new.bin.log");
    let refused = |part: Part| {
        let options = OpenOptions { part: Some(part), ..OpenOptions::default() };
        Reader::new(Input::from_bytes("x", bytes.clone()), &options)
            .err()
            .map(|error| (error.kind(), error.to_string()))
    };
    let from =
        |offset, state: &[u8]| Part { from: Some(Mark { offset, seq: 0, state: state.into() }), ..Part::default() };
    assert_eq!(refused(from(0, &[])), None);
    let beyond = bytes.len() as u64 + 1;
    assert_eq!(refused(from(beyond, &[])).unwrap(), (Kind::Usage, format!("reading cannot begin at byte {beyond:#x}")));
    assert_eq!(refused(from(0, &[1, 2])).unwrap().0, Kind::Usage);
    let shared: Option<Arc<[u8]>> = Some([1; 9].into());
    let (kind, text) = refused(Part { shared, ..Part::default() }).unwrap();
    assert!(kind == Kind::Usage && text.contains("--recover"), "{text}");
}
