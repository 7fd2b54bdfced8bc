//! The stacks of a top list, and which of equal ones come first.

use std::cmp::Ordering;

use anytrace_analysis::stack_runs::StackSums;

use super::bucket_order::{bucket_order, id_hash};

/// A stack's frame with its counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) function: u32,
    pub(crate) sums: StackSums,
    pub(crate) ordinal: u64,
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

/// Threads in the order of the tree.
pub(super) fn in_order(mut threads: Vec<((u32, u32), u32)>) -> Vec<((u32, u32), u32)> {
    threads.sort_unstable();
    let hashes: Vec<u32> = threads.iter().map(|((_, thread), _)| id_hash(*thread)).collect();
    bucket_order(&hashes).into_iter().filter_map(|n| threads.get(n).copied()).collect()
}

/// Adds the stack of these frames to a top list if it belongs there.
#[inline]
pub(super) fn consider(tops: &mut Vec<Top>, value: u64, frames: &[Frame], group: usize, rows_max: usize) {
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

/// Adds a stack to a top list, which keeps its first `rows_max`.
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
