//! Stacks that are too many for a tree, read from runs: the same lists and lines, with each stack visited once.
//!
//! Tables choose among equal values as the tree does. Lists of all stacks are in order of function numbers; the tree's
//! lists are in the peer's order of appearance, which only a tree in memory has.

use std::io;

use anytrace_analysis::stack_runs::{Merged, StackRuns};

use super::stack_profile::StackProfile;
use super::stack_tops::{Frame, Tops, consider, in_order, offer};

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

#[inline]
fn push(frames: &mut Vec<Frame>, node: &Merged) {
    frames.truncate(node.depth as usize);
    frames.push(Frame { function: node.name, sums: node.sums, ordinal: node.ordinal });
}
