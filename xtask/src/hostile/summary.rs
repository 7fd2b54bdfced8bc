//! What a campaign did, for the words at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};

use super::case::Case;
use super::child::Runner;
use super::finds;
use super::judge::Judged;

/// Reasons for exit code 2 that are printed; all are in the file.
const SHOWN: usize = 10;

/// Runs of a verb after which one must have got past its command line and header.
const RUNS_ENOUGH: u64 = 20;

/// What runs of a verb came to.
#[derive(Default)]
struct OfVerb {
    /// By exit code; the last is for signals.
    codes: [u64; 4],
    memory_bytes_max: u64,
    milliseconds_max: u128,
}

/// What was done.
#[derive(Default)]
pub(super) struct Done {
    runs: u64,
    /// Cases that ended with 2, in place of which another was drawn.
    redrawn: u64,
    verbs: BTreeMap<String, OfVerb>,
    /// Options by verb that were accepted, and all that were passed.
    accepted: BTreeSet<(String, String)>,
    passed: BTreeSet<(String, String)>,
    /// Why cases ended with 2, by verb and shape of the last words.
    failures: BTreeMap<String, u64>,
}

impl Done {
    /// Counts a case; one that is redrawn is not a run.
    pub(super) fn add(&mut self, case: &Case, judged: &Judged, is_redrawn: bool) {
        if is_redrawn {
            self.redrawn += 1;
        } else {
            self.runs += 1;
            let verb = self.verbs.entry(case.verb.clone()).or_default();
            verb.codes[judged.code.map_or(3, |code| code.clamp(0, 3) as usize)] += 1;
            verb.memory_bytes_max = verb.memory_bytes_max.max(judged.memory_bytes);
            verb.milliseconds_max = verb.milliseconds_max.max(judged.cpu.as_millis());
        }
        if judged.code == Some(2) {
            // The program's own error, not those of the trace.
            let is_own = |line: &&str| line.starts_with("anytrace: error") || line.starts_with("error");
            let said = judged.stderr.lines().rfind(is_own).unwrap_or("");
            *self.failures.entry(format!("{}: {}", case.verb, finds::shape(said))).or_default() += 1;
        }
        for option in &case.options {
            let entry = (case.verb.clone(), option.clone());
            if matches!(judged.code, Some(0 | 1)) {
                self.accepted.insert(entry.clone());
            }
            self.passed.insert(entry);
        }
    }

    /// Prints what was done, all of it to `summary.txt` in the folder. An error where a verb never did anything.
    pub(super) fn report(&self, runner: &Runner, start: Instant, folder: &Path) -> Result<(), String> {
        let cpu = getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0.0, |usage| {
            let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
            seconds(usage.user_time()) + seconds(usage.system_time())
        });
        let sum = |code: usize| self.verbs.values().map(|verb| verb.codes[code]).sum::<u64>();
        let share = |code| 100.0 * sum(code) as f64 / self.runs.max(1) as f64;
        let shares: Vec<String> =
            (0..3).map(|code| format!("exit code {code}: {} ({:.0} %)", sum(code), share(code))).collect();
        println!("{} runs ({}, signal: {})", self.runs, shares.join(", "), sum(3));
        let (started, redrawn) = (runner.started.load(Ordering::Relaxed), self.redrawn);
        println!("{redrawn} more cases ended with 2 and another was drawn in their place");
        println!("{started} processes, {cpu:.0} s of CPU, {:.0} s", start.elapsed().as_secs_f64());
        let memory = self.verbs.iter().max_by_key(|(_, verb)| verb.memory_bytes_max);
        let time = self.verbs.iter().max_by_key(|(_, verb)| verb.milliseconds_max);
        if let (Some((large, memory)), Some((slow, time))) = (memory, time) {
            let (mebibytes, milliseconds) = (memory.memory_bytes_max >> 20, time.milliseconds_max);
            println!("most memory: {mebibytes} MiB ({large}); most CPU time: {milliseconds} ms ({slow})");
        }
        println!("{} of {} options of verbs that were passed were accepted", self.accepted.len(), self.passed.len());
        let mut failures: Vec<_> = self.failures.iter().collect();
        failures.sort_by_key(|(_, runs)| std::cmp::Reverse(**runs));
        for (why, runs) in failures.iter().take(SHOWN) {
            println!("exit code 2, {runs} cases: {why}");
        }
        let file = folder.join("summary.txt");
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&file, self.text(&failures)));
        written.map_err(|error| format!("{}: {error}", file.display()))?;
        println!("by verb: {}", file.display());
        let idle: Vec<&str> = self.idle().collect();
        if idle.is_empty() { Ok(()) } else { Err(format!("every run ended with 2: {}", idle.join(", "))) }
    }

    /// Verbs no run of which got past its command line and header.
    fn idle(&self) -> impl Iterator<Item = &str> {
        let is_idle = |verb: &OfVerb| verb.codes[0] + verb.codes[1] == 0 && verb.codes[2] >= RUNS_ENOUGH;
        self.verbs.iter().filter(move |(_, verb)| is_idle(verb)).map(|(name, _)| name.as_str())
    }

    /// A table of the verbs, options that never worked, and why runs ended with 2.
    fn text(&self, failures: &[(&String, &u64)]) -> String {
        let mut text = format!("{:22}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}\n", "verb", "0", "1", "2", "signal", "MiB", "ms");
        for (name, verb) in &self.verbs {
            let [fine, breach, failed, signal] = verb.codes;
            let (mebibytes, milliseconds) = (verb.memory_bytes_max >> 20, verb.milliseconds_max);
            // Writing to a String cannot fail.
            let _ =
                writeln!(text, "{name:22}{fine:>8}{breach:>8}{failed:>8}{signal:>8}{mebibytes:>8}{milliseconds:>8}");
        }
        text.push_str("\npassed and never accepted:\n");
        for (verb, option) in self.passed.difference(&self.accepted) {
            let _ = writeln!(text, "  {verb} {option}");
        }
        text.push_str("\nexit code 2:\n");
        for (why, runs) in failures {
            let _ = writeln!(text, "{runs:>8}  {why}");
        }
        text
    }
}
