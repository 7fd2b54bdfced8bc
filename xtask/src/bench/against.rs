//! `--against PROGRAM`: each job by this build and by another, in turn, so that a slow hour of the machine slows both.

use super::bars::BARS;
use super::measure::measure;

/// Runs of each program before a job is compared, and at most: a neighbor's noise is given time to end.
const PAIRS: usize = 3;
const PAIRS_MAX: usize = 12;
/// CPU time of this build over the other's from which a job counts as missed.
const RATIO_MAX: f64 = 1.05;

/// The least CPU seconds of each program on one job.
struct Pair {
    this_s: f64,
    other_s: f64,
}

impl Pair {
    fn ratio(&self) -> f64 {
        self.this_s / self.other_s.max(1e-6)
    }
}

/// Runs the jobs of one input with both programs and prints a row for each.
pub(super) fn bench(input: &str, file: &str, programs: [&str; 2], missed: &mut Vec<String>) -> Result<(), String> {
    for bar in BARS.iter().filter(|bar| bar.input == input) {
        let words: Vec<_> = bar.verb.iter().map(|word| word.rsplit('/').next().unwrap_or(word)).collect();
        let job = format!("{input} {}", words.join(" "));
        let pair = pair(bar.verb, file, programs)?;
        let ratio = pair.ratio();
        println!("| {job} | {:.3} | {:.3} | {ratio:.3} |", pair.this_s, pair.other_s);
        if ratio > RATIO_MAX {
            missed.push(format!("{job}: {ratio:.2} times the CPU time"));
        }
    }
    Ok(())
}

fn pair(verb: &[&str], file: &str, [this, other]: [&str; 2]) -> Result<Pair, String> {
    let command = |program: &str| {
        let words = verb.iter().copied().chain(["--threads", "1", file]).map(str::to_owned);
        std::iter::once(program.to_owned()).chain(words).collect::<Vec<_>>()
    };
    let mut pair = Pair { this_s: f64::INFINITY, other_s: f64::INFINITY };
    for round in 1..=PAIRS_MAX {
        pair.this_s = pair.this_s.min(measure(None, &command(this))?.cpu_s);
        pair.other_s = pair.other_s.min(measure(None, &command(other))?.cpu_s);
        if round >= PAIRS && pair.ratio() <= RATIO_MAX {
            break;
        }
    }
    Ok(pair)
}
