//! The reader on its own, without the entry points of the toolkit.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anytrace_core::{Diagnostic, Input, OpenOptions, Step};
use anytrace_xray::{LayoutForm, Reader};

mod common;
use common::made::{Content, basic, fdr};
use common::slow::decode;

fn open(bytes: &[u8]) -> Reader {
    Reader::new(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap()
}

fn damage(bytes: &[u8]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut reader = open(bytes);
    while let Some(step) = reader.next().unwrap() {
        match step {
            Step::Damage(diagnostic) => found.push(diagnostic),
            Step::Record(..) => panic!("a record"),
        }
    }
    found
}

#[test]
fn a_reader_opened_alone_finds_form_byte_order_and_version() {
    for big in [false, true] {
        for version in 1..=5 {
            let bytes = fdr(version, big, Content::Rich).bytes;
            let mut reader = open(&bytes);
            assert!(matches!(reader.layout().form, LayoutForm::Fdr(_)));
            assert_eq!(reader.layout().version(), u32::from(version));
            let mut count = 0;
            let passed = reader
                .for_each(|step| {
                    assert!(matches!(step, Step::Record(..)));
                    count += 1;
                    Ok(())
                })
                .unwrap();
            assert_eq!((passed.records, count), (decode(&bytes).records.len() as u64, passed.records));
            assert_eq!((passed.bytes, passed.bytes_lost), (bytes.len() as u64, 0));
        }
        assert!(matches!(open(&basic(3, big, Content::Rich).bytes).layout().form, LayoutForm::Basic(_)));
    }
}

#[test]
fn a_header_that_cannot_be_read_is_damage() {
    assert!(damage(&[]).is_empty());
    assert_eq!(damage(&[5, 0, 1, 0, 3])[0].code(), "xray/header-truncated");
    let mut future = vec![9, 0, 1, 0];
    future.resize(64, 0);
    assert_eq!(damage(&future)[0].code(), "xray/unknown-version");
    assert_eq!(open(&future).for_each(|_| Ok(())).unwrap().bytes_lost, 64);
}
