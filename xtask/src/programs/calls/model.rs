//! What is to be said of records: by the plainest count there is.

use std::collections::BTreeMap;

use super::records::Threads;

/// Everything that is counted. Ticks.
#[derive(Default)]
pub(super) struct Counts {
    /// Lengths of calls, by function.
    pub(super) account: BTreeMap<u32, Vec<u64>>,
    /// Lengths of calls, by caller (none: outermost) and function.
    pub(super) graph: BTreeMap<(Option<u32>, u32), Vec<u64>>,
    /// By process, thread and stack, outermost first: calls, and the sum of their lengths.
    pub(super) stacks: BTreeMap<(u32, u32, Vec<u32>), (u64, u64)>,
    pub(super) calls: u64,
    /// Exits without an entry.
    pub(super) orphans: u64,
    /// Calls that ended with one around them.
    pub(super) deduced: u64,
}

/// An exit ends the innermost open call of its function, and all calls inside it.
pub(super) fn count(threads: &Threads, has_stacks: bool) -> Counts {
    let mut counts = Counts::default();
    for (&(process, thread), records) in threads {
        let mut open: Vec<(u32, u64)> = Vec::new();
        // The path of a deep stack is long: it is looked up by its number, and made once.
        let mut paths = Paths::default();
        for record in records {
            if record.is_entry {
                open.push((record.function, record.tsc));
                paths.enter(record.function);
                continue;
            }
            let Some(depth) = open.iter().rposition(|&(function, _)| function == record.function) else {
                counts.orphans += 1;
                continue;
            };
            counts.deduced += (open.len() - depth - 1) as u64;
            while open.len() > depth {
                let Some((function, entered)) = open.pop() else { break };
                let ticks = record.tsc.abs_diff(entered);
                let caller = open.last().map(|&(caller, _)| caller);
                counts.calls += 1;
                counts.account.entry(function).or_default().push(ticks);
                counts.graph.entry((caller, function)).or_default().push(ticks);
                paths.leave(ticks);
            }
        }
        for (path, sums) in has_stacks.then(|| paths.finish()).into_iter().flatten() {
            counts.stacks.insert((process, thread, path), sums);
        }
    }
    counts.account.values_mut().chain(counts.graph.values_mut()).for_each(|lengths| lengths.sort_unstable());
    counts
}

/// Deepest stack that has a row of its own (`xray stack --help`): calls inside count for it, once.
const DEPTH_MAX: usize = 1 << 14;

/// The stacks of a thread.
#[derive(Default)]
struct Paths {
    /// Path number of each open call.
    open: Vec<usize>,
    numbers: BTreeMap<(usize, u32), usize>,
    /// The path around each, its function, its calls and their sum.
    paths: Vec<(usize, u32, u64, u64)>,
}

impl Paths {
    fn enter(&mut self, function: u32) {
        let outer = self.open.last().copied().unwrap_or(usize::MAX);
        let number = if self.open.len() < DEPTH_MAX {
            let next = self.paths.len();
            let number = *self.numbers.entry((outer, function)).or_insert(next);
            if number == next {
                self.paths.push((outer, function, 0, 0));
            }
            number
        } else {
            outer
        };
        self.open.push(number);
    }

    fn leave(&mut self, ticks: u64) {
        let Some(number) = self.open.pop() else { return };
        if self.open.last() != Some(&number)
            && let Some((_, _, count, sum)) = self.paths.get_mut(number)
        {
            (*count, *sum) = (*count + 1, *sum + ticks);
        }
    }

    fn finish(self) -> Vec<(Vec<u32>, (u64, u64))> {
        let path = |mut at: usize| {
            let mut path = Vec::new();
            while let Some(&(outer, function, ..)) = self.paths.get(at) {
                path.push(function);
                at = outer;
            }
            path.reverse();
            path
        };
        let counted = self.paths.iter().enumerate().filter(|(_, (_, _, count, _))| *count > 0);
        counted.map(|(number, &(_, _, count, sum))| (path(number), (count, sum))).collect()
    }
}
