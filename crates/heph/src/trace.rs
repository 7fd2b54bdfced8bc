//! The entry points: how the toolkit uses this format.

use std::io::Write;
#[cfg(feature = "lanes")]
use std::path::Path;

use anytrace_core::{
    Confidence, DumpForm, DumpOptions, Error, Format, FormatOption, Head, ImportOptions, Info, Input, Limits,
    OpenOptions, Outcome, Plan, Rule, Sink, Summary, Target, Trace,
};

#[cfg(feature = "lanes")]
use anytrace_core::table::{RowSink, Scan, Table};
#[cfg(feature = "lanes")]
use anytrace_core::{SpanOptions, SpanSink};

use crate::options::OPTIONS;
use crate::verbs::check::Checker;
use crate::verbs::dump::TextDump;
use crate::verbs::info::Counter;
use crate::verbs::jsonl::{JsonDump, Purpose};
use crate::verbs::select::Filter;
use crate::wire::parse::{EVENT_MAGIC, METADATA_MAGIC, Need, parse_within};
use crate::wire::reader::Reader;
use crate::{
    rules,
    verbs::{import, rewrite},
};

/// The Heph trace format.
#[derive(Debug, Clone, Copy, Default)]
pub struct Heph;

static TARGETS: [(&str, &str); 2] = [
    ("heph", "the same packets, byte for byte"),
    ("jsonl", "one JSON object per packet, as `dump --format jsonl` prints them; converts back to the same bytes"),
];

impl Format for Heph {
    fn name(&self) -> &'static str {
        "heph"
    }

    fn title(&self) -> &'static str {
        "Heph"
    }

    fn noun(&self) -> &'static str {
        "event"
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &rules::RULES
    }

    fn targets(&self) -> &'static [(&'static str, &'static str)] {
        &TARGETS
    }

    fn options(&self) -> &'static [FormatOption] {
        OPTIONS
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["heph", "bin.log", "bin"]
    }

    fn probe(&self, head: &Head<'_>) -> Confidence {
        probe(head)
    }

    fn open(&self, input: Input, options: &OpenOptions) -> Result<Box<dyn Trace>, Error> {
        options.only("heph", &[], OPTIONS)?;
        Ok(Box::new(Opened { reader: Reader::new(input, options)?, limits: options.limits }))
    }

    #[cfg(feature = "lanes")]
    fn completed(&self, path: &Path, input: Input) -> Result<(Input, Option<String>), Error> {
        let Some(rest) = crate::memory::rest_of(path)?.filter(|rest| rest.events > 0) else { return Ok((input, None)) };
        let note = format!("with {} events that were not written yet, from {}", rest.events, rest.file.display());
        let fate = if rest.is_running {
            "process {} still records"
        } else {
            "process {} is gone; `anytrace heph recover` makes one file of both"
        };
        let note = format!("{note}: {}", fate.replace("{}", &rest.process.to_string()));
        Ok((crate::memory::completed(path, &rest)?, Some(note)))
    }

    #[cfg(feature = "lanes")]
    fn has_causes(&self) -> bool {
        cfg!(feature = "lanes")
    }

    fn has_spans(&self) -> bool {
        true
    }

    #[cfg(feature = "lanes")]
    fn tables(&self) -> &'static [Table] {
        crate::lanes::tables::TABLES
    }

    #[cfg(feature = "lanes")]
    fn part_tables(&self) -> &'static [&'static str] {
        &["events", "packets", "attributes"]
    }

    #[cfg(feature = "lanes")]
    fn dump_needs(
        &self,
        dump: &DumpOptions,
        index: &anytrace_core::index::Index,
        _open: &anytrace_core::index::Open<'_>,
        _options: &OpenOptions,
    ) -> Result<Option<anytrace_core::index::Needs>, Error> {
        crate::lanes::marks::dump_needs(dump, index)
    }

    #[cfg(feature = "lanes")]
    fn trim_needs(
        &self,
        selection: &anytrace_core::Selection,
        index: &anytrace_core::index::Index,
    ) -> Result<Option<anytrace_core::index::Needs>, Error> {
        crate::lanes::marks::trim_needs(selection, index)
    }

    #[cfg(feature = "tools")]
    fn explanations(&self) -> &'static [anytrace_core::Explanation] {
        crate::tools::words::EXPLANATIONS
    }

    #[cfg(feature = "tools")]
    fn explain(
        &self,
        explanation: &str,
        _at: Option<u64>,
        open: &anytrace_core::index::Open<'_>,
        options: &OpenOptions,
        out: &mut dyn anytrace_core::Lines,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        crate::tools::words::explain(explanation, open, options, out, sink)
    }

    fn recognizes_jsonl(&self, head: &Head<'_>) -> bool {
        import::recognizes(head)
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

/// Certain with a packet at the start; likely with a packet further in, or a start in the wrong byte order.
fn probe(head: &Head<'_>) -> Confidence {
    let has_name = head.has_extension(&["heph"]) || head.has_extension(&["bin.log"]);
    let by_name = if has_name { Confidence::Maybe } else { Confidence::No };
    let magics = [EVENT_MAGIC, METADATA_MAGIC];
    match parse_within(head.bytes, Limits::default().record_bytes_max) {
        Ok(_) => return Confidence::Certain,
        Err(Need::More(need)) if need > head.bytes.len() as u64 && head.bytes.len() >= 8 => return Confidence::Certain,
        Err(Need::More(_)) => {
            let is_cut =
                magics.iter().any(|magic| magic.to_be_bytes().starts_with(head.bytes)) && !head.bytes.is_empty();
            let has_magic = head.bytes.len() >= 4;
            return if is_cut || has_magic && starts_with_magic(head.bytes) { Confidence::Likely } else { by_name };
        }
        Err(Need::Bad(_)) => {}
    }
    let is_swapped = magics.iter().any(|magic| head.bytes.starts_with(&magic.to_le_bytes()));
    if starts_with_magic(head.bytes) || is_swapped || contains_packet(head.bytes) {
        Confidence::Likely
    } else {
        by_name
    }
}

fn starts_with_magic(bytes: &[u8]) -> bool {
    bytes.starts_with(&EVENT_MAGIC.to_be_bytes()) || bytes.starts_with(&METADATA_MAGIC.to_be_bytes())
}

/// True when the head contains a complete packet of some substance.
fn contains_packet(head: &[u8]) -> bool {
    let mut work_left = head.len() * 16;
    for at in 0..head.len() {
        let rest = head.get(at..).unwrap_or_default();
        if !starts_with_magic(rest) {
            continue;
        }
        match parse_within(rest, head.len() as u64) {
            Ok((_, size)) if size > 10 => return true,
            Err(Need::Bad(fault)) => work_left = work_left.saturating_sub(fault.at),
            _ => {}
        }
        if work_left == 0 {
            break;
        }
    }
    false
}

/// An opened trace.
struct Opened {
    reader: Reader,
    limits: Limits,
}

impl Trace for Opened {
    fn info(mut self: Box<Self>, sink: &mut dyn Sink) -> Result<Info, Error> {
        let mut counter = Counter::new(self.limits.distinct_max, sink);
        let summary = self.reader.read(&mut counter)?;
        let mut info = counter.finish();
        info.bytes = summary.bytes;
        info.set_container(self.reader.layers(), None);
        Ok(info)
    }

    fn dump(
        mut self: Box<Self>,
        options: &DumpOptions,
        out: &mut dyn Write,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        let filter = Filter::new(&options.selection, &mut self.reader, sink)?;
        match options.form {
            DumpForm::Text => {
                let mut dump = TextDump::new(options, filter, out, sink);
                let summary = self.reader.read(&mut dump)?;
                dump.finish()?;
                Ok(summary)
            }
            DumpForm::Jsonl => {
                let dump = JsonDump::new(filter, Purpose::Dump, self.limits.distinct_max, out, sink);
                let mut dump = if options.without_positions { dump.without_positions() } else { dump };
                let summary = self.reader.read(&mut dump)?;
                dump.finish()?;
                Ok(summary)
            }
        }
    }

    fn check(mut self: Box<Self>, sink: &mut dyn Sink) -> Result<Summary, Error> {
        let mut checker = Checker::new(self.limits.distinct_max, sink);
        let summary = self.reader.read(&mut checker)?;
        checker.finish()?;
        Ok(summary)
    }

    #[cfg(feature = "lanes")]
    fn spans(
        self: Box<Self>,
        options: &SpanOptions,
        out: &mut dyn SpanSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        match options.causes {
            Some(causes) => crate::lanes::spans::causes::emit(self.reader, causes, out, sink),
            None => crate::lanes::spans::emit(self.reader, out, sink),
        }
    }

    #[cfg(feature = "lanes")]
    fn table(
        self: Box<Self>,
        table: &str,
        scan: &Scan,
        _: &SpanOptions,
        out: &mut dyn RowSink,
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
        crate::lanes::marks::find(self.reader, every_bytes.max(1), out, sink)
    }

    fn rewrite(mut self: Box<Self>, plan: &Plan, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        rewrite::rewrite(&mut self.reader, self.limits.distinct_max, plan, out, sink)
    }
}
