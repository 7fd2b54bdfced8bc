//! The reader on its own, without the entry points of the toolkit.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anytrace_core::{Diagnostic, Error, Input, Kind, OpenOptions};
use anytrace_xray::record::Metadata;
use anytrace_xray::{At, Reader, Run, Visitor};

mod common;
use common::made::{Content, basic, fdr};
use common::slow::decode;

#[derive(Default)]
struct Count {
    records: u64,
    problems: Vec<Diagnostic>,
}

impl Visitor for Count {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        self.records += run.len();
        Ok(())
    }

    fn metadata(&mut self, _metadata: &Metadata<'_>, _raw: &[u8], _at: At) -> Result<(), Error> {
        self.records += 1;
        Ok(())
    }

    fn report(&mut self, problem: Diagnostic) -> Result<(), Error> {
        self.problems.push(problem);
        Ok(())
    }
}

fn open(bytes: &[u8]) -> Result<Reader, Error> {
    Reader::open(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default())
}

#[test]
fn a_reader_opened_alone_finds_byte_order_and_version() {
    for big in [false, true] {
        for version in 1..=5 {
            let bytes = fdr(version, big, Content::Rich).bytes;
            let mut count = Count::default();
            let records = open(&bytes).unwrap().read(&mut count).unwrap();
            assert_eq!((records, count.records), (decode(&bytes).records.len() as u64, records));
            assert!(count.problems.is_empty());
        }
    }
}

#[test]
fn other_traces_than_fdr_are_rejected() {
    let kind = |bytes: &[u8]| open(bytes).err().unwrap().kind();
    assert_eq!(kind(&basic(3, false, Content::Rich).bytes), Kind::Unsupported);
    assert_eq!(kind(&[]), Kind::Unsupported);
    assert_eq!(kind(&[5, 0, 1, 0, 3]), Kind::Malformed);
}
