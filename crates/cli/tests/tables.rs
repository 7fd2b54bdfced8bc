//! CSV of every verb that writes it: text that begins like a formula is guarded, numbers stay numbers.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

fn anytrace(arguments: &[&Path]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments).output().unwrap();
    assert!(
        output.status.code().is_some_and(|code| code < 2),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

const FORMULAS: [&str; 4] = ["=1+1", "+A1", "-A1", "@SUM(A1)"];

/// A trace of each kind whose names are formulas.
fn traces(folder: &Path) -> [PathBuf; 4] {
    let made = |name: &str, to: &str, lines: Vec<serde_json::Value>| {
        let (source, path) = (folder.join("lines.jsonl"), folder.join(name));
        std::fs::write(&source, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        anytrace(&["convert".as_ref(), &source, "-o".as_ref(), &path, "--to".as_ref(), to.as_ref()]);
        path
    };
    let mut events = vec![json!({"kind": "metadata", "option": "epoch", "value": 1})];
    events.extend(FORMULAS.iter().zip(0..).map(|(name, counter)| {
        json!({"kind": "event", "stream": 1, "counter": counter, "substream": 0, "start": counter * 10,
               "end": counter * 10 + 5, "description": name, "attributes": []})
    }));
    let heph = made("a.heph", "heph", events);
    let calls = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calls.jsonl");
    let (source, trace) = (folder.join("calls.jsonl"), folder.join("a.trace"));
    std::fs::write(&source, std::fs::read_to_string(calls).unwrap().replace("glFinish", FORMULAS[0])).unwrap();
    anytrace(&["apitrace".as_ref(), "from-jsonl".as_ref(), &source, "-o".as_ref(), &trace]);
    let mut bytes = Vec::new();
    for (name, at) in FORMULAS.iter().zip(0_u64..) {
        bytes.push(2);
        bytes.extend((0x7f00_0001_0000 + 64 * at).to_le_bytes());
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend([32_u32, 1, u32::try_from(name.len()).unwrap()].map(u32::to_le_bytes).concat());
        bytes.extend(name.as_bytes());
    }
    for at in 0..200_u64 {
        bytes.push(u8::try_from(at & 1).unwrap());
        bytes.extend((0x7f00_0001_0000 + 8 * (at % 32)).to_le_bytes());
        bytes.push(8);
        bytes.extend(1_u64.to_le_bytes());
    }
    let cacheray = folder.join("a.cacheray");
    std::fs::write(&cacheray, bytes).unwrap();
    let yaml = folder.join("a.yaml");
    let mut lines = "---\nheader:\n  version: 3\n  type: 0\n  constant-tsc: true\n  nonstop-tsc: true\n  \
                     cycle-frequency: 1000000000\nrecords:\n"
        .to_owned();
    for (kind, order) in [("enter", [1, 2, 3, 4]), ("exit", [4, 3, 2, 1])] {
        for id in order {
            let tsc = if kind == "enter" { id * 10 } else { 100 - id * 10 };
            lines.push_str(&format!(
                "  - {{ type: 0, func-id: {id}, function: \"{}\", cpu: 1, thread: 1, process: 1, kind: function-{kind}, \
                 tsc: {tsc}, data: '' }}\n",
                FORMULAS[id - 1]
            ));
        }
    }
    std::fs::write(&yaml, lines + "...\n").unwrap();
    [heph, cacheray, trace, yaml]
}

/// Cells of all lines behind the heading; quoted ones without their quotes.
fn cells(text: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for c in text.split_once('\n').unwrap().1.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' | '\n' if !is_quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

#[test]
fn no_cell_of_any_table_is_a_formula_unless_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let [heph, cacheray, trace, yaml] = traces(folder.path());
    let map = folder.path().join("map.yaml");
    let entry = |(id, name): (usize, &&str)| {
        format!(
            "- {{ id: {id}, address: 0x{id}000, function: 0x{id}000, kind: function-enter, always-instrument: true, function-name: \"{name}\" }}\n"
        )
    };
    std::fs::write(&map, format!("---\n{}...\n", (1..).zip(&FORMULAS).map(entry).collect::<String>())).unwrap();
    let tables: [(&str, &[&Path]); 11] = [
        ("convert -o - --to csv", &[&heph]),
        ("stats --format csv", &[&heph]),
        ("stats --format csv --against", &[&heph, &heph]),
        ("memory sim --config zen3 --types --format csv", &[&cacheray]),
        ("memory types --format csv", &[&cacheray]),
        ("memory mrc --by type --format csv", &[&cacheray]),
        ("apitrace stats --format csv", &[&trace]),
        ("xray account --format csv -m", &[&map, &yaml]),
        ("xray stack --format csv -m", &[&map, &yaml]),
        ("xray graph --format csv -m", &[&map, &yaml]),
        ("xray graph-diff --format csv -m", &[&map, &yaml, &yaml]),
    ];
    for (line, files) in tables {
        let run = |option: Option<&str>| {
            let (verb, rest) = line.split_at(line.find(" -").unwrap());
            let words = verb.split_whitespace().chain(option).chain(rest.split_whitespace());
            anytrace(&words.map(Path::new).chain(files.iter().copied()).collect::<Vec<_>>())
        };
        let is_formula =
            |cell: &String| cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
        let guarded = cells(&run(None));
        assert!(!guarded.iter().any(is_formula), "{line}: {:?}", guarded.iter().find(|cell| is_formula(cell)));
        assert!(guarded.iter().any(|cell| cell.starts_with("'=")), "{line}: no name: {guarded:?}");
        let raw = cells(&run(Some("--csv-raw")));
        assert_eq!(raw.len(), guarded.len(), "{line}");
        assert!(raw.iter().any(is_formula), "{line}: {raw:?}");
        for (raw, guarded) in raw.iter().zip(&guarded).filter(|(raw, guarded)| raw != guarded) {
            assert_eq!(&format!("'{raw}"), guarded, "{line}");
        }
    }
}
