//! What an observer of a [`super::Checker`] receives: every change of an entry's state, and every barrier and TLBI that
//! did not count for an unclean entry, with the reason.

use super::attributes::LiveChange;
use super::descriptor::Format;
use super::memory::Table;
use super::rights::Rights;
use super::tree::TreeKind;
use super::unclean::Progress;

/// A change of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A live entry was made invalid; its old value.
    Invalidated {
        /// The value that TLBs may still contain.
        old: u64,
    },
    /// A barrier or TLBI counted.
    Advanced(Progress),
    /// The old value is gone from every TLB.
    Cleaned,
    /// A clean entry was made valid.
    MadeValid,
    /// A live entry was changed in place, which needed no break, or written again with its value.
    Rewritten(LiveChange),
    /// A change in place of a live entry: TLBs may grant the rights that it lost, or hold it in another size.
    Stale {
        /// The first value that TLBs may contain.
        old: u64,
        /// The rights.
        lost: Rights,
        /// The table entry above it that changed instead of itself.
        above: Option<u64>,
    },
    /// A barrier or TLBI counted for a stale entry.
    StaleAdvanced(Progress),
    /// TLBs contain nothing but the entry's value.
    Fresh,
    /// An invalid entry got a different invalid value.
    RewrittenInvalid,
    /// A rule was broken; checking continued as if the entry were in this state.
    Forced {
        /// Whether it is valid now.
        is_valid: bool,
    },
}

/// A change of all entries of a table, or of one entry if a table was entered in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableChange {
    /// It became part of a tree.
    Entered,
    /// It left its tree.
    Left,
    /// An entry above it is being removed.
    Frozen,
}

/// Why a barrier or TLBI did not count for an unclean entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Miss {
    /// The thread does not have the lock of the entry's root, or the entry belongs to another thread.
    NotLocked,
    /// The thread is not the one that invalidated the entry.
    OtherThread,
    /// The thread neither wrote the live entry nor has the lock of its root.
    OtherWriter,
    /// A DSB of loads, or one of stores only where a full one is needed.
    WeakBarrier,
    /// A barrier for one core only.
    LocalBarrier,
    /// The barrier is not needed at this point: no TLBI since the last one.
    NoTlbiBefore,
    /// The TLBI is not broadcast.
    NotBroadcast,
    /// The TLBI is for the other stage.
    WrongStage,
    /// The TLBI drops stage 1 only, but stage 2 must come first.
    StageOneOnly,
    /// The TLBI drops stage 2 again; combined entries need a TLBI of stage 1 now.
    StageTwoAgain,
    /// No DSB since the write (or since the TLBI of stage 2).
    NoBarrierBefore,
    /// The TLBI names another VMID or ASID.
    WrongId,
    /// The TLBI names another address.
    WrongAddress,
    /// A TLBI by address does not drop what was below a table.
    TableByAddress,
    /// The TLBI is for another level.
    WrongLevel,
    /// The TLBI drops what TLBs hold of one address or ASID of stage 1 only.
    PartOfStageOne,
    /// The TLBI or DSB with nXS does not wait for accesses by the entry.
    XsAccesses,
    /// The TLBI's range has pages of another granule.
    WrongGranule,
    /// The TLBI is for the last level, and leaves what TLBs hold of the tables above.
    TableAbove,
    /// The TLBI is not modelled: what it drops is not known.
    NotModelled,
    /// A TLBI counted already; a DSB is missing.
    AlreadyDone,
}

/// An observer.
pub trait Watch {
    /// False when nothing is reported, so that reporting costs nothing.
    const IS_ON: bool;

    /// False when the observer has no use for misses of threads without the lock, which are found by looking at every
    /// unclean entry.
    const HEARS_UNLOCKED: bool = Self::IS_ON;

    /// An entry changed.
    fn change(&mut self, _cell: u64, _change: Change) {}

    /// A step did not count for an unclean entry.
    fn miss(&mut self, _cell: u64, _miss: Miss) {}

    /// A plain write of a thread was authorized only by the thread's last DSB.
    fn relied(&mut self, _thread: u32) {}

    /// Entries of a table changed: all of them, or the one given.
    fn table(&mut self, _page: u64, _entry: Option<usize>, _table: &TablePlace, _change: TableChange) {}
}

impl Watch for () {
    const IS_ON: bool = false;
}

/// The place of an entry in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TablePlace {
    /// Base of the root.
    pub root: u64,
    /// 1 or 2.
    pub stage: u8,
    /// What the tree translates.
    pub kind: TreeKind,
    /// -1 to 3.
    pub level: i8,
    /// First input address of the table's or entry's range.
    pub input: u64,
    /// The entry that points at the table; `None` for a root.
    pub parent: Option<u64>,
    /// The layout of its descriptors.
    pub format: Format,
}

impl TablePlace {
    /// Bytes of input addresses that an entry covers.
    pub fn entry_bytes(&self) -> u64 {
        self.format.entry_bytes(self.level)
    }
}

impl From<Table> for TablePlace {
    fn from(table: Table) -> Self {
        let parent = (table.parent != super::memory::NOWHERE).then_some(table.parent);
        Self {
            root: table.root,
            stage: table.stage(),
            kind: table.kind,
            level: table.level,
            input: table.input,
            parent,
            format: table.format,
        }
    }
}
