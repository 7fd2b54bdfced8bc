//! The writer against the labeled builder, and packets of any content.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use anytrace_core::testing::{examine, through_jsonl};
use anytrace_core::{Kind, OpenOptions};
use anytrace_heph::{Header, Heph, Layout, Record, Value, Writer, parse};
use common::Bytes;
use proptest::prelude::*;

#[test]
fn the_seeds_examples_are_written_byte_for_byte() {
    let mut writer = Writer::new(Vec::new());
    writer.epoch(1_610_113_734_118_010_000).unwrap();
    let header = Header { substream: 1, start_ns: 100, end_ns: 200, ..Header::default() };
    writer.event(&header, "My event").unsigned("Test", 123).floats("Test2", &[123.456, 789.0]).finish().unwrap();
    let seed = std::fs::read(common::own_corpus().join("seed/both.heph")).unwrap();
    assert_eq!(writer.finish().unwrap(), seed);
}

#[test]
fn writer_and_builder_agree_on_every_type() {
    let header = Header { stream: 1, counter: 2, substream: 3, start_ns: 4, end_ns: 5 };
    let mut writer = Writer::new(Vec::new());
    writer.option("host", b"box").unwrap();
    let event = writer.event(&header, "é").unsigned("u", 7).signed("i", -7).float("f", -0.0).text("s", "x");
    let event = event.unsigneds("au", &[1, 2]).signeds("ai", &[-1]).floats("af", &[]).texts("as", &["", "ab"]);
    event.finish().unwrap();
    let built = Bytes::new()
        .metadata("host", b"box")
        .event(1, 2, 3, 4, 5, "é")
        .attribute("u", 1)
        .u64(7)
        .attribute("i", 2)
        .u64(7_u64.wrapping_neg())
        .attribute("f", 3)
        .u64(1 << 63)
        .attribute("s", 4)
        .text("x")
        .attribute("au", 0x81)
        .u16(2)
        .u64(1)
        .u64(2)
        .attribute("ai", 0x82)
        .u16(1)
        .u64(u64::MAX)
        .attribute("af", 0x83)
        .u16(0)
        .attribute("as", 0x84)
        .u16(2)
        .text("")
        .text("ab")
        .end();
    assert_eq!(writer.finish().unwrap(), built.bytes);
}

#[test]
fn values_too_long_for_their_length_are_rejected_and_nothing_is_written() {
    let mut writer = Writer::new(Vec::new());
    let long = "x".repeat(65_536);
    let refused = writer.event(&Header::default(), &long).unsigned("n", 1).finish().unwrap_err();
    assert_eq!(refused.kind(), Kind::Unsupported);
    assert!(refused.to_string().contains("65536"));
    assert!(writer.event(&Header::default(), "").unsigneds("a", &vec![0; 65_536]).finish().is_err());
    writer.event(&Header::default(), &long[1..]).finish().unwrap();
    assert_eq!(writer.finish().unwrap().len(), 42 + 65_535);
}

fn attributes() -> impl Strategy<Value = Vec<(String, u8, Vec<u64>, Vec<String>)>> {
    let values = (".{0,6}", 0_u8..8, prop::collection::vec(any::<u64>(), 0..4), prop::collection::vec(".{0,9}", 0..4));
    prop::collection::vec(values, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        rng_seed: proptest::test_runner::RngSeed::Fixed(20),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_event_reads_as_it_was_built(
        fixed in any::<(u32, u32, u64, u64, u64)>(),
        description in ".{0,40}",
        attributes in attributes(),
    ) {
        let mut made = Bytes::new().epoch().event(fixed.0, fixed.1, fixed.2, fixed.3, fixed.4, &description);
        for (name, kind, words, texts) in &attributes {
            let word = words.first().copied().unwrap_or(0);
            made = match kind {
                0..=2 => made.attribute(name, kind + 1).u64(word),
                3 => made.attribute(name, 4).text(texts.first().map_or("", String::as_str)),
                4..=6 => words.iter().fold(made.attribute(name, 0x81 + kind - 4).u16(words.len() as u16), |m, w| m.u64(*w)),
                _ => texts.iter().fold(made.attribute(name, 0x84).u16(texts.len() as u16), |m, t| m.text(t)),
            };
        }
        let bytes = made.end().bytes;
        let Ok((Record::Event(event), used)) = parse(&bytes[23..], &Layout::default()) else { panic!("no event") };
        prop_assert_eq!(used, bytes.len() - 23);
        prop_assert_eq!(event.description(), &description);
        let header = event.header;
        prop_assert_eq!((header.stream, header.counter, header.substream, header.start_ns, header.end_ns), fixed);
        let mut read = event.attributes();
        for (name, kind, words, texts) in &attributes {
            let attribute = read.next().unwrap();
            prop_assert_eq!(attribute.name, name);
            let bits = |value: &Value<'_>| match value {
                Value::Unsigned(n) => Ok(*n),
                Value::Signed(n) => Ok(n.cast_unsigned()),
                Value::Float(n) => Ok(n.to_bits()),
                Value::Text(text) => Err((*text).to_owned()),
                Value::Array(_) => panic!("no array in an array"),
            };
            match attribute.value {
                Value::Array(array) if *kind < 7 => {
                    prop_assert_eq!(array.values().map(|v| bits(&v).unwrap()).collect::<Vec<_>>(), words.clone());
                }
                Value::Array(array) => {
                    prop_assert_eq!(array.values().map(|v| bits(&v).unwrap_err()).collect::<Vec<_>>(), texts.clone());
                }
                value if *kind < 3 => prop_assert_eq!(bits(&value), Ok(words.first().copied().unwrap_or(0))),
                value => prop_assert_eq!(bits(&value), Err(texts.first().cloned().unwrap_or_default())),
            }
        }
        prop_assert!(read.next().is_none());
        prop_assert_eq!(examine(&Heph, &bytes).errors().len(), 0);
        prop_assert_eq!(through_jsonl(&Heph, &OpenOptions::default(), &bytes).unwrap(), bytes);
    }
}
