//! `cargo xtask cluster`: the cluster's workspace, which takes as long to build as everything else, and its tests with
//! real processes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{cargo, has_program, output, root, run, skip};

/// What serves an object store in the tests.
const MOTO: &str = "moto[server]==5.2.5";

pub(crate) const USAGE: &str = "\
cluster [bench [OPTION…]]    build anytrace-cluster (a workspace of its own: Ballista takes minutes), check its
                               formatting, lints and licenses, and run its tests: real processes on loopback, an object
                               store by moto (python3, pip), the files of deploy/ (systemd-analyze)
                               (bench: two executors against the engine in one process; --gigabytes N [8],
                               --files N [16])";

pub(crate) fn run_all(arguments: &[String]) -> Result<(), String> {
    match arguments.split_first() {
        None => test(),
        Some((first, rest)) if first == "bench" => bench(rest),
        Some(_) => Err(format!("cluster takes bench or nothing, not {}", arguments.join(" "))),
    }
}

fn folder() -> PathBuf {
    root().join("crates/cluster")
}

/// Cargo in the cluster's workspace.
fn of_cluster(arguments: &[&str]) -> Command {
    let mut command = cargo();
    command.current_dir(folder()).args(arguments).arg("--locked");
    command
}

fn test() -> Result<(), String> {
    run(cargo().current_dir(folder()).args(["fmt", "--check"]))?;
    run(of_cluster(&["clippy", "--all-targets"]).args(["--", "-D", "warnings"]))?;
    let mut tests = of_cluster(&["test"]);
    match object_store()? {
        Some(server) => tests.env("ANYTRACE_MOTO_SERVER", server),
        None => &mut tests,
    };
    run(&mut tests)?;
    deployment()
}

/// A server of an object store in an environment of its own.
fn object_store() -> Result<Option<PathBuf>, String> {
    if !has_program("python3") {
        skip("python3 is not installed: queries on an object store were not tested")?;
        return Ok(None);
    }
    let environment = root().join("target/cluster/moto");
    let server = environment.join("bin/moto_server");
    if !server.is_file() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        run(Command::new(environment.join("bin/pip")).args(["install", "--quiet", MOTO]))?;
    }
    Ok(Some(server))
}

/// The units of systemd, as systemd itself reads them.
fn deployment() -> Result<(), String> {
    if !has_program("systemd-analyze") {
        return skip("systemd-analyze is not installed: the units of deploy/ were not verified");
    }
    let units = root().join("crates/cluster/deploy/systemd");
    // They name a program where packages install it; here it is what was built.
    let copies = root().join("target/cluster/units");
    std::fs::create_dir_all(&copies).map_err(|error| format!("{}: {error}", copies.display()))?;
    let mut names = Vec::new();
    for name in ["anytrace-scheduler.service", "anytrace-executor.service"] {
        let text =
            read(&units.join(name))?.replace("/usr/bin/anytrace-cluster", &program("debug").display().to_string());
        let copy = copies.join(name);
        std::fs::write(&copy, text).map_err(|error| format!("{}: {error}", copy.display()))?;
        names.push(copy);
    }
    run(Command::new("systemd-analyze").args(["verify", "--man=no"]).args(names))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn program(profile: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder().join("target"), PathBuf::from);
    target.join(profile).join("anytrace-cluster")
}

fn bench(arguments: &[String]) -> Result<(), String> {
    let (mut gigabytes, mut files) = (8.0_f64, 16_usize);
    let mut arguments = arguments.iter();
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{option} needs a value"))?;
        let wrong = || format!("{option} {value}: expected a number");
        match option.as_str() {
            "--gigabytes" => gigabytes = value.parse().map_err(|_| wrong())?,
            "--files" => files = value.parse().map_err(|_| wrong())?,
            other => return Err(format!("cluster bench has no option {other}")),
        }
    }
    run(&mut of_cluster(&["build", "--profile", "dist"]))?;
    run(cargo().args(["build", "--locked", "--profile", "dist", "-p", "anytrace", "-p", "anytrace-query"]))?;
    let script = folder().join("bench/run.py");
    let shown = output(
        Command::new("python3")
            .arg(script)
            .args(["--cluster", &program("dist").display().to_string()])
            .args(["--anytrace", &root().join("target/dist/anytrace").display().to_string()])
            .args(["--gigabytes", &gigabytes.to_string(), "--files", &files.to_string()]),
    )?;
    println!("{}", String::from_utf8_lossy(&shown));
    Ok(())
}
