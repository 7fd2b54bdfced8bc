//! Outputs for timelines and profilers: their names, and a constructor for each.
//!
//! Each is a [`SpanSink`] that writes as edges arrive and ends with [`Timeline::finish`]. Times count from the trace's
//! origin ([`anytrace_core::span::SpanSource::origin`]) in nanoseconds, without floating point; where the length of a
//! unit is unknown one unit is shown as one nanosecond and the output's metadata says so.

pub(crate) mod clock;
pub(crate) mod numbers;
pub(crate) mod words;

use std::io::Write;

use anytrace_core::{Error, SpanSink};

use crate::cells::Cells;
use crate::limits::{CATAPULT_EVENTS, FOLDED_DEPTH, Limit, PERFETTO_DEPTH, SHEET_ROWS, SPEEDSCOPE_BYTES};
use crate::spool::Spool;
use crate::{chrome, csv, firefox, folded, otlp, perfetto, speedscope, svg};

/// An output being written.
pub trait Timeline: SpanSink {
    /// Writes the end of the output; called once, after the last edge.
    ///
    /// # Errors
    /// When writing fails.
    fn finish(&mut self) -> Result<(), Error>;
}

/// What an output is written with.
pub struct Outlet<'a> {
    /// The target of the output.
    pub out: &'a mut dyn Write,
    /// Room on disk for outputs that need a track's edges together; anything that does not go there stays in memory.
    pub spool: &'a mut dyn Spool,
    /// The title of the output, if it has one: the trace's file name.
    pub title: &'a str,
    /// How text is written in tables.
    pub cells: Cells,
}

/// A row of the table of outputs.
pub struct TimelineOutput {
    /// What `convert --to` takes.
    pub name: &'static str,
    /// Extension its files usually have.
    pub extension: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// The known limits of its readers.
    pub limits: &'static [Limit],
    /// Begins an output.
    pub open: for<'a> fn(Outlet<'a>) -> Box<dyn Timeline + 'a>,
}

/// Every timeline output, by name.
pub static OUTPUTS: [TimelineOutput; 8] = [
    TimelineOutput {
        name: "chrome",
        extension: "json",
        help: "Chrome trace events, for Perfetto UI, chrome://tracing and speedscope",
        limits: &[PERFETTO_DEPTH, CATAPULT_EVENTS],
        open: |outlet| Box::new(chrome::Chrome::new(outlet.out)),
    },
    TimelineOutput {
        name: "csv",
        extension: "csv",
        help: "a row a span, for spreadsheets and databases",
        limits: &[SHEET_ROWS],
        open: |outlet| Box::new(csv::Csv::new(outlet.out, outlet.cells)),
    },
    TimelineOutput {
        name: "firefox",
        extension: "json",
        help: "Firefox Profiler's processed profile",
        limits: &[],
        open: |outlet| Box::new(firefox::Firefox::new(outlet)),
    },
    TimelineOutput {
        name: "folded",
        extension: "folded",
        help: "self time a stack, for flamegraph.pl, inferno and speedscope",
        limits: &[FOLDED_DEPTH],
        open: |outlet| Box::new(folded::open(outlet.out)),
    },
    TimelineOutput {
        name: "otlp",
        extension: "otlp.json",
        help: "OpenTelemetry's OTLP as JSON: spans with explicit parents and ids that stay the same",
        limits: &[],
        open: |outlet| Box::new(otlp::Otlp::new(outlet)),
    },
    TimelineOutput {
        name: "perfetto",
        extension: "pftrace",
        help: "Perfetto's own protobuf (TrackEvent)",
        limits: &[PERFETTO_DEPTH],
        open: |outlet| Box::new(perfetto::Perfetto::new(outlet.out)),
    },
    TimelineOutput {
        name: "speedscope",
        extension: "speedscope.json",
        help: "speedscope's evented profiles, one a track",
        limits: &[SPEEDSCOPE_BYTES],
        open: |outlet| Box::new(speedscope::Speedscope::new(outlet)),
    },
    TimelineOutput {
        name: "svg",
        extension: "svg",
        help: "a flame graph of self time, for any browser",
        limits: &[FOLDED_DEPTH],
        open: |outlet| Box::new(svg::open(outlet)),
    },
];

/// The output of a name.
pub fn by_name(name: &str) -> Option<&'static TimelineOutput> {
    OUTPUTS.iter().find(|output| output.name == name)
}
