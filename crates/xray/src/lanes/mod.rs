//! The trace in the terms of the engines, as spans, and as tables.

pub(crate) mod blocks;
pub(crate) mod calls;
pub(crate) mod follow;
pub(crate) mod marks;
pub(crate) mod names;
pub(crate) mod ordered;
pub(crate) mod part;
mod row_groups;
pub(crate) mod spans;
pub(crate) mod state;
pub(crate) mod tables;
