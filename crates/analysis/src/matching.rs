//! Longest matching blocks of two sequences (Ratcliff and Obershelp 1988), as Python's `difflib` finds them.
//!
//! The longest block in both sequences is found first, then those to its left and right. The result is readable but not
//! the shortest difference, and takes quadratic time; [`MATCH_STEPS_MAX`] bounds it.

use std::collections::{HashMap, HashSet};

/// Most comparisons made; everything left then counts as different.
pub const MATCH_STEPS_MAX: u64 = 2_000_000_000;

/// From this length on, very frequent elements of the second sequence do not start a block.
const POPULAR_FROM: usize = 200;

/// A block both sequences have: start in the first, start in the second, length.
pub type Block = (usize, usize, usize);

/// The operation that [`operations`] returns for a range of each sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The same in both.
    Equal,
    /// Only the first has something.
    Delete,
    /// Only the second has something.
    Insert,
    /// The two sequences differ here.
    Replace,
}

/// The second sequence, looked up by element.
struct Matcher<'a> {
    a: &'a [u64],
    b: &'a [u64],
    places: HashMap<u64, Vec<usize>>,
    junk: HashSet<u64>,
    steps: u64,
    /// Length of the block that ends at the last element and at each place (plus one) of the second sequence.
    lengths: Vec<usize>,
    touched: Vec<usize>,
}

impl<'a> Matcher<'a> {
    fn new(a: &'a [u64], b: &'a [u64], is_junk: &dyn Fn(usize) -> bool) -> Self {
        let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut junk = HashSet::new();
        for (at, element) in b.iter().enumerate() {
            places.entry(*element).or_default().push(at);
            if is_junk(at) {
                junk.insert(*element);
            }
        }
        places.retain(|element, _| !junk.contains(element));
        if b.len() >= POPULAR_FROM {
            let often = b.len() / 100 + 1;
            places.retain(|_, list| list.len() <= often);
        }
        let lengths = vec![0; b.len() + 1];
        Self { a, b, places, junk, steps: 0, lengths, touched: Vec::new() }
    }

    fn is_equal(&self, i: usize, j: usize) -> bool {
        matches!((self.a.get(i), self.b.get(j)), (Some(x), Some(y)) if x == y)
    }

    fn is_junk(&self, j: usize) -> bool {
        self.b.get(j).is_some_and(|element| self.junk.contains(element))
    }

    /// The first of the longest blocks within the ranges.
    fn longest(&mut self, (a_low, a_high): (usize, usize), (b_low, b_high): (usize, usize)) -> Block {
        let (mut i, mut j, mut size) = (a_low, b_low, 0);
        let mut before: Vec<(usize, usize)> = Vec::new();
        for at in a_low..a_high {
            // Only one row is kept; the places that were written are cleared before the next.
            for (place, length) in before.drain(..) {
                if let Some(slot) = self.lengths.get_mut(place) {
                    *slot = length;
                    self.touched.push(place);
                }
            }
            let list = self.a.get(at).and_then(|element| self.places.get(element));
            for &place in list.into_iter().flatten() {
                if place < b_low {
                    continue;
                }
                if place >= b_high {
                    break;
                }
                self.steps += 1;
                let length = self.lengths.get(place).copied().unwrap_or(0) + 1;
                before.push((place + 1, length));
                if length > size {
                    (i, j, size) = (at + 1 - length, place + 1 - length, length);
                }
            }
            self.steps += 1;
            for place in self.touched.drain(..) {
                if let Some(slot) = self.lengths.get_mut(place) {
                    *slot = 0;
                }
            }
        }
        for wants_junk in [false, true] {
            while i > a_low && j > b_low && self.is_junk(j - 1) == wants_junk && self.is_equal(i - 1, j - 1) {
                (i, j, size) = (i - 1, j - 1, size + 1);
            }
            while i + size < a_high
                && j + size < b_high
                && self.is_junk(j + size) == wants_junk
                && self.is_equal(i + size, j + size)
            {
                size += 1;
            }
        }
        (i, j, size)
    }
}

/// The blocks both sequences have, in order; neighbors are joined. Elements of the second sequence that are `junk`
/// only extend blocks.
pub fn matching_blocks(a: &[u64], b: &[u64], is_junk: &dyn Fn(usize) -> bool) -> Vec<Block> {
    let mut matcher = Matcher::new(a, b, is_junk);
    let mut ranges = vec![((0, a.len()), (0, b.len()))];
    let mut found = Vec::new();
    while let Some((in_a, in_b)) = ranges.pop() {
        if matcher.steps > MATCH_STEPS_MAX {
            break;
        }
        let (i, j, size) = matcher.longest(in_a, in_b);
        if size == 0 {
            continue;
        }
        found.push((i, j, size));
        if in_a.0 < i && in_b.0 < j {
            ranges.push(((in_a.0, i), (in_b.0, j)));
        }
        if i + size < in_a.1 && j + size < in_b.1 {
            ranges.push(((i + size, in_a.1), (j + size, in_b.1)));
        }
    }
    found.sort_unstable();
    let mut joined: Vec<Block> = Vec::new();
    for (i, j, size) in found {
        match joined.last_mut() {
            Some(last) if last.0 + last.2 == i && last.1 + last.2 == j => last.2 += size,
            _ => joined.push((i, j, size)),
        }
    }
    joined
}

/// The operations that turn the first sequence into the second, over all of both.
pub fn operations(
    a: &[u64],
    b: &[u64],
    is_junk: &dyn Fn(usize) -> bool,
) -> Vec<(Operation, std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut blocks = matching_blocks(a, b, is_junk);
    blocks.push((a.len(), b.len(), 0));
    let (mut i, mut j) = (0, 0);
    let mut found = Vec::new();
    for (block_i, block_j, size) in blocks {
        let operation = match (i < block_i, j < block_j) {
            (true, true) => Some(Operation::Replace),
            (true, false) => Some(Operation::Delete),
            (false, true) => Some(Operation::Insert),
            (false, false) => None,
        };
        if let Some(operation) = operation {
            found.push((operation, i..block_i, j..block_j));
        }
        if size > 0 {
            found.push((Operation::Equal, block_i..block_i + size, block_j..block_j + size));
        }
        (i, j) = (block_i + size, block_j + size);
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Vec<u64> {
        text.bytes().map(u64::from).collect()
    }

    #[test]
    fn the_examples_of_python_s_manual_come_out_the_same() {
        let none = |_: usize| false;
        assert_eq!(matching_blocks(&of("abxcd"), &of("abcd"), &none), [(0, 0, 2), (3, 2, 2)]);
        // " abcd" and "abcd abcd": without junk the blank leads to the second half, with it to the first.
        let (a, b) = (of(" abcd"), of("abcd abcd"));
        assert_eq!(matching_blocks(&a, &b, &none), [(0, 4, 5)]);
        assert_eq!(matching_blocks(&a, &b, &|at| b[at] == 32), [(1, 0, 4)]);
        let found = operations(&of("qabxcd"), &of("abycdf"), &none);
        use Operation::{Delete, Equal, Insert, Replace};
        let expected = [
            (Delete, 0..1, 0..0),
            (Equal, 1..3, 0..2),
            (Replace, 3..4, 2..3),
            (Equal, 4..6, 3..5),
            (Insert, 6..6, 5..6),
        ];
        assert_eq!(found, expected);
    }

    /// The longest block, found in a slow and simple way: of equal ones the first in the first sequence, then in the
    /// second.
    fn longest(a: &[u64], b: &[u64]) -> Block {
        let mut best = (0, 0, 0);
        for i in 0..a.len() {
            for j in 0..b.len() {
                let size = a[i..].iter().zip(&b[j..]).take_while(|(x, y)| x == y).count();
                if size > best.2 {
                    best = (i, j, size);
                }
            }
        }
        best
    }

    proptest! {
        #[test]
        fn blocks_are_common_ordered_and_have_the_longest(
            a in proptest::collection::vec(0_u64..5, 0..40),
            b in proptest::collection::vec(0_u64..5, 0..40),
        ) {
            let blocks = matching_blocks(&a, &b, &|_| false);
            let mut end = (0, 0);
            for (i, j, size) in &blocks {
                prop_assert!(*i >= end.0 && *j >= end.1);
                prop_assert_eq!(&a[*i..i + size], &b[*j..j + size]);
                end = (i + size, j + size);
            }
            let (i, j, size) = longest(&a, &b);
            if size > 0 {
                prop_assert!(blocks.iter().any(|block| block.0 <= i && block.0 + block.2 >= i + size && i + block.1 == j + block.0));
            }
        }
    }
}
