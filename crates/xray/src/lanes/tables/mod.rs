//! The trace as tables: its records, its functions, its calls, its events with payloads.

mod functions;
mod records;

use std::cell::RefCell;

use anytrace_core::index::Part;
use anytrace_core::span::NameId;
use anytrace_core::table::{Column, ColumnType, EVENTS, RowSink, Rows, SPANS, Scan, SpanRows, Table, Values};
use anytrace_core::{Cursor, Error, Sink, SpanOptions, Summary};

use crate::lanes::part;
use crate::wire::basic::{BasicVisitor, BasicWalk};
use crate::wire::fdr::{FdrWalk, Visitor};
use crate::wire::marks::{Known, refused};
use crate::wire::open::{Form, Opened, XrayTrace, read_to_end};
use crate::wire::record::{Header, TYPE_FDR};
use crate::wire::yaml::{YamlVisitor, YamlWalk};

/// The tables of the format.
pub(crate) static TABLES: &[Table] = &[EVENTS, FUNCTIONS, CALLS, CUSTOM_EVENTS];

const FUNCTIONS: Table = Table {
    name: "functions",
    help: "a function that records name, by its id",
    columns: &[
        Column::new("id", ColumnType::Int32, "function id"),
        Column::new("object", ColumnType::Int32, "number of the program (0) or library, from the high bits of the id"),
        Column::new("name", ColumnType::Text, "its name, from the trace or a map; #ID where none is known"),
        Column::nullable("file", ColumnType::Text, "source file, from a map"),
        Column::nullable("line", ColumnType::Int32, "line in the source file"),
    ],
};

const CALLS: Table = Table {
    name: "calls",
    help: "a call: spans with the id of the function; flags has `open` for one that did not end",
    columns: &{
        let mut columns = [Column::new("function_id", ColumnType::Int32, "function id"); SPANS.columns.len() + 1];
        let mut at = 0;
        while at < SPANS.columns.len() {
            columns[at] = SPANS.columns[at];
            at += 1;
        }
        columns
    },
};

const CUSTOM_EVENTS: Table = Table {
    name: "custom_events",
    help: "bytes that the program wrote into the trace",
    columns: &[
        Column::new("seq", ColumnType::Int64, "number of the record"),
        Column::nullable("thread", ColumnType::Int64, "thread id"),
        Column::nullable("time_ns", ColumnType::Int64, "its tick in nanoseconds, if the trace gives the frequency"),
        Column::nullable("type", ColumnType::Int32, "type of a typed event"),
        Column::new("payload", ColumnType::Bytes, "the bytes"),
    ],
};

/// Bytes of a Basic trace that are read before it is checked whether more are wanted.
const REACH_BYTES: usize = 64 * 1024;

/// Reads a trace as the rows of a table.
pub(crate) fn read(
    trace: XrayTrace,
    table: &str,
    scan: &Scan,
    options: &SpanOptions,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    match table {
        "events" | "custom_events" => records::read(trace, table, scan, options, out, sink),
        "functions" => functions::read(trace, scan, options, out, sink),
        "calls" => calls(trace, scan, options, out, sink),
        _ => Err(Error::usage(format!("xray traces have no table {table}"))),
    }
}

fn calls(
    trace: XrayTrace,
    scan: &Scan,
    options: &SpanOptions,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let ids = RefCell::new(Vec::new());
    let function_id = |names: &[NameId], rows: &mut Rows<'_>| {
        let ids = ids.borrow();
        if let Some(Values::Int32(column)) = rows.values(SPANS.columns.len()) {
            column.extend(names.iter().map(|name| ids.get(*name as usize).map_or(0, |id: &u32| id.cast_signed())));
        }
    };
    let mut rows = SpanRows::new(&CALLS, scan, out, Some(&function_id));
    let summary = part::emit(trace, options, &ids, &mut rows, sink)?;
    rows.finish()?;
    Ok(summary)
}

/// Receives the records of a trace of any form, in the order of the file.
trait AnyRecord: Visitor + BasicVisitor + YamlVisitor {
    /// The header of a binary trace, and what the next record knows, before the first record.
    fn begin(&mut self, header: &Header, known: Known);

    /// True when no further record is wanted.
    fn is_done(&self) -> bool;
}

/// Reads a part of a trace to its end, or until no further record is wanted; returns the number of records and the
/// cursor.
fn walk<V: AnyRecord>(opened: Opened, part: &Part, visitor: &mut V) -> Result<(u64, Cursor), Error> {
    let Opened { cursor, form, limits } = opened;
    if let (Some(mark), Form::Empty | Form::Unreadable(_) | Form::Yaml) = (&part.from, &form) {
        return Err(refused(mark.offset));
    }
    match form {
        Form::Binary(header, layout) if header.type_code == TYPE_FDR => {
            let mut walk = FdrWalk::new(cursor, header, layout, &limits);
            let known = walk.read_part(part)?;
            visitor.begin(&header, known);
            while !visitor.is_done() && walk.step(visitor)? {}
            Ok((walk.seq, walk.cursor))
        }
        Form::Binary(header, layout) => {
            let mut walk = BasicWalk::new(cursor, layout);
            walk.read_part(part)?;
            visitor.begin(&header, Known::new(header.version));
            while !visitor.is_done() && walk.step(REACH_BYTES, visitor)? {}
            Ok((walk.seq, walk.cursor))
        }
        Form::Empty | Form::Unreadable(_) => Ok((0, read_to_end(cursor)?)),
        Form::Yaml => {
            let mut walk = YamlWalk::new(cursor, &limits);
            while !visitor.is_done() && walk.step(visitor)? {}
            Ok((walk.seq, walk.cursor))
        }
    }
}
