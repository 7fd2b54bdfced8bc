//! `cargo xtask programs --calls`: nine kinds of programs, recorded by LLVM's XRay, and what the verbs say of them.
//!
//! `account`, `graph` and `stack` must say on one, two and four threads what an independent count says of the same bytes,
//! and functions have the names that the newest `llvm-xray` of the system gives them.

mod model;
mod records;
mod said;

use std::path::{Path, PathBuf};
use std::process::Command;

use super::build::Sources;
use super::list::{PROGRAMS, Program};
use crate::packages;
use crate::shell::{has_program, output, root};

/// A kind of program.
struct Kind {
    name: &'static str,
    /// Its sources are those of this crate; without one they are `xtask/programs/xray/NAME.c` or `.cc`.
    program: Option<Program>,
    options: &'static [&'static str],
    arguments: &'static [&'static str],
    /// Size of a buffer in bytes, and how many there are.
    buffers: (u32, u32),
    /// Recorded in Basic form too.
    is_basic: bool,
    /// Its stacks are compared: where they are deep, all of them as text are hundreds of megabytes.
    has_stacks: bool,
}

const fn made(name: &'static str, buffers: (u32, u32), is_basic: bool) -> Kind {
    Kind {
        name,
        program: None,
        options: &["-fxray-instruction-threshold=1"],
        arguments: &[],
        buffers,
        is_basic,
        has_stacks: true,
    }
}

fn kinds() -> Vec<Kind> {
    let of = |name: &str| PROGRAMS.iter().find(|program| program.name == name).copied();
    let real = |name, program, options, arguments| {
        let buffers = (1 << 20, 2000);
        Kind { name, program, options, arguments, buffers, is_basic: false, has_stacks: true }
    };
    // Its own benchmark in place of our program.
    let leveldb = of("leveldb").map(|program| Program { but: LEVELDB_BUT, ..program });
    vec![
        real("lua", of("lua"), &["-fxray-instruction-threshold=1"], &["@work.lua"]),
        real("sqlite", of("sqlite"), &["-fxray-instruction-threshold=40"], &["300"]),
        real("db_bench", leveldb, &["-fxray-instruction-threshold=1"], DB_BENCH),
        made("exceptions", (1 << 16, 100), true),
        made("longjmp", (1 << 16, 100), true),
        made("tail", (1 << 16, 100), true),
        made("threads", (1 << 14, 1500), true),
        Kind { has_stacks: false, ..made("deep", (1 << 16, 100), true) },
        made("ring", (1 << 14, 8), false),
    ]
}

const LEVELDB_BUT: &[&str] = &["_test.cc", "_test.c", "leveldbutil.cc", "env_windows.cc"];

const DB_BENCH: &[&str] = &[
    "--db=database",
    "--num=300",
    "--threads=4",
    "--benchmarks=fillseq,fillrandom,overwrite,readrandom,readreverse,compact,readseq",
];

pub(super) const HEAD: &str = "\
| program | trace | bytes | threads | calls | without entry | without exit | names |
|---|---|---|---|---|---|---|---|";

/// Records all, and checks what is said of them.
pub(super) fn all(names: &[&str], binary: &Path) -> Result<(), String> {
    if !has_program("clang++") {
        packages::install(&["clang"]);
    }
    let peer = newest_peer();
    let sources = Sources::find()?;
    let mut failed = Vec::new();
    println!("{HEAD}");
    for kind in kinds().iter().filter(|kind| names.is_empty() || names.contains(&kind.name)) {
        let folder = root().join("target/programs/calls").join(kind.name);
        let bench = Bench { kind, folder, binary, peer: peer.as_deref(), sources: &sources };
        match bench.rows() {
            Ok(rows) => rows.iter().for_each(|row| println!("{row}")),
            Err(what) => failed.push(format!("{}: {what}", kind.name)),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// `llvm-xray` of the newest LLVM that there is.
fn newest_peer() -> Option<String> {
    let versions = (11..40).rev().map(|version| format!("llvm-xray-{version}"));
    versions.chain(["llvm-xray".to_owned()]).find(|name| has_program(name))
}

struct Bench<'a> {
    kind: &'a Kind,
    folder: PathBuf,
    binary: &'a Path,
    peer: Option<&'a str>,
    sources: &'a Sources,
}

impl Bench<'_> {
    fn rows(&self) -> Result<Vec<String>, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.folder.display());
        if self.folder.exists() {
            std::fs::remove_dir_all(&self.folder).map_err(failed)?;
        }
        std::fs::create_dir_all(&self.folder).map_err(failed)?;
        self.build()?;
        let mut rows = vec![self.row("flight")?];
        if self.kind.is_basic {
            rows.push(self.row("basic")?);
        }
        Ok(rows)
    }

    /// Builds the program with sleds.
    fn build(&self) -> Result<(), String> {
        let own = root().join("xtask/programs");
        let mut files = vec![own.join("xray/flight.c")];
        let mut headers = Vec::new();
        let mut options = self.kind.options.to_vec();
        if let Some(program) = &self.kind.program {
            let folder = self.sources.of(program)?;
            headers.extend(program.headers.iter().map(|header| format!("-I{}", folder.join(header).display())));
            files.extend(super::build::files(program, folder, self.kind.name)?);
            options.extend(program.options);
        } else {
            let source = ["c", "cc"].map(|extension| own.join("xray").join(self.kind.name).with_extension(extension));
            files.extend(source.into_iter().filter(|file| file.exists()));
        }
        let is_cxx = files.iter().any(|file| file.extension().is_some_and(|extension| extension == "cc"));
        let mut compiler = Command::new(if is_cxx { "clang++" } else { "clang" });
        compiler.current_dir(&self.folder).args(["-g", "-O1", "-w", "-fxray-instrument"]).args(options);
        compiler.args(headers).args(files).args(["-o", "app", "-lm", "-lpthread", "-ldl"]);
        output(&mut compiler).map(drop)
    }

    /// Records a trace, checks it and returns its row.
    fn row(&self, form: &str) -> Result<String, String> {
        let trace = self.record(form)?;
        let bytes = std::fs::read(&trace).map_err(|error| format!("{}: {error}", trace.display()))?;
        let threads = records::threads(&bytes)?;
        let model = model::count(&threads, self.kind.has_stacks);
        for workers in ["1", "2", "4"] {
            let said = said::all(self.binary, &trace, workers, self.kind.has_stacks)?;
            said.compare(&model).map_err(|what| format!("{form}, {workers} threads: {what}"))?;
        }
        let names = self.names(&trace, &model)?;
        let (name, length) = (self.kind.name, bytes.len());
        let model::Counts { calls, orphans, deduced, .. } = model;
        Ok(format!("| {name} | {form} | {length} | {} | {calls} | {orphans} | {deduced} | {names} |", threads.len()))
    }

    fn record(&self, form: &str) -> Result<PathBuf, String> {
        let mut command = Command::new("./app");
        command.current_dir(&self.folder);
        for argument in self.kind.arguments {
            match argument.strip_prefix('@') {
                Some(file) => command.arg(root().join("xtask/programs").join(file)),
                None => command.arg(argument),
            };
        }
        let base = format!("xray_logfile_base={form}.");
        if form == "flight" {
            let (size, count) = self.kind.buffers;
            command.env("XRAY_OPTIONS", base);
            command.env("FLIGHT", format!("buffer_size={size}:buffer_max={count}:func_duration_threshold_us=0"));
        } else {
            command.env("XRAY_OPTIONS", format!("patch_premain=true xray_mode=xray-basic {base}"));
            let options = "func_duration_threshold_us=0:max_stack_depth=200000:thread_buffer_size_mb=1";
            command.env("XRAY_BASIC_OPTIONS", options);
        }
        output(&mut command)?;
        let entries = std::fs::read_dir(&self.folder).map_err(|error| error.to_string())?;
        let mut found = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_ours = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(form));
        found.find(is_ours).ok_or_else(|| format!("no trace {form}"))
    }

    /// How many functions have the name that `llvm-xray` gives them; all must.
    fn names(&self, trace: &Path, model: &model::Counts) -> Result<String, String> {
        let app = self.folder.join("app");
        let ours = said::names(Command::new(self.binary).args(["xray", "account"]), trace, &app)?;
        if let Some((id, _)) = model.account.iter().find(|(id, _)| !ours.contains_key(id)) {
            return Err(format!("function {id} has no row"));
        }
        if let Some((id, name)) = ours.iter().find(|(_, name)| name.contains("#")) {
            return Err(format!("function {id} is called {name}"));
        }
        let Some(peer) = self.peer else { return Ok(format!("{} (no llvm-xray)", ours.len())) };
        // It prints each record that it cannot use; it has rows of the others all the same.
        let theirs = said::names(Command::new(peer).args(["account", "-k", "-d"]), trace, &app)?;
        if let Some((id, name)) = theirs.iter().find(|(id, name)| ours.get(id) != Some(name)) {
            return Err(format!("function {id} is called {:?}; {peer} says {name}", ours.get(id)));
        }
        Ok(format!("{}, {} of {peer}", ours.len(), theirs.len()))
    }
}
