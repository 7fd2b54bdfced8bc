//! What a verb used on the three sizes of a shape, and whether that is too much.

use std::path::Path;

use super::clear;
use super::inputs::{Files, Inputs};
use super::used::{Used, measure};

/// From n to 4n nothing may grow more than this many times; linear is 4, and `n log n` below 5.
pub(super) const GROWTH_MAX: f64 = 8.0;

/// What is smaller than this at 4n is not checked: starts, caches and neighbors weigh more there.
const CPU_FLOOR_S: f64 = 0.4;
const PEAK_FLOOR_MIB: f64 = 96.0;
const BYTES_FLOOR: f64 = 16e6;

/// How often a time that grows too fast is taken again: other programs on the machine make times longer, never shorter.
const AGAIN: usize = 2;

/// A row of the table.
pub(super) struct Measured {
    used: Vec<Used>,
    faults: Vec<String>,
}

impl Measured {
    pub(super) fn new(binary: &Path, verb: &str, inputs: &Inputs, may_be_refused: bool) -> Result<Self, String> {
        let mut used = Vec::new();
        for files in &inputs.of_sizes {
            let this = one(binary, verb, inputs, files)?;
            used.push(this);
            if !this.is_ended() {
                break;
            }
        }
        for _ in 0..AGAIN {
            if time_growth(&used).is_none() {
                break;
            }
            for (files, best) in inputs.of_sizes.iter().zip(&mut used) {
                best.cpu_s = one(binary, verb, inputs, files)?.cpu_s.min(best.cpu_s);
            }
        }
        let faults = faults(&used, may_be_refused);
        Ok(Self { used, faults })
    }

    pub(super) fn is_fine(&self) -> bool {
        self.faults.is_empty()
    }

    pub(super) fn cells(&self) -> String {
        let list = |value: fn(&Used) -> String| self.used.iter().map(value).collect::<Vec<_>>().join(", ");
        let seconds = list(|used| format!("{:.2}", used.cpu_s));
        let ratio = match (self.used.first(), self.used.last()) {
            (Some(first), Some(last)) => format!("{:.1}", last.cpu_s / first.cpu_s.max(LEAST_S)),
            _ => String::new(),
        };
        let memory = list(|used| format!("{:.0}", used.peak_mib));
        let bytes = list(|used| format!("{:.1}", used.bytes as f64 / 1e6));
        format!("{seconds} | {ratio} | {memory} | {bytes} | {}", self.faults.join("; "))
    }
}

/// Times below this are taken for this.
const LEAST_S: f64 = 0.01;

fn one(binary: &Path, verb: &str, inputs: &Inputs, files: &Files) -> Result<Used, String> {
    // Files left by the size before would count as this one's.
    clear(&inputs.out);
    let mut used = measure(binary, &inputs.words(verb, files))?;
    used.bytes += bytes_of(&inputs.out);
    clear(&inputs.out);
    Ok(used)
}

/// Bytes of a file, or of all files of a folder.
fn bytes_of(path: &Path) -> u64 {
    let Ok(data) = std::fs::metadata(path) else { return 0 };
    if !data.is_dir() {
        return data.len();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| bytes_of(&entry.path())).sum()
}

fn faults(used: &[Used], may_be_refused: bool) -> Vec<String> {
    let last = used.last().copied().unwrap_or_default();
    if !last.is_ended() {
        return vec![format!("did not end ({})", last.status)];
    }
    let mut faults = Vec::new();
    let is_expected = |used: &&Used| matches!(used.status, 0 | 1) || used.status == 2 && may_be_refused;
    if let Some(failed) = used.iter().find(|used| !is_expected(used)) {
        faults.push(format!("exit code {}", failed.status));
    }
    let first = used.first().copied().unwrap_or_default();
    let memory = growth(first.peak_mib, last.peak_mib, PEAK_FLOOR_MIB, 1.0);
    let output = growth(first.bytes as f64, last.bytes as f64, BYTES_FLOOR, 1.0);
    for (what, growth) in [("time", time_growth(used)), ("memory", memory), ("output", output)] {
        faults.extend(growth.map(|growth| format!("{what} × {growth:.1}")));
    }
    faults
}

fn time_growth(used: &[Used]) -> Option<f64> {
    let (first, last) = (used.first()?, used.last()?);
    growth(first.cpu_s, last.cpu_s, CPU_FLOOR_S, LEAST_S)
}

/// How many times more at 4n than at n, where that is too much.
fn growth(at_n: f64, at_4n: f64, floor: f64, least: f64) -> Option<f64> {
    let growth = at_4n / at_n.max(least);
    (at_4n > floor && growth > GROWTH_MAX).then_some(growth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(cpu_s: f64, status: i32) -> Used {
        Used { cpu_s, peak_mib: 10.0, bytes: 5, status }
    }

    #[test]
    fn what_grows_faster_than_its_trace_is_a_fault() {
        let all = |seconds: [f64; 3]| faults(&seconds.map(|cpu_s| used(cpu_s, 0)), false);
        assert_eq!(all([0.5, 1.0, 2.0]), Vec::<String>::new());
        assert_eq!(all([0.5, 2.0, 8.0]), ["time × 16.0"]);
        assert_eq!(all([0.01, 0.05, 0.3]), Vec::<String>::new());
        let large = Used { peak_mib: 1000.0, bytes: 1 << 30, ..used(0.1, 0) };
        assert_eq!(faults(&[used(0.1, 0), large], false), ["memory × 100.0", "output × 214748364.8"]);
    }

    #[test]
    fn only_what_is_no_trace_may_be_refused_and_all_must_end() {
        let codes = |codes: &[i32], may_be_refused| {
            faults(&codes.iter().map(|status| used(0.1, *status)).collect::<Vec<_>>(), may_be_refused)
        };
        assert_eq!(codes(&[0, 1, 0], false), Vec::<String>::new());
        assert_eq!(codes(&[0, 2, 0], false), ["exit code 2"]);
        assert_eq!(codes(&[2, 2, 2], true), Vec::<String>::new());
        assert_eq!(codes(&[0, 101, 0], true), ["exit code 101"]);
        assert_eq!(codes(&[0, -1], true), ["did not end (-1)"]);
    }
}
