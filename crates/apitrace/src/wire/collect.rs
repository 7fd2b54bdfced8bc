//! What a reader keeps between two calls of `next`: one event, and diagnostics around it.

use anytrace_core::{Error, Passed, Place, Sink, Steps};

use crate::wire::parse::Fresh;
use crate::wire::record::{Event, Token};
use crate::wire::signatures::Signatures;
use crate::wire::visitor::{Context, Visitor};

/// A buffer larger than this is given back after its event.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// How far a reader came with `next`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The header was not read yet.
    #[default]
    Start,
    /// Events follow.
    Events,
    /// The containers' ends were not examined yet.
    End,
    /// Nothing follows.
    Over,
}

/// The state of `next`. Of the steps at most one is a record, and its bytes are those of the collector.
#[derive(Debug, Default)]
pub(crate) struct Pull {
    pub(crate) steps: Steps,
    pub(crate) collector: Collector,
    pub(crate) phase: Phase,
    pub(crate) passed: Passed,
}

impl Pull {
    /// Appends the event that the collector completed, if any.
    pub(crate) fn push_event(&mut self) {
        if let Some(event) = self.collector.event.filter(|_| self.collector.is_complete) {
            self.steps.push(Place { offset: event.offset, seq: event.seq }, &[]);
        }
        self.collector.is_complete = false;
    }
}

/// Collects the bytes of an event.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    pub(crate) bytes: Vec<u8>,
    pub(crate) fresh: Fresh,
    pub(crate) event: Option<Event>,
    /// The bytes are a complete event that is not among the steps yet.
    is_complete: bool,
    pub(crate) bytes_max: u64,
}

impl Collector {
    /// Takes a plain event.
    pub(crate) fn take(&mut self, event: Event, bytes: &[u8]) {
        self.begin();
        self.bytes.extend_from_slice(bytes);
        (self.event, self.is_complete) = (Some(event), true);
    }

    fn begin(&mut self) {
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.fresh.clear();
        self.is_complete = false;
    }
}

impl Visitor for Collector {
    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        if matches!(token, Token::Enter { .. } | Token::Leave { .. }) {
            self.begin();
        }
        if (self.bytes.len() + context.bytes.len()) as u64 > self.bytes_max {
            let (seq, offset) = (context.event.seq, context.event.offset);
            return Err(Error::limit(format!(
                "event {seq} at byte {offset:#x} of the raw stream has more than {} bytes; raise the record limit",
                self.bytes_max
            )));
        }
        self.fresh.follow(token);
        self.bytes.extend_from_slice(context.bytes);
        Ok(())
    }

    fn end(&mut self, event: &Event, _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        (self.event, self.is_complete) = (Some(*event), true);
        Ok(0)
    }
}
