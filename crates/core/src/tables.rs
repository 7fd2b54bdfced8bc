//! The tables of a format, its own and those of its lanes, by name.

use crate::table::{
    ACCESSES, AccessRows, REGIONS, RegionRows, RowSink, SPANS, STACKS, Scan, SpanRows, StackRows, TYPES, Table,
    TypeRows,
};
use crate::{Error, Format, Sink, SpanOptions, Summary, Trace};

/// All tables of a format: its own, and those of its lanes.
pub fn all(format: &dyn Format) -> Vec<Table> {
    let mut tables: Vec<Table> = format.tables().to_vec();
    let lanes = [(format.has_spans(), &[SPANS, STACKS][..]), (format.has_accesses(), &[ACCESSES, REGIONS, TYPES])];
    for (_, lane) in lanes.iter().filter(|(has, _)| *has) {
        let is_missing = |table: &&Table| !format.tables().iter().any(|own| own.name == table.name);
        tables.extend(lane.iter().filter(is_missing));
    }
    tables
}

/// The name of the column that says of which trace a row is, where a table is of several: `file`, unless the table has a
/// column of that name.
pub fn origin_column(table: &Table) -> &'static str {
    if table.column("file").is_some() { "trace" } else { "file" }
}

/// Hands out the rows of one of a format's tables. Damage is reported to `sink`; the rest is read.
///
/// # Errors
/// As [`Trace::table`].
pub fn read(
    format: &dyn Format,
    trace: Box<dyn Trace>,
    table: &str,
    scan: &Scan,
    options: &SpanOptions,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    if format.tables().iter().any(|own| own.name == table) {
        return trace.table(table, scan, options, out, sink);
    }
    let Some(lane) = all(format).into_iter().find(|one| one.name == table) else {
        return Err(Error::usage(format!("{} traces have no table {table}", format.name())));
    };
    of_lane(&lane, trace, scan, options, out, sink)
}

/// Hands out the rows of a table that is made of a lane.
fn of_lane(
    table: &Table,
    trace: Box<dyn Trace>,
    scan: &Scan,
    options: &SpanOptions,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let summary;
    match table.name {
        "spans" => {
            let mut made = SpanRows::new(&SPANS, scan, out, None);
            summary = trace.spans(options, &mut made, sink)?;
            made.finish()?;
        }
        "stacks" => {
            let mut made = StackRows::new(scan, out);
            summary = trace.spans(options, &mut made, sink)?;
            made.finish()?;
        }
        "accesses" => {
            let mut made = AccessRows::new(scan, out);
            summary = trace.accesses(&mut made, sink)?;
            made.finish()?;
        }
        "regions" => {
            let mut made = RegionRows::new(scan, out);
            summary = trace.accesses(&mut made, sink)?;
            made.finish()?;
        }
        _ => {
            let mut made = TypeRows::new(scan, out);
            summary = trace.accesses(&mut made, sink)?;
            made.finish()?;
        }
    }
    Ok(summary)
}
