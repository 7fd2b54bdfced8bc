//! The trace as tables, beside the JSON lines of `dump` and the sums of `info`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;

use anytrace_cacheray::Cacheray;
use anytrace_core::table::{self, Scan};
use anytrace_core::testing::tables::{examine_tables, rows};
use anytrace_core::testing::{Exam, examine, mutations, truncations};
use anytrace_core::text::shown;
use common::{corpus, traces};
use serde_json::{Value, json};

type Rows = Vec<Vec<Value>>;

/// The records of `dump`, with their numbers.
fn records(exam: &Exam) -> Vec<Value> {
    let lines = std::str::from_utf8(&exam.jsonl).unwrap().lines().skip(1);
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn name_of(value: &Value) -> Value {
    match value.get("hex").and_then(Value::as_str) {
        Some(hex) => {
            let digits = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
            json!(shown(&digits.collect::<Vec<_>>()))
        }
        None => value.clone(),
    }
}

fn thread_of(record: &Value) -> Value {
    json!(record["thread"].as_u64().unwrap().cast_signed())
}

fn events_of(records: &[Value]) -> Rows {
    let row = |(seq, record): (usize, &Value)| {
        let mut fields = record.clone();
        for key in ["kind", "thread", "type", "offset"] {
            fields.as_object_mut().unwrap().remove(key);
        }
        let name = record.get("type").map_or(Value::Null, name_of);
        let (offset, kind) = (record["offset"].clone(), record["kind"].clone());
        vec![json!(seq), offset, thread_of(record), Value::Null, Value::Null, kind, name, fields]
    };
    records.iter().enumerate().map(row).collect()
}

fn accesses_of(records: &[Value]) -> Rows {
    let accesses = records.iter().enumerate().filter(|(_, record)| record.get("size").is_some());
    let row = |(seq, record): (usize, &Value)| {
        let [kind, address, size] = ["kind", "address", "size"].map(|key| record[key].clone());
        let atomic = json!(record.get("atomic").is_some());
        vec![json!(seq), thread_of(record), kind, address, size, atomic]
    };
    accesses.map(row).collect()
}

/// Regions in the order of their ends, then those that never end in the order of their beginnings.
fn regions_of(records: &[Value]) -> Rows {
    let mut live: Vec<Vec<Value>> = Vec::new();
    let mut ended = Vec::new();
    for (seq, record) in records.iter().enumerate() {
        match record["kind"].as_str().unwrap() {
            "rtta_add" => live.push(vec![
                json!(seq),
                Value::Null,
                thread_of(record),
                record["address"].clone(),
                record["elemsize"].clone(),
                record["elemcount"].clone(),
                name_of(&record["type"]),
            ]),
            "rtta_remove" => {
                if let Some(at) = live.iter().rposition(|region| region[3] == record["address"]) {
                    let mut region = live.remove(at);
                    region[1] = json!(seq);
                    ended.push(region);
                }
            }
            _ => {}
        }
    }
    ended.extend(live);
    ended
}

/// Name, regions and bytes of each type, as `info` sums them.
fn types_of(exam: &Exam) -> BTreeMap<String, (u64, u64)> {
    let mut sums = BTreeMap::new();
    let types = exam.info.0.details.iter().find(|(key, _)| *key == "rtta_types").map(|(_, types)| types);
    for one in types.and_then(Value::as_array).into_iter().flatten() {
        let [elemsize, adds, elements] = ["elemsize", "adds", "elements"].map(|key| one[key].as_u64().unwrap());
        let name = name_of(&one["name"]).as_str().unwrap().to_owned();
        let sum: &mut (u64, u64) = sums.entry(name).or_default();
        sum.0 += adds;
        sum.1 = (sum.1 + elemsize * elements).min(i64::MAX as u64);
    }
    sums
}

fn with_parsed_attributes(rows: &Rows) -> Rows {
    let mut rows = rows.clone();
    for row in &mut rows {
        row[7] = serde_json::from_str(row[7].as_str().unwrap()).unwrap();
    }
    rows
}

#[test]
fn rows_are_the_records_of_the_json_lines_and_the_sums_of_info() {
    let mut samples = traces(&corpus());
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/boxes.cacheray");
    samples.push(("example".to_owned(), example));
    let mut seen = [0; 4];
    for (name, path) in samples {
        let bytes = std::fs::read(path).unwrap();
        let bytes = &bytes[..bytes.len().min(60_000)];
        let exam = examine(&Cacheray, bytes);
        let records = records(&exam);
        let tables = examine_tables(&Cacheray, bytes);
        let names: Vec<_> = tables.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["events", "accesses", "regions", "types"]);
        assert_eq!(records.len() as u64, exam.info.0.records, "{name}");
        assert!(with_parsed_attributes(&tables[0].1) == events_of(&records), "{name}: events");
        assert!(tables[1].1 == accesses_of(&records), "{name}: accesses");
        assert_eq!(tables[2].1, regions_of(&records), "{name}: regions");
        let types: BTreeMap<_, _> = tables[3].1.iter().map(|row| (row[0].as_str().unwrap().to_owned(), row)).collect();
        let types: BTreeMap<_, _> =
            types.into_iter().map(|(name, row)| (name, (row[1].as_u64().unwrap(), row[2].as_u64().unwrap()))).collect();
        assert_eq!(types, types_of(&exam), "{name}: types");
        seen.iter_mut().zip(&tables).for_each(|(seen, (_, rows))| *seen += rows.len());
    }
    assert!(seen.iter().all(|rows| *rows > 30), "{seen:?}");
}

#[test]
fn cut_and_changed_traces_are_read_as_far_as_they_can_be() {
    let bytes = std::fs::read(corpus().join("broken/overlap-nested.trace")).unwrap();
    truncations(&bytes, 100, |_, cut| drop(examine_tables(&Cacheray, cut)));
    mutations(&bytes, 5, 60, |bytes| drop(examine_tables(&Cacheray, bytes)));
}

#[test]
fn reading_ends_after_the_last_record_that_is_wanted() {
    let mut bytes = [1, 0, 0x10, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0].repeat(20_000);
    bytes.extend_from_slice(&[0xff; 9]);
    let of = table::EVENTS;
    let read = |seq| {
        let mut scan = Scan::columns_of(&of, &["seq", "kind"]).unwrap();
        scan.filter.seq = seq;
        let (rows, damage) = rows(&Cacheray, &bytes, &of, &scan).unwrap();
        (rows.len(), damage.len())
    };
    assert_eq!((read(None), read(Some(7..=9))), ((20_000, 1), (3, 0)));
}
