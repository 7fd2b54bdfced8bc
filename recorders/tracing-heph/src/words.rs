//! Bytes as words of shared memory.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a word.
pub(crate) const WORD: usize = 8;

/// Stores bytes, the last word filled up with zeros.
#[inline]
pub(crate) fn store(words: &[AtomicU64], bytes: &[u8]) {
    let (full, rest) = bytes.as_chunks::<WORD>();
    for (word, bytes) in words.iter().zip(full) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    if let (Some(word), false) = (words.get(full.len()), rest.is_empty()) {
        let mut last = [0; WORD];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        word.store(u64::from_ne_bytes(last), Ordering::Relaxed);
    }
}
