//! Every verb that reads a trace says by its exit code, and in its JSON, that records were lost.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// A command on the damaged trace of a format. With `json`, standard output must be JSON that says what was lost.
struct Case {
    example: &'static str,
    command: &'static str,
    is_json: bool,
}

const fn text(example: &'static str, command: &'static str) -> Case {
    Case { example, command, is_json: false }
}

const fn json(example: &'static str, command: &'static str) -> Case {
    Case { example, command, is_json: true }
}

const EXAMPLES: [&str; 6] =
    ["imm.trace", "boxes.cacheray", "free_tree.casemate", "relay.heph", "rows.lackey", "threads4.xray"];

/// On a damaged trace of every format that has the verb.
const GENERIC: [(&str, bool); 17] = [
    ("highlights TRACE", false),
    ("highlights --format json TRACE", true),
    ("report --force -o /dev/null TRACE", false),
    ("info TRACE", false),
    ("info --format json TRACE", true),
    ("dump TRACE", false),
    ("dump --format jsonl TRACE", false),
    ("check TRACE", false),
    ("check --format json TRACE", true),
    ("check --format sarif TRACE", false),
    ("check --format junit TRACE", false),
    ("diff TRACE TRACE", false),
    ("diff --format json TRACE TRACE", true),
    ("convert TRACE -o -", false),
    ("trim TRACE -o - --records 0..", false),
    ("index --force -o /dev/null TRACE", false),
    ("index --force --format json -o /dev/null TRACE", true),
];

const CASES: [Case; 44] = [
    text("threads4.xray", "merge TRACE TRACE --to chrome -o -"),
    json("threads4.xray", "stats --merge --format json TRACE TRACE"),
    text("threads4.xray", "stats TRACE"),
    json("threads4.xray", "stats --format json TRACE"),
    json("threads4.xray", "stats --format json --against TRACE TRACE"),
    text("threads4.xray", "flame TRACE"),
    text("threads4.xray", "timeline TRACE"),
    text("threads4.xray", "convert --to chrome TRACE -o -"),
    text("boxes.cacheray", "convert --to din TRACE -o -"),
    json("boxes.cacheray", "memory sim --config zen3 --format json TRACE"),
    json("boxes.cacheray", "memory mrc --format json TRACE"),
    json("boxes.cacheray", "memory numa --format json TRACE"),
    json("boxes.cacheray", "memory sharing --format json TRACE"),
    json("rows.lackey", "memory annotate --config zen3 --format json TRACE"),
    json("boxes.cacheray", "memory types --format json TRACE"),
    json("boxes.cacheray", "memory lifetime --format json TRACE"),
    json("boxes.cacheray", "memory advise --format json TRACE"),
    json("boxes.cacheray", "memory compare --config zen3 --format json TRACE TRACE"),
    text("boxes.cacheray", "memory heatmap TRACE"),
    text("boxes.cacheray", "memory report --config zen3 TRACE -o -"),
    text("free_tree.casemate", "casemate check TRACE"),
    json("free_tree.casemate", "casemate check --format json TRACE"),
    text("free_tree.casemate", "casemate check --compat -q TRACE"),
    json("free_tree.casemate", "casemate explain --format json TRACE"),
    json("free_tree.casemate", "casemate timeline --all-unclean --format json TRACE"),
    json("free_tree.casemate", "casemate state --format json TRACE"),
    json("free_tree.casemate", "casemate stats --format json TRACE"),
    json("free_tree.casemate", "casemate walk --root ROOT --format json TRACE"),
    json("free_tree.casemate", "casemate walk --root ROOT --diff 3..9 --format json TRACE"),
    text("free_tree.casemate", "casemate minimise TRACE -o -"),
    text("free_tree.casemate", "casemate rewrite TRACE -o -"),
    json("free_tree.casemate", "casemate diff --format json TRACE TRACE"),
    json("relay.heph", "heph spans --format json TRACE"),
    json("relay.heph", "heph spans --summary --format json TRACE"),
    json("relay.heph", "heph stats --format json TRACE"),
    json("relay.heph", "heph tasks --format json TRACE"),
    text("relay.heph", "heph loss --format json TRACE"),
    text("relay.heph", "heph convert --compat TRACE -o -"),
    json("threads4.xray", "xray account --format json TRACE"),
    json("threads4.xray", "xray stack --format json TRACE"),
    json("threads4.xray", "xray graph --format json TRACE"),
    json("threads4.xray", "xray graph-diff --format json TRACE TRACE"),
    text("threads4.xray", "xray convert -f yaml TRACE"),
    text("threads4.xray", "xray fdr-dump TRACE"),
];

/// Verbs that read no trace, or are tested elsewhere: `repair` says 0 where most is saved, and a replay goes on for
/// as long as the trace.
const ELSEWHERE: [&str; 9] = [
    "repair",
    "query",
    "view",
    "heph replay",
    "heph collect",
    "heph open",
    "heph recover",
    "casemate collect",
    "xray extract",
];

fn anytrace(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments).output().unwrap()
}

fn run(command: &str, trace: &Path) -> Output {
    let words: Vec<_> = command.split(' ').collect();
    let root = words.contains(&"ROOT").then(|| {
        let state = anytrace(&["casemate", "state", "--format", "json", trace.to_str().unwrap()]);
        let state: Value = serde_json::from_slice(&state.stdout).unwrap();
        state["roots"][0]["base"].as_str().unwrap().to_owned()
    });
    let word = |word: &&str| match *word {
        "TRACE" => trace.to_str().unwrap().to_owned(),
        "ROOT" => root.clone().unwrap(),
        word => word.to_owned(),
    };
    let words: Vec<String> = words.iter().map(word).collect();
    anytrace(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every example, cut inside its last record, and again in a gzip file that is cut.
fn damaged(folder: &Path, example: &str) -> Vec<std::path::PathBuf> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces");
    let bytes = fs::read(examples.join(example)).unwrap();
    let cut = folder.join(example);
    fs::write(&cut, &bytes[..bytes.len() - 3]).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &bytes).unwrap();
    let gzip = encoder.finish().unwrap();
    let packed = folder.join(format!("{example}.gz"));
    fs::write(&packed, &gzip[..gzip.len() - 12]).unwrap();
    vec![cut, packed]
}

fn assert_lost(command: &str, is_json: bool, trace: &Path) {
    let output = run(command, trace);
    let case = format!("{command}, {}: {}", trace.display(), said(&output));
    assert!(matches!(output.status.code(), Some(1 | 2)), "{case}");
    if is_json {
        let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {case}"));
        let is_refused = output.status.code() == Some(2) && value["error"].is_string();
        let value = if value.is_array() { &value[0] } else { &value };
        assert!(value["lost"].as_u64().is_some_and(|lost| lost > 0) || is_refused, "{value:#}: {case}");
        assert_ne!(value["verdict"], "ok", "{case}");
    }
}

#[test]
fn generic_verbs_say_that_records_were_lost() {
    let folder = tempfile::tempdir().unwrap();
    for example in EXAMPLES {
        for trace in damaged(folder.path(), example) {
            GENERIC.iter().for_each(|(command, is_json)| assert_lost(command, *is_json, &trace));
        }
    }
}

#[test]
fn verbs_of_the_groups_say_that_records_were_lost() {
    let folder = tempfile::tempdir().unwrap();
    for Case { example, command, is_json } in &CASES {
        for trace in damaged(folder.path(), example) {
            assert_lost(command, *is_json, &trace);
        }
    }
}

#[test]
fn repair_counts_what_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    for example in EXAMPLES {
        for trace in damaged(folder.path(), example) {
            let out = folder.path().join(format!("saved-{example}"));
            let out = out.to_str().unwrap();
            let output = anytrace(&["repair", "--force", "--format", "json", trace.to_str().unwrap(), "-o", out]);
            let value: Value = serde_json::from_slice(&output.stdout).unwrap();
            let case = format!("{}: {value:#}", trace.display());
            assert!(value["lost"].as_u64().is_some_and(|lost| lost > 0), "{case}");
            assert_eq!((output.status.code(), &value["written"]), (Some(0), &Value::Bool(true)), "{case}");
            assert!(value["bytes_kept"].as_u64() <= value["bytes_total"].as_u64(), "{case}");
        }
    }
}

#[test]
fn what_was_not_damaged_lost_nothing() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces");
    for Case { example, command, .. } in CASES.iter().filter(|case| case.is_json) {
        let trace = examples.join(example);
        let output = run(command, &trace);
        let value: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{command}: {error}: {}", said(&output)));
        let value = if value.is_array() { &value[0] } else { &value };
        // What a model of reuse distances prints has no such key.
        let is_of_model = command.starts_with("memory mrc");
        assert_eq!(value["lost"].as_u64(), (!is_of_model).then_some(0), "{command}: {value:#}");
    }
}

#[test]
fn json_is_json_whatever_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    let junk = folder.path().join("junk.trace");
    fs::write(&empty, b"").unwrap();
    fs::write(&junk, b"\x24\x87\x01\xcc\x9b no trace").unwrap();
    let generic = GENERIC.iter().filter(|(_, is_json)| *is_json).map(|(command, _)| *command);
    let groups = CASES.iter().filter(|case| case.is_json).map(|case| case.command);
    for command in generic.chain(groups).filter(|command| !command.contains("ROOT")) {
        for trace in [&empty, &junk, &folder.path().join("missing")] {
            let output = run(command, trace);
            let case = format!("{command}, {}: {}", trace.display(), said(&output));
            let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {case}"));
            assert!(value["version"] == 1 || value[0]["version"] == 1, "{value:#}: {case}");
            if output.status.code() == Some(2) {
                assert!(value["error"].is_string(), "{value:#}: {case}");
            }
        }
    }
}

/// The first violation ends the search for one, not the reading of the trace.
#[test]
fn minimise_says_what_was_lost_behind_the_violation() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../casemate/corpus");
    let log = fs::read_to_string(corpus.join("head_bad_race.log")).unwrap();
    let (complete, damaged) = (folder.path().join("complete.log"), folder.path().join("damaged.log"));
    fs::write(&complete, &log).unwrap();
    fs::write(&damaged, format!("{log}\n(barrier (id 9999) (tid 0) (kind nonsense))\n")).unwrap();
    let minimise = |trace: &Path| run("casemate minimise TRACE -o - --rules strict", trace);
    let (complete, damaged) = (minimise(&complete), minimise(&damaged));
    assert_eq!((complete.status.code(), damaged.status.code()), (Some(0), Some(1)), "{}", said(&damaged));
    assert_eq!(complete.stdout, damaged.stdout);
    assert!(said(&damaged).contains("[casemate/unknown-barrier-kind]"), "{}", said(&damaged));
}

/// Without `--all` the checker stops at the first violation; what is lost behind it is counted all the same.
#[test]
fn check_and_explain_count_what_was_lost_behind_the_violation() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../casemate/corpus");
    let log = fs::read_to_string(corpus.join("head_bad_race.log")).unwrap();
    let rest: String = (10_000..10_200).map(|id| format!("(barrier (id {id}) (tid 0) dsb (kind sy))\n")).collect();
    let damaged = folder.path().join("damaged.log");
    fs::write(&damaged, format!("{log}\n{rest}(barrier (id 10200) (tid 0) (kind nonsense))\n")).unwrap();
    for verb in ["check", "explain"] {
        for all in ["", "--all "] {
            let output = run(&format!("casemate {verb} --format json --rules strict {all}TRACE"), &damaged);
            let value: Value = serde_json::from_slice(&output.stdout).unwrap();
            let case = format!("{verb} {all}: {value:#}");
            assert_eq!((output.status.code(), &value["lost"]), (Some(1), &1.into()), "{case}");
            assert_eq!(value["verdict"], "violation", "{case}");
            assert!(said(&output).contains("[casemate/unknown-barrier-kind]"), "{case}");
        }
    }
}

/// Where a wrapper ends too early, no record says that others are missing.
#[test]
fn a_cut_wrapper_makes_the_verdict_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("t.log.gz");
    fs::write(&cut, b"\x1f\x8b\x08").unwrap();
    let long = damaged(folder.path(), "free_tree.casemate").pop().unwrap();
    for trace in [&cut, &long] {
        for command in ["casemate check --format json TRACE", "casemate explain --format json TRACE"] {
            let output = run(command, trace);
            let value: Value = serde_json::from_slice(&output.stdout).unwrap();
            let case = format!("{command}, {}: {value:#}", trace.display());
            assert_eq!((output.status.code(), &value["verdict"]), (Some(1), &"unknown".into()), "{case}");
            assert!(value["lost"].as_u64() > Some(0), "{case}");
        }
    }
}

/// The group's verbs write their JSON as they read.
#[test]
fn json_of_apitrace_is_json_where_nothing_is_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let junk = folder.path().join("junk.trace");
    fs::write(&junk, b"YAML:1:1").unwrap();
    for command in [
        "apitrace stats --format=json TRACE",
        "apitrace stats --format json --by state TRACE",
        "apitrace state --format json TRACE",
        "apitrace leaks --format json TRACE",
        "apitrace info TRACE",
        "apitrace index --format json TRACE",
        "apitrace gltrim --explain=json --frames 0 TRACE",
        "apitrace diff --format json TRACE TRACE",
        "apitrace diff-state --format json TRACE TRACE",
    ] {
        for trace in [&junk, &folder.path().join("missing")] {
            let output = run(command, trace);
            let case = format!("{command}, {}: {}", trace.display(), said(&output));
            assert!(matches!(output.status.code(), Some(1 | 2)), "{case}");
            let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {case}"));
            assert!(value["error"].is_string(), "{value:#}: {case}");
        }
    }
}

/// A TLBI that is not known may be the one that a rule needs: no verdict is made up.
#[test]
fn an_unknown_tlbi_makes_the_verdict_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces");
    let log = fs::read_to_string(examples.join("free_tree.casemate")).unwrap();
    let trace = folder.path().join("t.log");
    fs::write(&trace, format!("{log}\n(tlbi (id 9999) (tid 0) vmalls99e1is)\n")).unwrap();
    for options in [vec![], vec!["--all"], vec!["--compat"]] {
        let output =
            anytrace(&[&["casemate", "check", "--format", "json"], &options[..], &[trace.to_str().unwrap()]].concat());
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &value["verdict"]), (Some(1), &"unknown".into()), "{value:#}");
    }
}

#[test]
fn no_verb_is_forgotten() {
    let rows = include_str!("paths.tsv").lines().filter(|line| !line.starts_with('#'));
    let readers = rows.filter(|line| line.split('\t').nth(2) == Some("reads"));
    let verbs: BTreeSet<_> = readers.filter_map(|line| line.split('\t').next()).collect();
    let commands: Vec<_> =
        GENERIC.iter().map(|(command, _)| *command).chain(CASES.iter().map(|case| case.command)).collect();
    for verb in verbs {
        // The group's own tests ask the same of it.
        let is_elsewhere = ELSEWHERE.contains(&verb) || verb.starts_with("apitrace");
        let is_here = commands.iter().any(|command| command.starts_with(&format!("{verb} ")));
        assert!(is_here || is_elsewhere, "{verb} is not tried on damaged traces");
    }
}

/// A damaged file of names is not a damaged trace: nothing is printed but what is wrong with that file, and the code is
/// that of a command that cannot be carried out.
#[test]
fn a_damaged_map_is_named_and_is_no_damage_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let map = folder.path().join("names.yaml");
    fs::write(&map, "- { id: 1, function: 0x1, kind: function-enter }\n- { i\0d: 2, function: 0x2 }\n").unwrap();
    let map = map.to_str().unwrap();
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/threads4.xray");
    let trace = trace.to_str().unwrap();
    let commands: [&[&str]; 12] = [
        &["flame", "--format", "svg", "-m", map, trace],
        &["flame", "-m", map, trace],
        &["stats", "-m", map, trace],
        &["timeline", "-m", map, trace],
        &["convert", "--to", "chrome", "-m", map, trace, "-o", "-"],
        &["xray", "account", "-m", map, trace],
        &["xray", "stack", "-m", map, trace],
        &["xray", "graph", "-m", map, trace],
        &["xray", "graph-diff", "-m", map, trace, trace],
        &["xray", "graph-diff", "--instr-map-1", map, trace, trace],
        &["xray", "convert", "-m", map, "--symbolize", "-f", "yaml", trace],
        &["xray", "extract", map],
    ];
    for command in commands {
        let output = Command::new(env!("CARGO_BIN_EXE_anytrace")).args(command).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
        assert!(output.stdout.is_empty(), "{command:?}: {said}");
        assert!(said.contains("names.yaml: byte 0x") && said.contains("record 1"), "{command:?}: {said}");
    }
}
