//! `cargo xtask viewer`: the page of `anytrace view`, from its sources to a browser.
//!
//! npm installs what `viewer/package-lock.json` names; types and unit tests are checked, the page is built, and must be
//! what is committed in `crates/view/assets`; then Debian's Chromium opens every example trace. `--walk MINUTES` walks
//! through a trace of 1 GB for so long, and says how long moves take and how much memory the tab and the server need.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::bench::xray;
use crate::packages;
use crate::shell::{cargo, has_program, output, root, run, skip};

/// What a browser has to fetch before it shows anything, compressed.
const PAGE_GZIP_BYTES_MAX: usize = 400_000;

/// The first version of Node that the build tool accepts, and of npm that installs it.
const NODE_MAJOR_MIN: u32 = 20;
const NPM_MAJOR_MIN: u32 = 11;

pub(crate) fn run_all(arguments: &[String]) -> Result<(), String> {
    let (screenshots, minutes) = match arguments {
        [] => (None, None),
        [flag, folder] if flag == "--screenshots" => (Some(folder), None),
        [flag, minutes] if flag == "--walk" => (None, Some(minutes)),
        other => {
            let other = other.join(" ");
            return Err(format!("viewer takes --screenshots DIR, --walk MINUTES or nothing, not {other}"));
        }
    };
    if minutes.is_none() {
        run(cargo().args(["build", "--quiet", "--locked", "--package", "anytrace"]))?;
    }
    open(&root().join("target/debug/anytrace"), screenshots, minutes)
}

/// Builds the page, and opens it with a program that is there.
pub(crate) fn check(program: &Path) -> Result<(), String> {
    open(program, None, None)
}

fn open(program: &Path, screenshots: Option<&String>, minutes: Option<&String>) -> Result<(), String> {
    if !has_program("npm") || major("node")?.is_none_or(|major| major < NODE_MAJOR_MIN) {
        return skip("node (20 or newer) with npm is not installed: the viewer's page was not tested");
    }
    let folder = root().join("viewer");
    let npm = |arguments: &[&str]| {
        let mut command = Command::new("npm");
        command.current_dir(&folder).args(arguments);
        command
    };
    match major("npm")? {
        Some(major) if major >= NPM_MAJOR_MIN => run(npm(&["ci"]).args(["--no-audit", "--no-fund"]))?,
        // An older npm does not install the build tool's native part.
        _ => run(npm(&["exec", "--yes", "--package=npm@11", "--", "npm", "ci"]).args(["--no-audit", "--no-fund"]))?,
    }
    run(&mut npm(&["run", "check"]))?;
    run(&mut npm(&["test"]))?;
    compare_page(&mut npm(&["run", "build", "--", "--outDir"]))?;
    if !has_program("chromium") {
        packages::install(&["chromium"]);
    }
    if !has_program("chromium") {
        return skip("chromium is not installed: the viewer's page was not opened in a browser");
    }
    if let Some(minutes) = minutes {
        return walk(&mut npm(&["exec", "--", "node", "tests/browser/walk.mjs"]), minutes);
    }
    // What is drawn is compared with what SQL finds; the tests have built the engine already.
    if !root().join("target/debug/anytrace-query").exists() {
        run(cargo().args(["build", "--quiet", "--locked", "--package", "anytrace-query"]))?;
    }
    let mut browser = npm(&["run", "browser", "--"]);
    if let Some(folder) = screenshots {
        browser.arg("--screenshots").arg(std::path::absolute(folder).map_err(|error| error.to_string())?);
    }
    run(browser.env("ANYTRACE_COMMAND", program))
}

/// Bytes of the trace that is walked through.
const WALK_BYTES: u64 = 1_000_000_000;

/// Walks through a large trace with an optimized program.
fn walk(command: &mut Command, minutes: &str) -> Result<(), String> {
    run(cargo().args(["build", "--quiet", "--locked", "--release", "--package", "anytrace"]))?;
    let trace = root().join("target/walk.xray");
    let failed = |error: std::io::Error| format!("{}: {error}", trace.display());
    let is_there = fs::metadata(&trace).is_ok_and(|meta| meta.len() >= WALK_BYTES);
    if !is_there {
        let mut out = BufWriter::new(fs::File::create(&trace).map_err(failed)?);
        xray::generate(&mut out, WALK_BYTES).and_then(|()| out.flush()).map_err(failed)?;
    }
    command.arg(&trace).arg(minutes);
    run(command.env("ANYTRACE_COMMAND", root().join("target/release/anytrace")))
}

/// The major version that a program reports.
fn major(program: &str) -> Result<Option<u32>, String> {
    if !has_program(program) {
        return Ok(None);
    }
    let text = output(Command::new(program).arg("--version"))?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.trim().trim_start_matches('v').split('.').next().and_then(|major| major.parse().ok()))
}

/// Builds the page once more, and compares it with the one that is built into the program.
fn compare_page(build: &mut Command) -> Result<(), String> {
    let (built, committed) = (root().join("target/viewer-page"), root().join("crates/view/assets"));
    run(build.arg(&built).arg("--emptyOutDir"))?;
    let (new, old) = (files(&built)?, files(&committed)?);
    if new != old {
        return Err(format!(
            "crates/view/assets has {old:?}, the sources build {new:?}: run `npm run build` in viewer"
        ));
    }
    let mut bytes = 0;
    for name in &new {
        let read = |folder: &Path| fs::read(folder.join(name)).map_err(|error| format!("{}: {error}", name.display()));
        let content = read(&built)?;
        if content != read(&committed)? {
            return Err(format!("crates/view/assets/{} is not what the sources build", name.display()));
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&content).map_err(|error| error.to_string())?;
        bytes += encoder.finish().map_err(|error| error.to_string())?.len();
    }
    println!("the page: {} files, {bytes} bytes compressed", new.len());
    match bytes <= PAGE_GZIP_BYTES_MAX {
        true => Ok(()),
        false => Err(format!("the page has {bytes} bytes compressed, more than {PAGE_GZIP_BYTES_MAX}")),
    }
}

/// The files below a folder, sorted, relative to it.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).map_err(|error| format!("{}: {error}", next.display()))? {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(relative) = path.strip_prefix(folder) {
                found.push(relative.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}
