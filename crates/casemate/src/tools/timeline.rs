//! `casemate timeline`: each change of an entry's state with record, thread and source line.

use std::collections::BTreeSet;

use anytrace_core::{Error, Input, OpenOptions, Sink};
use serde_json::{Value, json};

use super::history::{Event, Filter, Notes, Where};
use super::render;
use crate::model::{Checker, Options};
use crate::reader::{Item, Reader};

/// Which entries.
#[derive(Debug, Clone)]
pub enum Of {
    /// The entries at these addresses, with barriers and TLBIs that did not count.
    Locations(Vec<u64>),
    /// Every entry that becomes unclean.
    AllUnclean,
}

/// Visits each event in order of the trace; memory does not grow with events. The checker goes on after violations.
///
/// # Errors
/// I/O, and what the sink or the visitor returns.
pub fn timeline(
    input: Input,
    open: &OpenOptions,
    options: Options,
    of: &Of,
    sink: &mut dyn Sink,
    mut visit: impl FnMut(&Event) -> Result<(), Error>,
) -> Result<(), Error> {
    let filter = match of {
        Of::Locations(cells) => Filter::Cells(cells.iter().map(|cell| cell & !7).collect::<BTreeSet<_>>()),
        Of::AllUnclean => Filter::Unclean,
    };
    let mut checker = Checker::with_watch(Options { goes_on: true, ..options }, Notes::new(filter));
    Reader::new(input, open).for_each(sink, |item, place| {
        let Item::Record(record) = item else { return Ok(()) };
        checker.step(record.thread, &record.transition);
        if checker.watch.step.is_empty() {
            return Ok(());
        }
        for (cell, what) in std::mem::take(&mut checker.watch.step) {
            visit(&Event { cell, what, at: Where::of(record, place.seq) })?;
        }
        Ok(())
    })
}

/// One line for people.
pub fn event_text(event: &Event) -> String {
    let state = event.what.state().map_or(String::new(), |state| format!(" [{state}]"));
    format!("{:#x}: {}: {}{state}\n", event.cell, event.at.words(), event.what.words())
}

/// For programs.
pub fn event_json(event: &Event) -> Value {
    json!({
        "location": render::hex(event.cell),
        "index": event.at.index,
        "record_id": event.at.id,
        "thread": event.at.thread,
        "src": event.at.source,
        "state": event.what.state(),
        "what": event.what.words(),
        "record": event.at.text,
    })
}
