//! `apitrace replay --bisect GOOD BAD`: the first frame, and in it the first draw, at which two drivers, sizes or traces
//! differ.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anytrace_apitrace::tools::diff_images::Picture;
use anytrace_core::text;
use anytrace_replay::Sum;

use super::replay_sums;
use crate::failure::Failure;
use crate::{Verdict, terminal};

/// Options that conflict with it: they have results of their own.
pub(super) const OTHERS: [&str; 21] = [
    "snapshot_prefix",
    "snapshot",
    "snapshot_format",
    "snapshot_alpha",
    "snapshot_interval",
    "snapshot_force_backbuffer",
    "mrt",
    "frames",
    "sums",
    "against",
    "dump_state",
    "loops",
    "check",
    "output",
    "pcpu",
    "pgpu",
    "ppd",
    "pmem",
    "pframe_times",
    "input_format",
    "record_limit",
];

/// What is compared.
pub(super) struct Bisect<'a> {
    /// The two sides, as the command line names them.
    pub(super) sides: [&'a str; 2],
    /// The trace, where the sides are not traces themselves.
    pub(super) trace: Option<&'a Path>,
    /// Options for both sides.
    pub(super) words: Vec<OsString>,
    /// Where the difference is shown.
    pub(super) difference: Option<&'a Path>,
    pub(super) force: bool,
}

/// A trace, and how it is replayed.
struct Side {
    label: String,
    trace: PathBuf,
    words: Vec<OsString>,
    variable: Option<(String, String)>,
}

/// Where two lists of pictures differ first.
struct Place {
    /// The calls of the first different pictures, on both sides; `None` where one has no more.
    calls: [Option<u64>; 2],
    /// The calls of the pictures before them.
    before: [Option<u64>; 2],
    frame: u64,
}

impl Bisect<'_> {
    pub(super) fn run(&self) -> Result<Verdict, Failure> {
        let [good, bad] = self.sides;
        let sides = [self.side(good)?, self.side(bad)?];
        let folder = tempfile::tempdir().map_err(|error| Failure::usage(format!("cannot make a folder: {error}")))?;
        let of_frames = ["*/frame".to_owned(), "*/frame".to_owned()];
        let frames = self.sums(&sides, &of_frames, folder.path())?;
        let mut out = terminal::stdout();
        let Some(frame) = first_difference(&frames) else {
            let [good, _] = &frames;
            writeln!(out, "All {} frames are equal", good.len())?;
            return Ok(Verdict::Fine);
        };
        writeln!(out, "Frame {} is the first that differs, {}", frame.frame, calls(frame.calls))?;
        let sets = [0, 1].map(|at| {
            let first = frame.before.get(at).copied().flatten().map_or(0, |call| call + 1);
            let last = frame.calls.get(at).copied().flatten().map_or(String::new(), |call| call.to_string());
            format!("{first}-{last}/draw")
        });
        let draws = self.sums(&sides, &sets, folder.path())?;
        let Some(draw) = first_difference(&draws) else {
            writeln!(out, "All draws in it are equal: it differs where it ends")?;
            self.show(&sides, frame.calls, folder.path())?;
            return Ok(Verdict::Breach);
        };
        writeln!(out, "The first draw in it with other pixels is {}:", calls(draw.calls))?;
        let [first, second] = &sides;
        let is_same = first.trace == second.trace;
        for (side, call) in sides.iter().zip(draw.calls).take(if is_same { 1 } else { 2 }) {
            match call {
                Some(call) => write!(out, "{}", side.dumped(call)?)?,
                None => writeln!(out, "{} has no more draws in it", text::printable(&side.label))?,
            }
        }
        if let [Some(_), Some(_)] = draw.before {
            writeln!(out, "The draw before it is equal: {}", calls(draw.before))?;
        }
        self.show(&sides, draw.calls, folder.path())?;
        Ok(Verdict::Breach)
    }

    /// A side: a trace, or how the trace is replayed.
    fn side(&self, text: &str) -> Result<Side, Failure> {
        let of = |trace: &Path, words: &[&str], variable: Option<(String, String)>| Side {
            label: text.to_owned(),
            trace: trace.to_owned(),
            words: words.iter().map(OsString::from).collect(),
            variable,
        };
        if Path::new(text).is_file() {
            if self.trace.is_some() {
                return Err(Failure::usage(format!(
                    "--bisect {text}: the sides are traces, so that no other is needed"
                )));
            }
            return Ok(of(Path::new(text), &[], None));
        }
        let expected = "expected a trace, device=N, driver=NAME, size=right, size=peer or VARIABLE=VALUE";
        let (key, value) =
            text.split_once('=').ok_or_else(|| Failure::usage(format!("--bisect {text}: {expected}")))?;
        let trace = self.trace.ok_or_else(|| Failure::usage(format!("--bisect {text}: which trace?")))?;
        match key {
            "device" | "driver" | "size" => {
                let option = format!("--{key}={value}");
                Ok(of(trace, &[&option], None))
            }
            _ if key.starts_with(|letter: char| letter.is_ascii_uppercase()) => {
                Ok(of(trace, &[], Some((key.to_owned(), value.to_owned()))))
            }
            _ => Err(Failure::usage(format!("--bisect {text}: {expected}"))),
        }
    }

    /// The sums of pictures of both sides, after these calls.
    fn sums(&self, sides: &[Side; 2], sets: &[String; 2], folder: &Path) -> Result<[Vec<Sum>; 2], Failure> {
        let mut found = [Vec::new(), Vec::new()];
        for ((side, set), sums) in sides.iter().zip(sets).zip(&mut found) {
            // Its own file: one that crashes writes none, and must not be taken for the other.
            let file = tempfile::Builder::new().suffix(".json").tempfile_in(folder);
            let file = file.map_err(|error| Failure::usage(format!("cannot make a file: {error}")))?;
            let words = ["--force".into(), "--sums".into(), file.path().as_os_str().to_owned()];
            self.replay(side, set, &words)?;
            if file.path().metadata().is_ok_and(|about| about.len() == 0) {
                let side = text::printable(&side.label);
                return Err(Failure::breach(format!("{side}: it was not replayed to its end; see above")));
            }
            *sums = replay_sums::load(file.path())?;
        }
        Ok(found)
    }

    fn replay(&self, side: &Side, set: &str, words: &[OsString]) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::usage(format!("cannot start the replaying process: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["apitrace", "replay", "-S", set]).args(&self.words).args(&side.words).args(words);
        command.arg("--").arg(&side.trace).stdout(Stdio::null()).envs(side.variable.clone());
        // Of damaged traces both sides have what can be read.
        let status = command.status().map_err(failed)?;
        match status.code() {
            Some(0 | 1) => Ok(()),
            _ => Err(Failure::usage(format!("{}: it cannot be replayed", text::printable(&side.label)))),
        }
    }

    /// Shows the difference, where that was asked for.
    fn show(&self, sides: &[Side; 2], calls: [Option<u64>; 2], folder: &Path) -> Result<(), Failure> {
        let (Some(file), [Some(good), Some(bad)]) = (self.difference, calls) else { return Ok(()) };
        let calls = [good, bad];
        let mut pictures = Vec::new();
        for ((side, call), name) in sides.iter().zip(calls).zip(["good", "bad"]) {
            let prefix = folder.join(format!("{name}."));
            self.replay(side, &call.to_string(), &["--force".into(), "-s".into(), prefix.into_os_string()])?;
            let bytes = std::fs::read(folder.join(format!("{name}.{call:010}.png")));
            let bytes = bytes.map_err(|error| Failure::usage(format!("call {call}: no picture: {error}")))?;
            let picture = Picture::read(std::io::Cursor::new(bytes));
            pictures.push(picture.map_err(|why| Failure::usage(format!("call {call}: {why}")))?);
        }
        let [good, bad] = pictures.as_slice() else { return Ok(()) };
        replay_sums::write_marked(file, good, bad, self.force)
    }
}

impl Side {
    /// The call, as `apitrace dump` prints it.
    fn dumped(&self, call: u64) -> Result<String, Failure> {
        let failed = |error: std::io::Error| Failure::usage(format!("call {call}: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["apitrace", "dump", "--color=never", "-v", "--calls", &call.to_string(), "--"]).arg(&self.trace);
        let output = command.stderr(Stdio::null()).output().map_err(failed)?;
        let all = String::from_utf8_lossy(&output.stdout);
        let lines = all.lines().filter(|line| !line.is_empty() && !line.starts_with("//"));
        Ok(lines.map(|line| format!("{}\n", text::printable(line))).collect())
    }
}

/// One number where both are equal, or one side has no more.
fn calls(calls: [Option<u64>; 2]) -> String {
    match calls {
        [Some(good), Some(bad)] if good != bad => format!("calls {good} and {bad}"),
        [Some(call), _] | [None, Some(call)] => format!("call {call}"),
        [None, None] => "no call".to_owned(),
    }
}

/// Where two lists of pictures differ first.
fn first_difference([good, bad]: &[Vec<Sum>; 2]) -> Option<Place> {
    let equal = good.iter().zip(bad).take_while(|(a, b)| a.is_same(b)).count();
    if equal == good.len() && equal == bad.len() {
        return None;
    }
    let of = |sums: &[Sum]| sums.get(equal).map(|sum| sum.call);
    let before = |sums: &[Sum]| sums.get(equal.checked_sub(1)?).map(|sum| sum.call);
    let frame = good.get(equal).or(bad.get(equal)).map_or(0, |sum| sum.frame);
    Some(Place { calls: [of(good), of(bad)], before: [before(good), before(bad)], frame })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    fn sums(md5: &str) -> Vec<Sum> {
        let list: Vec<String> = md5
            .chars()
            .zip(1_u64..)
            .map(|(letter, at)| {
                format!(
                    r#"{{"call":{},"frame":{at},"width":1,"height":1,"md5":"{}"}}"#,
                    at * 10,
                    letter.to_string().repeat(32)
                )
            })
            .collect();
        anytrace_replay::from_json(&format!(r#"{{"version":1,"pictures":[{}]}}"#, list.join(","))).unwrap()
    }

    #[test]
    fn the_first_difference_is_found_also_where_one_side_ends() {
        assert!(first_difference(&[sums("AAB"), sums("AAB")]).is_none());
        let place = first_difference(&[sums("AAB"), sums("AAC")]).unwrap();
        assert_eq!((place.calls, place.before, place.frame), ([Some(30); 2], [Some(20); 2], 3));
        let place = first_difference(&[sums("B"), sums("A")]).unwrap();
        assert_eq!((place.calls, place.before), ([Some(10); 2], [None; 2]));
        let place = first_difference(&[sums("AA"), sums("A")]).unwrap();
        assert_eq!((place.calls, place.frame), ([Some(20), None], 2));
    }
}
