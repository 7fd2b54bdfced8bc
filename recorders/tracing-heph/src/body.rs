//! The encoded description and attributes of a span, and what `tracing` records into them.

use std::error::Error;
use std::fmt::Debug;
use std::ops::Deref;

use heph_encoder::{Buffer, Event, body, body_fmt};
use tracing_core::field::{Field, Visit};
use tracing_core::{Metadata, event, span};

use crate::shown::Shown;

/// Bytes that need no allocation: a name, numbers and a few fields. A longer body goes to the heap entirely.
const INLINE_BYTES: usize = 152;

/// Attributes that come first: the number of a span, of the one around it, and of a run that is not the first.
const SPAN: &str = "span.id";
const PARENT: &str = "span.parent";
const POLL: &str = "span.poll";

/// The target of tokio's events about wakers.
pub(crate) const WAKER_TARGET: &str = "tokio::task::waker";

/// A description and attributes, encoded as in a packet.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    inline: [u8; INLINE_BYTES],
    inline_len: usize,
    /// Everything, as soon as there is something in it.
    heap: Vec<u8>,
}

impl Default for Body {
    #[inline]
    fn default() -> Self {
        Self { inline: [0; INLINE_BYTES], inline_len: 0, heap: Vec::new() }
    }
}

impl Buffer for Body {
    #[inline]
    fn push(&mut self, bytes: &[u8]) -> Result<(), heph_encoder::Error> {
        let end = self.inline_len + bytes.len();
        match self.inline.get_mut(self.inline_len..end) {
            Some(to) if self.heap.is_empty() => {
                to.copy_from_slice(bytes);
                self.inline_len = end;
            }
            _ => self.push_to_heap(bytes),
        }
        Ok(())
    }

    fn truncate(&mut self, len: usize) {
        if self.heap.is_empty() {
            self.inline_len = self.inline_len.min(len);
        } else {
            self.heap.truncate(len);
            // An empty heap means that all is inline.
            self.inline_len = self.heap.len().min(self.inline_len);
        }
    }

    #[inline]
    fn as_mut_bytes(&mut self) -> &mut [u8] {
        if self.heap.is_empty() { self.inline.get_mut(..self.inline_len).unwrap_or_default() } else { &mut self.heap }
    }
}

impl Deref for Body {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        if self.heap.is_empty() { self.inline.get(..self.inline_len).unwrap_or_default() } else { &self.heap }
    }
}

impl From<&[u8]> for Body {
    fn from(bytes: &[u8]) -> Self {
        let mut this = Self::default();
        // A body is never full.
        let _ = this.push(bytes);
        this
    }
}

impl Body {
    #[cold]
    fn push_to_heap(&mut self, bytes: &[u8]) {
        if self.heap.is_empty() {
            self.heap.extend_from_slice(self.inline.get(..self.inline_len).unwrap_or_default());
            self.inline_len = 0;
        }
        self.heap.extend_from_slice(bytes);
    }

    /// A span's name, numbers and fields.
    pub(crate) fn of_span(attributes: &span::Attributes<'_>, shown: Shown, (own, parent): (u64, u64)) -> Self {
        let mut this = Self::default();
        let mut event = body(&mut this, attributes.metadata().name());
        if shown.numbers {
            event.u64(SPAN, own);
            if parent != 0 {
                event.u64(PARENT, parent);
            }
        }
        attributes.record(&mut Fields { event: &mut event, skips_message: false });
        show(&mut event, attributes.metadata(), shown);
        finish(event);
        this
    }

    /// An event's message, the number of the span around it, and its other fields. Without a message, its name, which
    /// contains its source location.
    pub(crate) fn of_event(event: &event::Event<'_>, shown: Shown, around: u64) -> Self {
        let mut message = Message::default();
        event.record(&mut message);
        let skips_message = message.is_found;
        let mut this = message.body;
        let mut fields =
            if skips_message { Event::append(&mut this) } else { body(&mut this, event.metadata().name()) };
        if shown.numbers && around != 0 {
            fields.u64(PARENT, around);
        }
        event.record(&mut Fields { event: &mut fields, skips_message });
        show(&mut fields, event.metadata(), shown);
        finish(fields);
        this
    }

    /// Fields that are recorded after a span was made, without a description.
    pub(crate) fn of_record(values: &span::Record<'_>) -> Self {
        let mut this = Self::default();
        let mut event = Event::append(&mut this);
        values.record(&mut Fields { event: &mut event, skips_message: false });
        finish(event);
        this
    }

    /// Sets fields: those that are there already are replaced.
    pub(crate) fn set(&mut self, news: &Self) {
        let mut rest: &[u8] = news;
        while let Some(attribute) = attribute_bytes(rest).and_then(|bytes| rest.get(..bytes)) {
            self.remove(name_of(attribute));
            rest = rest.get(attribute.len()..).unwrap_or_default();
        }
        let _ = self.push(news);
    }

    /// Adds what only a life has.
    pub(crate) fn life(&mut self, busy_ns: u64, idle_ns: u64, polls: u64, is_open: bool) {
        let mut event = Event::append(self);
        event.u64("busy_ns", busy_ns).u64("idle_ns", idle_ns).u64("polls", polls);
        if is_open {
            event.bool("open", true);
        }
        finish(event);
    }

    /// Adds to a task's wake-up which span the task is.
    pub(crate) fn woken(&mut self, number: u64, is_own: bool) {
        let mut event = Event::append(self);
        event.u64("waker.task", number);
        if is_own {
            event.bool("waker.self", true);
        }
        finish(event);
    }

    /// A span's body with the number of a later run.
    pub(crate) fn of_poll(body: &[u8], poll: u64) -> Self {
        let at = numbers_end(body);
        // A body without numbers stays as it is.
        let Some((first, rest)) = at.and_then(|at| body.split_at_checked(at)) else { return Self::from(body) };
        let mut this = Self::from(first);
        let mut event = Event::append(&mut this);
        event.u64(POLL, poll);
        finish(event);
        let _ = this.push(rest);
        this
    }

    /// Adds the number of a later run.
    pub(crate) fn set_poll(&mut self, poll: u64) {
        *self = Self::of_poll(self, poll);
    }

    /// As much of it as fits into this many bytes: the description and the first attributes, or nothing.
    pub(crate) fn within(&self, bytes: usize) -> &[u8] {
        let mut end = 2 + length_at(self, 0);
        if end > bytes {
            return &[];
        }
        while let Some(more) = self.get(end..).filter(|rest| !rest.is_empty()).and_then(attribute_bytes)
            && end + more <= bytes
        {
            end += more;
        }
        self.get(..end).unwrap_or_default()
    }

    /// Takes an attribute out.
    fn remove(&mut self, name: &[u8]) {
        let mut at = 2 + length_at(self, 0);
        while let Some(bytes) = self.get(at..).and_then(attribute_bytes) {
            if self.get(at..at + bytes).is_some_and(|attribute| name_of(attribute) == name) {
                let all = self.as_mut_bytes();
                let len = all.len() - bytes;
                all.copy_within(at + bytes.., at);
                self.truncate(len);
            } else {
                at += bytes;
            }
        }
    }
}

/// Where the numbers of a span end in its body.
fn numbers_end(body: &[u8]) -> Option<usize> {
    let mut end = None;
    let mut at = 2 + length_at(body, 0);
    for wanted in [SPAN, PARENT] {
        let Some(bytes) = body.get(at..).filter(|rest| name_of(rest) == wanted.as_bytes()).and_then(attribute_bytes)
        else {
            break;
        };
        at += bytes;
        end = Some(at);
    }
    end
}

/// The id of the span of the task that is woken, or whose waker is cloned or dropped.
pub(crate) fn woken(event: &event::Event<'_>) -> Option<u64> {
    #[derive(Default)]
    struct Task(Option<u64>);
    impl Visit for Task {
        fn record_u64(&mut self, field: &Field, value: u64) {
            if field.name() == "task.id" {
                self.0 = Some(value);
            }
        }

        fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
    }
    let mut task = Task::default();
    event.record(&mut task);
    task.0
}

/// A body is never full, and its size is checked with that of the packet.
fn finish(mut event: Event<'_, Body>) {
    let _ = event.finish();
}

fn show(event: &mut Event<'_, Body>, metadata: &Metadata<'_>, shown: Shown) {
    if shown.target {
        event.str("target", metadata.target());
    }
    if shown.level {
        event.str("level", metadata.level().as_str());
    }
    if shown.location {
        if let Some(file) = metadata.file() {
            event.str("file", file);
        }
        if let Some(line) = metadata.line() {
            event.u64("line", u64::from(line));
        }
    }
}

fn length_at(bytes: &[u8], at: usize) -> usize {
    let length = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied();
    usize::from(u16::from_be_bytes(length.unwrap_or_default()))
}

/// How many bytes the first attribute takes, of those `tracing` has: numbers and strings.
fn attribute_bytes(bytes: &[u8]) -> Option<usize> {
    let type_at = 2 + length_at(bytes, 0);
    let value_at = type_at + 1;
    match bytes.get(type_at)? {
        4 => Some(value_at + 2 + length_at(bytes, value_at)),
        _ => Some(value_at + 8),
    }
}

fn name_of(attribute: &[u8]) -> &[u8] {
    attribute.get(2..2 + length_at(attribute, 0)).unwrap_or_default()
}

/// Fields become typed attributes.
struct Fields<'e, 'b> {
    event: &'e mut Event<'b, Body>,
    skips_message: bool,
}

impl Fields<'_, '_> {
    #[inline]
    fn add(&mut self, field: &Field, add: impl FnOnce(&mut Event<'_, Body>, &'static str)) {
        let name = field.name();
        if !(self.skips_message && name == "message") {
            add(self.event, name);
        }
    }
}

impl Visit for Fields<'_, '_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, |event, name| {
            event.f64(name, value);
        });
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, |event, name| {
            event.i64(name, value);
        });
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, |event, name| {
            event.u64(name, value);
        });
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.add(field, |event, name| {
            event.display(name, value);
        });
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.add(field, |event, name| {
            event.display(name, value);
        });
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, |event, name| {
            event.bool(name, value);
        });
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, |event, name| {
            event.str(name, value);
        });
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.add(field, |event, name| {
            event.display(name, WithCauses(value));
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, |event, name| {
            event.display(name, format_args!("{value:?}"));
        });
    }
}

/// An error and what caused it.
struct WithCauses<'e>(&'e (dyn Error + 'static));

impl std::fmt::Display for WithCauses<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut error = self.0;
        while let Some(cause) = error.source() {
            write!(f, ": {cause}")?;
            error = cause;
        }
        Ok(())
    }
}

/// Makes a description of the message, which may be anywhere among the fields.
#[derive(Default)]
struct Message {
    body: Body,
    is_found: bool,
}

impl Visit for Message {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" && !self.is_found {
            self.is_found = true;
            finish(body(&mut self.body, value));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" && !self.is_found {
            self.is_found = true;
            finish(body_fmt(&mut self.body, format_args!("{value:?}")));
        }
    }
}
