//! One line of a tree: what the builder finds and the printer prints.

use crate::lanes::actors::Actor;
use crate::lanes::collect::Facts;
use crate::lanes::event::Sorted;
use crate::lanes::names::Names;

/// Data for the lines of the tree.
#[derive(Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) names: &'a Names,
    pub(super) facts: &'a Facts,
}

/// One span to print.
pub(super) struct Line<'a> {
    pub(super) event: &'a Sorted<'a>,
    pub(super) description: &'a [u8],
    /// Description and record of the enclosing span.
    pub(super) parent: Option<(&'a [u8], u64)>,
    pub(super) overlaps: Option<&'a [u8]>,
    pub(super) depth: u32,
    pub(super) is_parent_unknown: bool,
    pub(super) actor: Option<Actor<'a>>,
}
