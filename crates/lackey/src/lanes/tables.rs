//! The trace as tables: `events`, and `accesses` in which a modify is one row.

use anytrace_core::table::{Column, ColumnType, EVENTS, Filter, RowSink, Rows, Scan, Table};
use anytrace_core::{Error, Sink, Summary};

use crate::wire::reader::{LinePlace, Piece, Reader, Visit};
use crate::wire::record::{Kind, Record};

/// The tables of the format.
pub(crate) static TABLES: [Table; 2] = [EVENTS, ACCESSES];

const ACCESSES: Table = Table {
    name: "accesses",
    help: "a memory access",
    columns: &[
        Column::new("seq", ColumnType::Int64, "number of the record"),
        Column::new("thread", ColumnType::Int64, "0: a log names no threads"),
        Column::new("kind", ColumnType::Name, "fetch, read, write or modify"),
        Column::new("address", ColumnType::UInt64, "first address"),
        Column::new("size", ColumnType::Int32, "bytes"),
        Column::new("atomic", ColumnType::Boolean, "false: logs do not record it"),
    ],
};

/// Reads a trace as the rows of a table.
pub(crate) fn read(
    reader: Reader,
    table: &str,
    scan: &Scan,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let Some(wanted) = TABLES.iter().find(|one| one.name == table) else {
        return Err(Error::usage(format!("lackey traces have no table {table}")));
    };
    let has_blocks = wanted.name == EVENTS.name;
    let rows = Rows::new(wanted, scan, out);
    let mut made = Made { rows, filter: &scan.filter, has_blocks, is_done: false };
    let passed = reader.walk(&mut made, sink)?;
    made.rows.finish()?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

struct Made<'a> {
    rows: Rows<'a>,
    filter: &'a Filter,
    /// True for `events`, which has a row for each record.
    has_blocks: bool,
    is_done: bool,
}

impl Made<'_> {
    fn event(&mut self, record: &Record<'_>, at: LinePlace) -> Result<(), Error> {
        let rows = &mut self.rows;
        rows.count(at.seq);
        rows.count(at.offset);
        rows.int64(None);
        rows.int64(None);
        rows.int64(None);
        rows.name(record.kind.name());
        rows.name(None);
        rows.text_with(|| {
            Some(match record.kind {
                Kind::Block => format!("{{\"address\":{}}}", record.address),
                _ => format!("{{\"address\":{},\"size\":{}}}", record.address, record.size),
            })
        });
        rows.end()
    }

    fn access(&mut self, record: &Record<'_>, at: LinePlace) -> Result<(), Error> {
        let rows = &mut self.rows;
        rows.count(at.seq);
        rows.int64(0);
        rows.name(record.kind.name());
        rows.uint64(record.address);
        rows.int32(i32::from(record.size));
        rows.boolean(false);
        rows.end()
    }
}

impl Visit for Made<'_> {
    fn record(&mut self, record: &Record<'_>, at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        let seq = i64::try_from(at.seq).unwrap_or(i64::MAX);
        self.is_done = self.filter.ends_before(seq.saturating_add(1));
        if !self.filter.has_seq(seq) || !self.filter.has_kind(record.kind.name()) {
            return Ok(());
        }
        match (self.has_blocks, record.kind) {
            (true, _) => self.event(record, at),
            (false, Kind::Block) => Ok(()),
            (false, _) => self.access(record, at),
        }
    }

    fn piece(&mut self, _piece: Piece<'_>, _at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}
