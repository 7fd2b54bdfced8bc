//! The outputs of anytrace for other programs, one file per output.
//!
//! | output | for | module |
//! |---|---|---|
//! | JSON | scripts | [`json`] |
//! | SARIF 2.1.0 | code review and CI annotations | [`sarif`] |
//! | JUnit XML | CI test reports | [`junit`] |
//! | folded stacks, SVG flame graphs | `flamegraph.pl`, speedscope; browsers | [`flame`] |
//! | Chrome trace events | Perfetto UI, `chrome://tracing`, speedscope | [`chrome`] |
//! | CTF 1.8 | babeltrace2, Trace Compass | [`timeline`] |
//! | Perfetto TrackEvent | Perfetto UI, its trace processor | [`perfetto`] |
//! | OTLP JSON | OpenTelemetry collectors and their back ends | [`otlp`] |
//! | speedscope | speedscope | [`speedscope`] |
//! | Firefox processed profile | Firefox Profiler | [`firefox`] |
//! | folded stacks of a trace | `flamegraph.pl`, inferno, speedscope | [`timeline`] |
//! | Callgrind profile of a trace | `callgrind_annotate`, KCachegrind | [`timeline`], [`callgrind`] |
//! | text as `perf script` prints it | FlameGraph, inferno, speedscope, Firefox Profiler | [`timeline`] |
//! | pprof profile of a trace | `go tool pprof` | [`timeline`] |
//! | SVG flame graph of a trace | browsers | [`timeline`] |
//! | CSV | spreadsheets, databases | [`csv`], [`cells`] |
//! | SVG plots | browsers | [`plot`], [`curves`] |
//! | Dinero's two forms | Dinero III and IV, other cache simulators | [`accesses`] |
//! | Parquet, Arrow | data frames and SQL: pandas, Polars, DuckDB, Spark | [`tables`] |
//! | lackey's text | scripts and simulators that read Valgrind's memory traces | [`accesses`] |
//!
//! Chrome trace events through CSV are timelines: [`timeline`] lists them and opens each by name; [`accesses`] does so
//! for the outputs of memory accesses, [`tables`] for those of tables.
//!
//! ```
//! use anytrace_core::Rule;
//!
//! static GAP: Rule = Rule::warning("heph/counter-gap", "events of a stream are missing");
//! let value = anytrace_export::json::diagnostic(&GAP.at(16).record(2).found("3 events"));
//! assert_eq!(value["code"], "heph/counter-gap");
//! assert_eq!(value["offset"], 16);
//! ```

mod access_text;
pub mod accesses;
pub mod arrow;
mod cacheray;
pub mod callgrind;
mod calls;
pub mod cells;
pub mod chrome;
mod columns;
pub mod csv;
mod ctf;
pub mod curves;
mod dictionary;
mod din;
mod findings;
pub mod firefox;
pub mod flame;
mod folded;
mod formatters;
pub mod forms;
pub mod heatmap;
pub mod json;
pub mod junit;
mod lackey;
pub mod limits;
pub mod otlp;
pub mod parquet;
mod pen;
mod perf_script;
pub mod perfetto;
pub mod plot;
mod pprof;
mod proto;
pub mod sarif;
pub mod speedscope;
pub mod spool;
mod stacks;
mod svg;
pub mod tables;
mod tally;
pub mod timeline;

use std::collections::BTreeMap;

use anytrace_core::{Diagnostic, Rule};

pub use findings::Findings;

/// What `check` found in one file; the input of the report writers.
#[derive(Debug, Clone)]
pub struct FileReport {
    /// The file's name as the user gave it.
    pub file: String,
    /// The format's name, or "unknown" for an empty file.
    pub format: &'static str,
    /// The format's word for a record.
    pub noun: &'static str,
    /// All rules that were checked.
    pub rules: Vec<&'static Rule>,
    /// Records read.
    pub records: u64,
    /// Diagnostics, as many as the caller's limit allowed.
    pub diagnostics: Vec<Diagnostic>,
    /// Exact counts by code, shown or not.
    pub counts: BTreeMap<&'static str, u64>,
    /// At how many places records were lost.
    pub lost: u64,
    /// Exact number of errors.
    pub errors: u64,
    /// Exact number of warnings.
    pub warnings: u64,
    /// Exact number of notes.
    pub notes: u64,
}
