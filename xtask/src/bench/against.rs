//! `--against PROGRAM`: each job by this build and by another, in turn, so that a slow hour of the machine slows both.

use super::bars::BARS;
use super::measure::{Usage, measure};

/// Runs of each program before a job is compared, and at most: a neighbor's noise is given time to end.
const PAIRS: usize = 3;
const PAIRS_MAX: usize = 12;
/// CPU time, or peak memory, of this build over the other's from which a job counts as missed.
const RATIO_MAX: f64 = 1.05;
/// Growth of peak memory that never counts. The kernel counts the pages of the program's own file that happen to be
/// mapped, several MiB, which differ between two copies of one program.
const GROWTH_KIB_MAX: i64 = 6 << 10;

pub(super) const HEAD: &str = "\
| job | CPU s | CPU s of the other | ratio | peak MiB | peak MiB of the other | ratio |
|---|---|---|---|---|---|---|";

/// The least CPU time and the least peak memory of each program on one job.
struct Pair {
    this: Usage,
    other: Usage,
}

impl Pair {
    fn ratio(&self) -> f64 {
        self.this.cpu_s / self.other.cpu_s.max(1e-6)
    }

    fn memory_ratio(&self) -> f64 {
        self.this.peak_kib as f64 / self.other.peak_kib.max(1) as f64
    }

    fn needs_more_memory(&self) -> bool {
        self.memory_ratio() > RATIO_MAX && self.this.peak_kib - self.other.peak_kib > GROWTH_KIB_MAX
    }
}

/// Runs the jobs of one input with both programs and prints a row for each.
pub(super) fn bench(input: &str, file: &str, programs: [&str; 2], missed: &mut Vec<String>) -> Result<(), String> {
    for bar in BARS.iter().filter(|bar| bar.input == input) {
        let words: Vec<_> = bar.verb.iter().map(|word| word.rsplit('/').next().unwrap_or(word)).collect();
        let job = format!("{input} {}", words.join(" "));
        let pair = pair(bar.verb, file, programs)?;
        println!("{}", row(&job, &pair));
        if pair.ratio() > RATIO_MAX {
            missed.push(format!("{job}: {:.2} times the CPU time", pair.ratio()));
        }
        if pair.needs_more_memory() {
            missed.push(format!("{job}: {:.2} times the memory", pair.memory_ratio()));
        }
    }
    Ok(())
}

fn row(job: &str, pair: &Pair) -> String {
    let mebibytes = |usage: &Usage| usage.peak_kib as f64 / 1024.0;
    format!(
        "| {job} | {:.3} | {:.3} | {:.3} | {:.1} | {:.1} | {:.3} |",
        pair.this.cpu_s,
        pair.other.cpu_s,
        pair.ratio(),
        mebibytes(&pair.this),
        mebibytes(&pair.other),
        pair.memory_ratio()
    )
}

fn pair(verb: &[&str], file: &str, [this, other]: [&str; 2]) -> Result<Pair, String> {
    let command = |program: &str| {
        let words = verb.iter().copied().chain(["--threads", "1", file]).map(str::to_owned);
        std::iter::once(program.to_owned()).chain(words).collect::<Vec<_>>()
    };
    let mut pair = Pair { this: measure(None, &command(this))?, other: measure(None, &command(other))? };
    for round in 2..=PAIRS_MAX {
        pair.this = least(&pair.this, &measure(None, &command(this))?);
        pair.other = least(&pair.other, &measure(None, &command(other))?);
        if round >= PAIRS && pair.ratio() <= RATIO_MAX {
            break;
        }
    }
    Ok(pair)
}

fn least(one: &Usage, two: &Usage) -> Usage {
    Usage {
        cpu_s: one.cpu_s.min(two.cpu_s),
        wall_s: one.wall_s.min(two.wall_s),
        peak_kib: one.peak_kib.min(two.peak_kib),
    }
}
