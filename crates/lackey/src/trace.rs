//! The entry points: [`Lackey`] and its opened trace.

use std::io::Write;

use anytrace_core::{
    Confidence, DumpOptions, Error, Format, FormatOption, Head, ImportOptions, Info, Input, OpenOptions, Outcome, Plan,
    Rule, Sink, Summary, Target, Trace,
};

use crate::options::OPTIONS;
use crate::rules::RULES;
use crate::wire::reader::Reader;
use crate::{
    NAME,
    verbs::{check, dump, import, info, rewrite},
    wire::probe,
};

/// The format, for the entry points of [`anytrace_core`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lackey;

impl Format for Lackey {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Valgrind lackey memory trace"
    }

    fn noun(&self) -> &'static str {
        "record"
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &RULES
    }

    fn targets(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (NAME, "the same lines; --style canonical spells records as Valgrind does"),
            ("jsonl", "JSON lines, one object per record"),
        ]
    }

    fn options(&self) -> &'static [FormatOption] {
        OPTIONS
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["lackey"]
    }

    fn probe(&self, head: &Head<'_>) -> Confidence {
        probe::probe(head)
    }

    fn open(&self, input: Input, options: &OpenOptions) -> Result<Box<dyn Trace>, Error> {
        options.only(NAME, &[], OPTIONS)?;
        Ok(Box::new(Opened(Reader::new(input, options)?)))
    }

    #[cfg(feature = "lanes")]
    fn has_accesses(&self) -> bool {
        true
    }

    fn empty_event_columns(&self) -> &'static [&'static str] {
        &["thread", "time_ns", "duration_ns"]
    }

    #[cfg(feature = "lanes")]
    fn empty_tables(&self) -> &'static [&'static str] {
        &["types", "regions"]
    }

    fn part_tables(&self) -> &'static [&'static str] {
        &["events", "accesses"]
    }

    #[cfg(feature = "lanes")]
    fn dump_needs(
        &self,
        dump: &DumpOptions,
        _index: &anytrace_core::index::Index,
        _open: &anytrace_core::index::Open<'_>,
        _options: &OpenOptions,
    ) -> Result<Option<anytrace_core::index::Needs>, Error> {
        Ok(crate::lanes::marks::dump_needs(&dump.selection))
    }

    #[cfg(feature = "lanes")]
    fn tables(&self) -> &'static [anytrace_core::table::Table] {
        &crate::lanes::tables::TABLES
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

struct Opened(Reader);

impl Trace for Opened {
    fn info(self: Box<Self>, sink: &mut dyn Sink) -> Result<Info, Error> {
        info::info(self.0, sink)
    }

    fn dump(
        self: Box<Self>,
        options: &DumpOptions,
        out: &mut dyn Write,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        dump::dump(self.0, options, out, sink)
    }

    fn check(self: Box<Self>, sink: &mut dyn Sink) -> Result<Summary, Error> {
        check::check(self.0, sink)
    }

    fn rewrite(self: Box<Self>, plan: &Plan, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        rewrite::rewrite(self.0, plan, out, sink)
    }

    #[cfg(feature = "lanes")]
    fn accesses(
        self: Box<Self>,
        out: &mut dyn anytrace_core::AccessSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        crate::lanes::accesses::emit(self.0, out, sink)
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
        crate::lanes::tables::read(self.0, table, scan, out, sink)
    }
    #[cfg(feature = "lanes")]
    fn marks(
        self: Box<Self>,
        every_bytes: u64,
        out: &mut dyn anytrace_core::index::MarkSink,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        crate::lanes::marks::find(self.0, every_bytes, out, sink)
    }
}
