//! `cargo xtask python`: the Python package as users get it.
//!
//! A wheel is built in a clean environment (`python/requirements-build.txt`) and installed in another one, which has the
//! pinned libraries that read tables (`python/requirements.txt`) and nothing of this folder. There the tests of
//! `python/tests` run, the notebook too. The wheel's size is bounded, and its rows per second.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{cargo, has_program, output, root, run, skip};

/// What a user may have to download.
const WHEEL_BYTES_MAX: u64 = 6_000_000;

pub(crate) fn run_all(arguments: &[String]) -> Result<(), String> {
    if !arguments.is_empty() {
        return Err(format!("python takes no arguments, not {}", arguments.join(" ")));
    }
    run(cargo().args(["build", "--quiet", "--locked", "--package", "anytrace"]))?;
    check(&target().join("debug/anytrace"))
}

/// Builds, installs and tests the package, with a command beside it.
pub(crate) fn check(program: &Path) -> Result<(), String> {
    if !has_program("python3") {
        return skip("python3 is not installed: the Python package was not tested");
    }
    let tools = root().join("target/python");
    fs::create_dir_all(&tools).map_err(|error| format!("{}: {error}", tools.display()))?;
    let wheel = build(&tools)?;
    check_size(&wheel)?;
    test(&tools, &wheel, program)
}

fn build(tools: &Path) -> Result<PathBuf, String> {
    let builder = environment(tools, "build", "requirements-build.txt")?;
    let wheels = tools.join("wheels");
    remove(&wheels)?;
    run(Command::new(builder.join("maturin"))
        .current_dir(root().join("python"))
        .args(["build", "--release", "--locked", "--out"])
        .arg(&wheels)
        .env("CARGO_TARGET_DIR", target()))?;
    let entries = fs::read_dir(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    let mut found: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    match (found.pop(), found.pop()) {
        (Some(only), None) => Ok(only),
        _ => Err(format!("{}: expected one wheel", wheels.display())),
    }
}

fn check_size(wheel: &Path) -> Result<(), String> {
    let bytes = fs::metadata(wheel).map_err(|error| format!("{}: {error}", wheel.display()))?.len();
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    println!("{name}: {bytes} bytes");
    let is_stable = name.contains("-abi3-");
    match (is_stable, bytes <= WHEEL_BYTES_MAX) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("{name} is for one version of Python only: expected abi3")),
        (_, false) => Err(format!("{name} has {bytes} bytes, more than {WHEEL_BYTES_MAX}")),
    }
}

/// Installs the wheel and runs the tests from a folder in which nothing else could be imported.
fn test(tools: &Path, wheel: &Path, program: &Path) -> Result<(), String> {
    let user = environment(tools, "use", "requirements.txt")?;
    run(Command::new(user.join("python"))
        .args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--force-reinstall"])
        .arg(wheel))?;
    run(Command::new(user.join("python"))
        .current_dir(tools)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(root().join("python/tests"))
        .env("ANYTRACE_COMMAND", program)
        .env("ANYTRACE_SPEED", "1")
        .env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Makes an environment with exactly what a file lists, and returns its programs' folder.
fn environment(tools: &Path, name: &str, requirements: &str) -> Result<PathBuf, String> {
    let (folder, requirements) = (tools.join(name), root().join("python").join(requirements));
    let (mark, wanted) = (folder.join("installed.txt"), fs::read(&requirements).unwrap_or_default());
    let programs = folder.join("bin");
    // What is there with these versions needs no network.
    if fs::read(&mark).is_ok_and(|installed| installed == wanted) {
        output(Command::new(programs.join("python")).args(["-m", "pip", "uninstall", "--quiet", "-y", "anytrace"]))?;
        return Ok(programs);
    }
    remove(&folder)?;
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(programs.join("python"))
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
        .arg(&requirements))?;
    fs::write(&mark, wanted).map_err(|error| format!("{}: {error}", mark.display()))?;
    Ok(programs)
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn remove(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {error}", folder.display())),
        _ => Ok(()),
    }
}
