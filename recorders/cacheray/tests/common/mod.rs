//! Builds a program with a real compiler, runs it with the recorder in it, and reads what it recorded.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may fail by panicking; not every file uses all"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anytrace_cacheray::{Body, Kind, Reader, Record};
use anytrace_core::{Collect, Input, InputOptions, OpenOptions, Step};

/// A record, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    pub kind: Kind,
    pub is_atomic: bool,
    pub is_unaligned: bool,
    pub address: u64,
    pub thread: u64,
    pub size: u8,
    pub element_bytes: u32,
    pub elements: u32,
    pub name: String,
}

impl Owned {
    fn of(record: &Record<'_>) -> Self {
        let mut owned = Self {
            kind: record.kind(),
            is_atomic: record.tag.0 & 0x40 != 0,
            is_unaligned: record.tag.0 & 0x80 != 0,
            address: record.address,
            thread: record.thread,
            size: 0,
            element_bytes: 0,
            elements: 0,
            name: String::new(),
        };
        match &record.body {
            Body::Access { size } => owned.size = *size,
            Body::Add { elemsize, elemcount, name } => {
                owned.element_bytes = *elemsize;
                owned.elements = *elemcount;
                owned.name = String::from_utf8_lossy(name).into_owned();
            }
            _ => {}
        }
        owned
    }

    pub fn is(&self, kind: Kind) -> bool {
        self.kind == kind
    }
}

/// A folder with a program in it.
pub struct Bench {
    pub folder: tempfile::TempDir,
}

/// The result of a run.
pub struct Run {
    pub output: Output,
    pub records: Vec<Owned>,
}

impl Bench {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Compiles one of `tests/programs` to an object.
    pub fn compile(&self, compiler: &str, source: &str, options: &[&str]) -> PathBuf {
        let object = self.path(&format!("{source}.{compiler}.o"));
        let mut command = Command::new(compiler);
        command.args(["-g", "-fsanitize=thread", "-DCACHERAY", "-I"]).arg(root().join("include")).args(options);
        command.arg("-c").arg(root().join("tests/programs").join(source)).arg("-o").arg(&object);
        done(command);
        object
    }

    /// Links objects with the recorder, and without the sanitizer.
    pub fn link(&self, compiler: &str, objects: &[&Path], options: &[&str]) -> PathBuf {
        let program = self.path("program");
        let mut command = Command::new(compiler);
        command.args(objects).arg(library("libanytrace_cacheray_recorder.a")).args(options);
        command.args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&program);
        done(command);
        program
    }

    /// Compiles and links one of `tests/programs`.
    pub fn build(&self, compiler: &str, source: &str, options: &[&str]) -> PathBuf {
        let object = self.compile(compiler, source, options);
        self.link(compiler, &[&object], &[])
    }

    /// Runs a program with options for the recorder beside its trace, `t.trace`.
    pub fn run(&self, program: &Path, arguments: &[&str], options: &str) -> Run {
        let trace = self.path("t.trace");
        let value = format!("tracefile={}:{options}", trace.display());
        // Shells start what runs in the background with SIGINT ignored, and programs inherit that.
        let output = Command::new("env")
            .arg("--default-signal=INT,QUIT")
            .arg(program)
            .args(arguments)
            .env("CACHERAY_OPTIONS", value)
            .env_remove("CACHERAY_RECORDED")
            // Cargo names folders there in which an older library may lie.
            .env_remove("LD_LIBRARY_PATH")
            .current_dir(self.folder.path())
            .output()
            .unwrap();
        let records = if trace.exists() { read(&trace) } else { Vec::new() };
        Run { output, records }
    }

    /// Traces of forked processes.
    pub fn others(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut found: Vec<_> = entries.filter(|path| path.to_string_lossy().contains("t.trace.")).collect();
        found.sort();
        found
    }
}

impl Run {
    pub fn count(&self, kind: Kind) -> usize {
        self.records.iter().filter(|record| record.is(kind)).count()
    }

    /// Accesses within a region that the program declared by name.
    pub fn inside(&self, name: &str) -> Vec<Owned> {
        let add = self.add(name);
        let end = add.address + u64::from(add.element_bytes) * u64::from(add.elements);
        let is_inside = |record: &&Owned| {
            matches!(record.kind, Kind::Read | Kind::Write) && (add.address..end).contains(&record.address)
        };
        self.records.iter().filter(is_inside).cloned().collect()
    }

    /// The add of a name, which must be the only one.
    pub fn add(&self, name: &str) -> Owned {
        let all: Vec<_> = self.adds().into_iter().filter(|record| record.name == name).collect();
        assert_eq!(all.len(), 1, "adds of {name} among {:?}", self.adds());
        all[0].clone()
    }

    pub fn adds(&self) -> Vec<Owned> {
        self.records.iter().filter(|record| record.is(Kind::RttaAdd)).cloned().collect()
    }

    pub fn by_thread(&self) -> BTreeMap<u64, usize> {
        let mut counts = BTreeMap::new();
        for record in &self.records {
            *counts.entry(record.thread).or_default() += 1;
        }
        counts
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).trim().to_owned()
    }

    pub fn complaint(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

/// Reads a trace, which must be without damage and break no rule.
pub fn read(path: &Path) -> Vec<Owned> {
    read_but(path, &[])
}

/// The same for a trace of which some findings are expected.
pub fn read_but(path: &Path, expected: &[&str]) -> Vec<Owned> {
    if path.metadata().unwrap().len() == 0 {
        return Vec::new();
    }
    let open = || Input::open(path, InputOptions::default()).unwrap();
    let mut damage = Collect::default();
    let mut records = Vec::new();
    // Byte order and width are given: a few records may not suffice to detect them.
    let options = OpenOptions {
        endian: Some(anytrace_core::Endian::Little),
        own: anytrace_core::Settings::default().with("pointer-width", "8"),
        ..OpenOptions::default()
    };
    let mut reader = Reader::new(open(), &options).unwrap();
    while let Some(step) = reader.next().unwrap() {
        match step {
            Step::Record(_, record) => records.push(Owned::of(&record)),
            Step::Damage(diagnostic) => damage.0.push(diagnostic),
        }
    }
    let trace = anytrace_core::Format::open(&anytrace_cacheray::Cacheray, open(), &options).unwrap();
    trace.check(&mut damage).unwrap();
    let bad: Vec<_> =
        damage.codes().into_iter().filter(|code| !NOTES.contains(code) && !expected.contains(code)).collect();
    assert!(bad.is_empty(), "{}: {bad:?}", path.display());
    records
}

/// What may be said of a sound trace.
const NOTES: [&str; 3] = ["cacheray/remove-null", "cacheray/type-two-sizes", "cacheray/overlap-nested"];

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The library, where cargo has put it.
pub fn library(name: &str) -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let places = [folder.join(name), folder.join("..").join(name)];
    places.iter().find(|path| path.exists()).cloned().unwrap_or_else(|| panic!("{name} is not in {}", folder.display()))
}

/// Compilers that are here. `gcc` and a clang are what the tests' packages bring.
pub fn compilers() -> Vec<&'static str> {
    let all = ["gcc", "clang", "clang-13", "clang-14", "clang-15", "clang-16", "clang-17", "clang-18", "clang-19"];
    let found: Vec<_> = all.into_iter().filter(|name| is_here(name)).collect();
    assert!(found.contains(&"gcc") && found.len() > 1, "gcc and clang are needed, found {found:?}");
    found
}

/// The compilers' sisters for C++.
pub fn cxx_compilers() -> Vec<String> {
    let names = compilers().into_iter().map(|name| name.replace("gcc", "g++").replace("clang", "clang++"));
    names.filter(|name| is_here(name)).collect()
}

fn is_here(name: &str) -> bool {
    Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn done(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
}
