//! One text reads, filters and writes every format: the names and the shapes of all crates are the same.

use std::borrow::Borrow;
use std::fmt::Debug;

use anytrace_core::{Error, Input, Need, OpenOptions, Passed, Place, Step};

/// The text, for one crate and one of its samples; with the records that each crate's own tests know the sample to have.
macro_rules! one_text {
    ($module:ident, $crate_name:ident, $sample:literal) => {
        mod $module {
            use $crate_name::{Fault, Layout, Reader, Record, Writer, parse};

            use super::*;

            const SAMPLE: &[u8] = include_bytes!($sample);

            fn open(bytes: &[u8]) -> Reader {
                Reader::new(Input::from_bytes("sample", bytes.to_vec()), &OpenOptions::default()).unwrap()
            }

            /// A program that names the two variants needs no third arm.
            fn is_record(step: Step<'_, Record<'_>>) -> bool {
                use Step::{Damage, Record};
                match step {
                    Record(..) => true,
                    Damage(_) => false,
                }
            }

            /// What is in a trace: each record as it prints, with its place, and how many places are damaged.
            fn contents(mut reader: Reader) -> Result<(Vec<String>, Vec<Place>, usize), Error> {
                let (mut records, mut places, mut damaged) = (Vec::new(), Vec::new(), 0);
                while let Some(step) = reader.next()? {
                    match &step {
                        Step::Record(place, record) => {
                            records.push(printed(record));
                            places.push(*place);
                        }
                        Step::Damage(diagnostic) => damaged += usize::from(!diagnostic.code().is_empty()),
                    }
                }
                assert!(reader.next()?.is_none(), "the end stays the end");
                Ok((records, places, damaged))
            }

            fn printed(record: &Record<'_>) -> String {
                fn is_debug(record: &impl Debug) -> String {
                    format!("{record:?}")
                }
                is_debug(record)
            }

            #[test]
            fn places_count_from_zero_and_offsets_grow() {
                let (records, places, _) = contents(open(SAMPLE)).unwrap();
                assert!(records.len() > 1, "{} records", records.len());
                for (seq, pair) in places.windows(2).enumerate() {
                    assert_eq!((pair[0].seq, pair[1].seq), (seq as u64, seq as u64 + 1));
                    assert!(pair[0].offset < pair[1].offset, "{pair:?}");
                }
            }

            #[test]
            fn for_each_is_the_loop_over_next() {
                let mut records = Vec::new();
                let passed: Passed = open(SAMPLE)
                    .for_each(|step| {
                        if let Step::Record(_, record) = step {
                            records.push(printed(&record));
                        }
                        Ok(())
                    })
                    .unwrap();
                assert_eq!(records, contents(open(SAMPLE)).unwrap().0);
                assert_eq!(passed.records, records.len() as u64);
            }

            #[test]
            fn a_copy_in_the_readers_layout_has_the_same_records() {
                let mut reader = open(SAMPLE);
                let first = reader.next().unwrap().is_some_and(is_record);
                assert!(first);
                let layout: Layout = reader.layout().clone();
                let mut writer = Writer::with_layout(Vec::new(), &layout);
                let mut reader = open(SAMPLE);
                while let Some(step) = reader.next().unwrap() {
                    if let Step::Record(_, record) = step {
                        writer.write(&record).unwrap();
                    }
                }
                let copy: Vec<u8> = writer.finish().unwrap();
                assert_eq!(contents(open(&copy)).unwrap().0, contents(open(SAMPLE)).unwrap().0);
            }

            #[test]
            fn an_empty_trace_of_the_default_layout_has_no_records() {
                let empty = Writer::new(Vec::new()).finish().unwrap();
                assert_eq!(contents(open(&empty)).unwrap().0, Vec::<String>::new());
            }

            #[test]
            fn the_parser_asks_for_more_or_says_what_is_bad() {
                let layout = Layout::default();
                assert!(matches!(parse(b"", &layout), Err(Need::More(1..))));
                // No format's record begins so.
                match parse(&[0xff; 64], &layout) {
                    Ok((record, used)) => panic!("{record:?} of {used} bytes"),
                    Err(Need::More(bytes)) => assert!(bytes > 64),
                    // Large ones are boxed.
                    Err(Need::Bad(fault)) => assert!(!format!("{:?}", Borrow::<Fault>::borrow(&fault)).is_empty()),
                }
            }
        }
    };
}

one_text!(apitrace, anytrace_apitrace, "../../apitrace/corpus/allvals_v6.trace");
one_text!(cacheray, anytrace_cacheray, "../../cacheray/corpus/traces/packed.up14-O0.trace");
one_text!(casemate, anytrace_casemate, "../../casemate/corpus/seed_example.log");
one_text!(chrome, anytrace_chrome, "../../chrome/corpus/every-phase.json");
one_text!(ctf, anytrace_ctf, "../../ctf/corpus/features.tar");
one_text!(fuchsia, anytrace_fuchsia, "../../fuchsia/corpus/features.fxt");
one_text!(heph, anytrace_heph, "../../../examples/traces/relay.heph");
one_text!(lackey, anytrace_lackey, "../../lackey/corpus/blocks.lackey");
one_text!(perf, anytrace_perf, "../../perf/corpus/callgraph.data");
one_text!(perfetto, anytrace_perfetto, "../../perfetto/corpus/features.pftrace");
one_text!(xray, anytrace_xray, "../../../examples/traces/threads4.xray");
