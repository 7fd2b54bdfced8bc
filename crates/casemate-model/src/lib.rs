//! The break-before-make checker: feed transitions one by one, get verdicts.
//!
//! A page-table entry that was valid may be in some TLB. Before it gets another valid value it must be made invalid,
//! the write must be complete (DSB), every TLB must drop it (TLBI, broadcast) and that must be complete too (DSB): only
//! then is it *clean*. [`Checker`] follows memory, trees of tables, locks, roots and system registers, and reports
//! which step of which thread breaks that order, or one of the related rules.
//!
//! There are three rule sets and one engine: [`Options::COMPAT`] is what the reference checker does, message for
//! message; [`Options::ARCHITECTURE`], the default, follows the architecture and the trace format's document;
//! [`Options::STRICT`] also rejects changes of a live entry that the architecture allows in place. They differ by
//! [`Quirk`]s, each a switch with a name.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod attributes;
mod bits;
mod breach;
mod checker;
mod descriptor;
mod locks;
mod memory;
mod name;
mod quirk;
mod record;
mod registers;
mod rights;
mod room;
mod roots;
mod rule;
#[cfg(feature = "hosted")]
mod save;
mod sorted;
mod stale;
mod table;
mod tags;
mod threads;
mod tlbi;
mod tree;
mod unclean;
mod view;
mod watch;
#[doc(hidden)]
pub mod words;

pub use attributes::{BbmLevel, FieldChange, LiveChange, Obstacle, may_have_xs};
pub use breach::{BREACH_COUNT, BREACHES, Breach};
pub use checker::{Checker, Handover, Reuse, StaleUse, Violation};
pub use descriptor::{Descriptor, Format, Granule, Start};
pub use name::Name;
pub use quirk::{Options, QUIRKS, Quirk, QuirkRow, Quirks};
pub use record::{AtomicOp, Barrier, Domain, HintKind, Kind, MemoryOrder, Operand, Sysreg, Transition};
pub use rights::Rights;
pub use room::{is_lacking, take_lack};
pub use roots::Root;
pub use rule::{Rule, Severity};
#[cfg(feature = "hosted")]
pub use save::{In, Out};
pub use table::set_seed;
pub use tlbi::{Regime, Stages, TlbiOp, TlbiRange, TlbiScope};
pub use tree::TreeKind;
pub use unclean::Progress;
pub use view::{Cell, CellState, LockView, StaleView, ThreadView, UncleanView};
pub use watch::{Change, Miss, TableChange, TablePlace, Watch};
