//! What verbs write appears complete or not at all, and only when the verb came to a result.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// No format's bytes, and no text.
const JUNK: &[u8] = b"\x24\x87\x01\xcc\x9b no trace \x00\xfe of any kind";

const BEFORE: &[u8] = b"what was there before";

fn anytrace(folder: &Path, arguments: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).current_dir(folder).args(arguments).output().unwrap()
}

/// The rows of `paths.tsv` of a kind, with their commands.
fn commands(kind: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    let rows = include_str!("paths.tsv").lines().filter(|line| !line.starts_with('#'));
    let cells = rows.map(|line| line.split('\t').collect::<Vec<_>>());
    let wanted = cells.filter(|cells| cells[2] == kind);
    wanted.map(|cells| (cells[3], cells[3].split(' ').collect())).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_verb_that_fails_leaves_what_it_should_have_replaced() {
    let rows = commands("writes");
    assert!(rows.len() > 20, "{rows:?}");
    for (row, words) in rows {
        for (name, junk) in [("junk", Some(JUNK)), ("junk.trace", Some(JUNK)), ("missing", None)] {
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path().join("good.svg");
            fs::write(&out, BEFORE).unwrap();
            if let Some(junk) = junk {
                fs::write(folder.path().join(name), junk).unwrap();
            }
            let there = files(folder.path());
            let word = |word: &&str| word.replace("JUNK", name).replace("OUT", "good.svg");
            let output = anytrace(folder.path(), &words.iter().map(word).collect::<Vec<_>>());
            let case = format!("{row}, {name}: {}", text(&output));
            assert!(matches!(output.status.code(), Some(1 | 2)), "{case}");
            assert_eq!(fs::read(&out).unwrap(), BEFORE, "{case}");
            assert_eq!(files(folder.path()), there, "{case}");
        }
    }
}

#[test]
fn a_verb_that_fails_leaves_the_folder_it_should_have_filled() {
    for (row, words) in commands("writes-into") {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("junk"), JUNK).unwrap();
        fs::create_dir(folder.path().join("out")).unwrap();
        fs::write(folder.path().join("out/kept"), BEFORE).unwrap();
        let there = files(folder.path());
        let word = |word: &&str| word.replace("JUNK", "junk").replace("OUT", "out");
        let output = anytrace(folder.path(), &words.iter().map(word).collect::<Vec<_>>());
        assert!(!output.status.success(), "{row}: {}", text(&output));
        assert_eq!(files(&folder.path().join("out")), [folder.path().join("out/kept")], "{row}");
        assert_eq!(files(folder.path()), there, "{row}");
    }
}

#[test]
fn a_file_in_the_way_is_noticed_before_anything_is_printed() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces");
    let own = |row: &str| match row.split(' ').next() {
        Some("apitrace") => "imm.trace",
        Some("cacheray") => "boxes.cacheray",
        Some("casemate") => "free_tree.casemate",
        Some("heph") => "relay.heph",
        _ => "threads4.xray",
    };
    let more = [
        "apitrace gltrim -f 0 --explain=json JUNK -o OUT",
        "apitrace gltrim -f 0 --explain=text JUNK -o OUT",
        "apitrace gltrim -f 0 --top-calls-per-frame 3 JUNK -o OUT",
        "apitrace index --format json JUNK -o OUT",
        "repair --format json JUNK -o OUT",
    ];
    let more = more.map(|row| (row, row.split(' ').collect::<Vec<_>>()));
    for (row, words) in commands("writes").into_iter().chain(more) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("out.svg"), BEFORE).unwrap();
        let is_of_pictures = row.starts_with("apitrace diff-images");
        let trace = if is_of_pictures { "a.png" } else { own(row) };
        if is_of_pictures {
            fs::write(folder.path().join(trace), JUNK).unwrap();
        } else {
            fs::copy(examples.join(trace), folder.path().join(trace)).unwrap();
        }
        let words = words.iter().filter(|word| **word != "--force");
        let word = |word: &str| word.replace("JUNK", trace).replace("OUT", "out.svg");
        let output = anytrace(folder.path(), &words.map(|text| word(text)).collect::<Vec<_>>());
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{row}: {said}");
        assert!(said.contains("out.svg exists"), "{row}: {said}");
        let printed = String::from_utf8_lossy(&output.stdout);
        // Who asked for JSON is given the reason.
        let is_json = row.contains("json ") && printed.contains("\"error\": \"out.svg exists; ");
        assert!(printed.is_empty() || is_json, "{row}: {printed}");
        assert_eq!(fs::read(folder.path().join("out.svg")).unwrap(), BEFORE, "{row}");
        assert_eq!(files(folder.path()).len(), 2, "{row}");
    }
}

#[test]
fn of_files_that_cannot_be_opened_nothing_is_printed_but_why() {
    let rows = include_str!("json.tsv").lines().filter(|line| !line.starts_with('#'));
    for command in rows.map(|line| line.split('\t').nth(2).unwrap()) {
        let line = command.replace("--format json", "--format text").replace("--format sarif", "--format text");
        let folder = tempfile::tempdir().unwrap();
        let word = |word: &str| match word {
            "TRACE" => "missing".to_owned(),
            "OUT" => "out".to_owned(),
            _ => word.replace("--explain=json", "--explain=text"),
        };
        let output = anytrace(folder.path(), &line.split(' ').map(word).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{line}: {}", text(&output));
        let printed = String::from_utf8_lossy(&output.stdout);
        // There, JSON is the only form.
        let is_json = line.starts_with("apitrace info") && printed.starts_with('{');
        assert!(printed.is_empty() || is_json, "{line}: {printed}");
    }
}

#[test]
fn pictures_of_traces_that_break_off_are_written_and_of_none_are_not() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces");
    for (verb, example) in [("memory mrc", "boxes.cacheray"), ("apitrace stats", "imm.trace")] {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = fs::read(examples.join(example)).unwrap();
        bytes.truncate(bytes.len() - 3);
        fs::write(folder.path().join(example), bytes).unwrap();
        let arguments = |input: &str| {
            let line = format!("{verb} --plot out.svg --force {input}");
            line.split(' ').map(str::to_owned).collect::<Vec<_>>()
        };
        let output = anytrace(folder.path(), &arguments(example));
        assert_eq!(output.status.code(), Some(1), "{verb}: {}", text(&output));
        let picture = fs::read(folder.path().join("out.svg")).unwrap();
        assert!(picture.ends_with(b"</svg>\n") || picture.ends_with(b"</svg>"), "{verb}");
        assert_eq!(anytrace(folder.path(), &arguments("missing")).status.code(), Some(2));
        assert_eq!(fs::read(folder.path().join("out.svg")).unwrap(), picture, "{verb}");
    }
}

#[test]
fn standard_output_takes_one_result() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces");
    let folder = tempfile::tempdir().unwrap();
    let run = |line: &str| {
        let word = |word: &str| match word.split_once('/') {
            Some(("EXAMPLES", name)) => examples.join(name).to_str().unwrap().to_owned(),
            _ => word.to_owned(),
        };
        anytrace(folder.path(), &line.split(' ').map(word).collect::<Vec<_>>())
    };
    for line in [
        "memory mrc --plot - --format json EXAMPLES/boxes.cacheray",
        "memory mrc --plot - --format csv EXAMPLES/boxes.cacheray",
        "apitrace stats --plot - --format json EXAMPLES/imm.trace",
        "apitrace stats --plot - --format csv EXAMPLES/imm.trace",
        "apitrace gltrim --frames 0 --explain -o - EXAMPLES/imm.trace",
        "apitrace gltrim --frames 0 --top-calls-per-frame 1 -o - EXAMPLES/imm.trace",
        "casemate check --trace --format json EXAMPLES/free_tree.casemate",
        "casemate check --quiet --format sarif EXAMPLES/free_tree.casemate",
    ] {
        let output = run(line);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("standard output cannot receive both "), "{line}: {said}");
        let is_json = serde_json::from_slice::<serde_json::Value>(&output.stdout).is_ok();
        assert!(output.stdout.is_empty() || is_json, "{line}");
    }
    for line in ["memory mrc --plot - EXAMPLES/boxes.cacheray", "apitrace stats --plot - EXAMPLES/imm.trace"] {
        let output = run(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output));
        let picture = String::from_utf8(output.stdout).unwrap();
        assert_eq!(roxmltree::Document::parse(&picture).unwrap().root_element().tag_name().name(), "svg", "{line}");
    }
}

/// A full disk is the output's fault: no message names the input.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_names_the_output() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces");
    let folder = tempfile::tempdir().unwrap();
    for (verb, input) in [
        ("convert --to jsonl INPUT -o /dev/full", "relay.heph"),
        ("convert --to chrome INPUT -o /dev/full", "threads4.xray"),
        ("convert --to din INPUT -o /dev/full", "boxes.cacheray"),
        ("repair INPUT -o /dev/full", "free_tree.casemate"),
        ("trim INPUT -o /dev/full --records 0..5", "boxes.cacheray"),
        ("flame INPUT -o /dev/full", "threads4.xray"),
        ("memory heatmap INPUT -o /dev/full", "boxes.cacheray"),
        ("memory mrc --plot /dev/full INPUT", "boxes.cacheray"),
        ("memory report --config zen3 INPUT -o /dev/full", "boxes.cacheray"),
        ("casemate rewrite INPUT -o /dev/full", "free_tree.casemate"),
        ("apitrace repack INPUT /dev/full", "imm.trace"),
        ("apitrace trim INPUT -o /dev/full --calls 0-5", "imm.trace"),
        ("heph convert --compat INPUT -o /dev/full", "relay.heph"),
        ("xray account INPUT -o /dev/full", "threads4.xray"),
        ("xray graph INPUT -o /dev/full", "threads4.xray"),
    ] {
        let input = examples.join(input);
        let arguments: Vec<_> = verb.split(' ').map(|word| word.replace("INPUT", input.to_str().unwrap())).collect();
        let output = anytrace(folder.path(), &arguments);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{verb}: {said}");
        assert!(said.contains("error: cannot write /dev/full: No space left on device"), "{verb}: {said}");
    }
}

/// The same for standard output, where every verb writes.
#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_no_success() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces");
    let example = |name: &str| examples.join(name).to_str().unwrap().to_owned();
    let (heph, xray, cacheray) = (example("relay.heph"), example("threads4.xray"), example("boxes.cacheray"));
    let (casemate, apitrace) = (example("free_tree.casemate"), example("imm.trace"));
    for line in [
        "--help".to_owned(),
        "--version".to_owned(),
        "help".to_owned(),
        "convert --help".to_owned(),
        "help xray account".to_owned(),
        "completions bash".to_owned(),
        "completions fish".to_owned(),
        "man".to_owned(),
        "rules".to_owned(),
        "formats".to_owned(),
        "casemate rules".to_owned(),
        format!("info {heph}"),
        format!("info --format json {heph}"),
        format!("dump {heph}"),
        format!("check {heph}"),
        format!("check --format json {heph}"),
        format!("stats {xray}"),
        format!("flame {xray}"),
        format!("timeline {xray}"),
        format!("convert --to jsonl -o - {heph}"),
        format!("diff {heph} {heph}"),
        format!("memory sim --config zen3 {cacheray}"),
        format!("memory mrc {cacheray}"),
        format!("memory types {cacheray}"),
        format!("casemate check {casemate}"),
        format!("casemate state {casemate}"),
        format!("apitrace dump {apitrace}"),
        format!("apitrace stats {apitrace}"),
        format!("apitrace jsonl {apitrace}"),
        format!("heph spans {heph}"),
        format!("heph stats {heph}"),
        format!("heph tasks {heph}"),
        format!("xray account {xray}"),
        format!("xray stack {xray}"),
        format!("xray fdr-dump {xray}"),
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
        let output = command.args(line.split(' ')).stdout(full).stderr(std::process::Stdio::piped()).output().unwrap();
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("error: cannot write "), "{line}: {said}");
        assert!(!said.contains(".heph:") && !said.contains(".xray:") && !said.contains(".trace:"), "{line}: {said}");
    }
}
