//! The trace as tables, beside the JSON lines of `dump` and the findings of `check`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use anytrace_casemate::Casemate;
use anytrace_casemate::model::BREACHES;
use anytrace_core::Format;
use anytrace_core::table::Scan;
use anytrace_core::testing::tables::{examine_tables, rows};
use anytrace_core::testing::{examine, mutations, shared_corpus, truncations};
use serde_json::{Value, json};

fn logs(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "log" || e == "casemate"));
    paths.sort();
    assert!(!paths.is_empty(), "{}", folder.display());
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn samples() -> Vec<(PathBuf, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["corpus", "corpus/odd", "corpus/bad", "corpus/relax", "corpus/breaches", "../../examples/traces"];
    folders.iter().flat_map(|folder| logs(&root.join(folder))).collect()
}

/// The lines of records, without header, verdicts and other text.
fn records(jsonl: &[u8]) -> Vec<Value> {
    let jsonl = std::str::from_utf8(jsonl).unwrap();
    let lines = jsonl.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|line: &Value| line.get("tid").is_some()).collect()
}

fn name_of(bytes: &Value) -> Value {
    match bytes.get("hex").and_then(Value::as_str) {
        Some(hex) => {
            let digits = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
            json!(anytrace_core::text::shown(&digits.collect::<Vec<_>>()))
        }
        None => bytes.clone(),
    }
}

fn assert_events(rows: &[Vec<Value>], records: &[Value], path: &Path) {
    assert_eq!(rows.len(), records.len(), "{}", path.display());
    for (seq, (row, record)) in rows.iter().zip(records).enumerate() {
        let src = record.get("src").filter(|src| !src.is_number()).map_or(Value::Null, name_of);
        let expected = [
            json!(seq),
            record["offset"].clone(),
            record["tid"].clone(),
            Value::Null,
            Value::Null,
            record["kind"].clone(),
            src,
        ];
        assert_eq!(row[..7], expected, "{}", path.display());
        let mut fields = record.clone();
        for key in ["kind", "tid", "offset", "before"] {
            fields.as_object_mut().unwrap().remove(key);
        }
        let attributes: Value = serde_json::from_str(row[7].as_str().unwrap()).unwrap();
        assert_eq!(attributes, fields, "{}", path.display());
    }
}

fn assert_transitions(rows: &[Vec<Value>], records: &[Value], path: &Path) {
    assert_eq!(rows.len(), records.len(), "{}", path.display());
    for (seq, (row, record)) in rows.iter().zip(records).enumerate() {
        let field = |key: &str| record.get(key).cloned().unwrap_or_default();
        let src = match field("src") {
            Value::Number(key) => json!(key.to_string()),
            src => name_of(&src),
        };
        let (address, value) = match record.get("addr").and_then(Value::as_u64) {
            Some(page) => (json!(page), json!(page | (record["level"].as_u64().unwrap() & 15) << 44)),
            None => (field("address"), field("value")),
        };
        let expected = [
            json!(seq),
            field("id"),
            field("tid"),
            field("kind"),
            address,
            field("size"),
            value,
            field("mem-order"),
            field("hint"),
            field("location"),
            src,
            field("barrier"),
            field("domain"),
            field("op"),
            field("sysreg"),
            field("read"),
        ];
        assert_eq!(row[..], expected, "{}", path.display());
    }
}

#[test]
fn rows_are_the_records_of_the_json_lines_and_the_findings_of_the_check() {
    let mut breaches = 0;
    for (path, bytes) in samples() {
        let exam = examine(&Casemate, &bytes);
        let records = records(&exam.jsonl);
        let tables = examine_tables(&Casemate, &bytes);
        let names: Vec<_> = tables.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["events", "transitions", "breaches"]);
        assert_events(&tables[0].1, &records, &path);
        assert_transitions(&tables[1].1, &records, &path);
        breaches += assert_breaches(&tables[2].1, &exam.check, &records, &path);
    }
    assert!(breaches > 10, "{breaches}");
}

fn assert_breaches(rows: &[Vec<Value>], check: &[anytrace_core::Diagnostic], records: &[Value], path: &Path) -> usize {
    let found = check.iter().filter(|d| BREACHES.iter().any(|breach| breach.rule.code == d.code()));
    let found: Vec<_> = found.map(|d| (d.record.unwrap(), d.code(), d.severity.name(), d.line.unwrap().0, d)).collect();
    assert_eq!(rows.len(), found.len(), "{}", path.display());
    for (row, (seq, code, severity, line, diagnostic)) in rows.iter().zip(&found) {
        let record = &records[usize::try_from(*seq).unwrap()];
        let cells = [0, 2, 3, 4, 5, 6, 7].map(|column| row[column].clone());
        let (id, tid, kind) = (record["id"].clone(), record["tid"].clone(), record["kind"].clone());
        assert_eq!(cells, [json!(seq), json!(line), id, tid, kind, json!(code), json!(severity)], "{}", path.display());
        assert_eq!(row[1], record["offset"], "{}", path.display());
        let text = diagnostic.to_string();
        if let Some(address) = row[9].as_u64() {
            assert!(text.contains(&format!("{address:#x}")), "{text} {address:#x}");
        }
        if let Some(change) = row[11].as_str() {
            assert!(text.contains(change), "{text} {change}");
        }
    }
    rows.len()
}

#[test]
fn shared_traces_have_the_rows_of_their_verdicts() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    for (path, bytes) in logs(&corpus.join("traces")).into_iter().step_by(9) {
        let exam = examine(&Casemate, &bytes);
        let read = |table| rows(&Casemate, &bytes, &Casemate.tables()[table], &Scan::default()).unwrap().0;
        let records = records(&exam.jsonl);
        assert_eq!(records.len() as u64, exam.info.0.records);
        assert_transitions(&read(1), &records, &path);
        assert_breaches(&read(2), &exam.check, &records, &path);
    }
}

#[test]
fn cut_and_changed_traces_are_read_as_far_as_they_can_be() {
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/head_bad_race.log")).unwrap();
    let bytes = &bytes[bytes.len().saturating_sub(3000)..];
    truncations(&bytes[..bytes.len().min(2000)], 200, |_, cut| drop(examine_tables(&Casemate, cut)));
    mutations(bytes, 5, 60, |bytes| drop(examine_tables(&Casemate, bytes)));
}

#[test]
fn records_after_the_last_one_that_is_wanted_are_not_read() {
    let mut log = b"(lock 1 1 10)\n(unlock 2 1 10)\n".repeat(1 << 16);
    log.extend_from_slice(b"(lock (id 3)");
    let mut scan = Scan::default();
    scan.filter.seq = Some(5..=7);
    let (found, damage) = rows(&Casemate, &log, &Casemate.tables()[1], &scan).unwrap();
    let seqs: Vec<_> = found.iter().map(|row| row[0].as_i64().unwrap()).collect();
    assert_eq!((seqs, damage.len()), (vec![5, 6, 7], 0));
}
