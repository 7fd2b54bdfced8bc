//! The records at which a trace relies on lost rights: memory gets another owner.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use crate::rights::Rights;
use crate::unclean::Progress;

/// How memory gets another owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handover {
    /// It becomes a table of a tree.
    Table,
    /// `mem-init`: it is prepared as memory of tables.
    Initialised,
    /// `set_owner_root`: it is assigned to a tree.
    OwnerRoot,
    /// A block or page of another root of stage 2 maps it.
    Mapped {
        /// The root.
        root: u64,
    },
}

/// What a trace relies on too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaleUse {
    /// The first address of the memory that gets another owner.
    pub memory: u64,
    /// How it gets one.
    pub handover: Handover,
    /// What TLBs may still grant.
    pub lost: Rights,
    /// The first value that TLBs may contain.
    pub old: u64,
    /// The value of the entry.
    pub new: u64,
    /// How far the maintenance has come.
    pub progress: Progress,
    /// 1 or 2.
    pub stage: u8,
    /// The table entry above it that changed and took the rights, if the entry has not lost them by a change of itself.
    pub above: Option<u64>,
}

impl StaleUse {
    /// For people: `page 0x80000000 becomes a table`.
    pub fn words(&self) -> String {
        let what = match self.handover {
            Handover::Table => "becomes a table".to_owned(),
            Handover::Initialised => "is initialized as memory for tables".to_owned(),
            Handover::OwnerRoot => "is assigned to a tree".to_owned(),
            Handover::Mapped { root } => format!("is mapped by root {root:#x}"),
        };
        format!("memory at {:#x} {what}", self.memory)
    }
}

/// Memory that gets another owner in the current step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) handover: Handover,
    /// What became stale later is none of its business.
    pub(super) before: u64,
}
