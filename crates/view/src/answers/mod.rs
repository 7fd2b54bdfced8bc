//! Answers to the page.

mod arrows;
mod attributes;
mod call_pictures;
mod counter;
mod explain;
mod export;
mod flame;
mod memory;
mod page;
mod pictures;
mod rows;
mod search;
mod section;
mod selection;
mod slice;
pub(crate) mod sql;
mod tables;
mod tiles;
mod trace;

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{MutexGuard, TryLockError};
use std::time::Duration;

use serde_json::Value;

use crate::axis::{Axis, EXACT_MAX};
use crate::http::Parameters;
pub(crate) use crate::problem::Problem;
use crate::view::View;

/// How often an answer looks whether it is its turn.
const TURN_LOOK: Duration = Duration::from_millis(5);

/// An answer.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A value for the page.
    Json(Value),
    /// Bytes of a type.
    Bytes(&'static str, Vec<u8>),
    /// Bytes of the program itself.
    Static(&'static str, &'static [u8]),
    /// Nothing is new.
    Nothing,
    /// A file to be stored.
    Attachment {
        /// Its type.
        kind: &'static str,
        /// The name that is proposed.
        name: String,
        /// A temporary file, at its start.
        file: File,
    },
}

/// An answer that is being computed.
pub(crate) struct Work<'a> {
    pub(crate) view: &'a View,
    /// Nobody waits for it any more.
    pub(crate) cancelled: &'a AtomicBool,
    /// By how much each file is moved on the axis; those beyond the last are not.
    pub(crate) offsets: Vec<f64>,
}

impl<'a> Work<'a> {
    /// Work on a view, with the `offsets` of a request: numbers without a fraction, with commas between them.
    pub(crate) fn new(view: &'a View, cancelled: &'a AtomicBool, parameters: &Parameters) -> Result<Self, Problem> {
        let wrong = || Problem::new(400, format!("offsets: expected numbers between -{EXACT_MAX} and {EXACT_MAX}"));
        let read = |one: &str| {
            let number: f64 = if one.is_empty() { 0.0 } else { one.parse().map_err(|_| wrong())? };
            #[expect(clippy::cast_precision_loss, reason = "a power of two")]
            let is_exact = number.abs() <= EXACT_MAX as f64;
            if is_exact { Ok(number.round()) } else { Err(wrong()) }
        };
        let texts = parameters.text("offsets").unwrap_or_default().split(',').take(view.files.len());
        Ok(Self { view, cancelled, offsets: texts.map(read).collect::<Result<_, _>>()? })
    }

    /// How the times of each file lie on the common axis.
    pub(crate) fn axes(&self) -> Vec<Axis> {
        let mut axes = self.view.axes();
        for (axis, offset) in axes.iter_mut().zip(&self.offsets) {
            axis.shift = *offset;
        }
        axes
    }

    /// Waits until no other answer needs much memory. The turn ends with what is returned.
    pub(crate) fn turn(&self) -> Result<MutexGuard<'a, ()>, Problem> {
        loop {
            match self.view.turn.try_lock() {
                Ok(turn) => return Ok(turn),
                Err(TryLockError::Poisoned(turn)) => return Ok(turn.into_inner()),
                Err(TryLockError::WouldBlock) => self.check()?,
            }
            std::thread::sleep(TURN_LOOK);
        }
    }

    /// Ends the work where nobody waits for it.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if self.cancelled.load(Ordering::Relaxed) || self.view.stop_flag().load(Ordering::Relaxed) {
            return Err(Problem::new(503, "nobody waits for this answer"));
        }
        Ok(())
    }
}

/// Answers a request that only reads.
pub(crate) fn get(work: &Work<'_>, name: &str, parameters: &Parameters) -> Result<Reply, Problem> {
    match name {
        "trace" => trace::trace(work, parameters),
        "names" => trace::names(work.view, parameters),
        "tiles" => tiles::tiles(work, parameters),
        "slice" => slice::slice(work, parameters),
        "search" => search::search(work, parameters),
        "selection" => selection::selection(work, parameters),
        "export" => export::export(work, parameters),
        "flame" => flame::flame(work, parameters),
        "arrows" => arrows::arrows(work, parameters),
        "counter" => counter::counter(work, parameters),
        "picture" => pictures::picture(work, parameters),
        "explain" => explain::explain(work, parameters),
        _ => match name.strip_prefix("section/") {
            Some(name) => section::section(work, name),
            None => Err(Problem::new(404, "there is no such address")),
        },
    }
}
