//! `cargo xtask dist`: the command as a tarball and as a Debian package, with the program for OTLP, manual pages,
//! completions and licenses; and the engine of `anytrace query`, which is several times as large, as packages of its own.
//!
//! The programs are linked statically, so that they run on any Linux of the processor's kind. All packages are made and
//! tried in a folder of their own, and get their names in the output folder only when every trial has succeeded.

mod archive;
mod contents;
mod notices;
mod trial;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::shell::{self, cargo, has_program, output, root};

pub(crate) const USAGE: &str =
    "dist [--profile NAME] [--binary PATH] [--query PATH | --without-query] [--target TRIPLE] [--output DIR]
                               build the command, anytrace-otlp and anytrace-query statically and make a tarball and a .deb of each
                               below target/distribution; all are first installed in a temporary folder and tested
                               (--profile: instead of dist; --binary: package this program, which must be static;
                                --query: package this anytrace-query; --without-query: only the command, without
                                anytrace-otlp too;
                                --target: what to build for [default: musl if it is installed, else glibc];
                                --output: another folder)";

/// No dynamic loader, and no names of functions, which take most of the space.
const RUSTC: [&str; 4] = ["-C", "target-feature=+crt-static", "-C", "strip=symbols"];

#[derive(Debug, Default)]
struct Options {
    profile: Option<String>,
    binary: Option<PathBuf>,
    query: Option<PathBuf>,
    is_without_query: bool,
    target: Option<String>,
    output: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().cloned().ok_or_else(|| format!("{word} takes a value"));
            match word.as_str() {
                "--profile" => options.profile = Some(value()?),
                "--binary" => options.binary = Some(value()?.into()),
                "--query" => options.query = Some(value()?.into()),
                "--without-query" => options.is_without_query = true,
                "--target" => options.target = Some(value()?),
                "--output" => options.output = Some(value()?.into()),
                _ => return Err(format!("{word} is no option of dist\n\n  {USAGE}")),
            }
        }
        if options.query.is_some() && options.is_without_query {
            return Err("--query names a program that --without-query leaves out".to_owned());
        }
        if options.binary.is_some() && options.query.is_none() && !options.is_without_query {
            return Err("--binary also needs --query PATH or --without-query".to_owned());
        }
        if options.binary.is_some() && options.profile.is_some() {
            return Err("--profile is for a build, and --binary names a program that is built already".to_owned());
        }
        Ok(options)
    }
}

/// What all packages say of themselves.
#[derive(Debug)]
struct Release {
    version: String,
    description: String,
    maintainer: String,
    /// The triple that the program was built for.
    target: String,
    /// Modification time of every file, so that two runs on the same commit give the same bytes.
    time_s: u64,
}

impl Release {
    fn of(target: String) -> Result<Self, String> {
        let metadata = output(cargo().args(["metadata", "--format-version", "1", "--locked", "--no-deps"]))?;
        let metadata: Value = serde_json::from_slice(&metadata).map_err(|error| error.to_string())?;
        let package =
            metadata["packages"].as_array().into_iter().flatten().find(|package| package["name"] == "anytrace");
        let package = package.ok_or("the workspace has no package anytrace")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(Self {
            version: text(&package["version"]),
            description: text(&package["description"]),
            maintainer: text(&package["authors"][0]),
            target,
            time_s: time_s(),
        })
    }

    fn name(&self) -> String {
        format!("anytrace-{}-{}", self.version, self.target)
    }

    /// Debian's name of the processor.
    fn architecture(&self) -> Result<&'static str, String> {
        match self.target.split('-').next() {
            Some("x86_64") => Ok("amd64"),
            Some("aarch64") => Ok("arm64"),
            Some("riscv64gc") => Ok("riscv64"),
            _ => Err(format!("{}: Debian's name of this architecture is not known", self.target)),
        }
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    let (binary, target) = match &options.binary {
        Some(path) => (path.clone(), options.target.clone().map_or_else(host, Ok)?),
        None => build(&options, "anytrace")?,
    };
    let query = match &options.query {
        Some(path) => Some(path.clone()),
        None if options.is_without_query => None,
        None => Some(build(&options, "anytrace-query")?.0),
    };
    // What is packaged is what was given.
    let has_otlp = options.binary.is_none() && !options.is_without_query;
    let otlp = has_otlp.then(|| static_program(&build(&options, "anytrace-otlp")?.0)).transpose()?;
    let program = static_program(&binary)?;
    let release = Release::of(target)?;
    let folder = options.output.unwrap_or_else(|| root().join("target/distribution"));
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let work = Work::new(&folder).map_err(failed)?;
    let loaded = match &options.binary {
        // What is packaged is what was given.
        Some(_) => contents::Loaded::default(),
        None => loaded(options.profile.as_deref().unwrap_or("dist"), &release)?,
    };
    let contents = contents::Contents::gather(&binary, (program, otlp), loaded, &release, &work.0)?;
    let tarball = work.0.join(format!("{}.tar.gz", release.name()));
    let deb = work.0.join(format!("anytrace_{}_{}.deb", release.version, release.architecture()?));
    let mut made = vec![(tarball, contents.tarball(&release)?), (deb, contents.deb(&release)?)];
    if let Some(query) = &query {
        let engine = contents.engine(static_program(query)?, &release)?;
        let tarball = work.0.join(format!("{}.tar.gz", release.name().replacen("anytrace", "anytrace-query", 1)));
        let deb = work.0.join(format!("anytrace-query_{}_{}.deb", release.version, release.architecture()?));
        made.extend([(tarball, engine.tarball(&release)?), (deb, engine.deb(&release)?)]);
    }
    for (path, bytes) in &made {
        std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let paths: Vec<&Path> = made.iter().map(|(path, _)| path.as_path()).collect();
    trial::run(&paths, &release, &work.0)?;
    for (path, bytes) in made {
        let name = folder.join(path.file_name().unwrap_or_default());
        std::fs::rename(path, &name).map_err(|error| format!("{}: {error}", name.display()))?;
        println!("{}  {} KiB", name.display(), bytes.len() / 1024);
    }
    Ok(())
}

/// The bytes of a program that needs no dynamic loader.
fn static_program(path: &Path) -> Result<Vec<u8>, String> {
    let program = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if is_static(&program) {
        Ok(program)
    } else {
        Err(format!("{}: a statically linked ELF program was expected", path.display()))
    }
}

/// A folder that is removed however the chore ends.
#[derive(Debug)]
struct Work(PathBuf);

impl Work {
    /// Inside the folder of the results, so that renaming moves no bytes.
    fn new(folder: &Path) -> std::io::Result<Self> {
        let path = std::path::absolute(folder)?.join(format!(".work-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("{}: {error}", self.0.display());
        }
    }
}

/// Builds a program, which has the name of its package; returns its path and the triple it was built for.
fn build(options: &Options, name: &str) -> Result<(PathBuf, String), String> {
    let host = host()?;
    let musl = host.replace("-gnu", "-musl");
    let target = match &options.target {
        Some(target) => target.clone(),
        None if has_musl(&musl) => musl,
        None => {
            println!("{musl} and a C compiler for it (musl-gcc) are not both installed: linking glibc statically");
            host.clone()
        }
    };
    let profile = options.profile.as_deref().unwrap_or("dist");
    let mut command = cargo();
    command.args(["rustc", "--locked", "--package", name, "--bin", name, "--profile", profile]);
    let mut path = root().join("target");
    // Without --target the dependencies of other builds are used again; build scripts and macros stay dynamic, because
    // only the last crate is asked to be static.
    if target != host {
        command.args(["--target", &target]);
        path.push(&target);
    }
    shell::run(command.arg("--").args(RUSTC))?;
    Ok((path.join(folder_of(profile)).join(name), target))
}

/// Builds what a dynamic loader is needed for, and so is for the C library of this machine: the recorder of OpenGL, which
/// programs load, and the command that loads drivers. There are none for other processors.
fn loaded(profile: &str, release: &Release) -> Result<contents::Loaded, String> {
    let host = host()?;
    let is_for = |triple: &str| triple.starts_with("x86_64-") && triple.contains("linux");
    if !is_for(&host) || !is_for(&release.target) {
        println!("recording and replay of OpenGL are for x86-64 on Linux: the packages are without them");
        return Ok(contents::Loaded::default());
    }
    let build = |package: &str, what: &[&str], file: &str| {
        let mut command = cargo();
        command.args(["rustc", "--locked", "--package", package]).args(what);
        shell::run(command.args(["--profile", profile, "--", "-C", "strip=symbols"]))?;
        let path = root().join("target").join(folder_of(profile)).join(file);
        std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    Ok(contents::Loaded {
        recorder: Some(build("anytrace-recorder-apitrace", &["--lib"], contents::RECORDER)?),
        program: Some(build("anytrace", &["--bin", "anytrace"], "anytrace")?),
    })
}

/// The folder of a profile's results.
fn folder_of(profile: &str) -> &str {
    match profile {
        "dev" | "test" => "debug",
        "bench" => "release",
        other => other,
    }
}

/// The triple of the machine we run on.
fn host() -> Result<String, String> {
    let text = output(Command::new("rustc").arg("-vV"))?;
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| "rustc -vV: no host".into())
}

/// Whether a target has a standard library here, and a compiler for what is written in C (zstd).
fn has_musl(target: &str) -> bool {
    let folder = output(Command::new("rustc").args(["--print", "target-libdir", "--target", target]));
    let has_library = folder.is_ok_and(|folder| Path::new(String::from_utf8_lossy(&folder).trim()).is_dir());
    let compiler = format!("CC_{}", target.replace('-', "_"));
    has_library && (has_program("musl-gcc") || std::env::var_os(compiler).is_some())
}

/// `SOURCE_DATE_EPOCH`, else the time of the last commit, else 1970.
fn time_s() -> u64 {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let of_commit = || {
        let mut git = Command::new("git");
        let text = output(git.args(["log", "-1", "--format=%ct"]).current_dir(root())).ok()?;
        String::from_utf8(text).ok()
    };
    given.or_else(of_commit).and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// True for a 64-bit little-endian ELF program that needs no dynamic loader: it has no segment `PT_INTERP`.
fn is_static(elf: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let half = |at: usize| elf.get(at..at + 2).map(|b| usize::from(u16::from_le_bytes([b[0], b[1]])));
    let word = |at: usize| elf.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b));
    let long = |at: usize| elf.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b));
    let is_elf = elf.starts_with(b"\x7fELF\x02\x01");
    let (Some(start), Some(size), Some(count)) = (long(0x20), half(0x36), half(0x38)) else { return false };
    let Ok(start) = usize::try_from(start) else { return false };
    let segment = |index: usize| start.checked_add(size * index).and_then(word);
    is_elf && count > 0 && (0..count).all(|index| segment(index).is_some_and(|kind| kind != PT_INTERP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_needs_a_loader_is_not_static() {
        let dynamic = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(!is_static(&dynamic));
        assert!(!is_static(b"#!/bin/sh\n"));
        assert!(!is_static(&dynamic[..100]));
    }

    #[test]
    fn options_that_exclude_each_other_are_refused() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert!(Options::parse(&words(&["--binary", "x", "--without-query", "--profile", "dev"])).is_err());
        assert!(Options::parse(&words(&["--query", "x", "--without-query"])).is_err());
        assert!(Options::parse(&words(&["--binary", "x"])).is_err_and(|why| why.contains("--query")));
        assert!(Options::parse(&words(&["--binary"])).is_err());
        assert!(Options::parse(&words(&["--profile", "trial", "--output", "out"])).is_ok());
    }
}
