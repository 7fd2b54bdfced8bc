//! Nothing from a trace or from a file's name moves a terminal: every verb is run on one, with names that try.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::pty::openpty;
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};

/// What is run of each verb. `{x}` is a sample, `{out}` for a file that is not there yet. Lines that begin with
/// `!` must show the name.
const COMMANDS: &str = "
! highlights {heph}
highlights --format json {heph}
! highlights {trace}
! highlights {cacheray}
demo --no-open -o {out}
! info {heph}
report {heph} -o {out}
! info --format json {heph}
! dump {heph}
! dump --format jsonl {heph}
! dump {cacheray}
! dump {casemate}
! dump {trace}
! dump --format jsonl {trace}
! check {heph}
! check --format json {casemate}
! check --format sarif {heph}
! check --format junit {heph}
  check {cacheray}
  check {trace}
! repair {heph} -o {out}
! repair --format json {heph} -o {out}
! repair {casemate} -o -
! convert {heph} -o - --to csv
! convert {heph} -o - --to csv --csv-raw
! convert {heph} -o - --to chrome
! convert {heph} -o - --to firefox
! convert {heph} -o - --to folded
! convert {heph} -o - --to otlp
! convert {heph} -o - --to perfetto
! convert {heph} -o - --to speedscope
! convert {heph} -o - --to svg
! convert {heph} -o - --to jsonl
! convert {heph} -o -
! convert {yaml} -o - --to chrome
! convert {cacheray} -o -
  convert {cacheray} -o - --to din
! merge {heph} {relay} -o - --to csv
! merge {heph} {relay} -o - --to chrome
! stats --merge --by thread {heph} {relay}
! timeline --merge {heph} {relay}
! trim {heph} -o - --records ..3
! diff {heph} {relay}
! diff --format json {heph} {relay}
! diff {casemate} {tree}
! stats {heph}
! stats --format csv {heph}
! stats --format csv --csv-raw {heph}
! stats --format json {heph}
! stats --longest 3 --outliers 2 --gaps --histogram . {heph}
! stats --against {relay} {heph}
! flame {heph}
! timeline {heph}
! timeline --color=always {heph}
! query --run time-by-name {heph}
! query --run time-by-name --format csv {heph}
! query --run time-by-name --format json {heph}
  index {heph} -o {out}
! apitrace dump {trace}
! apitrace dump --color=always {trace}
! apitrace dump --escape c {trace}
! apitrace jsonl {trace}
! apitrace pickle {trace}
! apitrace info {trace}
! apitrace diff {trace} {imm}
! apitrace diff --tool=diff --color=always {trace} {imm}
! apitrace diff --tool=sdiff --color=always {trace} {imm}
! apitrace diff --tool=wdiff --color=always {trace} {imm}
! apitrace diff --tool=python --color=always {trace} {imm}
! apitrace diff --format json {trace} {imm}
! apitrace diff-images {folder} {folder} -o {out}
! apitrace diff-images {folder} {folder} -o -
! apitrace diff-state {state} {other}
! apitrace diff-state --format json {state} {other}
  apitrace from-jsonl {calls} -o -
  apitrace gltrim --frames 0 {trace} -o -
  apitrace index {trace} -o {out}
  apitrace leaks {trace}
  apitrace leaks --compat {trace}
  apitrace replay {trace}
  apitrace dump-images {trace} -o {out}
  apitrace frames {trace} -o {out}
! apitrace repack {trace} -
! apitrace sed -e s/a/b/ {trace} -o -
  apitrace state {trace}
! apitrace stats {trace}
! apitrace stats --format csv {trace}
! apitrace stats --format json {trace}
! apitrace stats {trace} --plot -
  apitrace to-c {trace} -o {out}
! apitrace trim {trace} -o -
! memory advise {cacheray}
! memory annotate --config zen3 {cacheray}
! memory compare --config zen3 {cacheray} {cacheray}
! memory heatmap {cacheray} -o -
! memory report --config zen3 {cacheray} -o -
! memory lifetime {cacheray}
! memory mrc --by type {cacheray}
! memory mrc --by type --format csv {cacheray}
! memory mrc --by type --plot - {cacheray}
! memory numa {cacheray}
! memory sharing {cacheray}
! memory sim --config zen3 --types {cacheray}
! memory sim --config zen3 --types --format csv {cacheray}
! memory sim --config zen3 --types --format json {cacheray}
! memory types {cacheray}
! memory types --format csv {cacheray}
! casemate check {casemate}
! casemate check --all {casemate}
! casemate check -t {casemate}
! casemate check -p {casemate}
! casemate check -d {casemate}
! casemate check -t --color {casemate}
! casemate check --format junit {casemate}
! casemate check --format sarif {casemate}
! casemate explain --all {casemate}
! casemate timeline --all-unclean {casemate}
! casemate state --tables {casemate}
! casemate walk --root 0x1000 {casemate}
! casemate walk --root 0x1000 --diff 3..9 {casemate}
! casemate stats {casemate}
! casemate minimise {casemate} -o -
! casemate rewrite {casemate} -o -
! casemate diff {casemate} {tree}
! heph collect --follow {heph} --no-follow --summary none --output {out}
! heph collect --follow {heph} --no-follow --summary json --output {out}
! heph convert --compat {heph} -o -
  heph loss {heph}
! heph replay --speed max --skip-damage --to - {heph}
! heph spans --attributes {heph}
! heph spans --format json {heph}
! heph stats {heph}
! heph stats --against {relay} {heph}
! heph tasks {heph}
! xray account -m {map} {yaml}
! xray account -m {map} --format csv {yaml}
! xray account -m {map} --format json {yaml}
! xray stack -m {map} {yaml}
! xray stack -m {map} --all-stacks {yaml}
! xray stack -m {map} --all-stacks --compat {yaml}
! xray stack -m {map} --format csv {yaml}
! xray stack -m {map} --format json {yaml}
! xray graph -m {map} {yaml}
! xray graph -m {map} --format csv {yaml}
! xray graph -m {map} --format json {yaml}
! xray graph-diff -m {map} {yaml} {yaml}
! xray convert -y -m {map} -f yaml {yaml}
! xray convert -y -m {map} -f trace_event {yaml}
! xray extract -s {map}
! xray fdr-dump {heph}
! info {missing}
! --{missing}
  --help
";

/// Verbs that are given no trace, and why they print nothing of one.
const WITHOUT: [(&str, &str); 14] = [
    ("view", "runs until it is interrupted: tests/view.rs runs it"),
    ("formats", "the program's own words"),
    ("rules", "the program's own words"),
    ("completions", "the program's own words"),
    ("man", "the program's own words"),
    ("casemate rules", "the program's own words"),
    ("cacheray cc", "runs a compiler"),
    ("cacheray record", "runs a program"),
    ("record", "runs a program"),
    ("apitrace trace", "runs a program"),
    ("heph open", "reads what a killed program left: tests/recover.rs has names with escapes"),
    ("heph recover", "reads what a killed program left: tests/recover.rs has names with escapes"),
    ("casemate collect", "reads the memory of a program: tests/casemate_collect.rs"),
    ("help", "the program's own words"),
];

/// Files whose own names try, too.
struct Samples {
    folder: tempfile::TempDir,
}

const NAME: &str = "pwned\u{1b}]0;x\u{7}\u{1b}[31m\u{9b}2J\u{202e}\u{200b}\r";

impl Samples {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (name, source) in [
            ("heph", "tests/evil/e.heph"),
            ("trace", "tests/evil/e.trace"),
            ("casemate", "tests/evil/e.casemate"),
            ("cacheray", "tests/evil/e.cacheray"),
            ("yaml", "tests/evil/e.yaml"),
            ("map", "tests/evil/map.yaml"),
            ("relay", "../../examples/traces/relay.heph"),
            ("tree", "../../examples/traces/free_tree.casemate"),
            ("imm", "../../examples/traces/imm.trace"),
            ("calls", "tests/calls.jsonl"),
        ] {
            std::fs::copy(root.join(source), folder.path().join(format!("{NAME}{name}"))).unwrap();
        }
        let state = |text: &str| format!("{{\"parameters\": {{\"\\u001b[31mpwned\\u202e\": \"{text}\"}}}}");
        std::fs::write(folder.path().join(format!("{NAME}state")), state("\\u009b\\u0007pwned")).unwrap();
        std::fs::write(folder.path().join(format!("{NAME}other")), state("\u{202e}pwned")).unwrap();
        std::fs::create_dir(folder.path().join(format!("{NAME}folder"))).unwrap();
        std::fs::write(folder.path().join(format!("{NAME}folder/{NAME}.png")), "no picture").unwrap();
        Self { folder }
    }

    /// Words of a line of [`COMMANDS`].
    fn words(&self, line: &str, number: usize) -> Vec<PathBuf> {
        let word = |word: &str| match word.split_once('{') {
            Some((before, name)) => {
                let name = name.trim_end_matches('}');
                let unique = if name == "out" { format!("out{number}") } else { name.to_owned() };
                let file = self.folder.path().join(format!("{NAME}{unique}"));
                if before.is_empty() { file } else { format!("{before}{NAME}").into() }
            }
            None => word.into(),
        };
        line.split_whitespace().map(word).collect()
    }
}

/// What a command prints on a terminal that changes nothing of it.
fn on_terminal(arguments: &[PathBuf]) -> Vec<u8> {
    let pty = openpty(None, None).unwrap();
    let mut mode = tcgetattr(&pty.slave).unwrap();
    cfmakeraw(&mut mode);
    tcsetattr(&pty.slave, SetArg::TCSANOW, &mode).unwrap();
    let both = || Stdio::from(pty.slave.try_clone().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.args(arguments).stdin(Stdio::null()).stdout(both()).stderr(both());
    command.env("TERM", "xterm-256color").env_remove("NO_COLOR").env_remove("CLICOLOR");
    let mut child = command.spawn().unwrap();
    drop(command);
    drop(pty.slave);
    let mut shown = Vec::new();
    // Reading ends with an error once nobody holds the other side.
    let _ = File::from(pty.master).read_to_end(&mut shown);
    let status = child.wait().unwrap();
    assert!(status.code().is_some_and(|code| code <= 2), "{arguments:?}: {status}");
    shown
}

/// What is wrong with what a terminal got.
fn fault(shown: &[u8]) -> Option<String> {
    let Ok(mut text) = std::str::from_utf8(shown) else { return Some("bytes that are not UTF-8".to_owned()) };
    while let Some(at) = text.find(|c: char| c.is_control() && !matches!(c, '\n' | '\t')) {
        let rest = &text[at..];
        let around: String = rest.chars().take(24).collect();
        // What the progress bar sends.
        if let Some(rest) = ["\r\u{1b}[2K", "\u{1b}[2K", "\u{1b}[1A"].iter().find_map(|known| rest.strip_prefix(known))
        {
            text = rest;
            continue;
        }
        let body = rest.strip_prefix("\u{1b}[");
        let end = body.and_then(|body| body.find(|c: char| !c.is_ascii_digit() && c != ';'));
        match (body, end) {
            // A color, and not the one in the samples' names.
            (Some(body), Some(end)) if body[end..].starts_with('m') && !body[end..].starts_with("mRED") => {
                text = &body[end + 1..];
            }
            _ => return Some(format!("{around:?}")),
        }
    }
    let shown_text = String::from_utf8_lossy(shown);
    let unseen = shown_text.chars().find(|c| {
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}')
    });
    unseen.map(|c| format!("{c:?}"))
}

#[test]
fn no_verb_lets_a_name_move_the_terminal() {
    let samples = Samples::new();
    let mut faults = Vec::new();
    for (number, line) in COMMANDS.lines().filter(|line| !line.is_empty()).enumerate() {
        let (must_show, line) = (line.starts_with('!'), line.trim_start_matches('!').trim());
        let shown = on_terminal(&samples.words(line, number));
        if let Some(fault) = fault(&shown) {
            faults.push(format!("{line}: {fault}"));
        }
        if must_show && !String::from_utf8_lossy(&shown).contains("pwned") {
            faults.push(format!("{line}: shows no name: {}", String::from_utf8_lossy(&shown)));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Subcommands that a help text lists.
fn listed(path: &[String]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_anytrace")).args(path).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Continued lines are indented further.
    let names = lines.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_verb_is_run() {
    let mut verbs = BTreeSet::new();
    for group in listed(&[]) {
        let inner = listed(std::slice::from_ref(&group));
        if inner.is_empty() {
            verbs.insert(group);
        } else {
            verbs.extend(inner.iter().map(|verb| format!("{group} {verb}")));
        }
    }
    assert!(verbs.len() > 40, "{verbs:?}");
    let commands: Vec<&str> = COMMANDS.lines().map(|line| line.trim_start_matches('!').trim()).collect();
    for verb in verbs {
        let is_run = commands.iter().any(|line| line.strip_prefix(&verb).is_some_and(|rest| rest.starts_with(' ')));
        assert!(is_run || WITHOUT.iter().any(|(known, _)| *known == verb), "{verb} is not run on a terminal");
    }
}

#[test]
fn libraries_do_not_print() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(crates).unwrap().map(|one| one.unwrap().path().join("src")).collect();
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.to_string_lossy().replace('\\', "/");
            // The engine of `query` is a program, which the test above runs on a terminal; so are those of the cluster. What
            // speaks OTLP says what it does to the collector, as JSON.
            let prints = ["cli/src/terminal.rs", "core/src/testing.rs"].iter().any(|end| name.ends_with(end));
            if !name.ends_with(".rs")
                || prints
                || ["/query/src/", "/cluster/src/", "/otlp/src/"].iter().any(|part| name.contains(part))
            {
                continue;
            }
            seen += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            for way in ["io::stdout", "io::stderr", "anstream::std", "use std::io::stdout", "use std::io::stderr"] {
                assert!(!text.contains(way), "{name}: {way}: only crate::terminal of the command line prints");
            }
        }
    }
    assert!(seen > 100);
}
