//! The trace as tables: its packets, their attributes, its streams and what they lost.

mod packets;

use anytrace_core::table::{Column, ColumnType, EVENTS, RowSink, Scan, Table};
use anytrace_core::{Error, Sink, Summary};

use crate::wire::reader::Reader;

/// The tables of the format.
pub(crate) static TABLES: &[Table] = &[
    EVENTS,
    PACKETS,
    #[cfg(feature = "tools")]
    STREAMS,
    #[cfg(feature = "tools")]
    LOSS,
    ATTRIBUTES,
];

const PACKETS: Table = Table {
    name: "packets",
    help: "an event, with the fixed fields of its packet",
    columns: &[
        Column::new("seq", ColumnType::Int64, "number of the packet, metadata included"),
        Column::new("offset", ColumnType::Int64, "its first byte"),
        Column::new("stream", ColumnType::Int64, "stream, in practice a thread"),
        Column::new("counter", ColumnType::Int64, "number of the event in its stream, modulo 2^32"),
        Column::new("substream", ColumnType::UInt64, "0, or the task that ran on the stream"),
        Column::new("start_ns", ColumnType::Int64, "start, in nanoseconds since the trace's epoch"),
        Column::new("end_ns", ColumnType::Int64, "end, in nanoseconds since the trace's epoch"),
        Column::new("description", ColumnType::Name, "description"),
    ],
};

const ATTRIBUTES: Table = Table {
    name: "attributes",
    help: "an attribute of an event; of an array, one of its elements, so an empty array has no row",
    columns: &[
        Column::new("seq", ColumnType::Int64, "number of the packet"),
        Column::new("position", ColumnType::Int32, "place of the element in its array, from 0; 0 without an array"),
        Column::new("key", ColumnType::Name, "name of the attribute; an event may have several of one name"),
        Column::new("type", ColumnType::Name, "u64, i64, f64 or str; [] follows for each level of arrays"),
        Column::nullable("int", ColumnType::Int64, "value of an i64"),
        Column::nullable("uint", ColumnType::UInt64, "value of a u64"),
        Column::nullable("float", ColumnType::Float64, "value of an f64"),
        Column::nullable("bool", ColumnType::Boolean, "never: the format has none"),
        Column::nullable("text", ColumnType::Text, "value of a str"),
        Column::nullable("bytes", ColumnType::Bytes, "never: the format has none"),
    ],
};

#[cfg(feature = "tools")]
const STREAMS: Table = Table {
    name: "streams",
    help: "a stream, as `heph loss` counts it",
    columns: &[
        Column::nullable("stream", ColumnType::Int64, "its number; none for all streams beyond 65,536 together"),
        Column::new("packets", ColumnType::Int64, "its intact events"),
        Column::nullable("first_ns", ColumnType::Int64, "earliest time of them, since the trace's epoch"),
        Column::nullable("last_ns", ColumnType::Int64, "latest time of them, since the trace's epoch"),
        Column::nullable("first_counter", ColumnType::Int64, "lowest counter, of its first writer"),
        Column::nullable("last_counter", ColumnType::Int64, "highest counter, of its last writer"),
        Column::new("lost", ColumnType::Int64, "events that are missing by their counters"),
    ],
};

#[cfg(feature = "tools")]
const LOSS: Table = Table {
    name: "loss",
    help: "a gap in the counters of a stream, as `heph loss` reports it",
    columns: &[
        Column::new("stream", ColumnType::Int64, "number of the stream"),
        Column::nullable(
            "after_counter",
            ColumnType::Int64,
            "counter before the gap; none at the stream's beginning, and for gaps too many to list",
        ),
        Column::new("missing", ColumnType::Int64, "events that are missing"),
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
        return Err(Error::usage(format!("heph traces have no table {table}")));
    };
    match wanted.name {
        #[cfg(feature = "tools")]
        "streams" | "loss" => crate::tools::loss::tables::read(reader, wanted, scan, out, sink),
        _ => packets::read(reader, wanted, scan, out, sink),
    }
}
