//! `anytrace apitrace leaks` and `state` as their users meet them.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anytrace_core::testing::has_program;
use serde_json::Value;

fn corpus(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../apitrace/corpus").join(name).display().to_string()
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).arg("apitrace").args(arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("anytrace-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn leaks_exit_1_and_their_absence_0() {
    let leak = corpus("leak.trace");
    assert_eq!(run(&["leaks", &leak]).status.code(), Some(1));
    let none = run(&["leaks", &corpus("threads.trace")]);
    assert_eq!((none.status.code(), text(&none.stdout)), (Some(0), "no leaks\n".to_owned()));
    // Damage is one too.
    let damaged = run(&["leaks", &corpus("bad/container-truncated--cut-at-1014.trace")]);
    assert_eq!((damaged.status.code(), text(&damaged.stdout)), (Some(1), "no leaks\n".to_owned()));
    assert_eq!(run(&["leaks", "/nowhere.trace"]).status.code(), Some(2));
}

#[test]
fn leaks_as_json_are_an_array_where_files_are_several() {
    let leak = corpus("leak.trace");
    let one = json(&run(&["leaks", "--format", "json", &leak]));
    assert_eq!((&one["version"], &one["count"], &one["by_kind"]["texture"]), (&1.into(), &7.into(), &2.into()));
    assert_eq!((&one["leaks"][0]["until"], &one["leaks"][0]["function"]), (&18.into(), &"glGenBuffers".into()));
    let two = json(&run(&["leaks", "--format", "json", &leak, &corpus("threads.trace")]));
    assert_eq!((&two[0]["count"], &two[1]["count"], &two[2]), (&7.into(), &0.into(), &Value::Null));
}

#[test]
fn compat_says_what_apitrace_says_where_it_says_it() {
    let leak = corpus("leak.trace");
    let ours = run(&["leaks", "--compat", &leak]);
    let expected = "8: error: buffer 3 was not destroyed until 18\n8: error: buffer 4 was not destroyed until 18\n\
                    9: error: texture 1 was not destroyed until 18\n9: error: texture 3 was not destroyed until 18\n";
    assert_eq!(
        (ours.status.code(), text(&ours.stdout), text(&ours.stderr)),
        (Some(0), String::new(), expected.to_owned())
    );
    if !has_program("apitrace") {
        return;
    }
    let theirs = Command::new("apitrace").args(["leaks", &leak]).output().unwrap();
    assert_eq!((theirs.status.code(), theirs.stdout, theirs.stderr), (Some(0), ours.stdout, ours.stderr));
}

#[test]
fn leaks_are_the_same_through_a_pipe() {
    let leak = corpus("leak.trace");
    let mut child = Command::new(env!("CARGO_BIN_EXE_anytrace"))
        .args(["apitrace", "leaks", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&std::fs::read(&leak).unwrap()).unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, run(&["leaks", &leak]).stdout);
}

#[test]
fn shaders_are_written_once_and_not_over_others() {
    let folder = Folder::new("shaders");
    let target = folder.0.join("made/here");
    let target = target.to_str().unwrap();
    let trace = corpus("peer/fbo.trace");
    let arguments = ["state", "--call", "60", "--dump-shaders", target, &trace];
    assert_eq!(run(&arguments).status.code(), Some(0));
    let mut names: Vec<String> =
        std::fs::read_dir(target).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["program1-shader2.vert", "program1-shader3.frag", "shader2.vert", "shader3.frag"]);
    let source = std::fs::read_to_string(Path::new(target).join("shader3.frag")).unwrap();
    assert!(source.starts_with("#version 330 core\n") && source.ends_with("}\n"));
    let again = run(&arguments);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("--force"));
    assert_eq!(run(&[&arguments[..], &["--force"]].concat()).status.code(), Some(0));
}

#[test]
fn a_call_that_is_not_there_is_reported() {
    let trace = corpus("leak.trace");
    let output = run(&["state", "--call", "19", &trace]);
    assert_eq!((output.status.code(), output.stdout), (Some(2), Vec::new()));
    assert!(text(&output.stderr).contains("no call 19: the trace has 19 calls"));
    let output = json(&run(&["state", "--at", "14", "--format", "json", &trace]));
    assert_eq!((&output["call"], &output["contexts"][0]["system"]), (&14.into(), &"glx".into()));
}

/// Whatever the input, JSON is JSON; what was lost is counted in it, and is exit code 1.
#[test]
fn what_is_lost_is_exit_1_and_in_the_json() {
    let folder = Folder::new("lost");
    let mut files = vec![corpus("leak.trace"), corpus("threads.trace")];
    for (name, bytes) in [("empty", &b""[..]), ("empty.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0")] {
        let path = folder.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        files.push(path.display().to_string());
    }
    for entry in std::fs::read_dir(corpus("bad")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "trace") {
            files.push(path.display().to_string());
        }
    }
    let out = folder.0.join("part.trace").display().to_string();
    let verbs: [&[&str]; 4] = [
        &["state", "--format", "json"],
        &["leaks", "--format", "json"],
        &["stats", "--format", "json"],
        &["gltrim", "--frames", "0-9", "--explain=json", "--force", "-o", &out],
    ];
    let mut losses = 0;
    for file in &files {
        for verb in verbs {
            let output = run(&[verb, &[file.as_str()]].concat());
            let what = || format!("{verb:?} {file}: {}", text(&output.stderr));
            let result: Value =
                serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", what()));
            let (lost, code) = (result["lost"].as_u64().unwrap(), output.status.code().unwrap());
            assert!(result["version"] == 1 && code < 3, "{}", what());
            assert!(lost == 0 || code == 1, "{lost} {code} {}", what());
            // Leaks are exit code 1 as well, as is a part without calls.
            let has_else = result["count"].as_u64().is_some_and(|count| count > 0) || result["error"].is_string();
            assert!(code != 1 || lost > 0 || has_else, "{lost} {code} {}", what());
            losses += lost;
        }
    }
    assert!(losses > 20, "{losses}");
}

#[test]
fn a_call_that_is_not_there_is_an_object_for_programs() {
    let output = run(&["state", "--format", "json", "--call", "19", &corpus("leak.trace")]);
    let result = json(&output);
    assert_eq!((output.status.code(), &result["lost"]), (Some(2), &0.into()));
    assert!(result["error"].as_str().unwrap().contains("no call 19"));
    // It may be one of those that were lost.
    let damaged = corpus("bad/container-truncated--cut-at-1014.trace");
    let output = run(&["state", "--format", "json", "--call", "99999", &damaged]);
    assert_eq!((output.status.code(), json(&output)["lost"].as_u64().is_some_and(|lost| lost > 0)), (Some(1), true));
}
