//! The recorder of OpenGL: what it costs a call, and what is left of glmark2's frames, beside apitrace's own.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::RUNS;
use crate::packages;
use crate::shell::{cargo, has_program, output, root, run};

/// The name that `cargo xtask bench` knows it by.
pub(super) const NAME: &str = "tracer";

/// Frames that the program of small calls draws.
const ROUNDS: &str = "500";

/// Scenes of glmark2 with arrays in the program's memory, buffers that are mapped and written, and rendering to textures.
const SCENES: [&str; 8] = [
    "-b",
    "build:duration=1:use-vbo=false",
    "-b",
    "buffer:duration=1:update-method=map",
    "-b",
    "buffer:duration=1:update-method=subdata",
    "-b",
    "shadow:duration=1",
];

/// A way to run a program: what is loaded into it.
struct Way {
    name: &'static str,
    library: Option<PathBuf>,
}

/// Runs the jobs and prints a row each; an error if apitrace's recorder costs less.
pub(super) fn bench() -> Result<(), String> {
    if ["gcc", "apitrace", "Xvfb", "glmark2"].iter().any(|name| !has_program(name)) {
        packages::install(&["gcc", "libc6-dev", "apitrace", "xvfb", "glmark2-x11", "libegl1"]);
    }
    let package = "anytrace-recorder-apitrace";
    run(cargo().args(["build", "--quiet", "--profile", "dist", "--locked", "--package", package]))?;
    let folder = root().join("target/bench");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let program = folder.join("tracer");
    let mut link = Command::new("gcc");
    link.arg("-O2").arg("-I").arg(root().join("crates/cli/tests/tracing")).arg("-o").arg(&program);
    run(link.arg(root().join("xtask/src/bench/programs/tracer.c")).arg("-l:libEGL.so.1"))?;
    let wrapper =
        |name: &str| PathBuf::from(format!("/usr/lib/{}-linux-gnu/apitrace/wrappers/{name}", std::env::consts::ARCH));
    let ours = root().join("target/dist/libanytrace_apitrace_recorder.so");
    let mut missed = Vec::new();
    println!("| recording | alone | anytrace | apitrace |\n|---|---|---|---|");
    let ways = [
        Way { name: "alone", library: None },
        Way { name: "anytrace", library: Some(ours.clone()) },
        Way { name: "apitrace", library: Some(wrapper("egltrace.so")) },
    ];
    let small = |way: &Way| {
        let mut command = traced(way, &program, &folder);
        let text = output(command.arg(ROUNDS))?;
        number(&text)
    };
    let [alone, own, peer] = best(&ways, small, f64::min)?;
    println!("| 2.3 million small calls, CPU s | {alone:.3} | {own:.3} | {peer:.3} |");
    if own > peer {
        missed.push(format!("small calls: {own:.3} of {peer:.3} s"));
    }
    let ways = [
        Way { name: "alone", library: None },
        Way { name: "anytrace", library: Some(ours) },
        Way { name: "apitrace", library: Some(wrapper("glxtrace.so")) },
    ];
    let score = |way: &Way| {
        let mut command = Command::new("xvfb-run");
        command.args(["-a", "env"]);
        let inner = traced(way, Path::new("glmark2"), &folder);
        for (name, value) in inner.get_envs() {
            let Some(value) = value else { continue };
            let mut word = name.to_owned();
            word.push("=");
            word.push(value);
            command.arg(word);
        }
        let text = output(command.arg("glmark2").args(["-s", "200x150"]).args(SCENES))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let score = text.split("Score:").nth(1).and_then(|rest| rest.split_whitespace().next());
        score.and_then(|score| score.parse().ok()).ok_or_else(|| format!("glmark2, {}: no score in {text}", way.name))
    };
    let [alone, own, peer] = best(&ways, score, f64::max)?;
    println!("| glmark2, score | {alone:.0} | {own:.0} | {peer:.0} |");
    if own < peer {
        missed.push(format!("glmark2: {own:.0} of {peer:.0}"));
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("missed: {}", missed.join("; "))) }
}

/// The command with a library in it, and a trace that is replaced each time.
fn traced(way: &Way, program: &Path, folder: &Path) -> Command {
    let trace = folder.join(format!("tracer.{}.trace", way.name));
    // It may not be there.
    let _ = std::fs::remove_file(&trace);
    let mut command = Command::new(program);
    command.env("LIBGL_ALWAYS_SOFTWARE", "1").env("LP_NUM_THREADS", "0").env("TRACE_FILE", trace);
    if let Some(library) = &way.library {
        command.env("LD_PRELOAD", library);
    }
    command
}

/// The best of several runs, in turns.
fn best(
    ways: &[Way; 3],
    mut run: impl FnMut(&Way) -> Result<f64, String>,
    better: fn(f64, f64) -> f64,
) -> Result<[f64; 3], String> {
    let mut found = [f64::NAN; 3];
    for _ in 0..RUNS {
        for (way, best) in ways.iter().zip(&mut found) {
            let value = run(way)?;
            *best = if best.is_nan() { value } else { better(*best, value) };
        }
    }
    Ok(found)
}

fn number(text: &[u8]) -> Result<f64, String> {
    let text = String::from_utf8_lossy(text).into_owned();
    text.trim().parse().map_err(|_| format!("the program printed {text:?}"))
}
