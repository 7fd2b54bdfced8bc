//! Finds an open call in a deep stack.
//!
//! An exit that does not match the innermost call is searched for in the calls around it. A trace can have a deep stack
//! and then very many exits that match none of it; a walk down the stack for each of them would take time proportional
//! to the product of both.

use anytrace_core::hash::Map;

/// Calls that are compared one by one, from the innermost; real exits are found among them.
const NEAR: usize = 64;

/// The search state of one thread's stack. Small: most stacks never need the rest.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenSearch {
    /// Calls that have been open continuously since the last search.
    unchanged: usize,
    index: Option<Box<Index>>,
}

/// Open calls by function.
#[derive(Debug, Clone, Default)]
struct Index {
    /// The functions in the index, from the outermost.
    functions: Vec<u32>,
    /// The depths at which each function is open, ascending.
    depths: Map<u32, Vec<u32>>,
}

impl OpenSearch {
    /// Calls were left: this many are still open. Must be called before further calls are entered.
    #[inline(always)]
    pub(crate) fn left(&mut self, open: usize) {
        self.unchanged = self.unchanged.min(open);
    }

    /// The innermost of `count` open calls of this function; `at` returns the function of each.
    pub(crate) fn find(&mut self, function: u32, count: usize, at: impl Fn(usize) -> Option<u32>) -> Option<usize> {
        let near = count.saturating_sub(NEAR);
        if let Some(depth) = (near..count).rev().find(|&depth| at(depth) == Some(function)) {
            return Some(depth);
        }
        if near == 0 {
            return None;
        }
        let index = self.index.get_or_insert_default();
        while index.functions.len() > self.unchanged.min(count) {
            let gone = index.functions.pop();
            if let Some(depths) = gone.and_then(|gone| index.depths.get_mut(&gone)) {
                depths.pop();
            }
        }
        for depth in index.functions.len()..count {
            let Some(open) = at(depth) else { break };
            index.functions.push(open);
            index.depths.entry(open).or_default().push(u32::try_from(depth).unwrap_or(u32::MAX));
        }
        self.unchanged = count;
        index.depths.get(&function)?.last().map(|&depth| depth as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_what_a_walk_finds() {
        let (mut search, mut open, mut random) = (OpenSearch::default(), Vec::new(), 1_u32);
        let mut next = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) % below
        };
        let mut deepest = 0;
        for round in 0..20_000_u32 {
            let calls = next(if round / 2_000 % 2 == 0 { 9 } else { 3 });
            (0..calls).for_each(|_| open.push(next(60)));
            let function = next(70);
            let found = search.find(function, open.len(), |depth| open.get(depth).copied());
            assert_eq!(found, open.iter().rposition(|&one| one == function));
            deepest = deepest.max(found.map_or(0, |depth| open.len() - depth));
            let left = open.len().saturating_sub(next(4) as usize);
            open.truncate(left);
            search.left(left);
        }
        assert!(deepest > 2 * NEAR, "{deepest}");
    }

    #[test]
    fn exits_of_nothing_cost_no_walk() {
        let (mut search, open) = (OpenSearch::default(), vec![1_u32; 1 << 20]);
        // Ends at once, or takes 2 to the power of 40 steps.
        for _ in 0..1 << 20 {
            assert_eq!(search.find(7, open.len(), |depth| open.get(depth).copied()), None);
        }
    }
}
