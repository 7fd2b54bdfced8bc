//! `casemate timeline`: each change of an entry's state with record, thread and source line.

use std::collections::BTreeSet;

use anytrace_core::{Error, Input, OpenOptions, Sink};
use serde_json::{Value, json};

use super::history::{Event, Filter, Notes, What, Where};
use super::render;
use crate::model::{Checker, Options};
use crate::wire::walk::{Item, Walk as Reader};

/// Selects entries.
#[derive(Debug, Clone)]
pub enum Of {
    /// The entries at these addresses, with barriers and TLBIs that did not count.
    Locations(Vec<u64>),
    /// Every entry that becomes unclean.
    AllUnclean,
}

/// Visits each event in order of the trace; memory does not grow with events. The checker continues after violations.
///
/// # Errors
/// I/O errors, and whatever the sink or the visitor returns.
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
    Reader::new(input, open)?.for_each(sink, |item, place| {
        let Item::Record(record) = item else { return Ok(()) };
        let found = checker.step(record.thread, &record.transition).iter().find(|found| found.is_error());
        let broken = found.and_then(|found| Some((found.location?, found.breach.message)));
        if let Some((location, message)) = broken
            && is_wanted(of, location)
            && checker.cell(location).is_some()
        {
            visit(&Event { cell: location, what: What::Violation(message), at: Where::of(record, place.seq) })?;
        }
        if checker.watch.step.is_empty() {
            return Ok(());
        }
        for (cell, what) in std::mem::take(&mut checker.watch.step) {
            visit(&Event { cell, what, at: Where::of(record, place.seq) })?;
        }
        Ok(())
    })
}

fn is_wanted(of: &Of, location: u64) -> bool {
    match of {
        Of::Locations(cells) => cells.iter().any(|cell| cell & !7 == location),
        Of::AllUnclean => true,
    }
}

/// One line for people.
pub fn event_text(event: &Event) -> String {
    let state = event.what.state().map_or(String::new(), |state| format!(" [{state}]"));
    format!("{:#x}: {}: {}{state}\n", event.cell, event.at.words(), event.what.words())
}

/// One JSON object for programs.
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

#[cfg(test)]
mod tests {
    use anytrace_core::Collect;

    use super::*;

    const LOG: &str = "(mem-init 1 0 1000 1000)(hint 2 0 set_root_lock 1000 90000)(sysreg-write 3 0 vtcr_el2 2b)\
                       (sysreg-write 4 0 vttbr_el2 1000)(lock 5 0 90000)(mem-write 6 0 release 1008 0)\
                       (mem-write 7 0 release 1008 50003)(mem-write 8 0 release 1008 0)(barrier 9 0 dsb ish)\
                       (mem-write 10 0 release 1008 51003)";

    fn run(of: &Of) -> Vec<String> {
        let mut lines = Vec::new();
        let input = Input::from_bytes("t", LOG.as_bytes().to_vec());
        timeline(input, &OpenOptions::default(), Options::ARCHITECTURE, of, &mut Collect::default(), |event| {
            lines.push(format!("{} {}", event.at.id, event.what.state().unwrap_or("-")));
            Ok(())
        })
        .unwrap();
        lines
    }

    #[test]
    fn each_change_is_reported_at_its_record_and_a_violation_before_assumed_changes() {
        assert_eq!(
            run(&Of::Locations(vec![0x1008])),
            ["4 -", "6 -", "7 V", "8 IU n", "9 IU d", "10 -", "10 I", "10 V"]
        );
        assert_eq!(run(&Of::AllUnclean), ["6 -", "7 V", "8 IU n", "9 IU d", "10 -", "10 I", "10 V"]);
        assert_eq!(run(&Of::Locations(vec![0x1010])), ["4 -"]);
    }
}
