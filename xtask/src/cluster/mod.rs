//! `cargo xtask cluster`: the cluster's workspace, which takes as long to build as everything else, and its tests with
//! real processes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{cargo, has_program, root, run, skip};

/// What serves an object store in the tests.
const MOTO: &str = "moto[server]==5.2.5";

pub(crate) const USAGE: &str = "\
cluster                      build anytrace-cluster (a workspace of its own: Ballista takes minutes), check its
                               formatting and lints, and run its tests: real processes on loopback, an object store by
                               moto (python3, pip), the units of deploy/ (systemd-analyze)";

pub(crate) fn run_all(arguments: &[String]) -> Result<(), String> {
    if !arguments.is_empty() {
        return Err(format!("cluster takes no arguments, not {}", arguments.join(" ")));
    }
    test()
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
        let text = read(&units.join(name))?.replace("/usr/bin/anytrace-cluster", &program().display().to_string());
        let copy = copies.join(name);
        std::fs::write(&copy, text).map_err(|error| format!("{}: {error}", copy.display()))?;
        names.push(copy);
    }
    run(Command::new("systemd-analyze").args(["verify", "--man=no"]).args(names))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn program() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder().join("target"), PathBuf::from);
    target.join("debug/anytrace-cluster")
}
