//! `highlights`, `demo` and the steps that `info` proposes: what they say is what the verbs they name print.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).current_dir(root()).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// The sentences about a trace.
fn texts(arguments: &[&str]) -> Vec<String> {
    let found = json(&[&["highlights", "--format", "json"], arguments].concat());
    let list = found["highlights"].as_array().unwrap();
    list.iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect()
}

/// Runs a command that the program printed, through a shell, with the program first on the path.
fn pasted(command: &str) -> Output {
    let folder = Path::new(env!("CARGO_BIN_EXE_anytrace")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    Command::new("sh").args(["-c", command]).env("PATH", path).current_dir(root()).output().unwrap()
}

#[test]
fn the_hottest_function_is_the_first_row_of_stats_besides_the_root() {
    let trace = "examples/tour/threads.yaml.gz";
    let stats = json(&["stats", "--format", "json", "--sort", "self", trace]);
    let rows = stats["rows"].as_array().unwrap();
    assert_eq!(rows[0]["name"], "main");
    let name = rows[1]["name"].as_str().unwrap();
    let text = texts(&[trace]).remove(0);
    assert!(text.starts_with("One call of main is as long as the trace.") && text.contains(name), "{text}");
    assert!(text.contains(&format!("in {} calls", rows[1]["count"])), "{text}");
}

#[test]
fn a_program_names_the_functions_and_is_in_the_command() {
    let map = "crates/xray/corpus/maps/threads-14.map.yaml";
    let found = json(&["highlights", "--format", "json", "-m", map, "examples/traces/threads4.xray"]);
    let first = &found["highlights"][0];
    assert!(first["text"].as_str().unwrap().contains("Worker::step(unsigned int)"), "{first}");
    assert_eq!(first["command"], format!("anytrace stats --sort self -m {map} examples/traces/threads4.xray"));
}

#[test]
fn the_type_with_most_misses_is_the_first_of_types() {
    let trace = "examples/tour/particles.cacheray.gz";
    let types = json(&["memory", "types", "--config", "zen3", "--format", "json", trace]);
    let most = types["types"].as_array().unwrap().iter().max_by_key(|one| one["misses"].as_u64()).unwrap();
    let (name, misses) = (most["type"].as_str().unwrap(), &most["misses"]);
    let text = texts(&[trace]).remove(0);
    assert!(text.starts_with(&format!("{name} has {misses} of ")), "{text}");
}

#[test]
fn a_violation_comes_with_what_is_missing_and_is_no_fault_of_the_trace() {
    let trace = "examples/tour/missing-tlbi.casemate";
    let output = run(&["highlights", trace]);
    assert_eq!(output.status.code(), Some(0));
    let text = texts(&[trace]).remove(0);
    let explained = String::from_utf8(run(&["casemate", "explain", trace]).stdout).unwrap();
    let missing = explained.lines().find_map(|line| line.trim().strip_prefix("missing: ")).unwrap();
    assert!(text.contains(&format!("Missing: {missing}.")) && text.contains("line 51"), "{text}");
}

#[test]
fn a_call_far_from_the_median_of_its_name_is_an_outlier() {
    let texts = texts(&["examples/traces/relay.heph"]);
    assert!(texts[1].starts_with("Polling for OS events usually takes 50.24 µs"), "{texts:?}");
    assert!(texts[1].ends_with("the longest took 92.39 ms."), "{texts:?}");
}

#[test]
fn every_command_shown_runs() {
    let tour: Vec<String> = ["examples/tour", "examples/traces"]
        .iter()
        .flat_map(|folder| fs::read_dir(root().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path().display().to_string())
        .collect();
    let mut arguments = vec!["highlights", "--format", "json"];
    arguments.extend(tour.iter().map(String::as_str));
    let found = json(&arguments);
    assert_eq!(found.as_array().unwrap().len(), tour.len());
    for trace in found.as_array().unwrap() {
        let list = trace["highlights"].as_array().unwrap();
        assert!(!list.is_empty(), "{trace}");
        for command in list.iter().map(|one| one["command"].as_str().unwrap()) {
            let code = pasted(command).status.code();
            // An explained violation is exit code 1.
            assert!(code == Some(0) || code == Some(1) && command.contains("explain"), "{command}: {code:?}");
        }
    }
    for trace in &tour {
        let info = String::from_utf8(run(&["info", trace]).stdout).unwrap();
        let steps: Vec<&str> =
            info.lines().filter_map(|line| line.split_once("anytrace ")).map(|(_, step)| step).collect();
        assert!(steps.len() >= 2, "{info}");
        for step in steps {
            let command = step.split("  ").next().unwrap();
            if command.starts_with("view ") {
                continue;
            }
            let code = pasted(&format!("anytrace {command}")).status.code();
            let may_find = ["check", "explain", "leaks"].iter().any(|verb| command.contains(verb));
            assert!(code == Some(0) || code == Some(1) && may_find, "{command}: {code:?}");
        }
    }
}

#[test]
fn damage_is_exit_code_1_and_nothing_to_read_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.heph");
    let bytes = fs::read(root().join("examples/traces/relay.heph")).unwrap();
    fs::write(&cut, &bytes[..bytes.len() - 5]).unwrap();
    let output = run(&["highlights", cut.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("Most time is in"));
    let info = String::from_utf8(run(&["info", cut.to_str().unwrap()]).stdout).unwrap();
    assert!(info.contains("anytrace repair ") && info.contains(" -o OUT"), "{info}");
    for name in ["a trace", "it's"] {
        let path = folder.path().join(name);
        fs::write(&path, &bytes).unwrap();
        let found = json(&["highlights", "--format", "json", path.to_str().unwrap()]);
        assert!(pasted(found["highlights"][0]["command"].as_str().unwrap()).status.success(), "{found}");
    }
    let unknown = folder.path().join("unknown");
    fs::write(&unknown, "no trace at all\n").unwrap();
    assert_eq!(run(&["highlights", unknown.to_str().unwrap()]).status.code(), Some(2));
    assert_eq!(run(&["highlights", "-"]).status.code(), Some(2));
    let piped = pasted("cat examples/traces/relay.heph | anytrace highlights /dev/stdin");
    assert!(piped.status.code() == Some(2) && piped.stdout.is_empty());
}

#[test]
fn the_demo_writes_what_the_examples_have_and_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/demo");
    let output = run(&["demo", "-o", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for entry in fs::read_dir(root().join("examples/tour")).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(fs::read(out.join(entry.file_name())).unwrap(), fs::read(entry.path()).unwrap());
    }
    let shown = String::from_utf8(output.stdout).unwrap();
    let commands = shown.lines().filter_map(|line| line.trim().strip_prefix("anytrace "));
    // The first ends when it is interrupted: tests/view.rs runs it.
    for command in commands.filter(|command| !command.starts_with("view ")) {
        let here = command.replace("-o ", &format!("-o {}/", folder.path().display()));
        let code = pasted(&format!("anytrace {here}")).status.code();
        assert!(code == Some(0) || code == Some(1) && command.contains("explain"), "{command}: {code:?}");
    }
    assert_eq!(run(&["demo", "-o", out.to_str().unwrap()]).status.code(), Some(2));
    assert_eq!(run(&["demo", "--force", "-o", out.to_str().unwrap()]).status.code(), Some(0));
}
