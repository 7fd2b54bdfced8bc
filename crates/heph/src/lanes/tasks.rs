//! Which task an event belongs to.

use super::actors::run_of;
use super::layer::Ids;
use crate::wire::dialect::LIFE;
use crate::wire::record::{Event, Value};

// The kinds of tasks, in the order in which they come: a trace that has one has no others.

/// Spans with numbers.
pub(crate) const SPANS: u32 = 0;
/// Actors of Heph's runtime.
pub(crate) const ACTORS: u32 = 1;
/// Substreams.
const SUBSTREAMS: u32 = 2;

/// Home and lane of an event by the task it belongs to, if it belongs to one.
pub(crate) fn task_of(event: &Event<'_>, is_run: bool) -> Option<(u32, u64)> {
    if let Some(ids) = Ids::of(event.attributes()).filter(|ids| ids.span != 0) {
        return Some((SPANS, ids.span));
    }
    let header = &event.header;
    if header.start_ns == header.end_ns {
        let woken = event.attributes().find(|attribute| attribute.name == "waker.task")?;
        let Value::Unsigned(task) = woken.value else { return None };
        return Some((SPANS, task));
    }
    match run_of(event.attributes()).filter(|_| is_run) {
        Some((id, _)) => Some((ACTORS, id)),
        None => Some((SUBSTREAMS, header.substream & !LIFE)).filter(|_| header.substream != 0),
    }
}
