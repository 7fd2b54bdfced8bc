//! What the tests of replay share: how it is run, traces made of others, an X server.
#![allow(dead_code, reason = "each test program uses its part")]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anytrace_core::testing::skip;

pub(crate) fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../apitrace/corpus").join(name)
}

pub(crate) fn imm() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/imm.trace")
}

pub(crate) fn anytrace(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.args(words).env("LIBGL_ALWAYS_SOFTWARE", "1");
    command
}

pub(crate) fn replay(words: &[&str], trace: &Path) -> Output {
    anytrace(&["apitrace", "replay"]).args(words).arg(trace).output().unwrap()
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// False, with a note, where there is no EGL.
pub(crate) fn has_egl() -> bool {
    let output = anytrace(&["apitrace", "replay", "--list-devices"]).output().unwrap();
    if output.status.success() {
        return true;
    }
    skip(&format!("no EGL: {}", said(&output)));
    false
}

/// A trace made of another's calls, with more before the call that ends its first frame.
pub(crate) fn with_calls(folder: &Path, more: &[&str]) -> PathBuf {
    let output = anytrace(&["apitrace", "jsonl"]).arg(imm()).output().unwrap();
    let all = lines(&output);
    let at = all.iter().position(|line| line.contains("\"glXSwapBuffers\"")).unwrap();
    let text: Vec<&str> = all[..at]
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .chain(all[at..].iter().map(String::as_str))
        .collect();
    let (source, trace) = (folder.join("calls.jsonl"), folder.join("made.trace"));
    std::fs::write(&source, text.join("\n")).unwrap();
    let made = anytrace(&["apitrace", "from-jsonl", "--force", "-o"]).arg(&trace).arg(&source).output().unwrap();
    assert!(made.status.success(), "{}", said(&made));
    trace
}

pub(crate) const ENABLE: &str = r#"{"thread":0,"name":"glEnableClientState","args":[["array",32884]],"flags":0}"#;
pub(crate) const POINTER: &str = r#"{"thread":0,"name":"glVertexPointer","args":[["size",2],["type",5126],["stride",0],["pointer",{"blob":24,"base64":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]],"flags":1}"#;
/// Three vertices, 4 GB behind the array's end.
pub(crate) const WILD: &str =
    r#"{"thread":0,"name":"glDrawArrays","args":[["mode",4],["first",500000000],["count",3]],"flags":0}"#;
/// Three vertices of the array by indices in a buffer, which are 0, 150,000,000 and 1: nobody looks at those. That is
/// 1.2 GB behind the heap, where nothing is; drivers compute with 32 bits, by which much more would be before it.
pub(crate) const WILD_INDICES: [&str; 4] = [
    r#"{"thread":0,"name":"glGenBuffers","args":[["n",1],["buffers",[1]]],"flags":0}"#,
    r#"{"thread":0,"name":"glBindBuffer","args":[["target",34963],["buffer",1]],"flags":0}"#,
    r#"{"thread":0,"name":"glBufferData","args":[["target",34963],["size",12],["data",{"blob":12,"base64":"AAAAAIDR8AgBAAAA"}],["usage",35044]],"flags":0}"#,
    r#"{"thread":0,"name":"glDrawElements","args":[["mode",4],["count",3],["type",5125],["indices",null]],"flags":0}"#,
];
/// So many instances of the array that they take minutes.
pub(crate) const ENDLESS: &str = r#"{"thread":0,"name":"glDrawArraysInstanced","args":[["mode",4],["first",0],["count",3],["instancecount",2147483647]],"flags":0}"#;

/// A renderbuffer of 16 by 16 pixels, made by this call, is drawn to.
pub(crate) fn offscreen(storage: &str) -> Vec<String> {
    let call =
        |name: &str, arguments: &str| format!(r#"{{"thread":0,"name":"{name}","args":[{arguments}],"flags":0}}"#);
    vec![
        call("glGenRenderbuffers", r#"["n",1],["renderbuffers",[1]]"#),
        call("glBindRenderbuffer", r#"["target",36161],["renderbuffer",1]"#),
        storage.to_owned(),
        call("glGenFramebuffers", r#"["n",1],["framebuffers",[1]]"#),
        call("glBindFramebuffer", r#"["target",36160],["framebuffer",1]"#),
        call(
            "glFramebufferRenderbuffer",
            r#"["target",36160],["attachment",36064],["renderbuffertarget",36161],["renderbuffer",1]"#,
        ),
        call("glClear", r#"["mask",16384]"#),
        call("glBindFramebuffer", r#"["target",36160],["framebuffer",0]"#),
    ]
}

/// An X server that ends with the test.
pub(crate) struct Display(std::process::Child, pub(crate) String);

impl Display {
    #[allow(clippy::zombie_processes, reason = "dropping waits")]
    pub(crate) fn open() -> Self {
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"]);
        let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(server, format!(":{}", line.trim()))
    }

    pub(crate) fn output(&self, words: &[&str]) -> Output {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("DISPLAY", &self.1).env("LIBGL_ALWAYS_SOFTWARE", "1").output().unwrap()
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
