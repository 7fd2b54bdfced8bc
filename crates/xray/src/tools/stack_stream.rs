//! Stacks that are too many for a tree, read from runs: the same lists and lines, with each stack visited once.
//!
//! Tables choose among equal values as the tree does. Lists of all stacks are in order of function numbers; the tree's
//! lists are in the peer's order of appearance, which only a tree in memory has.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;

use anytrace_analysis::stack_runs::{Merged, StackRuns};

use super::bucket_order::{bucket_order, id_hash};
use super::stack::{StackProfile, StackSums};
use super::stack_report::{StackGrouping, StackReport, Visit};

/// A stack's frame with its counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) function: u32,
    pub(crate) sums: StackSums,
    pub(crate) ordinal: u64,
}

/// One list: a thread with its number among the roots, or all threads together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    pub(crate) thread: Option<(u32, u32)>,
    root: Option<u32>,
}

/// The stacks of a profile, by thread or summed.
#[derive(Debug)]
pub(crate) struct Stream<'p> {
    runs: &'p StackRuns,
    pub(crate) groups: Vec<Group>,
}

/// The top of one list, and how many stacks it has.
#[derive(Debug, Default, Clone)]
pub struct Tops {
    pub(crate) unique: u64,
    pub(crate) by_sum: Vec<Top>,
    pub(crate) by_count: Vec<Top>,
}

/// A stack of a top list.
#[derive(Debug, Clone)]
pub(crate) struct Top {
    pub(crate) value: u64,
    pub(crate) frames: Vec<Frame>,
    pub(crate) group: usize,
}

impl<'p> Stream<'p> {
    /// The threads of a profile in the order of the tree; one group of all when they are summed.
    pub(crate) fn new(profile: &'p StackProfile, runs: &'p StackRuns, is_aggregate: bool) -> Self {
        if is_aggregate {
            return Self { runs, groups: vec![Group { thread: None, root: None }] };
        }
        let threads = in_order(profile.threads.iter().copied().zip(0_u32..).collect());
        let groups = threads.into_iter().map(|(key, root)| Group { thread: Some(key), root: Some(root) }).collect();
        Self { runs, groups }
    }

    /// Visits every stack of a group with its outer frames, outermost first.
    pub(crate) fn for_each(&self, group: &Group, visit: &mut dyn FnMut(&[Frame]) -> io::Result<()>) -> io::Result<()> {
        let mut frames: Vec<Frame> = Vec::new();
        let each = &mut |node: &Merged| {
            push(&mut frames, node);
            visit(&frames)
        };
        self.runs.for_each(group.root, each)
    }

    /// The tops of some groups, merged into one list; groups are read on as many processors as `threads` says.
    pub(crate) fn tops(&self, groups: &[usize], rows_max: usize, threads: usize) -> io::Result<Tops> {
        let share = groups.len().div_ceil(threads.max(1)).max(1);
        let parts: Vec<io::Result<Tops>> = std::thread::scope(|scope| {
            let workers: Vec<_> =
                groups.chunks(share).map(|part| scope.spawn(move || self.tops_of(part, rows_max))).collect();
            let lost = || Err(io::Error::other("a worker ended early"));
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| lost())).collect()
        });
        let mut all = Tops::default();
        for part in parts {
            let part = part?;
            all.unique += part.unique;
            part.by_sum.into_iter().for_each(|top| offer(&mut all.by_sum, top, rows_max));
            part.by_count.into_iter().for_each(|top| offer(&mut all.by_count, top, rows_max));
        }
        Ok(all)
    }

    fn tops_of(&self, groups: &[usize], rows_max: usize) -> io::Result<Tops> {
        let mut tops = Tops::default();
        for &number in groups {
            let Some(group) = self.groups.get(number) else { continue };
            let mut frames: Vec<Frame> = Vec::new();
            let each = &mut |node: &Merged| {
                push(&mut frames, node);
                if node.sums.leaf_count > 0 {
                    tops.unique += 1;
                    consider(&mut tops.by_sum, node.sums.leaf_sum, &frames, number, rows_max);
                    consider(&mut tops.by_count, node.sums.leaf_count, &frames, number, rows_max);
                }
                Ok(())
            };
            self.runs.for_each(group.root, each)?;
        }
        Ok(tops)
    }
}

/// Threads in the order of the tree.
pub(super) fn in_order(mut threads: Vec<((u32, u32), u32)>) -> Vec<((u32, u32), u32)> {
    threads.sort_unstable();
    let hashes: Vec<u32> = threads.iter().map(|((_, thread), _)| id_hash(*thread)).collect();
    bucket_order(&hashes).into_iter().filter_map(|n| threads.get(n).copied()).collect()
}

#[inline]
fn push(frames: &mut Vec<Frame>, node: &Merged) {
    frames.truncate(node.depth as usize);
    frames.push(Frame { function: node.name, sums: node.sums, ordinal: node.ordinal });
}

#[inline]
fn consider(tops: &mut Vec<Top>, value: u64, frames: &[Frame], group: usize, rows_max: usize) {
    if tops.len() >= rows_max && tops.last().is_none_or(|last| value < last.value) {
        return;
    }
    let is_in = tops.len() < rows_max
        || tops.last().is_some_and(|last| {
            value > last.value || order((group, frames), (last.group, &last.frames)) == Ordering::Less
        });
    if is_in {
        offer(tops, Top { value, frames: frames.to_vec(), group }, rows_max);
    }
}

pub(super) fn offer(tops: &mut Vec<Top>, top: Top, rows_max: usize) {
    let at = tops.partition_point(|other| {
        other.value > top.value
            || (other.value == top.value
                && order((other.group, &other.frames), (top.group, &top.frames)) == Ordering::Less)
    });
    tops.insert(at, top);
    tops.truncate(rows_max);
}

/// Which of two equal values comes first: the one that a walk over the trees reaches last. Threads and outermost calls
/// are walked in order, callees from the last to appear to the first, and callers before callees.
fn order(a: (usize, &[Frame]), b: (usize, &[Frame])) -> Ordering {
    let groups = b.0.cmp(&a.0);
    let ordinal = |frames: &[Frame], n: usize| frames.get(n).map(|frame| frame.ordinal);
    let outermost = ordinal(b.1, 0).cmp(&ordinal(a.1, 0));
    let inner = (1..a.1.len().max(b.1.len())).map(|n| match (ordinal(a.1, n), ordinal(b.1, n)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    groups.then(outermost).then_with(|| inner.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal))
}

impl StackReport<'_> {
    /// The tables, as [`StackReport::tables`] prints them.
    pub(super) fn stream_tables(&self, stream: &Stream<'_>, out: &mut dyn Write) -> io::Result<()> {
        let all: Vec<usize> = (0..stream.groups.len()).collect();
        if self.view.grouping != StackGrouping::PerThread {
            return self.stream_table(stream, &all, out);
        }
        for (number, group) in stream.groups.iter().enumerate() {
            writeln!(out, "{}:", self.thread_title(group.thread, "Thread ", ", process "))?;
            self.stream_table(stream, &[number], out)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn stream_table(&self, stream: &Stream<'_>, groups: &[usize], out: &mut dyn Write) -> io::Result<()> {
        let tops = stream.tops(groups, self.rows_max(), self.view.threads)?;
        self.print_tops(&tops, out)
    }

    /// Prints one table.
    pub(super) fn print_tops(&self, tops: &Tops, out: &mut dyn Write) -> io::Result<()> {
        let stacks = |tops: &[Top]| {
            let frames = |top: &Top| top.frames.iter().map(|frame| (frame.function, frame.sums)).collect();
            tops.iter().map(|top| (top.value, frames(top))).collect::<Vec<_>>()
        };
        let (names, symbols) = self.sources;
        let name = |function| names.of(function, symbols);
        self.print_table(tops.unique, &stacks(&tops.by_sum), &stacks(&tops.by_count), &name, out)
    }

    /// Visits every stack as [`StackReport::walk`] does, callees by number.
    pub(super) fn stream_walk(&self, stream: &Stream<'_>, is_by_number: bool, visit: Visit<'_>) -> io::Result<()> {
        let mut groups: Vec<&Group> = stream.groups.iter().collect();
        if is_by_number {
            groups.sort_by_key(|group| group.thread);
        }
        let (names, symbols) = self.sources;
        let mut known: HashMap<u32, Rc<str>> = HashMap::new();
        // The frames of the previous stack, so that only those that differ are looked up.
        let mut latest: Vec<(u32, Rc<str>)> = Vec::new();
        for group in groups {
            stream.for_each(group, &mut |frames| {
                let same =
                    frames.iter().zip(&latest).take_while(|(frame, (known, _))| frame.function == *known).count();
                latest.truncate(same);
                for frame in frames.iter().skip(same) {
                    let name = known.entry(frame.function).or_insert_with(|| names.of(frame.function, symbols).into());
                    latest.push((frame.function, Rc::clone(name)));
                }
                let path: Vec<&str> = latest.iter().map(|(_, name)| &**name).collect();
                let sums = frames.last().map_or_else(StackSums::default, |frame| frame.sums);
                visit(group.thread, &path, &sums)
            })?;
        }
        Ok(())
    }
}
