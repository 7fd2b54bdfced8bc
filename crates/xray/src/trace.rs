//! The entry points: probe, open, and the verbs.

use std::io::Write;
use std::sync::PoisonError;

use anytrace_core::{
    Collect, Confidence, Cursor, DumpForm, DumpOptions, Endian, Error, Format, Head, ImportOptions, Info, Input,
    Limits, OpenOptions, Outcome, Plan, Rule, Selection, Sink, SpanOptions, SpanSink, Summary, Target, TargetOptions,
    Trace,
};
use serde_json::Value;

use crate::basic::walk_basic;
use crate::check::Checker;
use crate::dump::{Print, Printer};
use crate::info::Counter;
use crate::jsonl::{self, Bytes};
use crate::ordered::Ordered;
use crate::parse::parse_header;
use crate::reader::{At, BUFFER_SIZE_MAX, Reader, Visitor};
use crate::record::{BasicBody, BasicRecord, HEADER_BYTES, Header, Layout, METADATA_BYTES, TYPE_BASIC, TYPE_FDR, kind};
use crate::recover::is_preamble;
use crate::rewrite;
use crate::rules;
use crate::spans;
use crate::yaml::{YamlHeader, YamlMoments, looks_like_yaml, walk_yaml};

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
            ("jsonl", "one JSON object a record, every field of the wire"),
        ]
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

    fn has_spans(&self) -> bool {
        true
    }

    #[cfg(feature = "tools")]
    fn symbols(
        &self,
        sources: &[anytrace_core::span::SymbolSource],
        mangling: anytrace_core::span::Mangling,
    ) -> Result<Box<dyn anytrace_core::span::Symbols>, Error> {
        Ok(Box::new(crate::tools::map::load(sources, mangling)?))
    }

    fn open(&self, input: Input, options: &OpenOptions) -> Result<Box<dyn Trace>, Error> {
        options.only("xray", &["endian"])?;
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
        let trace = XrayTrace { input, endian: None, limits: options.limits };
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
fn has_preamble(body: &[u8], layout: Layout) -> bool {
    (0..body.len().min(4096)).any(|at| body.get(at..).is_some_and(|rest| is_preamble(rest, layout)))
}

pub(crate) fn starts_as_fdr(body: &[u8], layout: Layout) -> bool {
    let layouts = [layout, Layout::of(Endian::Little), Layout::of(Endian::Big)];
    layouts.into_iter().any(|layout| {
        let is = |at: usize, number| body.get(at).is_none_or(|&b| b == layout.metadata_byte(number));
        (is(0, kind::BUFFER_EXTENTS) && is(16, kind::NEW_BUFFER))
            || (is(0, kind::NEW_BUFFER) && is(16, kind::WALL_TIME))
    })
}

fn probe_basic(header: &Header, body: &[u8], layout: Layout) -> Confidence {
    let records = body.chunks_exact(32).take(64);
    let (all, good) =
        (records.len(), records.filter(|raw| crate::parse::parse_basic(raw, layout.endian).is_ok()).count());
    let is_plausible = header.cycle_frequency < 1 << 40 && header.version > 0;
    let starts_with_function = matches!(
        crate::parse::parse_basic(body, layout.endian),
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

/// An opened trace.
pub(crate) struct XrayTrace {
    input: Input,
    endian: Option<Endian>,
    limits: Limits,
}

/// What the first bytes contain.
pub(crate) enum Form {
    Empty,
    Yaml,
    Binary(Header, Layout),
    /// Not readable any further; already reported.
    Unreadable(Option<(Header, Layout)>),
}

/// A trace whose header was read.
pub(crate) struct Opened {
    pub(crate) cursor: Cursor,
    pub(crate) form: Form,
    pub(crate) limits: Limits,
}

impl XrayTrace {
    pub(crate) fn new(input: Input, options: &OpenOptions) -> Self {
        Self { input, endian: options.endian, limits: options.limits }
    }

    pub(crate) fn start(self, sink: &mut dyn Sink) -> Result<Opened, Error> {
        let limits = self.limits;
        let is_yaml = looks_like_yaml(self.input.head().bytes);
        let mut cursor = Cursor::new(self.input);
        // The first bytes of the two records after the header determine the bit order of a big-endian trace.
        let length = cursor.fill(HEADER_BYTES + METADATA_BYTES + 1)?;
        let form = if length == 0 {
            Form::Empty
        } else if is_yaml {
            Form::Yaml
        } else {
            binary_form(cursor.window(), self.endian, sink)?
        };
        if matches!(form, Form::Unreadable(None)) {
            cursor.advance(length.min(HEADER_BYTES));
        }
        Ok(Opened { cursor, form, limits })
    }
}

fn binary_form(window: &[u8], endian: Option<Endian>, sink: &mut dyn Sink) -> Result<Form, Error> {
    let Ok((header, layout)) = parse_header(window, endian) else {
        let report = rules::HEADER_TRUNCATED.at(0).field("header").expected("32 bytes");
        sink.report(report.found(format!("{} bytes", window.len())).skipped(window.len() as u64))?;
        return Ok(Form::Unreadable(None));
    };
    let (field, expected, rule, found, offset) = match header.type_code {
        _ if header.is_known() => return Ok(Form::Binary(header, layout)),
        TYPE_FDR => ("version", "1 to 5 (FDR)", &rules::UNKNOWN_VERSION, header.version, 0),
        TYPE_BASIC => ("version", "1 to 3 (Basic)", &rules::UNKNOWN_VERSION, header.version, 0),
        _ => ("type", "0 (Basic) or 1 (FDR)", &rules::UNKNOWN_TYPE, header.type_code, 2),
    };
    sink.report(rule.at(offset).field(field).expected(expected).found(found.to_string()))?;
    Ok(Form::Unreadable(Some((header, layout))))
}

impl Reader {
    /// Opens an FDR trace and reads its header.
    ///
    /// # Errors
    /// Malformed if the header is cut or names no known version, unsupported for Basic and YAML traces (see
    /// [`crate::walk_basic`] and [`crate::walk_yaml`]), and I/O errors.
    pub fn open(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        let mut problems = Collect::default();
        let trace = XrayTrace::new(input, options);
        let Opened { cursor, form, limits } = trace.start(&mut problems)?;
        match (form, problems.0.pop()) {
            (Form::Binary(header, layout), _) if header.type_code == TYPE_FDR => {
                Ok(Self::new(cursor, header, layout, &limits))
            }
            (_, Some(problem)) => Err(Error::malformed(problem)),
            _ => Err(Error::unsupported("an FDR trace was expected, and this is another form of trace, or empty")),
        }
    }

    /// Reads to the end of the data, reports errors of compression around it, and returns the number of records.
    ///
    /// # Errors
    /// As [`Self::walk`].
    pub fn read<V: Visitor>(self, visitor: &mut V) -> Result<u64, Error> {
        let (records, cursor) = self.walk(visitor)?;
        let mut problems = Collect::default();
        cursor.report_layers(&mut problems)?;
        problems.0.into_iter().try_for_each(|problem| visitor.report(problem))?;
        Ok(records)
    }
}

/// Reports compression layers that did not end well; returns the result of every verb.
pub(crate) fn end(cursor: &Cursor, sink: &mut dyn Sink) -> Result<u64, Error> {
    cursor.report_layers(sink)?;
    Ok(cursor.offset())
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
                (0, rewrite::read_to_end(cursor)?)
            }
            Form::Yaml => info_yaml(cursor, &limits, &mut info, sink)?,
            Form::Binary(header, layout) => {
                let mut counter = Counter::new(sink, layout, header.version, &limits);
                describe(&mut info, &header, layout);
                let walked = if header.type_code == TYPE_FDR {
                    Reader::new(cursor, header, layout, &limits).walk(&mut counter)?
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
        let opened = self.start(sink)?;
        let offsets = options.offsets && !options.without_positions;
        let print = Print { form: options.form, offsets, selection: &options.selection };
        let (records, _, cursor) = print_all(opened, print, out, sink)?;
        let bytes = end(&cursor, sink)?;
        Ok(Summary { records, bytes })
    }

    fn check(self: Box<Self>, sink: &mut dyn Sink) -> Result<Summary, Error> {
        let Opened { cursor, form, limits } = self.start(sink)?;
        let (records, cursor) = match form {
            Form::Empty => (0, cursor),
            Form::Unreadable(_) => (0, rewrite::read_to_end(cursor)?),
            Form::Yaml => {
                let mut checker = Checker::new(sink, 0);
                let mut moments =
                    YamlMoments { moments: &mut checker, on_header: |_: &mut Checker<'_>, _: &YamlHeader| Ok(()) };
                let (records, cursor) = walk_yaml(cursor, &limits, &mut moments)?;
                checker.finish(At { offset: cursor.offset(), seq: records })?;
                (records, cursor)
            }
            Form::Binary(header, layout) => {
                let mut checker = Checker::new(sink, header.version);
                let (records, cursor) = if header.type_code == TYPE_FDR {
                    Reader::new(cursor, header, layout, &limits).walk(&mut checker)?
                } else {
                    walk_basic(cursor, layout, &mut checker)?
                };
                checker.finish(At { offset: cursor.offset(), seq: records })?;
                (records, cursor)
            }
        };
        let bytes = end(&cursor, sink)?;
        Ok(Summary { records, bytes })
    }

    fn spans(
        self: Box<Self>,
        options: &SpanOptions,
        out: &mut dyn SpanSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        spans::emit(Ordered::of(*self, sink)?, options, out, sink)
    }

    fn rewrite(self: Box<Self>, plan: &Plan, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        let target = plan.target();
        target.only("xray", &["version", "to-endian"])?;
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
        return Err(Error::usage("--version and --to-endian mean nothing for JSON lines: convert first"));
    }
    let all = Selection::default();
    let selection = if let Plan::Trim(selection, _) = plan { selection } else { &all };
    let opened = trace.start(sink)?;
    let print = Print { form: DumpForm::Jsonl, offsets: false, selection };
    let mut writer: &mut dyn Target = out;
    let (records_read, records_written, cursor) = print_all(opened, print, &mut writer, sink)?;
    end(&cursor, sink)?;
    Ok(Outcome { records_read, records_written, ..Outcome::default() })
}

/// Stores what the header states.
fn describe(info: &mut Info, header: &Header, layout: Layout) {
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
    let mut counter = Counter::new(sink, Layout::default(), 0, limits);
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

/// Prints a trace; returns records read and printed.
fn print_all(
    opened: Opened,
    print: Print<'_>,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<(u64, u64, Cursor), Error> {
    let Opened { cursor, form, limits } = opened;
    let is_jsonl = print.form == DumpForm::Jsonl;
    match form {
        Form::Empty | Form::Unreadable(_) => {
            if is_jsonl {
                let mut line = Vec::new();
                jsonl::push_no_header(&mut line);
                out.write_all(&line)?;
            }
            Ok((0, 0, rewrite::read_to_end(cursor)?))
        }
        Form::Yaml => print_yaml(cursor, &limits, print, out, sink),
        Form::Binary(header, layout) => {
            let is_fdr = header.type_code == TYPE_FDR;
            let mut printer = Printer::new(print, header.cycle_frequency, header.version, is_fdr, out, sink)?;
            if is_jsonl {
                jsonl::push_header(printer.text(), &header, layout);
            }
            let (records, cursor) = if is_fdr {
                Reader::new(cursor, header, layout, &limits).walk(&mut printer)?
            } else {
                walk_basic(cursor, layout, &mut printer)?
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
