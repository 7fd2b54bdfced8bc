//! Reading in parts gives the rows and the diagnostics of reading at once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod common;

use anytrace_cacheray::Cacheray;
use anytrace_core::testing::parts::examine_parts;
use anytrace_core::testing::{mutations, truncations};
use common::{corpus, traces};

/// Bytes of a sample that are read: each is read a few hundred times.
const SAMPLE_BYTES: usize = 30_000;

#[test]
fn every_sample_is_the_same_in_parts() {
    let mut most = 0;
    for (_, path) in traces(&corpus()) {
        let bytes = std::fs::read(path).unwrap();
        most = most.max(examine_parts(&Cacheray, &bytes[..bytes.len().min(SAMPLE_BYTES)]));
    }
    assert!(most >= 64, "{most}");
}

#[test]
fn cut_and_changed_traces_are_the_same_in_parts() {
    let bytes = std::fs::read(corpus().join("broken/overlap-nested.trace")).unwrap();
    truncations(&bytes, 20, |_, cut| _ = examine_parts(&Cacheray, cut));
    mutations(&bytes, 5, 40, |bytes| _ = examine_parts(&Cacheray, bytes));
}

/// An access: eight bytes wide pointers, little-endian.
fn access(tag: u8, address: u64, thread: u64) -> Vec<u8> {
    [&[tag][..], &address.to_le_bytes(), &[4], &thread.to_le_bytes()].concat()
}

#[test]
fn damage_beside_marks_is_the_same_in_parts() {
    // Bytes lost at every distance from a mark: what a reader knows there decides where it believes damage to begin.
    let mut bytes = Vec::new();
    let mut seed = 1_u64;
    for n in 0..4000_u64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend(access((seed >> 40) as u8 & 1, 0x7f00_0000_0000 + (n % 50) * 8, 100 + (seed >> 50) % 3));
        if n % 700 == 699 {
            let lost = 1 + (seed >> 45) as usize % 17;
            bytes.truncate(bytes.len() - lost);
        }
    }
    bytes.extend([0; 18 * 300]);
    assert!(examine_parts(&Cacheray, &bytes) >= 4);
    mutations(&bytes, 11, 8, |bytes| _ = examine_parts(&Cacheray, bytes));
}
