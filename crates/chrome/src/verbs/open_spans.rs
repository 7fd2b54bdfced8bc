//! The spans that are open at a place of the file, in the order of the file: what joins beginnings and ends.

use anytrace_core::Place;
use anytrace_core::hash::Map;

use crate::wire::event::{Event, Id, digest, owner};
use crate::wire::record::{Kind, Record};

/// Most spans that are followed at once.
const OPEN_MAX: usize = 1 << 20;

/// What an event does to the spans of its thread or id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Begins one of this key.
    Begin(u64),
    /// Ends the innermost of this key.
    End(u64),
    /// Neither, or an asynchronous one without an id.
    Other,
}

impl Role {
    pub(super) fn of(record: &Record<'_>, event: &Event<'_>) -> Self {
        match event.kind {
            Kind::Begin => Self::Begin(thread_key(event)),
            Kind::End => Self::End(thread_key(event)),
            Kind::AsyncBegin | Kind::AsyncStart => owner(record, event).map_or(Self::Other, Self::Begin),
            Kind::AsyncEnd | Kind::AsyncFinish => owner(record, event).map_or(Self::Other, Self::End),
            _ => Self::Other,
        }
    }
}

/// A number for a thread.
pub(super) fn thread_key(event: &Event<'_>) -> u64 {
    let bytes = |id: Id<'_>| match id {
        Id::Number(number) => (b"n", number.to_le_bytes().to_vec()),
        Id::Text(text) => (b"t", text.to_vec()),
    };
    let ((kind, process), (other, thread)) = (bytes(event.process), bytes(event.thread));
    digest(&[b"thread", kind, &process, other, &thread])
}

/// A span that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenSpan {
    pub(super) seq: u64,
    pub(super) offset: u64,
    pub(super) time_ns: i64,
    /// Of its raw name; `None` where it has none.
    pub(super) name: Option<u64>,
    pub(super) is_wanted: bool,
}

/// Open spans by key.
#[derive(Debug, Default)]
pub(super) struct OpenSpans {
    stacks: Map<u64, Vec<OpenSpan>>,
    count: usize,
    /// Spans that were not followed: there were too many.
    pub(super) left_out: u64,
}

impl OpenSpans {
    pub(super) fn begin(&mut self, key: u64, record: &Record<'_>, event: &Event<'_>, at: Place, is_wanted: bool) {
        if self.count >= OPEN_MAX {
            self.left_out += 1;
            return;
        }
        let name = record.name.map(|name| digest(&[name]));
        let span = OpenSpan { seq: at.seq, offset: at.offset, time_ns: event.start.ns, name, is_wanted };
        self.stacks.entry(key).or_default().push(span);
        self.count += 1;
    }

    /// The innermost span of a key, which ends.
    pub(super) fn end(&mut self, key: u64) -> Option<OpenSpan> {
        let stack = self.stacks.get_mut(&key)?;
        let span = stack.pop();
        if stack.is_empty() {
            self.stacks.remove(&key);
        }
        self.count -= usize::from(span.is_some());
        span
    }

    /// Forgets the spans of a key.
    pub(super) fn forget(&mut self, key: u64) {
        self.count -= self.stacks.remove(&key).map_or(0, |stack| stack.len());
    }

    /// What is open at the end, in the order of the file.
    pub(super) fn rest(&mut self) -> Vec<OpenSpan> {
        let mut rest: Vec<_> = std::mem::take(&mut self.stacks).into_values().flatten().collect();
        rest.sort_unstable_by_key(|span| span.seq);
        rest
    }
}
