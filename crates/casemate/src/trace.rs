//! The entry points: [`Casemate`] and its opened trace.

use std::io::Write;

use anytrace_core::index::{Index, MarkSink, Needs, Open};
use anytrace_core::table::{RowSink, Scan, Table};
use anytrace_core::{
    Confidence, DumpOptions, Error, Format, FormatOption, Head, ImportOptions, Info, Input, Limits, OpenOptions,
    Outcome, Plan, Rule, Sink, SpanOptions, Summary, Target, Trace,
};

use crate::options::OPTIONS;
use crate::verbs::check::Checker;
use crate::verbs::model_check::ModelCheck;
use crate::wire::walk::Walk;
use crate::{
    rules,
    verbs::{dump, info, rewrite, trim},
    wire::probe,
};

/// The casemate format: logs of page-table operations for the break-before-make checker.
#[derive(Debug, Clone, Copy, Default)]
pub struct Casemate;

impl Format for Casemate {
    fn name(&self) -> &'static str {
        "casemate"
    }

    fn title(&self) -> &'static str {
        "Casemate offline trace"
    }

    fn noun(&self) -> &'static str {
        "transition"
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &rules::ALL_RULES
    }

    fn targets(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (
                "casemate",
                "the same records; --style canonical, positional or pretty and --to-radix hex or dec rewrite them",
            ),
            ("jsonl", "JSON lines: one object per transition, read back by convert"),
        ]
    }

    fn options(&self) -> &'static [FormatOption] {
        OPTIONS
    }

    fn tables(&self) -> &'static [Table] {
        &crate::lanes::tables::TABLES
    }

    #[cfg(feature = "tools")]
    fn explanations(&self) -> &'static [anytrace_core::Explanation] {
        crate::tools::words::EXPLANATIONS
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

    fn part_tables(&self) -> &'static [&'static str] {
        &["events", "transitions"]
    }

    fn dump_needs(
        &self,
        dump: &DumpOptions,
        _index: &Index,
        _open: &Open<'_>,
        _options: &OpenOptions,
    ) -> Result<Option<Needs>, Error> {
        Ok(crate::lanes::marks::dump_needs(dump))
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["casemate", "log", "trace"]
    }

    fn probe(&self, head: &Head<'_>) -> Confidence {
        probe::probe(head)
    }

    fn open(&self, input: Input, options: &OpenOptions) -> Result<Box<dyn Trace>, Error> {
        Opened::open(input, options, true)
    }

    fn import(
        &self,
        input: Input,
        options: &ImportOptions<'_>,
        out: &mut dyn Target,
        _: &mut dyn Sink,
    ) -> Result<Outcome, Error> {
        rewrite::import(input, options, out)
    }
}

/// The casemate format without the break-before-make checker: its `check` verifies that the trace is well-formed, not
/// that the traced program followed the rules.
///
/// Repair and trim promise a trace that passes this check; a violation of the program stays a violation.
#[derive(Debug, Clone, Copy, Default)]
pub struct GrammarOnly;

impl Format for GrammarOnly {
    fn name(&self) -> &'static str {
        Casemate.name()
    }

    fn title(&self) -> &'static str {
        Casemate.title()
    }

    fn noun(&self) -> &'static str {
        Casemate.noun()
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &rules::RULES
    }

    fn targets(&self) -> &'static [(&'static str, &'static str)] {
        Casemate.targets()
    }

    fn options(&self) -> &'static [FormatOption] {
        OPTIONS
    }

    fn tables(&self) -> &'static [Table] {
        Casemate.tables()
    }

    fn empty_event_columns(&self) -> &'static [&'static str] {
        Casemate.empty_event_columns()
    }

    fn part_tables(&self) -> &'static [&'static str] {
        Casemate.part_tables()
    }

    fn extensions(&self) -> &'static [&'static str] {
        Casemate.extensions()
    }

    fn probe(&self, head: &Head<'_>) -> Confidence {
        Casemate.probe(head)
    }

    fn open(&self, input: Input, options: &OpenOptions) -> Result<Box<dyn Trace>, Error> {
        Opened::open(input, options, false)
    }

    fn import(
        &self,
        input: Input,
        options: &ImportOptions<'_>,
        out: &mut dyn Target,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Error> {
        Casemate.import(input, options, out, sink)
    }
}

struct Opened {
    reader: Walk,
    limits: Limits,
    has_model: bool,
}

impl Opened {
    fn open(input: Input, options: &OpenOptions, has_model: bool) -> Result<Box<dyn Trace>, Error> {
        options.only("casemate", &[], OPTIONS)?;
        Ok(Box::new(Self { reader: Walk::new(input, options)?, limits: options.limits, has_model }))
    }
}

impl Trace for Opened {
    fn info(mut self: Box<Self>, sink: &mut dyn Sink) -> Result<Info, Error> {
        info::info(&mut self.reader, self.limits, sink)
    }

    fn dump(
        mut self: Box<Self>,
        options: &DumpOptions,
        out: &mut dyn Write,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        dump::dump(&mut self.reader, options, out, sink)
    }

    fn check(mut self: Box<Self>, sink: &mut dyn Sink) -> Result<Summary, Error> {
        let mut checker = Checker::new(self.reader.radix(), self.limits.distinct_max);
        if self.has_model {
            let mut model = ModelCheck::new();
            self.reader.for_each(sink, |item, place| {
                checker.take(&item, place)?;
                model.take(&item, place)
            })?;
        } else {
            self.reader.for_each(sink, |item, place| checker.take(&item, place))?;
        }
        Ok(Summary { records: self.reader.records(), bytes: self.reader.offset() })
    }

    fn rewrite(mut self: Box<Self>, plan: &Plan, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        match plan {
            Plan::Convert(target) => rewrite::convert(&mut self.reader, target, out, sink),
            Plan::Repair(target) => rewrite::repair(&mut self.reader, target, out, sink),
            Plan::Trim(selection, target) => trim::trim(&mut self.reader, selection, target, self.limits, out, sink),
        }
    }

    fn table(
        mut self: Box<Self>,
        table: &str,
        scan: &Scan,
        _options: &SpanOptions,
        out: &mut dyn RowSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        crate::lanes::tables::read(&mut self.reader, table, scan, out, sink)
    }
    fn marks(self: Box<Self>, every_bytes: u64, out: &mut dyn MarkSink, sink: &mut dyn Sink) -> Result<(), Error> {
        crate::lanes::marks::find(self.reader, every_bytes, out, sink)
    }
}
