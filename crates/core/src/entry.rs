//! The two entry points of every format: [`Format`] and [`Trace`].
//!
//! Virtual calls happen here, once per file; inside a format everything is its own borrowed record.

use std::io::Write;
use std::path::Path;

use crate::index::{Index, MarkSink, Needs, Open};
use crate::layer::Compression;
use crate::span::{Mangling, SymbolSource, Symbols};
use crate::table::{RowSink, Scan, Table};
use crate::{
    AccessSink, Confidence, DumpOptions, Error, Explanation, FormatOption, Head, Info, Input, Limits, Lines,
    OpenOptions, Outcome, Plan, Rule, Selection, Sink, SpanOptions, SpanSink, Summary, Target, TargetOptions, jsonl,
};

/// A trace format: its name, how to recognize it, how to open it.
pub trait Format: Sync {
    /// Short lower-case name, as `--input-format` takes it.
    fn name(&self) -> &'static str;

    /// Name for people, with its usual capitals.
    fn title(&self) -> &'static str;

    /// The format's word for one record: "event", "transition".
    fn noun(&self) -> &'static str;

    /// Every rule a diagnostic of this format may name, except those of [`crate::layer_rules`].
    fn rules(&self) -> &'static [&'static Rule];

    /// What `convert --to` accepts for this format, with a line of help each. `jsonl` is among them; the first is the
    /// format's own name: the source's own form.
    fn targets(&self) -> &'static [(&'static str, &'static str)];

    /// Usual extensions of files of this format, without the dot; `bin.log` is one. They decide between formats whose
    /// probes are equally sure, and choose the form where `convert` writes a file with such a name.
    fn extensions(&self) -> &'static [&'static str];

    /// True when writing this form (`None`: the format's usual one) patches bytes already written; other forms can be
    /// written to a pipe.
    fn patches(&self, _to: Option<&str>) -> bool {
        false
    }

    /// Options that only this format, or few formats, have. `OpenOptions`, `Selection` and `TargetOptions` carry their
    /// values by name.
    fn options(&self) -> &'static [FormatOption] {
        &[]
    }

    /// Looks at the head and returns how sure it is. Allocates nothing that depends on input.
    fn probe(&self, head: &Head<'_>) -> Confidence;

    /// Opens a trace. A known format in an unknown version opens: its verbs report the version and read no further.
    ///
    /// # Errors
    /// Usage errors (an option the format does not have) and I/O. Damage is reported by the verbs.
    fn open(&self, input: Input, options: &OpenOptions) -> Result<Box<dyn Trace>, Error>;

    /// Why a trace that begins like this cannot be read while it is written, as the end of a sentence: "its index is at
    /// the end"; none where it can.
    fn needs_end(&self, _head: &Head<'_>) -> Option<&'static str> {
        None
    }

    /// The trace with what belongs to it in files beside it: what a program that was killed had recorded and not written
    /// yet. With it a line for people that says what was added; most traces are as they are.
    ///
    /// # Errors
    /// I/O.
    fn completed(&self, _path: &Path, input: Input) -> Result<(Input, Option<String>), Error> {
        Ok((input, None))
    }

    /// Reads files that name what a trace has only numbers for: programs with an instrumentation map, for example.
    ///
    /// # Errors
    /// [`crate::Kind::Usage`] where the format's traces need no such files; I/O; malformed files.
    fn symbols(&self, _sources: &[SymbolSource], _mangling: Mangling) -> Result<Box<dyn Symbols>, Error> {
        Err(Error::usage(format!("--program does not apply to {} traces", self.name())))
    }

    /// The file beside a trace that says which programs were recorded, as `anytrace record` leaves it there, to be given to
    /// [`Self::symbols`] with the sources that the user names; `None` where there is none, or one of them takes its place.
    fn symbols_beside(&self, _trace: &Path, _sources: &[SymbolSource]) -> Option<SymbolSource> {
        None
    }

    /// Names for a trace: from the sources that the user names, from the file beside the trace, and from what the trace
    /// itself names. `None` where there is nothing of the kind.
    ///
    /// # Errors
    /// As [`Self::symbols`].
    fn symbols_of(
        &self,
        trace: &Path,
        sources: &[SymbolSource],
        mangling: Mangling,
    ) -> Result<Option<Box<dyn Symbols>>, Error> {
        let beside = self.symbols_beside(trace, sources);
        if sources.is_empty() && beside.is_none() && !self.finds_symbols() {
            return Ok(None);
        }
        let all: Vec<SymbolSource> = sources.iter().cloned().chain(beside).collect();
        self.symbols(&all, mangling).map(Some)
    }

    /// True when [`Self::symbols`] finds files by itself, which the trace names: it is asked without any, too.
    fn finds_symbols(&self) -> bool {
        false
    }

    /// True when [`Trace::spans`] works for traces of this format.
    fn has_spans(&self) -> bool {
        false
    }

    /// True when traces of this format may say which span caused another: [`crate::span::SpanOptions::causes`].
    fn has_causes(&self) -> bool {
        false
    }

    /// True when [`Trace::accesses`] works for traces of this format.
    fn has_accesses(&self) -> bool {
        false
    }

    /// The tables that [`Trace::table`] makes of traces of this format, the first of them `events`. Those of lanes, such
    /// as `spans` and `accesses`, are not among them unless the format makes its own: [`crate::tables::all`].
    fn tables(&self) -> &'static [Table] {
        &[]
    }

    /// Columns of the table `events` that are empty in every trace of this format: an index is made without them.
    fn empty_event_columns(&self) -> &'static [&'static str] {
        &[]
    }

    /// The tables whose rows can be read part by part: with [`OpenOptions::part`], each part hands out the rows of the
    /// records that end in it, and reports what is wrong between its first byte and its last. All other tables are read
    /// from the start to the end of a trace.
    fn part_tables(&self) -> &'static [&'static str] {
        &[]
    }

    /// Compressions in which reading can begin in the middle of a trace: each is the only one, and has parts that can be
    /// decoded on their own. Traces in any other are read as one part.
    fn part_compressions(&self) -> &'static [Compression] {
        &[]
    }

    /// What [`Trace::dump`] needs of a trace with this index: the parts that hold it, one after the other, give the same
    /// output and the same diagnostics. `None` where all of the trace must be read at once. `open` opens it once more.
    ///
    /// # Errors
    /// As [`Trace::dump`].
    fn dump_needs(
        &self,
        _dump: &DumpOptions,
        _index: &Index,
        _open: &Open<'_>,
        _options: &OpenOptions,
    ) -> Result<Option<Needs>, Error> {
        Ok(None)
    }

    /// What a trim needs of a trace with this index, which contains no damage: the parts that hold it, trimmed one after
    /// the other, give the same output. `None` where what is written depends on all records before.
    ///
    /// # Errors
    /// As [`Trace::rewrite`].
    fn trim_needs(&self, _selection: &Selection, _index: &Index) -> Result<Option<Needs>, Error> {
        Ok(None)
    }

    /// What the format explains about its traces in words.
    fn explanations(&self) -> &'static [Explanation] {
        &[]
    }

    /// Tables of the lanes that have no rows in this format.
    fn empty_tables(&self) -> &'static [&'static str] {
        &[]
    }

    /// True when traces have frames that a replay can show.
    fn has_frames(&self) -> bool {
        false
    }

    /// True when an explanation of an attribute or a record is worth asking for at a span or record of this name.
    fn explains(&self, _explanation: &str, _name: &[u8]) -> bool {
        true
    }

    /// Writes one of [`Self::explanations`] about a trace, which `open` opens as often as needed; `at` is the number that
    /// its subject asks for.
    ///
    /// # Errors
    /// As [`Trace::info`], what `out` returns, and [`crate::Kind::Usage`] for an explanation that the format does not have.
    fn explain(
        &self,
        explanation: &str,
        _at: Option<u64>,
        _open: &Open<'_>,
        _options: &OpenOptions,
        _out: &mut dyn Lines,
        _sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        Err(Error::usage(format!("{} traces have no explanation {explanation}", self.name())))
    }

    /// True when the input is this format's JSON lines, as `dump --format jsonl` prints them.
    fn recognizes_jsonl(&self, head: &Head<'_>) -> bool {
        jsonl::header_format(head.bytes).is_some_and(|name| name == self.name())
    }

    /// Writes a trace from JSON lines.
    ///
    /// # Errors
    /// [`crate::Kind::Malformed`] with line and field where a line does not describe a record.
    fn import(
        &self,
        input: Input,
        options: &ImportOptions<'_>,
        out: &mut dyn Target,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Error>;
}

/// What [`Format::import`] needs besides the input.
#[derive(Debug, Clone, Copy)]
pub struct ImportOptions<'a> {
    /// The form to write.
    pub target: &'a TargetOptions,
    /// Limits on lines and values.
    pub limits: Limits,
}

/// An opened trace. Every verb is one pass over the input and consumes it, so all of them work on a pipe.
///
/// Damage goes to the sink, with its place; everything readable after it is read.
pub trait Trace: Send {
    /// Counts everything. Reports damage (grammar), not the rules beyond it.
    ///
    /// # Errors
    /// I/O, limits, or what the sink returns.
    fn info(self: Box<Self>, sink: &mut dyn Sink) -> Result<Info, Error>;

    /// Prints records in the order of the file, one per line.
    ///
    /// # Errors
    /// As [`Self::info`], and when `out` fails.
    fn dump(self: Box<Self>, options: &DumpOptions, out: &mut dyn Write, sink: &mut dyn Sink)
    -> Result<Summary, Error>;

    /// Reports every violation of the format's rules: grammar, order, pairing and whatever else its page names.
    ///
    /// # Errors
    /// As [`Self::info`].
    fn check(self: Box<Self>, sink: &mut dyn Sink) -> Result<Summary, Error>;

    /// Writes the trace again: unchanged, repaired or in part, in the form the plan asks for.
    ///
    /// # Errors
    /// As [`Self::info`]; [`crate::Kind::Unsupported`] when the target form cannot hold a record.
    fn rewrite(self: Box<Self>, plan: &Plan, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error>;

    /// Emits the trace as spans: for statistics, flame graphs, timelines and the outputs for other viewers.
    ///
    /// # Errors
    /// As [`Self::info`]; [`crate::Kind::Unsupported`] for formats whose records are not intervals.
    fn spans(
        self: Box<Self>,
        _options: &SpanOptions,
        _out: &mut dyn SpanSink,
        _sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        Err(Error::unsupported("traces of this format have no spans to show"))
    }

    /// Emits the trace as memory accesses: for cache simulation, miss-ratio curves and every other analysis of who
    /// touched which address.
    ///
    /// # Errors
    /// As [`Self::info`]; [`crate::Kind::Unsupported`] for formats whose records are not accesses.
    fn accesses(self: Box<Self>, _out: &mut dyn AccessSink, _sink: &mut dyn Sink) -> Result<Summary, Error> {
        Err(Error::unsupported("traces of this format have no memory accesses"))
    }

    /// Hands out the rows of one of [`Format::tables`], with names of `options` where it has symbols.
    ///
    /// # Errors
    /// As [`Self::info`]; [`crate::Kind::Usage`] for a table that the format does not have.
    fn table(
        self: Box<Self>,
        table: &str,
        _scan: &Scan,
        _options: &SpanOptions,
        _out: &mut dyn RowSink,
        _sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        Err(Error::usage(format!("traces of this format have no table {table}")))
    }

    /// Finds the places where reading can begin with [`OpenOptions::part`], one for about `every_bytes` bytes, and
    /// reports the damage between them as [`Self::table`] does. Formats without [`Format::part_tables`] find none, and
    /// read nothing.
    ///
    /// # Errors
    /// As [`Self::info`].
    fn marks(self: Box<Self>, _every_bytes: u64, _out: &mut dyn MarkSink, _sink: &mut dyn Sink) -> Result<(), Error> {
        Ok(())
    }
}
