//! The trace as accesses, compared with the output of `dump`.

#![cfg(feature = "lanes")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use anytrace_core::access::{
    Access, AccessKind, AccessSink, BATCH_ACCESSES, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber,
};
use anytrace_core::testing::{dripping, examine};
use anytrace_core::{Collect, Error, Format, OpenOptions};
use anytrace_lackey::Lackey;

#[derive(Default)]
struct Accesses {
    threads: Vec<(ThreadNumber, Option<u64>)>,
    accesses: Vec<Access>,
}

impl AccessSink for Accesses {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.threads.push((number, id));
        Ok(())
    }

    fn type_name(&mut self, _: TypeNumber, _: Option<&[u8]>) -> Result<(), Error> {
        Err(Error::unsupported("a log names no types"))
    }

    fn region_added(&mut self, _: &RegionAdded) -> Result<(), Error> {
        Err(Error::unsupported("a log has no regions"))
    }

    fn region_removed(&mut self, _: &RegionRemoved) -> Result<(), Error> {
        Err(Error::unsupported("a log has no regions"))
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        assert!(!batch.is_empty() && batch.len() <= BATCH_ACCESSES && self.threads.len() == 1);
        // The two accesses of a modify come together.
        let is_modify = |pair: &[Access]| pair[0].seq == pair[1].seq;
        assert_eq!(
            self.accesses.last().map(|last| last.seq),
            batch[0].seq.checked_sub(1).filter(|_| !self.accesses.is_empty())
        );
        for pair in batch.windows(2).filter(|pair| is_modify(pair)) {
            assert_eq!((pair[0].kind, pair[1].kind), (AccessKind::Read, AccessKind::Write));
        }
        self.accesses.extend(batch);
        Ok(())
    }
}

fn accesses_of(bytes: &[u8]) -> Accesses {
    let mut out = Accesses::default();
    let trace = Lackey.open(dripping("x", bytes, 1000), &OpenOptions::default()).unwrap();
    trace.accesses(&mut out, &mut Collect::default()).unwrap();
    out
}

#[test]
fn each_record_is_emitted_as_its_accesses() {
    let out = accesses_of(
        b"==7== x\nI  00001000,3\n L 00002000,8\n S 00003000,4\n M 00004000,2\nword\n L ffffffffffffffff,65535\n",
    );
    let shown: Vec<_> = out.accesses.iter().map(|a| (a.seq, a.kind.name(), a.address, a.bytes)).collect();
    assert_eq!(
        shown,
        [
            (0, "fetch", 0x1000, 3),
            (1, "read", 0x2000, 8),
            (2, "write", 0x3000, 4),
            (3, "read", 0x4000, 2),
            (3, "write", 0x4000, 2),
            (4, "read", u64::MAX, 65535),
        ]
    );
    assert_eq!(out.threads, [(0, Some(0))]);
    assert!(accesses_of(b"==7== x\nSB 00001000\n").threads.is_empty(), "superblocks are no accesses");
}

#[test]
fn accesses_are_as_many_as_info_counts() {
    for name in ["rows", "rows32", "printed", "two-processes"] {
        let bytes = std::fs::read(format!("{}/corpus/{name}.lackey", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let info = examine(&Lackey, &bytes).info.0;
        let of = |kind: &str| info.kinds.iter().find(|(name, _)| name == kind).map_or(0, |(_, count)| *count);
        let out = accesses_of(&bytes);
        let count = |kind| out.accesses.iter().filter(|access| access.kind == kind).count() as u64;
        assert_eq!(count(AccessKind::Fetch), of("fetch"), "{name}");
        assert_eq!(count(AccessKind::Read), of("read") + of("modify"), "{name}");
        assert_eq!(count(AccessKind::Write), of("write") + of("modify"), "{name}");
    }
}

#[test]
fn modifies_fill_batches_without_being_parted() {
    let out = accesses_of(" M 00001000,4\n".repeat(5000).as_bytes());
    assert_eq!(out.accesses.len(), 10_000);
}
