//! An independent, slow model of the break-before-make checker, a generator of traces for it, and the comparison of
//! any other checker with it.
//!
//! The model is written from section 2 of the format's document alone: plain maps, complete tree walks, nothing cached
//! except what the document says is cached. It shares only the reader and the record types with the crate.
//!
//! * [`Step`]: one record, owned. [`read`] makes them from a trace in any spelling.
//! * [`Options`]: both rule sets, every quirk a switch. [`QUIRKS`] lists the switches with a reference each.
//! * [`verdict`], [`final_state`], [`wrong_reads`]: the model's results.
//! * [`generate::trace`]: a seed to a trace; [`spell`] writes it.
//! * [`compare`], [`compare_states`]: a checker against the model over many seeds; a difference is shrunk and printed.

//! # Where section 2 leaves a choice
//!
//! The corpus decides none of these points; each line states the model's behavior.
//!
//! * `locked` (2.5): for an entry with a thread owner only that thread counts, not the lock's holder.
//! * Geometry (2.2): the size is judged first, then the granule, then concatenation.
//! * A root that both base registers name (blind lookup, 2.7): the root's stage says whose current root changes, the old
//!   one's count included.
//! * A released slot keeps its id for the comparison with slot 0 (2.6), and 0 when no slot was ever used.
//! * A walk for an entry (`children_clean`, 2.3) continues to the end, and its breaches count.
//! * `mem-set` and `page` writes are no `mem-write` in walks: those see the old values. A `page` write is 512 plain ones.
//! * A negative thread owner means no owner. A lock at address 0 means no lock.
//! * An unaligned `mem-write` is the write of its word in every respect.
//! * `mem-set` takes the low byte of its value. With `mem-set-word` off, each word that a step of 8 bytes from the
//!   address reaches is written, aligned or not.
//! * Ranges end at the top of the address space. `mem-free` of nothing does nothing.
//! * Registers of EL1&0's stage 1 and `ttbr1_el2`, names in no table: counted as doubts.
//! * `osh` is `ish`; `oshst` and `st` are `ishst`; `nshst` and `nshld` are `nsh`; other loads-only kinds move no entry,
//!   but restore authorization as every DSB does. TLBI operations without `is` are their twins, not broadcast.
//! * A page counts for the 8192 once `mem-init`, `set_owner_root` or a write under `-I` touched it.
//! * Concatenated tables (sound): 16 or fewer start entries always mean as many tables one level down; SL0 is not read.
//! * Entries changed in place (sound): `pending`. Changes of size with FEAT_BBM: `sizes`.
//! * TTL (sound): bits 3:2 are 0 for no hint, 1 for the granule in use; the seed's `(level l)` therefore hints nothing.

#![allow(dead_code, reason = "the engine's own tests use what the oracle's do not")]

mod barrier;
mod compare;
mod descriptor;
pub(crate) mod generate;
mod groups;
mod identifiers;
mod limits;
mod maintenance;
pub(crate) mod memory;
pub(crate) mod model;
mod options;
mod pending;
mod registers;
mod sizes;
mod spell;
mod step;
mod tables;
mod verdict;

pub(crate) use compare::{compare, compare_states, compare_states_of, options_of, shrink};
pub(crate) use options::{Options, QUIRKS};
pub(crate) use spell::{SPELLINGS, spell};
pub(crate) use step::{Step, read};
#[allow(unused_imports, reason = "only the comparison with the engine names it")]
pub(crate) use verdict::State;
pub(crate) use verdict::{MESSAGES, Verdict, final_state, verdict, wrong_reads};
