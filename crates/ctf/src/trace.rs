//! The entry points: [`Ctf`] and its opened trace.

use std::io::Write;
use std::path::Path;

use anytrace_core::table::{RowSink, Scan, Table};
use anytrace_core::{
    Confidence, DumpOptions, Error, Format, FormatOption, Head, ImportOptions, Info, Input, InputOptions, OpenOptions,
    Outcome, Plan, Rule, Sink, SpanOptions, Summary, Target, Trace,
};

use crate::lanes::tables;
use crate::options::OPTIONS;
use crate::rules::RULES;
use crate::tsdl::text;
use crate::verbs::{check, dump, import, info, rewrite};
use crate::wire::catalog::DESCRIPTION;
use crate::wire::probe::{self, EXTENSIONS};
use crate::wire::reader::Reader;
use crate::wire::record::NAME;

/// The format, for the entry points of [`anytrace_core`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ctf;

impl Format for Ctf {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Common Trace Format"
    }

    fn noun(&self) -> &'static str {
        "record"
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &RULES
    }

    fn targets(&self) -> &'static [(&'static str, &'static str)] {
        &[(NAME, "the same packets, byte for byte"), ("jsonl", "JSON lines, one object per record")]
    }

    fn options(&self) -> &'static [FormatOption] {
        OPTIONS
    }

    fn extensions(&self) -> &'static [&'static str] {
        EXTENSIONS
    }

    fn probe(&self, head: &Head<'_>) -> Confidence {
        probe::probe(head)
    }

    fn open(&self, input: Input, options: &OpenOptions) -> Result<Box<dyn Trace>, Error> {
        options.only(NAME, &[], OPTIONS)?;
        Ok(Box::new(Opened { reader: Reader::new(input, options)?, distinct_max: options.limits.distinct_max }))
    }

    /// The description alone stands for the folder that it is in.
    fn completed(&self, path: &Path, input: Input) -> Result<(Input, Option<String>), Error> {
        let is_description = path.file_name().is_some_and(|name| name == DESCRIPTION);
        if !is_description || !text::is_description(input.head().bytes) || !path.is_file() {
            return Ok((input, None));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok((Input::open(folder, InputOptions::default())?, None))
    }

    fn tables(&self) -> &'static [Table] {
        &tables::TABLES
    }

    fn has_spans(&self) -> bool {
        cfg!(feature = "lanes")
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
    /// The most threads, providers and the like that are kept apart.
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
        check::check(self.reader, sink)
    }

    fn rewrite(self: Box<Self>, plan: &Plan, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        rewrite::rewrite(self.reader, plan, out, sink)
    }

    fn table(
        self: Box<Self>,
        table: &str,
        scan: &Scan,
        _options: &SpanOptions,
        out: &mut dyn RowSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        tables::read(self.reader, table, scan, out, sink)
    }

    #[cfg(feature = "lanes")]
    fn spans(
        self: Box<Self>,
        _options: &SpanOptions,
        out: &mut dyn anytrace_core::SpanSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        crate::lanes::spans::emit(self.reader, self.distinct_max, out, sink)
    }
}
