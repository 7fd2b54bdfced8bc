//! What `tracing-heph` says of an event's span: its number, its parent's, which poll it is.
//!
//! The attributes are the first of the event, in this order, those left out that say nothing. Numbers are from 1 and unique
//! in a session, whichever thread polls. A run on a thread and the life of a span (a substream with the bit
//! [`LIFE`](crate::wire::dialect::LIFE)) have the same number: they are two views of one time.

use anytrace_core::hash::Map;

use crate::wire::record::{Attributes, Value};

/// Names of the attributes.
pub(crate) const SPAN: &str = "span.id";
pub(crate) const PARENT: &str = "span.parent";
pub(crate) const POLL: &str = "span.poll";

/// The span that an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ids {
    /// The event's own span; 0 for a point.
    pub(crate) span: u64,
    /// The span around it; 0 for a root.
    pub(crate) parent: u64,
    /// How often the span was entered before.
    pub(crate) poll: u64,
}

impl Ids {
    /// Those of an event, if it has any.
    #[inline]
    pub(crate) fn of(attributes: Attributes<'_>) -> Option<Self> {
        let mut ids = Self::default();
        for attribute in attributes {
            match (attribute.name, attribute.value) {
                (SPAN, Value::Unsigned(number)) if ids == Self::default() => ids.span = number,
                (PARENT, Value::Unsigned(number)) if ids.parent == 0 => ids.parent = number,
                (POLL, Value::Unsigned(number)) if ids.span != 0 => ids.poll = number,
                _ => break,
            }
        }
        (ids != Self::default()).then_some(ids)
    }
}

/// Bits of a page.
const PAGE: u64 = 4096;

/// Most pages: 268 million spans, 32 MiB.
const PAGES_MAX: usize = 1 << 16;

/// The spans that were entered more than once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repolled {
    pages: Map<u64, Box<[u64; (PAGE / 64) as usize]>>,
}

impl Repolled {
    pub(crate) fn add(&mut self, span: u64) {
        let page = span / PAGE;
        if self.pages.len() >= PAGES_MAX && !self.pages.contains_key(&page) {
            return;
        }
        let page = self.pages.entry(page).or_insert_with(|| Box::new([0; (PAGE / 64) as usize]));
        if let Some(word) = page.get_mut((span % PAGE / 64) as usize) {
            *word |= 1 << (span % 64);
        }
    }

    #[inline]
    pub(crate) fn contains(&self, span: u64) -> bool {
        let word = self.pages.get(&(span / PAGE)).and_then(|page| page.get((span % PAGE / 64) as usize));
        word.is_some_and(|word| word >> (span % 64) & 1 != 0)
    }
}

/// Spans of a page of [`Ancestors`].
const SPANS: u64 = 4096;

/// Most such pages: 64 million spans, half a GiB.
const SPAN_PAGES_MAX: usize = 1 << 14;

/// Names and parents of spans.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ancestors {
    /// Name and parent, each plus one where it is known.
    pages: Map<u64, Box<[(u32, u32)]>>,
}

impl Ancestors {
    pub(crate) fn add(&mut self, span: u64, name: u32, parent: u64) {
        let page = span / SPANS;
        if self.pages.len() >= SPAN_PAGES_MAX && !self.pages.contains_key(&page) {
            return;
        }
        let page = self.pages.entry(page).or_insert_with(|| vec![(0, 0); SPANS as usize].into());
        if let Some(entry) = page.get_mut((span % SPANS) as usize) {
            *entry = (name.saturating_add(1), u32::try_from(parent).unwrap_or(0));
        }
    }

    /// Name and parent of a span; the parent is 0 if there is none. In a forged trace a chain of parents may have no end.
    pub(crate) fn get(&self, span: u64) -> Option<(u32, u64)> {
        let &(name, parent) = self.pages.get(&(span / SPANS))?.get((span % SPANS) as usize)?;
        Some((name.checked_sub(1)?, parent.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_are_found() {
        let mut all = Ancestors::default();
        all.add(4097, 3, 12);
        all.add(12, 0, 0);
        all.add(20, 1, 20);
        assert_eq!(
            [4097, 12, 20, 13, 9000].map(|span| all.get(span)),
            [Some((3, 12)), Some((0, 0)), Some((1, 20)), None, None]
        );
    }

    #[test]
    fn a_set_of_spans_has_what_was_added() {
        let mut set = Repolled::default();
        let all = [1, 63, 64, 4095, 4096, u64::MAX];
        all.iter().for_each(|span| set.add(*span));
        assert!(all.iter().all(|span| set.contains(*span)));
        assert!([0, 2, 62, 65, 4094, 4097, u64::MAX - 1].iter().all(|span| !set.contains(*span)));
    }
}
