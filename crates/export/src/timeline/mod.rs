//! Outputs for timelines and profilers: their names, and a constructor for each.
//!
//! Each is a [`SpanSink`](anytrace_core::SpanSink) that writes as edges arrive and ends with [`Timeline::finish`]. Times count from the trace's
//! origin ([`anytrace_core::span::SpanSource::origin`]) in nanoseconds, without floating point; where the length of a
//! unit is unknown one unit is shown as one nanosecond and the output's metadata says so.

pub(crate) mod clock;
pub(crate) mod numbers;
pub(crate) mod output;
pub(crate) mod words;

use crate::limits::{
    CATAPULT_EVENTS, FOLDED_DEPTH, Limit, PERF_SCRIPT_DEPTH, PERFETTO_DEPTH, SHEET_ROWS, SPEEDSCOPE_BYTES,
};
pub use crate::timeline::output::{Outlet, OutputFolder, Timeline};
use crate::{calls, chrome, csv, ctf, firefox, folded, otlp, perf_script, perfetto, pprof, speedscope, svg};

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
    /// Its files, where it is a folder.
    pub folder: Option<OutputFolder>,
    /// It works on several threads itself as it gets the spans.
    pub is_parallel: bool,
    /// Begins an output.
    pub open: for<'a> fn(Outlet<'a>) -> Box<dyn Timeline + 'a>,
}

/// Every timeline output, by name.
pub static OUTPUTS: [TimelineOutput; 12] = [
    TimelineOutput {
        name: "callgrind",
        extension: "callgrind",
        help: "self time of functions and calls between them, for callgrind_annotate and KCachegrind",
        limits: &[],
        folder: None,
        is_parallel: false,
        open: |outlet| Box::new(calls::Calls::new(outlet)),
    },
    TimelineOutput {
        name: "chrome",
        extension: "json",
        help: "Chrome trace events, for Perfetto UI, chrome://tracing and speedscope",
        limits: &[PERFETTO_DEPTH, CATAPULT_EVENTS],
        folder: None,
        is_parallel: true,
        open: |outlet| Box::new(chrome::Chrome::new(outlet.out, outlet.threads)),
    },
    TimelineOutput {
        name: "csv",
        extension: "csv",
        help: "one row per span, for spreadsheets and databases",
        limits: &[SHEET_ROWS],
        folder: None,
        is_parallel: true,
        open: |outlet| Box::new(csv::Csv::new(outlet)),
    },
    TimelineOutput {
        name: "ctf",
        extension: "ctf",
        help: "a folder in the Common Trace Format 1.8, for babeltrace2 and Trace Compass",
        limits: &[],
        folder: Some(OutputFolder { main: ctf::STREAM, beside: ctf::METADATA }),
        is_parallel: false,
        open: |outlet| Box::new(ctf::Ctf::new(outlet)),
    },
    TimelineOutput {
        name: "firefox",
        extension: "json",
        help: "Firefox Profiler's processed profile",
        limits: &[],
        folder: None,
        is_parallel: false,
        open: |outlet| Box::new(firefox::Firefox::new(outlet)),
    },
    TimelineOutput {
        name: "folded",
        extension: "folded",
        help: "self time per stack, for flamegraph.pl, inferno and speedscope",
        limits: &[FOLDED_DEPTH],
        folder: None,
        is_parallel: false,
        open: |outlet| Box::new(folded::open(outlet.out)),
    },
    TimelineOutput {
        name: "otlp",
        extension: "otlp.json",
        help: "OpenTelemetry's OTLP as JSON: spans with explicit parents and stable ids",
        limits: &[],
        folder: None,
        is_parallel: false,
        open: |outlet| Box::new(otlp::Otlp::new(outlet)),
    },
    TimelineOutput {
        name: "perf-script",
        extension: "perf",
        help: "samples with stacks as perf script prints them, for FlameGraph, speedscope and Firefox Profiler",
        limits: &[PERF_SCRIPT_DEPTH],
        folder: None,
        is_parallel: false,
        open: |outlet| Box::new(perf_script::PerfScript::new(outlet)),
    },
    TimelineOutput {
        name: "perfetto",
        extension: "pftrace",
        help: "Perfetto's protobuf (TrackEvent)",
        limits: &[PERFETTO_DEPTH],
        folder: None,
        is_parallel: true,
        open: |outlet| Box::new(perfetto::Perfetto::new(outlet.out, outlet.threads)),
    },
    TimelineOutput {
        name: "pprof",
        extension: "pb.gz",
        help: "calls and self time per stack, for go tool pprof",
        limits: &[FOLDED_DEPTH],
        folder: None,
        is_parallel: false,
        open: |outlet| Box::new(pprof::open(outlet.out)),
    },
    TimelineOutput {
        name: "speedscope",
        extension: "speedscope.json",
        help: "speedscope's evented profiles, one per track",
        limits: &[SPEEDSCOPE_BYTES],
        folder: None,
        is_parallel: false,
        open: |outlet| Box::new(speedscope::Speedscope::new(outlet)),
    },
    TimelineOutput {
        name: "svg",
        extension: "svg",
        help: "a flame graph of self time, for any browser",
        limits: &[FOLDED_DEPTH],
        folder: None,
        is_parallel: false,
        open: |outlet| Box::new(svg::open(outlet)),
    },
];

/// The output of a name.
pub fn by_name(name: &str) -> Option<&'static TimelineOutput> {
    OUTPUTS.iter().find(|output| output.name == name)
}
