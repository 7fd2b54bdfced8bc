//! Bytes that arrive in pieces give the same result as the reader on all bytes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use anytrace_core::testing::mutations;
use anytrace_core::{Diagnostic, Error, Input, Limits, OpenOptions, Place, Settings};
use anytrace_heph::{Damage, Framer, Reader, Record, Visitor};

/// Everything that a visitor receives.
#[derive(Debug, Default, PartialEq)]
struct Received(Vec<String>);

impl Visitor for Received {
    fn packet(&mut self, place: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        self.0.push(format!("{} {} {} {}", place.seq, place.offset, bytes.len(), matches!(packet, Record::Event(_))));
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.0.push(diagnostic.code().to_owned());
        Ok(())
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        let Damage { offset, seq, skipped, is_resumed, .. } = damage;
        // Packets above the limit are handled differently, and a packet cut by the end may be either.
        self.0.push(format!("{offset} {seq} {} {skipped} {is_resumed} {:?}", damage.code(), damage.header));
        Ok(())
    }
}

fn read(bytes: &[u8]) -> Received {
    let mut received = Received::default();
    Reader::new(
        Input::from_bytes_as_is("x", bytes.to_vec()),
        &OpenOptions { own: Settings::default().with_flag("recover"), ..OpenOptions::default() },
    )
    .unwrap()
    .read(&mut received)
    .unwrap();
    received
}

fn framed(bytes: &[u8], step: usize) -> Received {
    let (mut received, mut framer) = (Received::default(), Framer::new(&Limits::default(), true));
    let (mut window, mut need) = (Vec::new(), 0);
    for piece in bytes.chunks(step) {
        window.extend_from_slice(piece);
        if window.len() >= need {
            let walked = framer.walk(&window, false, &mut received).unwrap();
            assert!(walked.need > window.len() - walked.used, "{walked:?} of {}", window.len());
            window.drain(..walked.used);
            need = walked.need;
        }
    }
    let walked = framer.walk(&window, true, &mut received).unwrap();
    assert_eq!((walked.used, walked.need, framer.offset()), (window.len(), 0, bytes.len() as u64));
    received
}

/// Sizes above the limit are handled by another rule.
fn is_compared(received: &Received) -> bool {
    !received.0.iter().any(|line| line.contains("size-too-big"))
}

#[test]
fn every_sample_in_pieces_gives_what_the_reader_gives() {
    for (name, bytes) in common::samples() {
        let complete = read(&bytes);
        for step in [1, 7, 4096, usize::MAX] {
            if step == 1 && bytes.len() > 100_000 || !is_compared(&complete) {
                continue;
            }
            assert_eq!(framed(&bytes, step), complete, "{name} in steps of {step}");
        }
    }
}

#[test]
fn damaged_samples_in_pieces_give_what_the_reader_gives() {
    for (name, bytes) in common::samples().into_iter().filter(|(_, bytes)| (60..3000).contains(&bytes.len())) {
        let mut step = 0;
        mutations(&bytes, 7, 60, |damaged| {
            step = step % 50 + 1;
            let complete = read(damaged);
            if is_compared(&complete) {
                assert_eq!(framed(damaged, step), complete, "{name}, steps of {step}: {damaged:02x?}");
            }
        });
    }
}

#[test]
fn a_size_of_4_gib_costs_only_its_packet() {
    let good = common::Bytes::new().event(1, 0, 0, 1, 2, "good").end();
    let bytes = good.clone().event(1, 1, 0, 1, 2, "bad").sized(u32::MAX).event(1, 2, 0, 3, 4, "good").end().bytes;
    for step in [1, 13, 1000] {
        let received = framed(&bytes, step).0;
        assert_eq!(received.len(), 3, "{received:?}");
        assert!(received[1].contains("size-too-big 45 true"), "{received:?}");
    }
}

#[test]
fn garbage_alone_is_passed_over_and_never_gathered() {
    let (mut received, mut framer) = (Received::default(), Framer::new(&Limits::default(), true));
    let garbage = vec![0x75; 100_000];
    for _ in 0..10 {
        let walked = framer.walk(&garbage, false, &mut received).unwrap();
        assert_eq!((walked.used, walked.need), (garbage.len() - 3, 4));
    }
    assert!(received.0.is_empty() && framer.is_searching());
}
