//! Real traces, cut at every byte, and counted by a second reader of packets that shares no code with the crate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::Path;

use anytrace_core::testing::examine;
use anytrace_core::{Collect, Format, Input, OpenOptions, Step};
use anytrace_perfetto::{Perfetto, Reader};
use serde_json::Value;

const TRACING: &[u8] = include_bytes!("../corpus/real/tracing-perfetto.pftrace");
const HEPH: &[u8] = include_bytes!("../corpus/real/exported-heph.pftrace");
const COMPRESSED: &[u8] = include_bytes!("../corpus/compressed.pftrace");

/// Fields of a message: number, value of a varint, bytes of a field with a length, and where the field ends.
fn fields(bytes: &[u8]) -> Vec<(u64, u64, &[u8], usize)> {
    let number = |at: &mut usize| {
        let (mut value, mut scale) = (0_u128, 1_u128);
        loop {
            let byte = bytes[*at];
            *at += 1;
            value += u128::from(byte % 128) * scale;
            scale *= 128;
            if byte < 128 {
                return u64::try_from(value % (1 << 64)).unwrap();
            }
        }
    };
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let tag = number(&mut at);
        let (mut value, mut inside) = (0, &bytes[..0]);
        match tag % 8 {
            0 => value = number(&mut at),
            1 => at += 8,
            5 => at += 4,
            2 => {
                let length = usize::try_from(number(&mut at)).unwrap();
                inside = &bytes[at..at + length];
                at += length;
            }
            other => panic!("wire type {other}"),
        }
        found.push((tag / 8, value, inside, at));
    }
    found
}

#[test]
fn a_cut_at_any_byte_keeps_exactly_the_packets_before_it() {
    for sample in [TRACING, HEPH, COMPRESSED] {
        let ends: Vec<usize> = fields(sample).into_iter().map(|(.., end)| end).collect();
        assert!(ends.len() > 1 && ends.last() == Some(&sample.len()));
        for cut in 0..sample.len() {
            let before = ends.iter().take_while(|end| **end <= cut).count();
            let start = if before == 0 { 0 } else { ends[before - 1] };
            let input = Input::from_bytes("cut", sample[..cut].to_vec());
            let mut reader = Reader::new(input, &OpenOptions::default()).unwrap();
            let (mut packets, mut damage) = (Vec::new(), Vec::new());
            while let Some(step) = reader.next().unwrap() {
                match step {
                    Step::Record(place, record) => packets.push((place.offset, record.body().to_vec())),
                    Step::Damage(diagnostic) => damage.push(diagnostic),
                }
            }
            let bodies = fields(&sample[..start]);
            assert_eq!(packets.len(), before, "cut at {cut}");
            assert!(packets.iter().zip(&bodies).all(|((_, body), (_, _, own, _))| body == own), "cut at {cut}");
            if cut == start {
                assert!(damage.is_empty(), "cut at {cut}: {damage:?}");
                continue;
            }
            // What is left is one packet that is not there as a whole.
            let [only] = damage.as_slice() else { panic!("cut at {cut}: {damage:?}") };
            assert_eq!((only.code(), only.record), ("perfetto/truncated", Some(before as u64)), "cut at {cut}");
            assert!(only.offset >= start as u64 && only.offset <= cut as u64, "cut at {cut}: {}", only.offset);
            assert_eq!(only.skipped_bytes, (cut - start) as u64, "cut at {cut}");
        }
    }
}

#[test]
fn info_and_check_agree_on_a_trace_that_is_cut_at_any_byte() {
    for cut in 0..TRACING.len() {
        let part = &TRACING[..cut];
        let open = || Perfetto.open(Input::from_bytes("cut", part.to_vec()), &OpenOptions::default()).unwrap();
        let (mut info, mut check) = (Collect::default(), Collect::default());
        let counted = open().info(&mut info).unwrap();
        let summary = open().check(&mut check).unwrap();
        assert_eq!((counted.records, counted.bytes), (summary.records, cut as u64), "cut at {cut}");
        // What is lost is reported by both, and nothing else by `info`.
        let errors: Vec<_> = check.0.iter().filter(|d| d.code() == "perfetto/truncated").cloned().collect();
        assert_eq!(info.0, errors, "cut at {cut}");
    }
}

/// Kinds of packets and types of track events, counted field by field.
#[test]
fn info_counts_what_a_second_reader_counts() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folders = ["", "odd", "real"].map(|folder| std::fs::read_dir(corpus.join(folder)).unwrap());
    let mut paths: Vec<_> = folders.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pftrace"));
    // The end of this one is missing.
    paths.retain(|path| !path.ends_with("chromium-cut.pftrace"));
    assert!(paths.len() > 6);
    for path in paths {
        let bytes = std::fs::read(&path).unwrap();
        let path = path.display();
        let (mut events, mut types, mut sequences) = (0, BTreeMap::new(), BTreeMap::new());
        for (field, _, packet, _) in fields(&bytes) {
            assert_eq!(field, 1);
            let packet = fields(packet);
            for (_, id, ..) in packet.iter().filter(|(number, ..)| *number == 10) {
                *sequences.entry(*id).or_insert(0_u64) += 1;
            }
            for (_, _, event, _) in packet.iter().filter(|(number, ..)| *number == 11) {
                let kind = fields(event).iter().find(|(number, ..)| *number == 9).map_or(0, |(_, value, ..)| *value);
                let name = ["other", "slice_begin", "slice_end", "instant", "counter"][usize::try_from(kind).unwrap()];
                *types.entry(name.to_owned()).or_insert(0_u64) += 1;
                events += 1;
            }
        }
        let info = examine(&Perfetto, &bytes).info.0;
        assert_eq!(info.records, fields(&bytes).len() as u64, "{path}");
        let kind = info.kinds.iter().find(|(kind, _)| kind == "track_event").map_or(0, |(_, count)| *count);
        let detail = |key| info.details.iter().find(|(own, _)| *own == key).map(|(_, value)| value.clone());
        // Events in compressed packets are counted by type, not by kind.
        if detail("compressed_packets_inside").is_none() {
            assert_eq!(kind, events, "{path}");
            let found: BTreeMap<String, u64> = match detail("track_events") {
                Some(Value::Object(map)) => {
                    map.into_iter().map(|(key, value)| (key, value.as_u64().unwrap())).collect()
                }
                _ => BTreeMap::new(),
            };
            assert_eq!(found, types, "{path}");
            let unnamed = fields(&bytes).iter().any(|(_, _, packet, _)| fields(packet).iter().all(|f| f.0 != 10));
            let expected = sequences.len() as u64 + u64::from(unnamed);
            assert_eq!(detail("sequences").and_then(|value| value.as_u64()), Some(expected), "{path}");
        }
    }
}
