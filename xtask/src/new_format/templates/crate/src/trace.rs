//! The entry points: [`NewFormat`] and its opened trace.

use std::io::Write;

use anytrace_core::index::MarkSink;
use anytrace_core::table::{RowSink, Scan, Table};
use anytrace_core::{
    Confidence, DumpOptions, Error, Format, FormatOption, Head, ImportOptions, Info, Input, OpenOptions, Outcome, Plan,
    Rule, Sink, SpanOptions, Summary, Target, Trace,
};

use crate::lanes::{marks, tables};
use crate::options::OPTIONS;
use crate::rules::RULES;
use crate::verbs::{check, dump, import, info, rewrite};
use crate::wire::probe;
use crate::wire::reader::Reader;
use crate::wire::record::NAME;

/// The format, for the entry points of [`anytrace_core`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NewFormat;

impl Format for NewFormat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "NewFormat"
    }

    fn noun(&self) -> &'static str {
        "record"
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &RULES
    }

    fn targets(&self) -> &'static [(&'static str, &'static str)] {
        &[(NAME, "the same lines"), ("jsonl", "JSON lines, one object per record")]
    }

    fn options(&self) -> &'static [FormatOption] {
        OPTIONS
    }

    fn extensions(&self) -> &'static [&'static str] {
        &[NAME]
    }

    fn probe(&self, head: &Head<'_>) -> Confidence {
        probe::probe(head)
    }

    fn open(&self, input: Input, options: &OpenOptions) -> Result<Box<dyn Trace>, Error> {
        options.only(NAME, &[], OPTIONS)?;
        Ok(Box::new(Opened(Reader::new(input, options)?)))
    }

    fn tables(&self) -> &'static [Table] {
        &tables::TABLES
    }

    fn part_tables(&self) -> &'static [&'static str] {
        &["events", "records"]
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

    fn table(
        self: Box<Self>,
        table: &str,
        scan: &Scan,
        _options: &SpanOptions,
        out: &mut dyn RowSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        tables::read(self.0, table, scan, out, sink)
    }

    fn marks(self: Box<Self>, every_bytes: u64, out: &mut dyn MarkSink, sink: &mut dyn Sink) -> Result<(), Error> {
        marks::find(self.0, every_bytes, out, sink)
    }
}
