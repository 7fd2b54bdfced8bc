//! The pages of the memory: each has a place of its own, so that their list can grow without moving them.

use alloc::vec::Vec;

use super::Page;
use crate::room;

/// Pages by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pages(Vec<Vec<Page>>);

impl Pages {
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&Page> {
        self.0.get(at)?.first()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut Page> {
        self.0.get_mut(at)?.first_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Page> {
        self.0.iter().flatten()
    }

    pub(super) fn push(&mut self, page: Page) -> bool {
        let mut place = room::with_capacity(1);
        room::push(&mut place, page) && room::push(&mut self.0, place)
    }
}
