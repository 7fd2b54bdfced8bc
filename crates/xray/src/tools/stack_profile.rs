//! The result of counting stacks, the options of it, and the limits on stacks.

use std::collections::HashMap;

use anytrace_analysis::stack_runs::{MakeFile, StackRuns, StackSums};
use anytrace_analysis::stacks::{ROOT, StackId, StackTable};
use anytrace_core::Error;

use super::naming::Names;
use super::stack_tops::Tops;

/// Most calls open on one thread; deeper ones are counted as too deep.
pub(super) const OPEN_MAX: usize = 1 << 20;

/// Most frames of a stack; deeper calls count for the deepest stored stack.
pub(super) const DEPTH_MAX: usize = 1 << 14;

/// How to handle an exit that matches no open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OrphanRule {
    /// It is counted and skipped.
    #[default]
    Pass,
    /// As the peer without `--keep-going`: counting ends with [`StackProfile::failure`].
    Fail,
    /// As the peer with `--keep-going`: it ends every open call of its thread.
    EndAll,
}

/// How stacks are counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct StackOptions {
    /// For exits without an entry. All except [`OrphanRule::Pass`] also copy other behavior of the peer: processes are
    /// not distinguished, buffers are read in the order of the file, and in Basic traces an exit on one thread means
    /// that open calls on other threads are not leaves.
    pub orphans: OrphanRule,
    /// Where stacks that do not fit into memory are written; without it memory grows with their number.
    pub make_file: Option<MakeFile>,
    /// Only the top lists of all threads together are needed, with this many rows each: traces of very many stacks are
    /// then counted faster. Such a profile cannot be merged with others.
    pub tops: Option<usize>,
}

/// Counts of what is not a plain call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Exits whose entry is not in the trace.
    pub orphans: u64,
    /// Calls ended by the exit of an outer call.
    pub deduced: u64,
    /// Calls still open at the end of the trace.
    pub unfinished: u64,
    /// Exits before their entry in time.
    pub backwards: u64,
    /// Calls deeper than the limit.
    pub too_deep: u64,
    /// Calls of pairs of functions beyond those stored (graphs only).
    pub too_many: u64,
}

impl Oddities {
    /// Adds the counts of another.
    pub(crate) fn add(&mut self, other: &Self) {
        self.orphans += other.orphans;
        self.deduced += other.deduced;
        self.unfinished += other.unfinished;
        self.backwards += other.backwards;
        self.too_deep += other.too_deep;
        self.too_many += other.too_many;
    }

    /// One line for each that occurred.
    pub fn lines(&self) -> Vec<String> {
        let all = [
            (self.orphans, "exits without an entry in the trace were skipped"),
            (self.deduced, "calls without an exit were ended with the enclosing call"),
            (self.unfinished, "calls were open at the end of their thread and are not counted"),
            (self.backwards, "calls end before they start; the absolute difference is counted"),
            (self.too_many, "calls are not counted because there are too many pairs of functions"),
            (self.too_deep, "calls exceed the maximum stack depth and count toward the deepest frame kept"),
        ];
        all.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
    }
}

/// The stacks of a trace, or of several. Stacks are a forest whose outermost nodes are threads: the number of
/// [`Self::threads`] is the name of such a node.
#[derive(Debug, Default)]
pub struct StackProfile {
    /// Process and thread.
    pub threads: Vec<(u32, u32)>,
    /// The stacks; below a thread's node names are function ids.
    pub table: StackTable,
    /// By stack.
    pub sums: Vec<StackSums>,
    /// All stacks, if they were too many for the table, which is empty then. Roots are numbers of threads.
    pub runs: Option<StackRuns>,
    /// Instead of all stacks: the top lists, if only they were requested and there were many stacks.
    pub tops: Option<Tops>,
    /// Names from the trace.
    pub names: Names,
    /// Ticks a second; 0 where unknown.
    pub cycle_frequency: u64,
    /// What is not a plain call.
    pub oddities: Oddities,
    /// The error at which the peer would have stopped.
    pub failure: Option<String>,
}

impl StackProfile {
    /// True when no call was entered.
    pub fn is_empty(&self) -> bool {
        // Each thread has a node of its own in the table.
        self.runs.is_none() && self.tops.is_none() && self.table.len() <= self.threads.len()
    }

    /// Adds another profile: stacks of the same thread and process are summed.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] when the two count time at different rates.
    pub fn merge(&mut self, other: Self) -> Result<(), Error> {
        if self.cycle_frequency != other.cycle_frequency && !self.threads.is_empty() && !other.threads.is_empty() {
            let (a, b) = (self.cycle_frequency, other.cycle_frequency);
            return Err(Error::usage(format!("traces with {a} and {b} ticks per second cannot be combined")));
        }
        if self.threads.is_empty() {
            *self = other;
            return Ok(());
        }
        let mut known: HashMap<(u32, u32), u32> = self.threads.iter().copied().zip(0..).collect();
        if self.runs.is_some() || other.runs.is_some() {
            self.merge_runs(other, &mut known)?;
            return Ok(());
        }
        let mut ours: Vec<StackId> = Vec::with_capacity(other.table.len());
        for (id, sums) in (0..).zip(&other.sums) {
            let (parent, mut name) = (other.table.parent(id), other.table.name(id));
            if parent == ROOT {
                let Some(&key) = other.threads.get(name as usize) else { continue };
                let next = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
                name = *known.entry(key).or_insert(next);
                if name == next {
                    self.threads.push(key);
                }
            }
            let caller = ours.get(parent as usize).copied().unwrap_or(ROOT);
            let is_lost = parent != ROOT && caller == ROOT;
            let stack = if is_lost { ROOT } else { self.table.intern(caller, name) };
            ours.push(stack);
            if stack == caller {
                // The table is full: the time is already counted for the caller.
                self.oddities.too_deep += sums.count;
                continue;
            }
            self.sums.resize(self.table.len(), StackSums::default());
            if let Some(own) = self.sums.get_mut(stack as usize) {
                own.add(sums);
            }
        }
        self.merge_rest(other.names, &other.oddities, other.failure);
        Ok(())
    }

    fn merge_rest(&mut self, names: Names, oddities: &Oddities, failure: Option<String>) {
        self.names.merge(names);
        self.oddities.add(oddities);
        self.failure = self.failure.take().or(failure);
    }

    /// As [`Self::merge`] if one of the two had too many stacks for a table.
    fn merge_runs(&mut self, mut other: Self, known: &mut HashMap<(u32, u32), u32>) -> Result<(), Error> {
        self.spill(None)?;
        other.spill(None)?;
        let mut ours = Vec::with_capacity(other.threads.len());
        for key in other.threads {
            let next = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
            let number = *known.entry(key).or_insert(next);
            if number == next {
                self.threads.push(key);
            }
            ours.push(number);
        }
        if let (Some(runs), Some(others)) = (&mut self.runs, other.runs) {
            runs.absorb(others, |root| ours.get(root as usize).copied().unwrap_or(root));
        }
        self.merge_rest(other.names, &other.oddities, other.failure);
        Ok(())
    }

    /// Writes the table as runs and empties it.
    pub(super) fn spill(&mut self, make_file: Option<MakeFile>) -> Result<(), Error> {
        self.sums.resize(self.table.len(), StackSums::default());
        self.runs.get_or_insert_with(|| StackRuns::new(make_file)).add(&self.table, &self.sums)?;
        self.table.clear();
        self.sums.clear();
        Ok(())
    }
}
