//! Emits a trace as spans for any engine or output.

use anytrace_core::span::{SpanSource, TimeUnit, Track};
use anytrace_core::text::shown;
use anytrace_core::{Error, Sink, SpanSink, Summary};

use super::collect::{Collected, Home, collect};
use super::emit::Emitter;
use crate::model::names::{NameNumber, UNNAMED};
use crate::model::session::Session;
use crate::rules;
use crate::wire::reader::Reader;
use crate::wire::record::NAME;

/// Emits a trace.
pub(crate) fn emit(
    reader: Reader,
    distinct_max: usize,
    out: &mut dyn SpanSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let wanted = (out.wants_attributes(), out.wants_arrows());
    let Collected { session, sorter, rows, start, is_full, summary } = collect(reader, distinct_max, wanted, sink)?;
    if is_full {
        sink.report(rules::LIMIT.at(0))?;
    }
    let (unit, origin) = (TimeUnit::Nanoseconds, start.unwrap_or(0));
    out.source(&SpanSource { format: NAME, unit, origin, epoch_ns: None, uptime: None })?;
    for (id, name) in (0..).zip(session.names.all()) {
        out.name(id, name, None)?;
    }
    let mut emitter = Emitter::new(out);
    let mut row = None;
    sorter.each(&mut |item, bytes| {
        if row != Some(item.row) {
            emitter.end_row()?;
            // Each row has an item, so that rows are announced in order.
            if let Some((home, name)) = rows.get(item.row as usize) {
                emitter.out.track(item.row, &track(*home, *name, &session))?;
            }
            emitter.track = item.row;
            row = Some(item.row);
        }
        emitter.item(item, bytes)
    })?;
    emitter.end_row()?;
    Ok(summary)
}

fn track(home: Home, first: NameNumber, session: &Session) -> Track {
    let name = |number: NameNumber| {
        (number != UNNAMED).then(|| shown(session.names.get(number)).into_owned()).filter(|name| !name.is_empty())
    };
    let process_name = |process: u64| session.processes.get(&process).and_then(|number| name(*number));
    match home {
        Home::Thread((process, thread)) => Track {
            process,
            thread,
            lane: 0,
            name: session.threads.get(&thread).and_then(|(number, _)| name(*number)),
            process_name: process_name(process),
            is_task: false,
        },
        Home::Async(process, id) => Track {
            process,
            thread: id,
            lane: 0,
            name: name(first),
            process_name: process_name(process),
            is_task: true,
        },
        Home::Processor(number) => Track {
            process: 0,
            thread: number,
            lane: 0,
            name: Some(format!("processor {number}")),
            process_name: Some("processors".to_owned()),
            is_task: true,
        },
    }
}
