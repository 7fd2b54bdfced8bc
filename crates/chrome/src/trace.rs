//! The entry points: [`Chrome`] and its opened trace.

use std::io::Write;

use anytrace_core::{
    Confidence, DumpOptions, Error, Format, FormatOption, Head, ImportOptions, Info, Input, OpenOptions, Outcome, Plan,
    Rule, Sink, Summary, Target, Trace,
};

use crate::options::OPTIONS;
use crate::rules::RULES;
use crate::verbs::{check, dump, import, info, rewrite};
use crate::wire::probe;
use crate::wire::reader::Reader;
use crate::wire::record::NAME;

/// The format, for the entry points of [`anytrace_core`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chrome;

impl Format for Chrome {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Chrome trace events (JSON)"
    }

    fn noun(&self) -> &'static str {
        "event"
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &RULES
    }

    fn targets(&self) -> &'static [(&'static str, &'static str)] {
        &[(NAME, "the same bytes"), ("jsonl", "JSON lines, one object per event")]
    }

    fn options(&self) -> &'static [FormatOption] {
        OPTIONS
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["chrome.json", "trace.json"]
    }

    fn probe(&self, head: &Head<'_>) -> Confidence {
        probe::probe(head)
    }

    fn open(&self, input: Input, options: &OpenOptions) -> Result<Box<dyn Trace>, Error> {
        options.only(NAME, &[], OPTIONS)?;
        let distinct_max = options.limits.distinct_max;
        Ok(Box::new(Opened { reader: Reader::new(input, options)?, distinct_max }))
    }

    #[cfg(feature = "lanes")]
    fn has_spans(&self) -> bool {
        true
    }

    #[cfg(feature = "lanes")]
    fn tables(&self) -> &'static [anytrace_core::table::Table] {
        &crate::lanes::tables::TABLES
    }

    #[cfg(feature = "lanes")]
    fn part_tables(&self) -> &'static [&'static str] {
        &["events"]
    }

    fn import(
        &self,
        input: Input,
        options: &ImportOptions<'_>,
        out: &mut dyn Target,
        _sink: &mut dyn Sink,
    ) -> Result<Outcome, Error> {
        import::import(input, options, out)
    }
}

struct Opened {
    reader: Reader,
    distinct_max: usize,
}

impl Trace for Opened {
    fn info(self: Box<Self>, sink: &mut dyn Sink) -> Result<Info, Error> {
        info::info(self.reader, self.distinct_max, sink)
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
        check::check(self.reader, self.distinct_max, sink)
    }

    fn rewrite(self: Box<Self>, plan: &Plan, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        rewrite::rewrite(self.reader, plan, out, sink)
    }

    #[cfg(feature = "lanes")]
    fn spans(
        self: Box<Self>,
        _options: &anytrace_core::SpanOptions,
        out: &mut dyn anytrace_core::SpanSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        crate::lanes::spans::emit(self.reader, self.distinct_max, out, sink)
    }

    #[cfg(feature = "lanes")]
    fn table(
        self: Box<Self>,
        table: &str,
        scan: &anytrace_core::table::Scan,
        _options: &anytrace_core::SpanOptions,
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
        crate::lanes::marks::find(self.reader, every_bytes, out, sink)
    }
}
