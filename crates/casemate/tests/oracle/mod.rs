//! An independent, slow model of the break-before-make checker, a generator of traces for it, and the comparison of
//! any other checker with it.
//!
//! The model is written from section 2 of the format's document alone: plain maps, whole-tree walks, nothing cached but
//! what the document says is cached. It shares only the reader and the record types with the crate.
//!
//! * [`Step`]: one record, owned. [`read`] makes them from a trace in any spelling.
//! * [`Options`]: both rule sets, every quirk a switch. [`QUIRKS`] lists the switches with a reference each.
//! * [`verdict`], [`final_state`], [`wrong_reads`]: what the model says.
//! * [`generate::trace`]: a seed to a trace; [`spell`] writes it.
//! * [`compare`], [`compare_states`]: a checker against the model over many seeds; a difference is shrunk and printed.

#![allow(dead_code, reason = "the engine's own tests use what the oracle's do not")]

mod barrier;
mod compare;
mod descriptor;
pub(crate) mod generate;
mod memory;
mod model;
mod options;
mod registers;
mod spell;
mod step;
mod tables;
mod verdict;

pub(crate) use compare::{compare, compare_states, options_of, shrink};
pub(crate) use options::{Options, QUIRKS};
pub(crate) use spell::{SPELLINGS, spell};
pub(crate) use step::{Step, read};
pub(crate) use verdict::{MESSAGES, Verdict, final_state, verdict, wrong_reads};
