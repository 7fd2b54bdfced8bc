//! The entry points: probe, open, and the verbs.

use std::io::Write;
use std::sync::PoisonError;

use anytrace_core::index::Part;
use anytrace_core::{
    Confidence, Cursor, DumpForm, DumpOptions, Error, Format, FormatOption, Head, ImportOptions, Info, Input, Limits,
    OpenOptions, Outcome, Place, Plan, Rule, Selection, Sink, Summary, Target, TargetOptions, Trace,
};
use serde_json::Value;

use crate::options::OPTIONS;
use crate::rules;
use crate::verbs::check::Checker;
use crate::verbs::dump::{Print, Printer};
use crate::verbs::info::Counter;
use crate::verbs::jsonl::{self, Bytes};
use crate::verbs::rewrite;
use crate::wire::basic::{BasicWalk, walk_basic};
use crate::wire::fdr::{BUFFER_SIZE_MAX, FdrWalk};
use crate::wire::marks::refused;
use crate::wire::open::{Form, Opened, XrayTrace, end, read_to_end, starts_as_fdr};
use crate::wire::parse::parse_header;
use crate::wire::record::{BasicBody, BasicRecord, HEADER_BYTES, Header, Orders, TYPE_BASIC, TYPE_FDR};
use crate::wire::recover::is_preamble;
use crate::wire::yaml::{YamlHeader, YamlMoments, looks_like_yaml, walk_yaml};

/// LLVM XRay traces: FDR, Basic and YAML.
#[derive(Debug, Clone, Copy, Default)]
pub struct Xray;

impl Format for Xray {
    fn name(&self) -> &'static str {
        "xray"
    }

    fn title(&self) -> &'static str {
        "LLVM XRay"
    }

    fn noun(&self) -> &'static str {
        "record"
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &rules::RULES
    }

    fn targets(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("xray", "the form of the source: FDR, Basic or YAML"),
            ("fdr", "flight data recorder, versions 1 to 5"),
            ("basic", "Basic (naive), versions 1 to 3; function records only"),
            ("yaml", "the text form of llvm-xray convert"),
            ("jsonl", "one JSON object per record with every field"),
        ]
    }

    fn options(&self) -> &'static [FormatOption] {
        OPTIONS
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["xray"]
    }

    /// Sizes and counts in headers of FDR and Basic traces are known only at the end.
    fn patches(&self, to: Option<&str>) -> bool {
        !matches!(to, Some("jsonl" | "yaml"))
    }

    fn probe(&self, head: &Head<'_>) -> Confidence {
        match (head.has_extension(&["xray"]), probe_bytes(head.bytes)) {
            (true, Confidence::No) => Confidence::Maybe,
            (true, Confidence::Maybe) => Confidence::Likely,
            (_, by_content) => by_content,
        }
    }

    #[cfg(feature = "lanes")]
    fn has_spans(&self) -> bool {
        true
    }

    #[cfg(feature = "lanes")]
    fn tables(&self) -> &'static [anytrace_core::table::Table] {
        crate::lanes::tables::TABLES
    }

    fn empty_event_columns(&self) -> &'static [&'static str] {
        &["duration_ns"]
    }

    #[cfg(feature = "lanes")]
    fn part_tables(&self) -> &'static [&'static str] {
        &["events", "custom_events", "calls", "spans"]
    }

    #[cfg(feature = "lanes")]
    fn dump_needs(
        &self,
        dump: &DumpOptions,
        _index: &anytrace_core::index::Index,
        open: &anytrace_core::index::Open<'_>,
        options: &OpenOptions,
    ) -> Result<Option<anytrace_core::index::Needs>, Error> {
        crate::lanes::marks::dump_needs(&dump.selection, open, options)
    }

    #[cfg(feature = "tools")]
    fn symbols(
        &self,
        sources: &[anytrace_core::span::SymbolSource],
        mangling: anytrace_core::span::Mangling,
    ) -> Result<Box<dyn anytrace_core::span::Symbols>, Error> {
        Ok(Box::new(crate::tools::map::load(sources, mangling)?))
    }

    #[cfg(feature = "tools")]
    fn symbols_beside(
        &self,
        trace: &std::path::Path,
        sources: &[anytrace_core::span::SymbolSource],
    ) -> Option<anytrace_core::span::SymbolSource> {
        let mut path = trace.file_name()?.to_owned();
        path.push(".maps");
        let path = trace.with_file_name(path);
        let is_given = || sources.iter().any(|source| crate::tools::map::is_process(&source.path));
        let is_there = crate::tools::map::is_process(&path) && !is_given();
        is_there.then_some(anytrace_core::span::SymbolSource { object: None, path })
    }

    fn open(&self, input: Input, options: &OpenOptions) -> Result<Box<dyn Trace>, Error> {
        options.only("xray", &["endian"], OPTIONS)?;
        Ok(Box::new(XrayTrace::new(input, options)))
    }

    fn import(
        &self,
        input: Input,
        options: &ImportOptions<'_>,
        out: &mut dyn Target,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Error> {
        let name = input.name().to_owned();
        let (bytes, failed) = Bytes::new(input, options.limits);
        let take = |error: Error| failed.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(error);
        let input = Input::from_read(&name, Box::new(bytes), None).map_err(take)?;
        if input.head().bytes.is_empty() {
            return Ok(Outcome::default());
        }
        let trace = XrayTrace::new(input, &OpenOptions { limits: options.limits, ..OpenOptions::default() });
        Box::new(trace).rewrite(&Plan::Convert(options.target.clone()), out, sink).map_err(take)
    }
}

fn probe_bytes(bytes: &[u8]) -> Confidence {
    if looks_like_yaml(bytes) {
        let has = |word: &[u8]| bytes.windows(word.len()).take(4096).any(|window| window == word);
        return match (has(b"cycle-frequency"), has(b"records:")) {
            (true, true) => Confidence::Certain,
            (false, false) => Confidence::Maybe,
            _ => Confidence::Likely,
        };
    }
    if bytes.len() < HEADER_BYTES {
        return probe_cut_header(bytes);
    }
    let Ok((header, layout)) = parse_header(bytes, None) else { return Confidence::No };
    let body = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let fits_fdr = starts_as_fdr(body, layout);
    match (header.is_known(), header.type_code) {
        (true, TYPE_FDR) if body.is_empty() || fits_fdr => Confidence::Certain,
        // A gap before the first buffer.
        (true, TYPE_FDR) if has_preamble(body, layout) => Confidence::Certain,
        (true, TYPE_BASIC) => probe_basic(&header, body, layout),
        (true, _) => Confidence::Likely,
        // One wrong number before what is a buffer all the same.
        (false, _) if fits_fdr && body.len() > 16 => Confidence::Likely,
        // A future version or type; a frequency of up to a terahertz.
        (false, 0..16) if (1..16).contains(&header.version) && header.cycle_frequency < 1 << 40 => Confidence::Maybe,
        _ => Confidence::No,
    }
}

/// A truncated header: version and type in either byte order.
fn probe_cut_header(bytes: &[u8]) -> Confidence {
    match bytes {
        [1..=5, 0, 1, 0, ..] | [1..=3, 0, 0, 0, ..] | [0, 1..=5, 0, 1, ..] | [0, 1..=3, 0, 0, ..] => Confidence::Likely,
        [1..=5, 0, 0..=1] | [0, 1..=5, 0] => Confidence::Maybe,
        _ => Confidence::No,
    }
}

/// True when the first bytes contain a buffer's preamble.
fn has_preamble(body: &[u8], layout: Orders) -> bool {
    (0..body.len().min(4096)).any(|at| body.get(at..).is_some_and(|rest| is_preamble(rest, layout)))
}

fn probe_basic(header: &Header, body: &[u8], layout: Orders) -> Confidence {
    let records = body.chunks_exact(32).take(64);
    let (all, good) =
        (records.len(), records.filter(|raw| crate::wire::parse::parse_basic(raw, layout.endian).is_ok()).count());
    let is_plausible = header.cycle_frequency < 1 << 40 && header.version > 0;
    let starts_with_function = matches!(
        crate::wire::parse::parse_basic(body, layout.endian),
        Ok(BasicRecord { body: BasicBody::Function { .. }, .. })
    );
    // No sequence of small numbers in another format looks like this: a frequency that a processor has, and no value
    // that is too large.
    let is_firm = header.reserved == 0
        && header.buffer_size <= BUFFER_SIZE_MAX
        && header.flags.min(header.flags.reverse_bits()) < 1 << 8
        && (1_000_000..1 << 40).contains(&header.cycle_frequency);
    match (all, good) {
        (0, _) if is_plausible && body.is_empty() => Confidence::Certain,
        (0, _) => Confidence::Likely,
        (_, good) if good == all && is_plausible && starts_with_function => Confidence::Certain,
        (_, good) if good * 4 >= all * 3 || is_firm => Confidence::Likely,
        _ => Confidence::Maybe,
    }
}

impl Trace for XrayTrace {
    fn info(self: Box<Self>, sink: &mut dyn Sink) -> Result<Info, Error> {
        let Opened { cursor, form, limits } = self.start(sink)?;
        let mut info = Info::new("xray");
        info.set_container(cursor.layers(), None);
        let (records, cursor) = match form {
            Form::Empty => (0, cursor),
            Form::Unreadable(about) => {
                if let Some((header, layout)) = about {
                    describe(&mut info, &header, layout);
                }
                (0, read_to_end(cursor)?)
            }
            Form::Yaml => info_yaml(cursor, &limits, &mut info, sink)?,
            Form::Binary(header, layout) => {
                let mut counter = Counter::new(sink, layout, header.version, &limits);
                describe(&mut info, &header, layout);
                let walked = if header.type_code == TYPE_FDR {
                    FdrWalk::new(cursor, header, layout, &limits).walk(&mut counter)?
                } else {
                    walk_basic(cursor, layout, &mut counter)?
                };
                counter.fill(&mut info, header.cycle_frequency, header.type_code == TYPE_FDR);
                walked
            }
        };
        info.records = records;
        info.bytes = end(&cursor, sink)?;
        Ok(info)
    }

    fn dump(
        self: Box<Self>,
        options: &DumpOptions,
        out: &mut dyn Write,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        let part = self.part.clone();
        let (start, opened) = self.start(sink)?.find_start(&options.selection, sink)?;
        let offsets = options.offsets && !options.without_positions;
        let print = Print { form: options.form, offsets, selection: &options.selection, start };
        let (records, _, cursor) = print_all(opened, print, &part, out, sink)?;
        let bytes = end(&cursor, sink)?;
        Ok(Summary { records, bytes })
    }

    fn check(self: Box<Self>, sink: &mut dyn Sink) -> Result<Summary, Error> {
        let Opened { cursor, form, limits } = self.start(sink)?;
        let (records, cursor) = match form {
            Form::Empty => (0, cursor),
            Form::Unreadable(_) => (0, read_to_end(cursor)?),
            Form::Yaml => {
                let mut checker = Checker::new(sink, 0);
                let mut moments =
                    YamlMoments { moments: &mut checker, on_header: |_: &mut Checker<'_>, _: &YamlHeader| Ok(()) };
                let (records, cursor) = walk_yaml(cursor, &limits, &mut moments)?;
                checker.finish(Place { offset: cursor.offset(), seq: records })?;
                (records, cursor)
            }
            Form::Binary(header, layout) => {
                let mut checker = Checker::new(sink, header.version);
                let (records, cursor) = if header.type_code == TYPE_FDR {
                    FdrWalk::new(cursor, header, layout, &limits).walk(&mut checker)?
                } else {
                    walk_basic(cursor, layout, &mut checker)?
                };
                checker.finish(Place { offset: cursor.offset(), seq: records })?;
                (records, cursor)
            }
        };
        let bytes = end(&cursor, sink)?;
        Ok(Summary { records, bytes })
    }

    #[cfg(feature = "lanes")]
    fn spans(
        self: Box<Self>,
        options: &anytrace_core::SpanOptions,
        out: &mut dyn anytrace_core::SpanSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        crate::lanes::part::emit(*self, options, &std::cell::RefCell::default(), out, sink)
    }

    #[cfg(feature = "lanes")]
    fn table(
        self: Box<Self>,
        table: &str,
        scan: &anytrace_core::table::Scan,
        options: &anytrace_core::SpanOptions,
        out: &mut dyn anytrace_core::table::RowSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        crate::lanes::tables::read(*self, table, scan, options, out, sink)
    }

    #[cfg(feature = "lanes")]
    fn marks(
        self: Box<Self>,
        every_bytes: u64,
        out: &mut dyn anytrace_core::index::MarkSink,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        crate::lanes::marks::find(*self, every_bytes, out, sink)
    }

    fn rewrite(self: Box<Self>, plan: &Plan, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        let target = plan.target();
        target.only("xray", &["version", "to-endian"], OPTIONS)?;
        if target.to.as_deref() == Some("jsonl") {
            return to_jsonl(*self, plan, target, out, sink);
        }
        rewrite::rewrite(self.start(sink)?, plan, out, sink)
    }
}

fn to_jsonl(
    trace: XrayTrace,
    plan: &Plan,
    target: &TargetOptions,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    if target.version.is_some() || target.endian.is_some() {
        return Err(Error::usage("--version and --to-endian do not apply to JSON lines: convert first"));
    }
    let all = Selection::default();
    let selection = if let Plan::Trim(selection, _) = plan { selection } else { &all };
    let (start, opened) = trace.start(sink)?.find_start(selection, sink)?;
    let print = Print { form: DumpForm::Jsonl, offsets: false, selection, start };
    let mut writer: &mut dyn Target = out;
    let (records_read, records_written, cursor) = print_all(opened, print, &Part::default(), &mut writer, sink)?;
    end(&cursor, sink)?;
    Ok(Outcome { records_read, records_written, ..Outcome::default() })
}

/// Stores what the header states.
fn describe(info: &mut Info, header: &Header, layout: Orders) {
    info.format_version = Some(header.version.to_string());
    info.byte_order = Some(layout.endian);
    info.dialect = layout.is_llvm_big().then(|| "llvm-big-endian".to_owned());
    let type_name = match header.type_code {
        TYPE_BASIC => "basic".to_owned(),
        TYPE_FDR => "fdr".to_owned(),
        other => other.to_string(),
    };
    info.details.push(("type", Value::from(type_name)));
    info.details.push(("constant_tsc", Value::from(header.constant_tsc(layout))));
    info.details.push(("nonstop_tsc", Value::from(header.nonstop_tsc(layout))));
    info.details.push(("cycle_frequency", Value::from(header.cycle_frequency)));
    if header.type_code == TYPE_FDR {
        info.details.push(("buffer_size", Value::from(header.buffer_size)));
    }
}

fn info_yaml(cursor: Cursor, limits: &Limits, info: &mut Info, sink: &mut dyn Sink) -> Result<(u64, Cursor), Error> {
    let mut counter = Counter::new(sink, Orders::default(), 0, limits);
    let mut seen = YamlHeader::default();
    let on_header = |_: &mut Counter<'_>, header: &YamlHeader| {
        seen = *header;
        Ok(())
    };
    let mut moments = YamlMoments { moments: &mut counter, on_header };
    let walked = walk_yaml(cursor, limits, &mut moments)?;
    info.format_version = Some(seen.version.to_string());
    info.details.push(("type", Value::from("yaml")));
    info.details.push(("record_type", Value::from(seen.type_code)));
    info.details.push(("constant_tsc", Value::from(seen.constant_tsc)));
    info.details.push(("nonstop_tsc", Value::from(seen.nonstop_tsc)));
    info.details.push(("cycle_frequency", Value::from(seen.cycle_frequency)));
    counter.fill(info, seen.cycle_frequency, false);
    Ok(walked)
}

/// Prints a trace, or a part of it; returns records read and printed.
fn print_all(
    opened: Opened,
    print: Print<'_>,
    part: &Part,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<(u64, u64, Cursor), Error> {
    let Opened { cursor, form, limits } = opened;
    let is_jsonl = print.form == DumpForm::Jsonl && part.from.is_none();
    if let (Some(mark), Form::Empty | Form::Unreadable(_) | Form::Yaml) = (&part.from, &form) {
        return Err(refused(mark.offset));
    }
    match form {
        Form::Empty | Form::Unreadable(_) => {
            if is_jsonl {
                let mut line = Vec::new();
                jsonl::push_no_header(&mut line);
                out.write_all(&line)?;
            }
            Ok((0, 0, read_to_end(cursor)?))
        }
        Form::Yaml => print_yaml(cursor, &limits, print, out, sink),
        Form::Binary(header, layout) => {
            let is_fdr = header.type_code == TYPE_FDR;
            let mut printer = Printer::new(print, header.cycle_frequency, header.version, is_fdr, out, sink)?;
            if is_jsonl {
                jsonl::push_header(printer.text(), &header, layout);
            }
            let (records, cursor) = if is_fdr {
                let mut walk = FdrWalk::new(cursor, header, layout, &limits);
                printer.known = walk.read_part(part)?;
                while walk.step(&mut printer)? {}
                (walk.seq, walk.cursor)
            } else {
                let mut walk = BasicWalk::new(cursor, layout);
                walk.read_part(part)?;
                while walk.step(usize::MAX, &mut printer)? {}
                (walk.seq, walk.cursor)
            };
            printer.finish()?;
            Ok((records, printer.printed(), cursor))
        }
    }
}

fn print_yaml(
    mut cursor: Cursor,
    limits: &Limits,
    print: Print<'_>,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<(u64, u64, Cursor), Error> {
    // Relative times need the frequency before the first entry.
    cursor.fill(4096)?;
    let window = cursor.window();
    let frequency = rewrite::yaml_frequency(window.get(..4096).unwrap_or(window));
    let mut printer = Printer::new(print, frequency, 0, false, out, sink)?;
    let (records, cursor) = walk_yaml(cursor, limits, &mut printer)?;
    printer.finish()?;
    Ok((records, printer.printed(), cursor))
}
