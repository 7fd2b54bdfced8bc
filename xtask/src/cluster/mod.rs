//! `cargo xtask cluster`: the cluster's workspace, which takes as long to build as everything else, and its tests with
//! real processes.

mod bench;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{cargo, has_program, root, run, skip};

/// What serves an object store in the tests, and what has the schemas of the files of `deploy/`.
const TOOLS: [&str; 3] = ["moto[server]==5.2.5", "check-jsonschema==0.39.0", "kubernetes-validate==1.37.0"];

pub(crate) const USAGE: &str = "\
cluster [bench [--megabytes N]]
                               build anytrace-cluster (a workspace of its own: Ballista takes minutes), check its
                               formatting and lints, run its tests (real processes on loopback, an object store by
                               moto), and validate deploy/ by the schemas of Compose and Kubernetes and by systemd
                               (python3, pip, systemd-analyze); bench: two executors against one process, N MB of xray
                               traces in 16 files (8192)";

pub(crate) fn run_all(arguments: &[String]) -> Result<(), String> {
    match arguments.split_first() {
        None => test(),
        Some((first, rest)) if first == "bench" => {
            run(&mut of_cluster(&["build", "--release", "--bins", "--examples"]))?;
            bench::run_all(rest, &target(&folder()).join("release"))
        }
        Some((other, _)) => Err(format!("cluster has no {other}")),
    }
}

fn folder() -> PathBuf {
    root().join("crates/cluster")
}

/// Where cargo builds a workspace.
fn target(workspace: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from)
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
    let tools = tools()?;
    run(cargo().args(["build", "--quiet", "--locked", "--package", "anytrace"]))?;
    let mut tests = of_cluster(&["test"]);
    tests.env("ANYTRACE_COMMAND", target(&root()).join("debug/anytrace"));
    if let Some(tools) = &tools {
        tests.env("ANYTRACE_MOTO_SERVER", tools.join("moto_server"));
    }
    run(&mut tests)?;
    if let Some(tools) = &tools {
        schemas(tools)?;
    }
    units()
}

/// The programs of an environment of its own.
fn tools() -> Result<Option<PathBuf>, String> {
    if !has_program("python3") {
        skip("python3 is not installed: queries on an object store and the files of deploy/ were not tested")?;
        return Ok(None);
    }
    let environment = root().join("target/cluster/tools");
    let programs = environment.join("bin");
    let mark = environment.join("installed.txt");
    // What is there with these versions needs no network.
    if !std::fs::read_to_string(&mark).is_ok_and(|text| text == TOOLS.join("\n")) {
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        run(Command::new(programs.join("pip")).args(["install", "--quiet"]).args(TOOLS))?;
        std::fs::write(&mark, TOOLS.join("\n")).map_err(|error| format!("{}: {error}", mark.display()))?;
    }
    Ok(Some(programs))
}

/// The files for Compose and Kubernetes, by the schemas of those.
fn schemas(tools: &Path) -> Result<(), String> {
    let deploy = folder().join("deploy");
    let by_compose = ["--builtin-schema", "vendor.compose-spec"];
    run(Command::new(tools.join("check-jsonschema")).args(by_compose).arg(deploy.join("compose.yaml")))?;
    run(Command::new(tools.join("kubernetes-validate")).arg("--strict").arg(deploy.join("kubernetes.yaml")))
}

/// The units of systemd, as systemd itself reads them.
fn units() -> Result<(), String> {
    if !has_program("systemd-analyze") {
        return skip("systemd-analyze is not installed: the units of deploy/ were not verified");
    }
    let units = folder().join("deploy/systemd");
    // They name a program where packages install it; here it is what was built.
    let program = target(&folder()).join("debug/anytrace-cluster").display().to_string();
    let copies = root().join("target/cluster/units");
    std::fs::create_dir_all(&copies).map_err(|error| format!("{}: {error}", copies.display()))?;
    let mut names = Vec::new();
    for name in ["anytrace-scheduler.service", "anytrace-executor.service"] {
        let text = read(&units.join(name))?.replace("/usr/bin/anytrace-cluster", &program);
        let copy = copies.join(name);
        std::fs::write(&copy, text).map_err(|error| format!("{}: {error}", copy.display()))?;
        names.push(copy);
    }
    run(Command::new("systemd-analyze").args(["verify", "--man=no"]).args(names))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
