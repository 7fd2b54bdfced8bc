//! The format's entry points: probing, opening, and the verbs.

use std::io::Write;

use anytrace_core::{
    Compression, Confidence, DumpOptions, Error, Format, FormatOption, Head, ImportOptions, Info, Input, OpenOptions,
    Outcome, Plan, Rule, Sink, Summary, Target, Trace,
};

use crate::options::OPTIONS;
use crate::wire::reader::Reader;
use crate::{
    rules,
    verbs::{check, dump, import, info, rewrite},
    wire::container,
};

/// The apitrace format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Apitrace;

impl Format for Apitrace {
    fn name(&self) -> &'static str {
        "apitrace"
    }

    fn title(&self) -> &'static str {
        "apitrace"
    }

    fn noun(&self) -> &'static str {
        "event"
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &rules::RULES
    }

    fn targets(&self) -> &'static [(&'static str, &'static str)] {
        &[("apitrace", "an apitrace trace; --version, --container and --level"), ("jsonl", "one JSON object per event")]
    }

    fn options(&self) -> &'static [FormatOption] {
        OPTIONS
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["trace"]
    }

    fn probe(&self, head: &Head<'_>) -> Confidence {
        container::guess(head).confidence
    }

    fn open(&self, input: Input, options: &OpenOptions) -> Result<Box<dyn Trace>, Error> {
        options.only("apitrace", &[], OPTIONS)?;
        // Frames are looked for only where marks are.
        let is_zstd = matches!(input.layers(), [layer] if layer.compression == Compression::Zstd);
        let compressed = if is_zstd && options.part.is_none() { input.still_compressed() } else { None };
        Ok(Box::new(Opened { reader: Reader::new(input, options)?, compressed: compressed.and_then(Result::ok) }))
    }

    #[cfg(feature = "lanes")]
    fn has_spans(&self) -> bool {
        true
    }

    #[cfg(feature = "lanes")]
    fn tables(&self) -> &'static [anytrace_core::table::Table] {
        &crate::lanes::tables::TABLES
    }

    #[cfg(feature = "tools")]
    fn explanations(&self) -> &'static [anytrace_core::Explanation] {
        crate::tools::words::EXPLANATIONS
    }

    fn has_frames(&self) -> bool {
        true
    }

    #[cfg(feature = "tools")]
    fn explains(&self, explanation: &str, name: &[u8]) -> bool {
        crate::tools::words::explains(explanation, name)
    }

    #[cfg(feature = "tools")]
    fn explain(
        &self,
        explanation: &str,
        at: Option<u64>,
        open: &anytrace_core::index::Open<'_>,
        options: &OpenOptions,
        out: &mut dyn anytrace_core::Lines,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        crate::tools::words::explain(explanation, at, open, options, out, sink)
    }

    fn empty_event_columns(&self) -> &'static [&'static str] {
        &["time_ns", "duration_ns"]
    }

    #[cfg(feature = "lanes")]
    fn part_tables(&self) -> &'static [&'static str] {
        &["events", "calls", "args", "frames", "blobs"]
    }

    #[cfg(feature = "lanes")]
    fn part_compressions(&self) -> &'static [Compression] {
        &[Compression::Zstd]
    }

    #[cfg(feature = "lanes")]
    fn dump_needs(
        &self,
        dump: &DumpOptions,
        _index: &anytrace_core::index::Index,
        _open: &anytrace_core::index::Open<'_>,
        _options: &OpenOptions,
    ) -> Result<Option<anytrace_core::index::Needs>, Error> {
        let is_served = dump.selection.own.is_empty();
        Ok(is_served.then(|| anytrace_core::index::Needs::of(&dump.selection)))
    }

    fn import(
        &self,
        input: Input,
        options: &ImportOptions<'_>,
        out: &mut dyn Target,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Error> {
        import::import(input, options, out, sink)
    }
}

/// An opened trace.
struct Opened {
    reader: Reader,
    /// The file of a trace in zstd, whose frames can be decoded on their own.
    #[cfg_attr(not(feature = "lanes"), expect(dead_code, reason = "only marks look at it"))]
    compressed: Option<Input>,
}

impl Trace for Opened {
    fn info(self: Box<Self>, sink: &mut dyn Sink) -> Result<Info, Error> {
        info::info(self.reader, sink)
    }

    fn dump(
        self: Box<Self>,
        options: &DumpOptions,
        out: &mut dyn Write,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        dump::dump(self.reader, options, out, sink)
    }

    fn check(self: Box<Self>, sink: &mut dyn Sink) -> Result<Summary, Error> {
        check::check(self.reader, sink)
    }

    fn rewrite(self: Box<Self>, plan: &Plan, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        rewrite::rewrite(self.reader, plan, out, sink)
    }

    #[cfg(feature = "lanes")]
    fn spans(
        self: Box<Self>,
        _: &anytrace_core::SpanOptions,
        out: &mut dyn anytrace_core::SpanSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        crate::lanes::spans::spans(self.reader, out, sink)
    }

    #[cfg(feature = "lanes")]
    fn table(
        self: Box<Self>,
        table: &str,
        scan: &anytrace_core::table::Scan,
        _: &anytrace_core::SpanOptions,
        out: &mut dyn anytrace_core::table::RowSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        crate::lanes::tables::read(self.reader, table, scan, out, sink)
    }

    #[cfg(feature = "lanes")]
    fn marks(
        self: Box<Self>,
        every_bytes: u64,
        out: &mut dyn anytrace_core::index::MarkSink,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        crate::lanes::marks::find(self.reader, self.compressed, every_bytes.max(1), out, sink)
    }
}
