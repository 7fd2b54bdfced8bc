//! Cache simulation and miss-ratio curves of a real lackey trace, against Valgrind's own cache simulator cachegrind on
//! the same program.
//!
//! `cargo xtask test` installs Valgrind; where it or gcc is missing a test says that it is skipped.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anytrace_core::testing::{has_program, skip};
use serde_json::Value;

/// A traced program, its trace, and a folder for what is made of them.
struct Run {
    folder: tempfile::TempDir,
    program: PathBuf,
    trace: PathBuf,
}

/// References and misses of the first-level data cache, as cachegrind says them.
#[derive(Debug, PartialEq, Eq)]
struct Cachegrind {
    instructions: u64,
    reads: u64,
    writes: u64,
    read_misses: u64,
    write_misses: u64,
}

fn anytrace(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

impl Run {
    fn new() -> Option<Self> {
        if !cfg!(target_arch = "x86_64") {
            skip("lackey's accesses are compared on x86-64 only");
            return None;
        }
        if !has_program("valgrind") || !has_program("gcc") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let (program, trace) = (folder.path().join("walks"), folder.path().join("walks.lackey"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lackey/corpus/programs/walks.c");
        let options = ["-O1", "-nostdlib", "-static", "-fno-stack-protector", "-fcf-protection=none"];
        assert!(Command::new("gcc").args(options).arg(source).arg("-o").arg(&program).status().unwrap().success());
        let run = Self { folder, program, trace };
        run.valgrind(&["--tool=lackey", "--trace-mem=yes", &format!("--log-file={}", run.trace.display())]);
        Some(run)
    }

    fn valgrind(&self, options: &[&str]) -> String {
        let output = Command::new("valgrind").args(options).arg(&self.program).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}");
        text
    }

    /// Cachegrind with a data cache of so many bytes, ways and bytes a line.
    fn cachegrind(&self, size: u64, ways: u64, line: u64) -> Cachegrind {
        let out = self.folder.path().join("cachegrind.out");
        let text = self.valgrind(&[
            "--tool=cachegrind",
            "--cache-sim=yes",
            &format!("--D1={size},{ways},{line}"),
            &format!("--I1=32768,8,{line}"),
            &format!("--LL=1048576,16,{line}"),
            &format!("--cachegrind-out-file={}", out.display()),
        ]);
        let numbers = |start: &str| -> Vec<u64> {
            let line = text.lines().find_map(|line| line.split_once(start).map(|(_, rest)| rest));
            let line = line.unwrap_or_else(|| panic!("{start}: {text}")).replace(',', "");
            line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
        };
        let (refs, misses) = (numbers("D   refs:"), numbers("D1  misses:"));
        Cachegrind {
            instructions: numbers("I   refs:")[0],
            reads: refs[1],
            writes: refs[2],
            read_misses: misses[1],
            write_misses: misses[2],
        }
    }

    fn info(&self) -> Value {
        anytrace(&["info", "--format", "json", self.trace.to_str().unwrap()])
    }

    /// Our simulation of the same cache.
    fn sim(&self, size: u64, ways: u64, line: u64) -> Value {
        let config = self.folder.path().join("d1.json");
        let level = serde_json::json!({ "name": "D1", "size": size, "ways": ways, "line": line, "policy": "lru" });
        std::fs::write(&config, serde_json::json!({ "d1": { "levels": [level] } }).to_string()).unwrap();
        let files = [config.to_str().unwrap(), self.trace.to_str().unwrap()];
        anytrace(&["cacheray", "sim", "--format", "json", "--config", files[0], files[1]])
    }
}

#[test]
fn sim_misses_where_cachegrind_misses() {
    let Some(run) = Run::new() else { return };
    let info = run.info();
    let kind = |name: &str| info["kinds"][name].as_u64().unwrap_or(0);
    for (size, ways, line) in [(32_768, 8, 64), (4096, 2, 64), (16_384, 4, 32), (1024, 1, 128)] {
        let shown = format!("{size} bytes, {ways} ways, lines of {line}");
        let peer = run.cachegrind(size, ways, line);
        // Cachegrind counts a modify as a read.
        assert_eq!(
            (peer.instructions, peer.reads, peer.writes),
            (kind("fetch"), kind("read") + kind("modify"), kind("write"))
        );
        let ours = run.sim(size, ways, line);
        let level = &ours["results"]["d1"]["levels"][0];
        let (reads, writes) = (level["read_misses"].as_u64().unwrap(), level["write_misses"].as_u64().unwrap());
        // An access across two lines that misses both is one miss there, and here one record that memory serves.
        let served = ours["results"]["d1"]["records_served_by"]["memory"].as_u64().unwrap();
        assert_eq!(served, peer.read_misses + peer.write_misses, "{shown}");
        assert!(reads >= peer.read_misses && writes >= peer.write_misses, "{shown}");
        let twice = reads + writes - served;
        assert!(twice <= info["straddling_64_byte_line"].as_u64().unwrap_or(u64::MAX) * 2, "{shown}: {twice}");
        assert!(served > 0 && served < peer.reads + peer.writes, "{shown}: nothing to compare");
    }
}

#[test]
fn the_curve_says_what_cachegrind_says_of_a_cache_of_one_set() {
    let Some(run) = Run::new() else { return };
    let trace = run.trace.to_str().unwrap();
    let curve = anytrace(&["cacheray", "mrc", "--format", "json", trace]);
    let info = run.info();
    let accesses = ["read", "write"].iter().map(|kind| info["kinds"][kind].as_u64().unwrap_or(0)).sum::<u64>()
        + 2 * info["kinds"]["modify"].as_u64().unwrap_or(0);
    let line_accesses = curve["line_accesses"].as_u64().unwrap();
    assert!((accesses..accesses * 2).contains(&line_accesses), "{line_accesses} of {accesses}: data alone");
    for lines in [16_u64, 64, 256] {
        let peer = run.cachegrind(lines * 64, lines, 64);
        let ours = curve["lru_misses_fully_assoc"][lines.to_string()].as_u64().unwrap();
        let misses = peer.read_misses + peer.write_misses;
        // The curve counts lines, cachegrind accesses: each access across two lines may be one miss more.
        let straddling = line_accesses - accesses;
        assert!((misses..=misses + straddling).contains(&ours), "{lines} lines: {ours}, cachegrind {misses}");
    }
    let with_fetches = anytrace(&["cacheray", "mrc", "--fetches", "--format", "json", trace]);
    assert!(
        with_fetches["line_accesses"].as_u64().unwrap() > line_accesses + info["kinds"]["fetch"].as_u64().unwrap() - 1
    );
}

/// Runs a program under Valgrind, always with the same output; what Valgrind says.
fn under_valgrind(options: &[&str], command: &[&str]) -> String {
    let mut valgrind = Command::new("valgrind");
    let output = valgrind.args(options).args(command).stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// References and misses of both levels as cachegrind says them: of instructions, reads and writes.
fn split_of_cachegrind(caches: &[String], out: &Path, command: &[&str]) -> [u64; 9] {
    let out = format!("--cachegrind-out-file={}", out.display());
    let mut options = vec!["--tool=cachegrind", "--cache-sim=yes", &out];
    options.extend(caches.iter().map(String::as_str));
    let text = under_valgrind(&options, command);
    let numbers = |start: &str| -> Vec<u64> {
        let line = text.lines().find_map(|line| line.split_once(start).map(|(_, rest)| rest));
        let line = line.unwrap_or_else(|| panic!("{start}: {text}")).replace(',', "");
        line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
    };
    let instructions = ["I   refs:", "I1  misses:", "LLi misses:"].map(|start| numbers(start)[0]);
    let data = ["D   refs:", "D1  misses:", "LLd misses:"].map(numbers);
    let of = |at: usize| [data[0][at], data[1][at], data[2][at]];
    [instructions, of(1), of(2)].concat().try_into().unwrap()
}

#[test]
fn instructions_and_data_miss_in_three_caches_where_cachegrind_misses() {
    let Some(run) = Run::new() else { return };
    let program = run.program.to_str().unwrap().to_owned();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../lackey/corpus/programs/walks.c");
    // What Valgrind runs is told apart by nothing but the tool.
    let commands = [vec![program.as_str()], vec!["/bin/true"], vec!["/usr/bin/cksum", source]];
    let geometries = [
        ["32768,8,64", "32768,8,64", "1048576,16,64"],
        ["4096,2,64", "8192,4,64", "65536,8,64"],
        ["16384,1,32", "1024,2,32", "32768,4,32"],
        ["65536,4,128", "16384,16,128", "262144,2,128"],
        ["2048,1,64", "2048,32,64", "8388608,16,64"],
    ];
    let (trace, out) = (run.folder.path().join("split.lackey"), run.folder.path().join("split.out"));
    for command in &commands {
        under_valgrind(
            &["--tool=lackey", "--trace-mem=yes", &format!("--log-file={}", trace.display())],
            command.as_slice(),
        );
        for [i1, d1, ll] in geometries {
            let caches = [format!("--I1={i1}"), format!("--D1={d1}"), format!("--LL={ll}")];
            let peer = split_of_cachegrind(&caches, &out, command);
            let mut arguments = vec!["memory", "sim", "--format", "json"];
            arguments.extend(caches.iter().map(String::as_str));
            arguments.push(trace.to_str().unwrap());
            let ours = anytrace(&arguments);
            let counts = |kind: &str| ["refs", "l1_misses", "ll_misses"].map(|key| ours[kind][key].as_u64().unwrap());
            let ours = [counts("instructions"), counts("reads"), counts("writes")].concat();
            assert_eq!(ours, peer, "{command:?} {caches:?}");
            assert!(peer[1] > 0 && peer[4] > 0, "nothing to compare");
        }
    }
}
