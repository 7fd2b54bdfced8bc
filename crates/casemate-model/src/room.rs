//! Memory that may run out: every list of the checker grows here.
//!
//! With the feature `hosted` a failed allocation ends the process, as everywhere in such programs. Without it, what does
//! not fit is left out and noted: whoever drives a [`crate::Checker`] asks [`take_lack`] after each step, and the
//! verdicts of a checker that lacked memory once are worth nothing from then on.

use alloc::vec::Vec;

#[cfg(not(feature = "hosted"))]
mod lack {
    use core::sync::atomic::{AtomicBool, Ordering};

    static IS_LACKING: AtomicBool = AtomicBool::new(false);

    #[cold]
    pub(super) fn note() {
        IS_LACKING.store(true, Ordering::Relaxed);
    }

    /// True once after memory ran out since the last call. Checkers of a program share the note: use them one after the
    /// other, or stop all of them.
    pub fn take_lack() -> bool {
        let is_noted = is_lacking();
        IS_LACKING.store(false, Ordering::Relaxed);
        is_noted
    }

    /// True when memory ran out since the last [`take_lack`].
    #[inline]
    pub fn is_lacking() -> bool {
        IS_LACKING.load(Ordering::Relaxed)
    }
}

#[cfg(feature = "hosted")]
mod lack {
    #[cold]
    pub(super) fn note() {
        alloc::alloc::handle_alloc_error(core::alloc::Layout::new::<[u64; 512]>());
    }

    /// True once after memory ran out since the last call: never, because a failed allocation ends the process.
    #[inline]
    pub fn take_lack() -> bool {
        false
    }

    /// True when memory ran out since the last [`take_lack`]: never.
    #[inline]
    pub fn is_lacking() -> bool {
        false
    }
}

pub use lack::{is_lacking, take_lack};

/// Adds an element at the end; false if there is no memory for it.
///
/// The room is looked at right before each `push`: the compiler sees then that `push` need not grow the list, which
/// could panic.
#[inline]
pub(crate) fn push<T>(list: &mut Vec<T>, value: T) -> bool {
    if list.len() < list.capacity() {
        list.push(value);
        return true;
    }
    push_slowly(list, value)
}

#[cold]
#[inline(never)]
fn push_slowly<T>(list: &mut Vec<T>, value: T) -> bool {
    if list.try_reserve(1).is_ok() && list.len() < list.capacity() {
        list.push(value);
        return true;
    }
    lack::note();
    false
}

/// Adds an element at a position; false if there is no memory for it. The list must be that long.
pub(crate) fn insert<T>(list: &mut Vec<T>, at: usize, value: T) -> bool {
    if !push(list, value) {
        return false;
    }
    if let Some(tail) = list.get_mut(at..).filter(|tail| !tail.is_empty()) {
        tail.rotate_right(1);
    }
    true
}

/// Removes an element; the ones after it move.
pub(crate) fn remove<T>(list: &mut Vec<T>, at: usize) -> Option<T> {
    list.get_mut(at..).filter(|tail| !tail.is_empty())?.rotate_left(1);
    list.pop()
}

/// Removes an element; the last one takes its place.
#[inline]
pub(crate) fn swap_remove<T>(list: &mut Vec<T>, at: usize) -> Option<T> {
    if at < list.len() { Some(list.swap_remove(at)) } else { None }
}

/// A list with room for some elements; without it if there is no memory.
pub(crate) fn with_capacity<T>(capacity: usize) -> Vec<T> {
    let mut list = Vec::new();
    if list.try_reserve_exact(capacity).is_err() {
        lack::note();
    }
    list
}

/// Some equal elements; none if there is no memory.
pub(crate) fn filled<T: Copy>(length: usize, value: T) -> Vec<T> {
    let mut list = Vec::new();
    if list.try_reserve_exact(length).is_err() {
        lack::note();
        return list;
    }
    list.resize(length, value);
    list
}

/// The elements of an iterator, as far as memory allows.
pub(crate) fn collected<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut list = Vec::new();
    for item in items {
        if !push(&mut list, item) {
            break;
        }
    }
    list
}

/// Sorts in place, without memory and without a comparison that could panic: a heap sort, which the few short lists
/// that steps sort can afford.
pub(crate) fn sort_by_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    let length = list.len();
    for root in (0..length / 2).rev() {
        sift(list, root, &key);
    }
    for end in (1..length).rev() {
        swap(list, 0, end);
        if let Some(heap) = list.get_mut(..end) {
            sift(heap, 0, &key);
        }
    }
}

/// Moves an element down until none below it is larger.
fn sift<T, K: Ord>(heap: &mut [T], mut root: usize, key: &impl Fn(&T) -> K) {
    loop {
        let at = |at: usize| heap.get(at).map(key);
        let (left, right) = (2 * root + 1, 2 * root + 2);
        let Some(mut large) = at(left) else { return };
        let mut child = left;
        if let Some(other) = at(right)
            && other > large
        {
            (child, large) = (right, other);
        }
        if at(root).is_none_or(|root| root >= large) {
            return;
        }
        swap(heap, root, child);
        root = child;
    }
}

fn swap<T>(list: &mut [T], a: usize, b: usize) {
    if a < list.len() && b < list.len() {
        list.swap(a, b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn lists_are_sorted() {
        for length in 0..40_u64 {
            let mut list: Vec<u64> = (0..length).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58).collect();
            let mut expected = list.clone();
            expected.sort_unstable();
            sort_by_key(&mut list, |n| *n);
            assert_eq!(list, expected);
        }
    }

    #[test]
    fn positions_outside_a_list_change_nothing() {
        let mut list = vec![1, 2, 3];
        assert_eq!(remove(&mut list, 3), None);
        assert_eq!(swap_remove(&mut list, 7), None);
        assert_eq!(list, [1, 2, 3]);
        assert!(insert(&mut list, 1, 9));
        assert_eq!((remove(&mut list, 0), swap_remove(&mut list, 0)), (Some(1), Some(9)));
        assert_eq!(list, [3, 2]);
        assert_eq!(filled(3, 7), [7, 7, 7]);
        assert_eq!(collected(0..3), [0, 1, 2]);
        assert!(!take_lack());
    }
}
