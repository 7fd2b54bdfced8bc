//! What babeltrace2 prints of each sample, and of what this crate writes, beside the lines of `dump`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::process::Command;

use anytrace_core::archive::unpack;
use anytrace_core::testing::{examine, has_program, rewrite};
use anytrace_core::{Format, Input, InputOptions, OpenOptions, Plan, Selection, TargetOptions};
use anytrace_ctf::Ctf;
use serde_json::Value;

/// Name, time in nanoseconds, values by name.
type Event = (String, Option<u64>, Vec<(String, String)>);

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, archive: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("anytrace-ctf-oracle-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        unpack(archive, &path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A number as both print it: integers exactly, others to six digits.
fn number(text: &str) -> String {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).unwrap().to_string();
    }
    if text.parse::<i128>().is_ok() {
        return text.to_owned();
    }
    text.parse::<f64>().map_or_else(
        |_| text.to_owned(),
        |value| if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.4e}") },
    )
}

/// The next word of babeltrace2's text: punctuation, a string, or anything else up to a blank.
fn words(mut text: &str) -> Vec<String> {
    let mut out = Vec::new();
    loop {
        text = text.trim_start();
        let Some(first) = text.chars().next() else { return out };
        let length = match first {
            '"' => {
                let mut escaped = false;
                let end = text[1..].find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                end.unwrap() + 2
            }
            '{' | '}' | '(' | ')' | ',' | '=' => 1,
            _ => text.find([' ', ',']).unwrap_or(text.len()),
        };
        out.push(text[..length].to_owned());
        text = &text[length..];
    }
}

/// Of text without characters, version 2.0.4 prints, and writes, that of an earlier event.
fn without_empty(values: &mut [(String, String)]) {
    let empty: Vec<_> = values.iter().filter(|(_, value)| value == "0").map(|(key, _)| key.clone()).collect();
    values.iter_mut().filter(|(key, _)| empty.contains(&format!("_{key}_length"))).for_each(|(_, value)| value.clear());
}

/// The values of a line of babeltrace2.
fn values(text: &str) -> Vec<(String, String)> {
    let words = words(text);
    let (mut out, mut key) = (Vec::new(), String::new());
    let mut at = 0;
    while at < words.len() {
        let word = words[at].as_str();
        if words.get(at + 1).is_some_and(|next| next == "=") {
            word.clone_into(&mut key);
            at += 2;
            continue;
        }
        match word {
            "{" | "}" | "," | "[" | "]" => {}
            "(" => {
                // ( "LABEL" : container = 0 )
                let end = at + words[at..].iter().position(|word| word == ")").unwrap();
                let label = &words[at + 1];
                let shown = if label.starts_with('"') { label.trim_matches('"') } else { words[end - 1].as_str() };
                out.push((key.clone(), shown.to_owned()));
                at = end;
            }
            text if text.starts_with('"') => out.push((key.clone(), serde_json::from_str(text).unwrap())),
            other => out.push((key.clone(), number(other))),
        }
        at += 1;
    }
    out.retain(|(key, _)| key != "cpu_id");
    without_empty(&mut out);
    // Elements of arrays have their numbers as keys.
    out.iter_mut().filter(|(key, _)| key.starts_with('[')).for_each(|(key, _)| key.clear());
    out.sort();
    out
}

fn babeltrace(folder: &Path) -> Vec<Event> {
    let output = Command::new("babeltrace2").args(["--clock-seconds", "--no-delta"]).arg(folder).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut events: Vec<Event> = text
        .lines()
        .map(|line| {
            let (time, rest) = match line.strip_prefix('[').and_then(|line| line.split_once("] ")) {
                Some((time, rest)) => (Some(time.replace('.', "").parse().unwrap()), rest),
                None => (None, line),
            };
            // The name of the machine comes first, where the description has it.
            let (names, fields) = rest.split_once(": {").unwrap_or((rest.trim_end_matches(": "), ""));
            let name = names.rsplit(' ').next().unwrap().trim_end_matches(':').to_owned();
            (name, time, values(&format!("{{{fields}")))
        })
        .collect();
    events.sort();
    events
}

fn flatten(key: &str, value: &Value, out: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| flatten(key, value, out)),
        Value::Array(elements) => elements.iter().for_each(|value| flatten("", value, out)),
        Value::Null => {}
        Value::String(text) => out.push((key.to_owned(), text.clone())),
        other => out.push((key.to_owned(), number(&other.to_string()))),
    }
}

fn ours(archive: &[u8]) -> Vec<Event> {
    let lines = String::from_utf8(examine(&Ctf, archive).jsonl).unwrap();
    let mut events: Vec<Event> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["kind"] == "event")
        .map(|line| {
            let mut values = Vec::new();
            for part in ["context", "event_context", "fields"] {
                flatten(part, &line[part], &mut values);
            }
            values.retain(|(key, _)| key != "cpu_id");
            without_empty(&mut values);
            values.sort();
            (line["name"].as_str().unwrap().to_owned(), line["time_ns"].as_u64(), values)
        })
        .collect();
    events.sort();
    events
}

fn compare(name: &str, archive: &[u8]) {
    let folder = Folder::new(name, archive);
    let (expected, found) = (babeltrace(&folder.0), ours(archive));
    assert!(!expected.is_empty(), "{name}");
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(found.len(), expected.len(), "{name}");
}

const SAMPLES: [(&str, &[u8]); 5] = [
    ("features", include_bytes!("../corpus/features.tar")),
    ("features-be", include_bytes!("../corpus/features-be.tar")),
    ("bare", include_bytes!("../corpus/bare.tar")),
    ("lttng-ust", include_bytes!("../corpus/lttng-ust.tar")),
    ("anytrace", include_bytes!("../corpus/anytrace.tar")),
];

#[test]
fn babeltrace_sees_the_same_events() {
    if !has_program("babeltrace2") {
        return;
    }
    for (name, archive) in SAMPLES {
        compare(name, archive);
    }
}

#[test]
fn babeltrace_reads_what_a_trim_and_a_repair_write() {
    if !has_program("babeltrace2") {
        return;
    }
    for (name, archive) in SAMPLES {
        for thread in [42, 43, 27316] {
            let selection = Selection { threads: vec![thread], ..Selection::default() };
            let (trimmed, ..) = rewrite(&Ctf, archive, &Plan::Trim(selection, TargetOptions::default())).unwrap();
            if !ours(&trimmed).is_empty() {
                compare(&format!("{name}-{thread}"), &trimmed);
            }
        }
    }
    for bad in ["bad-event--unknown-id", "truncated--in-packet", "bad-packet--magic", "bad-metadata--unknown-type"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/bad/{bad}.tar"));
        let plan = Plan::Repair(TargetOptions::default());
        let (repaired, ..) = rewrite(&Ctf, &std::fs::read(path).unwrap(), &plan).unwrap();
        compare(bad, &repaired);
    }
}

#[test]
fn what_babeltrace_writes_is_read() {
    if !has_program("babeltrace2") {
        return;
    }
    // Its files are one packet each, without the numbers and the indexes that LTTng has.
    let folder = Folder::new("sink", SAMPLES[3].1);
    let sink = folder.0.join("written");
    let source = folder.0.join("ust");
    assert!(Command::new("babeltrace2").arg(source).args(["-o", "ctf", "-w"]).arg(&sink).status().unwrap().success());
    let mut archive = Vec::new();
    let mut input = Input::open(&sink, InputOptions::default()).unwrap().into_read();
    std::io::Read::read_to_end(&mut input, &mut archive).unwrap();
    let events = |archive: &[u8]| ours(archive).into_iter().map(|(name, time, _)| (name, time)).collect::<Vec<_>>();
    assert_eq!(events(&archive), events(SAMPLES[3].1));
    compare("written", &archive);
    assert!(Ctf.open(Input::from_bytes("x", archive), &OpenOptions::default()).is_ok());
}
