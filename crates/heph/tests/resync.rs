//! The rule of resynchronization, compared with a slow and obvious reader that shares no code with the crate.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use anytrace_core::Severity;
use anytrace_core::testing::{bit_flips, examine, mutations};
use anytrace_heph::Heph;
use common::Bytes;

const LIMIT: usize = 16 << 20;

/// Reads big-endian numbers and strings; `None` past the end.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn number(&mut self, bytes: usize) -> Option<u64> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)))
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number(2)? as usize;
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(taken.to_vec()).ok()
    }

    fn value(&mut self, kind: u64) -> Option<()> {
        match kind {
            1..=3 => self.number(8).map(|_| ()),
            4 => self.text().map(|_| ()),
            0x81..=0x84 => (0..self.number(2)?).try_for_each(|_| self.value(kind - 0x80)),
            _ => None,
        }
    }
}

enum Seen {
    Packet(usize),
    BadMagic,
    BadSize,
    BadBody(usize),
}

fn look(bytes: &[u8]) -> Seen {
    if bytes.len() < 8 {
        return Seen::BadSize;
    }
    let mut body = Body(bytes);
    let least = match body.number(4) {
        Some(0xC1FC1FB7) => 42,
        Some(0x75D11D4D) => 10,
        _ => return Seen::BadMagic,
    };
    let size = body.number(4).unwrap_or(0) as usize;
    if size < least || size > LIMIT || size > bytes.len() {
        return Seen::BadSize;
    }
    let mut body = Body(&bytes[8..size]);
    let is_good = if least == 10 {
        body.text().is_some_and(|name| name != "epoch" || body.0.len() == 8)
    } else {
        let attributes = |body: &mut Body<'_>| -> Option<()> {
            body.number(8)?;
            body.number(8)?;
            body.number(8)?;
            body.number(8)?;
            body.text()?;
            while !body.0.is_empty() {
                body.text()?;
                let kind = body.number(1)?;
                body.value(kind)?;
            }
            Some(())
        };
        attributes(&mut body).is_some()
    };
    if is_good { Seen::Packet(size) } else { Seen::BadBody(size) }
}

/// Offsets of complete packets, and offset and length of the bytes skipped.
fn read(bytes: &[u8]) -> (Vec<u64>, Vec<(u64, u64)>) {
    let (mut packets, mut skipped) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < bytes.len() {
        let search = |from: usize| {
            (from..bytes.len()).find(|at| matches!(look(&bytes[*at..]), Seen::Packet(_))).unwrap_or(bytes.len())
        };
        let next = match look(&bytes[at..]) {
            Seen::Packet(size) => {
                packets.push(at as u64);
                at += size;
                continue;
            }
            Seen::BadMagic => search(at + 1),
            Seen::BadSize => search((at + 4).min(bytes.len())),
            Seen::BadBody(size) => {
                let after = &bytes[at + size..];
                let magics = [0xC1FC1FB7_u32.to_be_bytes(), 0x75D11D4D_u32.to_be_bytes()];
                let follows = magics.iter().any(|magic| magic.starts_with(&after[..after.len().min(4)]));
                if follows { at + size } else { search(at + 4) }
            }
        };
        skipped.push((at as u64, (next - at) as u64));
        at = next;
    }
    (packets, skipped)
}

fn assert_agrees(bytes: &[u8], what: &str) {
    let (packets, skipped) = read(bytes);
    let exam = examine(&Heph, bytes);
    let ours: Vec<_> =
        exam.check.iter().filter(|d| d.severity == Severity::Error).map(|d| (d.offset, d.skipped_bytes)).collect();
    assert_eq!(ours, skipped, "{what}");
    let text = String::from_utf8(exam.text).unwrap();
    let lines = text.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>());
    let offsets: Vec<_> = lines
        .filter(|words| words[1] != "error")
        .map(|words| u64::from_str_radix(words[0].trim_start_matches("0x"), 16).unwrap())
        .collect();
    assert_eq!(offsets, packets, "{what}");
}

#[test]
fn samples_intact_flipped_and_mutated_read_as_the_obvious_reader_reads_them() {
    for (seed, (name, bytes)) in (1..).zip(common::samples()) {
        assert_agrees(&bytes, &name);
        if bytes.len() < 500 {
            bit_flips(&bytes, 400, |bit, flipped| assert_agrees(flipped, &format!("{name} bit {bit}")));
            mutations(&bytes, seed * 5, 200, |mutated| assert_agrees(mutated, &name));
        } else {
            bit_flips(&bytes, 40, |bit, flipped| assert_agrees(flipped, &format!("{name} bit {bit}")));
            mutations(&bytes, seed * 5, 20, |mutated| assert_agrees(mutated, &name));
        }
    }
}

#[test]
fn pieces_of_packets_in_any_order_read_as_the_obvious_reader_reads_them() {
    let complete = Bytes::new().epoch().poll(1, 0).poll(2, 0).metadata("host", b"box").poll(1, 1).bytes;
    let mut state = 99_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for round in 0..1500 {
        let mut bytes = Vec::new();
        for _ in 0..random(12) {
            let from = random(complete.len());
            let to = from + random(complete.len() - from + 1);
            bytes.extend_from_slice(&complete[from..to]);
        }
        assert_agrees(&bytes, &format!("round {round}"));
    }
}
