//! The trace as tables, beside the JSON lines of `dump`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::path::Path;

use anytrace_core::testing::tables::examine_tables;
use anytrace_core::testing::{examine, mutations, truncations};
use anytrace_lackey::Lackey;
use serde_json::{Value, json};

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)).unwrap()
}

#[test]
fn events_and_accesses_are_the_records_of_the_json_lines() {
    for name in ["rows.lackey", "rows32.lackey", "blocks.lackey", "printed.lackey", "fault.lackey", "odd/words.lackey"]
    {
        let bytes = sample(name);
        let jsonl = String::from_utf8(examine(&Lackey, &bytes).jsonl).unwrap();
        let records: Vec<Value> = jsonl.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let records: Vec<_> = records.iter().filter(|record| record.get("address").is_some()).collect();
        let tables = examine_tables(&Lackey, &bytes);
        let events: Vec<_> = records
            .iter()
            .enumerate()
            .map(|(seq, record)| {
                let mut attributes = json!({"address": record["address"]});
                if let Some(size) = record.get("size") {
                    attributes["size"] = size.clone();
                }
                (json!(seq), record["offset"].clone(), record["kind"].clone(), attributes)
            })
            .collect();
        let found: Vec<_> = tables[0]
            .1
            .iter()
            .map(|row| {
                let attributes: Value = serde_json::from_str(row[7].as_str().unwrap()).unwrap();
                assert!(row[2].is_null() && row[3].is_null() && row[4].is_null() && row[6].is_null());
                (row[0].clone(), row[1].clone(), row[5].clone(), attributes)
            })
            .collect();
        assert_eq!(found, events, "{name}");
        let accesses: Vec<_> = records.iter().enumerate().filter(|(_, record)| record["kind"] != "block").collect();
        let (table, rows) = &tables[1];
        assert_eq!((*table, rows.len()), ("accesses", accesses.len()), "{name}");
        for (row, (seq, record)) in rows.iter().zip(accesses) {
            let expected =
                [json!(seq), json!(0), record["kind"].clone(), record["address"].clone(), record["size"].clone()];
            assert_eq!(row[..5], expected, "{name}");
        }
        let names: Vec<_> = tables.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["events", "accesses", "regions", "types"]);
    }
}

#[test]
fn cut_and_changed_traces_are_read_as_far_as_they_can_be() {
    let bytes = sample("rows.lackey");
    truncations(&bytes[..bytes.len().min(2000)], 300, |_, cut| drop(examine_tables(&Lackey, cut)));
    mutations(&bytes[..bytes.len().min(4000)], 5, 60, |bytes| drop(examine_tables(&Lackey, bytes)));
}
