//! The trace as tables, beside the JSON lines of `dump` and the figures of `info` and `heph loss`.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anytrace_core::table::{Batch, Scan};
use anytrace_core::tables;
use anytrace_core::testing::tables::{examine_tables, rows};
use anytrace_core::testing::{examine, mutations, shared_corpus, truncations};
use anytrace_core::{Collect, Error, Format, Input, OpenOptions, SpanOptions};
use anytrace_heph::tools::loss::{LossOptions, Sessions, SourceLoss, read_file};
use anytrace_heph::{Header, Heph, Writer};
use serde_json::{Value, json};

const NAMES: [&str; 7] = ["events", "packets", "streams", "loss", "attributes", "spans", "stacks"];

/// Every trace of the corpora up to a size.
fn samples(bytes_max: u64) -> Vec<(String, Vec<u8>)> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut folders: Vec<PathBuf> = ["bad", "broken", "real", "seed", "valid"].map(|name| own.join(name)).to_vec();
    if let Some(shared) = shared_corpus("heph") {
        folders.extend(["broken", "real", "valid"].map(|folder| shared.join(folder)));
    }
    let mut made = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_trace = name.ends_with(".heph") || name.ends_with(".bin.log");
            if is_trace && std::fs::metadata(&path).unwrap().len() <= bytes_max {
                made.push((path.display().to_string(), std::fs::read(&path).unwrap()));
            }
        }
    }
    made.sort();
    assert!(made.len() > 60, "{}", made.len());
    made
}

fn table(bytes: &[u8], name: &str) -> Vec<Vec<Value>> {
    let of = tables::all(&Heph).into_iter().find(|table| table.name == name).unwrap();
    rows(&Heph, bytes, &of, &Scan::default()).unwrap().0
}

/// The packets among the JSON lines.
fn lines(bytes: &[u8]) -> Vec<Value> {
    let jsonl = String::from_utf8(examine(&Heph, bytes).jsonl).unwrap();
    let lines = jsonl.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["kind"] != "error").collect()
}

/// A number as a column of 64 signed bits has it.
fn narrow(value: &Value) -> Value {
    json!(i64::try_from(value.as_u64().unwrap()).unwrap_or(i64::MAX))
}

#[test]
fn events_and_packets_are_the_records_of_the_json_lines() {
    let mut seen = 0;
    for (path, bytes) in samples(2_000_000) {
        let lines = lines(&bytes);
        let events = table(&bytes, "events");
        assert_eq!(events.len(), lines.len(), "{path}");
        for (seq, (row, line)) in events.iter().zip(&lines).enumerate() {
            assert_eq!((&row[0], &row[1], &row[5]), (&json!(seq), &line["offset"], &line["kind"]), "{path}");
            let mut rest = line.as_object().unwrap().clone();
            rest.retain(|key, _| {
                !["offset", "kind", "stream", "start", "warnings", "description", "option"].contains(&key.as_str())
            });
            assert_eq!(serde_json::from_str::<Value>(row[7].as_str().unwrap()).unwrap(), Value::Object(rest), "{path}");
            if line["kind"] == "metadata" {
                assert_eq!((&row[2..5], &row[6]), (&[const { Value::Null }; 3][..], &line["option"]), "{path}");
                continue;
            }
            let (start, end) = (line["start"].as_u64().unwrap(), line["end"].as_u64().unwrap());
            assert_eq!((&row[2], &row[6]), (&line["stream"], &line["description"]), "{path}");
            assert_eq!(
                (&row[3], &row[4]),
                (&narrow(&line["start"]), &narrow(&json!(end.saturating_sub(start)))),
                "{path}"
            );
        }
        let expected: Vec<_> = lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line["kind"] == "event")
            .map(|(seq, line)| {
                let [stream, counter, substream] = ["stream", "counter", "substream"].map(|key| line[key].clone());
                let [start, end] = ["start", "end"].map(|key| narrow(&line[key]));
                vec![
                    json!(seq),
                    line["offset"].clone(),
                    stream,
                    counter,
                    substream,
                    start,
                    end,
                    line["description"].clone(),
                ]
            })
            .collect();
        seen += expected.len();
        assert!(table(&bytes, "packets") == expected, "{path}");
    }
    assert!(seen > 10_000, "{seen}");
}

/// The innermost elements of a value with its type.
fn elements(value: &Value, kind: &str, out: &mut Vec<Value>) {
    match kind.strip_suffix("[]") {
        Some(inner) => value.as_array().unwrap().iter().for_each(|value| elements(value, inner, out)),
        None => out.push(value.clone()),
    }
}

/// A row of `attributes`, from a value of the JSON lines.
fn attribute(seq: usize, position: usize, key: &Value, kind: &str, value: &Value) -> Vec<Value> {
    let of = |name: &str, value: Value| if kind.trim_end_matches("[]") == name { value } else { Value::Null };
    let bits = value["bits"].as_str().map(|bits| u64::from_str_radix(bits, 16).unwrap());
    vec![
        json!(seq),
        json!(position),
        key.clone(),
        json!(kind),
        of("i64", value.clone()),
        of("u64", value.clone()),
        of("f64", json!(bits)),
        Value::Null,
        of("str", value.clone()),
        Value::Null,
    ]
}

#[test]
fn attributes_are_a_row_for_each_value() {
    let (mut seen, mut in_arrays) = (0, 0);
    for (path, bytes) in samples(2_000_000) {
        let mut expected = Vec::new();
        for (seq, line) in lines(&bytes).iter().enumerate() {
            for one in line["attributes"].as_array().into_iter().flatten() {
                let kind = one[1].as_str().unwrap();
                let mut values = Vec::new();
                elements(&one[2], kind, &mut values);
                in_arrays += if kind.ends_with("[]") { values.len() } else { 0 };
                expected.extend((0..).zip(&values).map(|(at, value)| attribute(seq, at, &one[0], kind, value)));
            }
        }
        seen += expected.len();
        assert!(table(&bytes, "attributes") == expected, "{path}");
    }
    assert!(seen > 5000 && in_arrays > 10, "{seen} {in_arrays}");
}

/// What `heph loss` reports.
fn losses(bytes: &[u8]) -> SourceLoss {
    let input = Input::from_bytes("x", bytes.to_vec());
    let options = (OpenOptions::default(), LossOptions::default());
    read_file("x", input, &options.0, &mut Sessions::new(options.1), &mut Collect::default()).unwrap()
}

/// Streams, and sums of gaps, against the verbs.
fn streams_agree(path: &str, bytes: &[u8]) -> u64 {
    let (loss, info) = (losses(bytes), examine(&Heph, bytes).info.0);
    let (streams, gaps) = (table(bytes, "streams"), table(bytes, "loss"));
    assert_eq!(streams.len(), loss.streams.len(), "{path}");
    let mut lost = BTreeMap::<u64, u64>::new();
    for gap in &gaps {
        *lost.entry(gap[0].as_u64().unwrap()).or_default() += gap[2].as_u64().unwrap();
    }
    let packets = table(bytes, "packets");
    for (row, stream) in streams.iter().zip(&loss.streams) {
        let counters = [json!(stream.first_counter), json!(stream.last_counter), json!(stream.lost)];
        assert_eq!((&row[0], &row[4..]), (&json!(stream.stream), &counters[..]), "{path}");
        assert_eq!(lost.get(&u64::from(stream.stream)).copied().unwrap_or(0), stream.lost, "{path}");
        let own: Vec<_> = packets.iter().filter(|packet| packet[2] == row[0]).collect();
        let times = own.iter().flat_map(|packet| [packet[5].as_i64().unwrap(), packet[6].as_i64().unwrap()]);
        assert_eq!((&row[1], &row[2]), (&json!(own.len()), &json!(times.clone().min())), "{path}");
        assert_eq!(row[3], json!(times.max()), "{path}");
    }
    let events: u64 = streams.iter().map(|row| row[1].as_u64().unwrap()).sum();
    assert_eq!(info.threads.iter().map(|(_, events)| events).sum::<u64>(), events, "{path}");
    loss.streams.iter().map(|stream| stream.lost).sum()
}

#[test]
fn streams_and_losses_are_those_of_info_and_loss() {
    let lost: u64 = samples(2_000_000).iter().map(|(path, bytes)| streams_agree(path, bytes)).sum();
    assert!(lost > 3, "{lost}");
}

/// Events of stream 4 with these counters.
fn counted(counters: &[u32]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    for &counter in counters {
        let time = u64::from(counter) * 10;
        let header = Header { stream: 4, counter, start_ns: time, end_ns: time + 5, ..Header::default() };
        writer.event(&header, "event").finish().unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn a_gap_is_after_the_counter_before_it() {
    let bytes = counted(&[2, 3, 5, 4, 9, 10, 11, 20]);
    assert_eq!(streams_agree("made", &bytes), 2 + 3 + 8);
    let gaps = table(&bytes, "loss");
    assert_eq!(
        gaps,
        [(None, 2), (Some(5), 3), (Some(11), 8)].map(|(at, missing)| vec![json!(4), json!(at), json!(missing)])
    );
    assert_eq!(table(&bytes, "streams"), [[4, 8, 20, 205, 2, 20, 13].map(|value| json!(value)).to_vec()]);
    assert!(table(&counted(&[0, 1, 2]), "loss").is_empty());
}

#[test]
fn an_empty_array_has_no_row_and_is_among_the_attributes_of_its_event() {
    let mut writer = Writer::new(Vec::new());
    let event = writer.event(&Header::default(), "event").unsigneds("none", &[]).signed("n", -3);
    event.unsigneds("two", &[7, u64::MAX]).float("f", -0.0).text("t", "").finish().unwrap();
    let bytes = writer.finish().unwrap();
    let found: Vec<_> = table(&bytes, "attributes")
        .into_iter()
        .map(|row| {
            (
                row[1].as_i64().unwrap(),
                row[2].as_str().unwrap().to_owned(),
                row[3].as_str().unwrap().to_owned(),
                row[4..9].to_vec(),
            )
        })
        .collect();
    let null = Value::Null;
    let expected = [
        (0, "n", "i64", [json!(-3), null.clone(), null.clone(), null.clone(), null.clone()]),
        (0, "two", "u64[]", [null.clone(), json!(7), null.clone(), null.clone(), null.clone()]),
        (1, "two", "u64[]", [null.clone(), json!(u64::MAX), null.clone(), null.clone(), null.clone()]),
        (0, "f", "f64", [null.clone(), null.clone(), json!((-0.0_f64).to_bits()), null.clone(), null.clone()]),
        (0, "t", "str", [null.clone(), null.clone(), null.clone(), null.clone(), json!("")]),
    ];
    assert_eq!(found, expected.map(|(at, key, kind, values)| (at, key.to_owned(), kind.to_owned(), values.to_vec())));
    let attributes = table(&bytes, "events")[0][7].as_str().unwrap().to_owned();
    assert!(attributes.contains(r#"["none","u64[]",[]]"#), "{attributes}");
}

#[test]
fn every_table_of_every_sample_holds_what_tables_promise() {
    for (path, bytes) in samples(20_000) {
        let tables = examine_tables(&Heph, &bytes);
        assert_eq!(tables.iter().map(|(name, _)| *name).collect::<Vec<_>>(), NAMES, "{path}");
        let of = |name: &str| &tables.iter().find(|table| table.0 == name).unwrap().1;
        // Events of no length are instants, not spans.
        let long = of("packets").iter().filter(|row| row[5].as_i64() < row[6].as_i64()).count();
        assert_eq!(of("spans").len(), long, "{path}");
        let starts: BTreeMap<_, _> = of("packets").iter().map(|row| (row[0].as_u64(), row)).collect();
        for span in of("spans") {
            let packet = starts[&span[0].as_u64()];
            assert_eq!((&span[4], &span[7], &span[8]), (&packet[2], &packet[7], &packet[5]), "{path}");
            assert_eq!(span[9].as_i64().unwrap(), packet[6].as_i64().unwrap() - packet[5].as_i64().unwrap(), "{path}");
        }
    }
}

#[test]
fn cut_and_changed_traces_are_read_as_far_as_they_can_be() {
    let (_, bytes) = samples(60_000).into_iter().rfind(|(path, _)| path.contains("valid")).unwrap();
    truncations(&bytes[..bytes.len().min(1500)], 60, |_, cut| drop(examine_tables(&Heph, cut)));
    mutations(&bytes[..bytes.len().min(3000)], 7, 40, |bytes| drop(examine_tables(&Heph, bytes)));
}

#[test]
fn reading_ends_after_the_last_packet_that_is_wanted() {
    let bytes = counted(&(0..50_000).collect::<Vec<_>>());
    for name in ["events", "packets", "attributes"] {
        let mut scan = Scan::default();
        scan.filter.seq = Some(3..=7);
        let trace = Heph.open(Input::from_bytes("x", bytes.clone()), &OpenOptions::default()).unwrap();
        let mut seen = 0;
        let mut take = |batch: Batch| -> Result<(), Error> {
            seen += batch.rows;
            Ok(())
        };
        let summary = trace.table(name, &scan, &SpanOptions::default(), &mut take, &mut Collect::default()).unwrap();
        assert_eq!((summary.records, seen), (8, if name == "attributes" { 0 } else { 5 }), "{name}");
    }
}
