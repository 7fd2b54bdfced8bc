//! The entry points: [`Perf`] and its opened trace.

use std::io::Write;
use std::path::Path;

use anytrace_core::table::{RowSink, Scan, Table};
use anytrace_core::{
    Confidence, DumpOptions, Error, Format, FormatOption, Head, ImportOptions, Info, Input, OpenOptions, Outcome, Plan,
    Rule, Sink, SpanOptions, Summary, Target, Trace,
};

use crate::lanes::tables;
use crate::options::OPTIONS;
use crate::rules::RULES;
use crate::verbs::{check, dump, import, info, rewrite};
use crate::wire::reader::Reader;
use crate::wire::record::NAME;
use crate::wire::{folder, probe};

/// The format, for the entry points of [`anytrace_core`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Perf;

impl Format for Perf {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Linux perf"
    }

    fn noun(&self) -> &'static str {
        "record"
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &RULES
    }

    fn targets(&self) -> &'static [(&'static str, &'static str)] {
        &[(NAME, "the same records, byte for byte"), ("jsonl", "JSON lines, one object per record")]
    }

    fn patches(&self, to: Option<&str>) -> bool {
        to.is_none_or(|to| to == NAME)
    }

    fn options(&self) -> &'static [FormatOption] {
        OPTIONS
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["perf.data", "perfdata"]
    }

    fn probe(&self, head: &Head<'_>) -> Confidence {
        probe::probe(head)
    }

    fn needs_end(&self, head: &Head<'_>) -> Option<&'static str> {
        // A stream has a header of 16 bytes and none of this (perf.data-file-format.txt of Linux).
        let has_header = head.bytes.get(8..16).is_some_and(|size| size.contains(&104));
        let is_open = has_header && head.bytes.get(48..56).is_some_and(|size| *size == [0; 8]);
        is_open.then_some("perf writes the size of its records last, except into a pipe (perf record -o -)")
    }

    /// The file `data` of a folder with the files beside it, of `perf record --threads`.
    fn completed(&self, path: &Path, input: Input) -> Result<(Input, Option<String>), Error> {
        folder::completed(path, input)
    }

    fn open(&self, input: Input, options: &OpenOptions) -> Result<Box<dyn Trace>, Error> {
        options.only(NAME, &[], OPTIONS)?;
        let event = options.own.number("event").map(|event| {
            usize::try_from(event).map_err(|_| Error::usage(format!("--event: {event} is no number of an event")))
        });
        let event = event.transpose()?;
        Ok(Box::new(Opened { reader: Reader::new(input, options)?, event, distinct_max: options.limits.distinct_max }))
    }

    fn tables(&self) -> &'static [Table] {
        &tables::TABLES
    }

    fn has_spans(&self) -> bool {
        cfg!(feature = "lanes")
    }

    fn empty_event_columns(&self) -> &'static [&'static str] {
        &["duration_ns"]
    }

    #[cfg(feature = "tools")]
    fn finds_symbols(&self) -> bool {
        true
    }

    #[cfg(feature = "tools")]
    fn symbols(
        &self,
        sources: &[anytrace_core::span::SymbolSource],
        mangling: anytrace_core::span::Mangling,
    ) -> Result<Box<dyn anytrace_core::span::Symbols>, Error> {
        Ok(Box::new(crate::tools::Programs::load(sources, mangling)?))
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
    /// The event whose samples are shown.
    #[cfg_attr(not(feature = "lanes"), allow(dead_code, reason = "only spans need it"))]
    event: Option<usize>,
    /// The most threads, events and the like that are kept apart.
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
        dump::dump(self.reader, self.distinct_max, options, out, sink)
    }

    fn check(self: Box<Self>, sink: &mut dyn Sink) -> Result<Summary, Error> {
        check::check(self.reader, self.distinct_max, sink)
    }

    fn rewrite(self: Box<Self>, plan: &Plan, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        rewrite::rewrite(self.reader, self.distinct_max, plan, out, sink)
    }

    fn table(
        self: Box<Self>,
        table: &str,
        scan: &Scan,
        _options: &SpanOptions,
        out: &mut dyn RowSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        tables::read(self.reader, self.distinct_max, table, scan, out, sink)
    }

    #[cfg(feature = "lanes")]
    fn spans(
        self: Box<Self>,
        options: &SpanOptions,
        out: &mut dyn anytrace_core::SpanSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        crate::lanes::spans::emit(self.reader, self.distinct_max, self.event, options, out, sink)
    }
}
