//! Reads XRay YAML traces: a header and a list of entries, in flow or block style, with any spacing and order.
//!
//! This is not a YAML library: it reads only the structure that these files have (page, section 1.6), in any version,
//! including the peer's own output.

use anytrace_core::{Cursor, Diagnostic, Error, Input, Limits, Place};

use crate::rules;
use crate::wire::moment::{Moment, MomentKind};
use crate::wire::record::FunctionKind;
use crate::wire::yaml_scan::{FIELDS, Scanner, YamlFault};

/// How much of a text is searched for its header.
const HEAD_BYTES: usize = 64 * 1024;

/// The header of a YAML trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct YamlHeader {
    /// Version of the trace from which it was made.
    pub version: u32,
    /// 0 Basic, 1 FDR.
    pub type_code: u32,
    /// Whether the counter runs at a constant rate.
    pub constant_tsc: bool,
    /// Whether the counter runs on while a processor sleeps.
    pub nonstop_tsc: bool,
    /// Ticks a second.
    pub cycle_frequency: u64,
}

/// One entry of the list; reused for each entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlEntry {
    /// What it is.
    pub kind: MomentKind,
    /// The field `type`: 0, or an event's type (and, in the peer's output, a stale one).
    pub event_type: u32,
    /// The field `func-id`.
    pub function: i32,
    /// The field `function`.
    pub name: Vec<u8>,
    /// The field `args`.
    pub arguments: Vec<u64>,
    /// The field `cpu`.
    pub cpu: u16,
    /// The field `thread`.
    pub thread: u32,
    /// The field `process`; 0 if it is missing.
    pub process: u32,
    /// The field `tsc`.
    pub tsc: u64,
    /// The field `data`.
    pub data: Vec<u8>,
}

impl Default for YamlEntry {
    fn default() -> Self {
        Self {
            kind: MomentKind::Function(FunctionKind::Enter),
            event_type: 0,
            function: 0,
            name: Vec::new(),
            arguments: Vec::new(),
            cpu: 0,
            thread: 0,
            process: 0,
            tsc: 0,
            data: Vec::new(),
        }
    }
}

impl YamlEntry {
    /// The entry as a moment. The function of an event is garbage written by the peer and is left out.
    pub fn moment(&self, at: Place) -> Moment<'_> {
        let is_function = matches!(self.kind, MomentKind::Function(_));
        Moment {
            kind: self.kind,
            function: if is_function { self.function.cast_unsigned() } else { 0 },
            name: &self.name,
            arguments: &self.arguments,
            cpu: self.cpu,
            thread: self.thread,
            process: self.process,
            tsc: self.tsc,
            data: &self.data,
            at,
            buffer: 0,
        }
    }
}

/// Receives a YAML trace in order.
pub(crate) trait YamlVisitor {
    /// The header, before the list begins.
    ///
    /// # Errors
    /// Any error ends the walk; the same holds for the methods below.
    fn header(&mut self, header: &YamlHeader) -> Result<(), Error>;
    /// One entry.
    ///
    /// # Errors
    /// As [`Self::header`].
    fn entry(&mut self, entry: &YamlEntry, at: Place, line: u64) -> Result<(), Error>;
    /// The text of what was just reported or emitted: lines with their line ends.
    ///
    /// # Errors
    /// As [`Self::header`].
    fn text(&mut self, _text: &[u8], _is_damaged: bool) -> Result<(), Error> {
        Ok(())
    }
    /// Damage of the grammar.
    ///
    /// # Errors
    /// As [`Self::header`].
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error>;
}

/// True when the first bytes look like an XRay YAML trace.
pub(crate) fn looks_like_yaml(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#") && !line.starts_with(b"---"));
    first.is_some_and(|line| line.starts_with(b"header:"))
}

/// Where in the document a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DocumentPart {
    Start,
    Header,
    Records,
    End,
}

/// Walks a YAML trace to the end of the data; returns the number of entries and the cursor.
///
/// # Errors
/// I/O errors, limits, and whatever the visitor returns.
pub(crate) fn walk_yaml<V: YamlVisitor>(
    cursor: Cursor,
    limits: &Limits,
    visitor: &mut V,
) -> Result<(u64, Cursor), Error> {
    let mut walk = YamlWalk::new(cursor, limits);
    while walk.step(visitor)? {}
    Ok((walk.seq, walk.cursor))
}

/// Walks one YAML trace.
pub(crate) struct YamlWalk {
    pub(crate) cursor: Cursor,
    entry_max: usize,
    line: u64,
    pub(crate) seq: u64,
    place: DocumentPart,
    header: YamlHeader,
    has_header: bool,
    entry: YamlEntry,
}

impl YamlWalk {
    /// Starts at the first byte.
    pub(crate) fn new(cursor: Cursor, limits: &Limits) -> Self {
        Self {
            cursor,
            entry_max: usize::try_from(limits.record_bytes_max).unwrap_or(usize::MAX),
            line: 1,
            seq: 0,
            place: DocumentPart::Start,
            header: YamlHeader::default(),
            has_header: false,
            entry: YamlEntry::default(),
        }
    }

    /// Visits a line or an entry; false at the end of the data, which is visited once.
    pub(crate) fn step<V: YamlVisitor>(&mut self, visitor: &mut V) -> Result<bool, Error> {
        if self.piece_of_text(visitor)? {
            return Ok(true);
        }
        if !self.has_header {
            let report = rules::TRUNCATED.at(self.cursor.offset()).line(self.line, 1).field("records");
            visitor.report(report.expected("a list").found("end of data"))?;
            visitor.header(&self.header)?;
        }
        Ok(false)
    }

    /// Length of the piece of text that begins here: a line, or an entry of several lines; 0 at the end of the data.
    fn piece(&mut self) -> Result<usize, Error> {
        let mut need = 1;
        loop {
            let length = self.cursor.fill(need)?;
            let window = self.cursor.window();
            let window = window.get(..self.entry_max).unwrap_or(window);
            let is_entry = self.place == DocumentPart::Records && is_item(window);
            match if is_entry { entry_end(window) } else { line_end(window) } {
                Some(end) => return Ok(end),
                None if length < need => return Ok(length),
                None if length >= self.entry_max => {
                    let (line, limit) = (self.line, self.entry_max);
                    return Err(Error::limit(format!("the entry at line {line} is longer than {limit} bytes")));
                }
                None => need = (length * 2).clamp(512, self.entry_max.max(512)),
            }
        }
    }

    fn piece_of_text<V: YamlVisitor>(&mut self, visitor: &mut V) -> Result<bool, Error> {
        let length = self.piece()?;
        if length == 0 {
            return Ok(false);
        }
        let at = Place { offset: self.cursor.offset(), seq: self.seq };
        let text = self.cursor.window().get(..length).unwrap_or_default();
        let line = self.line;
        let content = if at.offset == 0 { text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text) } else { text };
        let trimmed = strip_comment(content).trim_ascii();
        let is_indented = text.first().is_some_and(u8::is_ascii_whitespace);
        let mut damage = None;
        match trimmed {
            b"" => {}
            _ if trimmed.starts_with(b"---") => {}
            b"..." => self.place = DocumentPart::End,
            b"header:" if self.place == DocumentPart::Start => self.place = DocumentPart::Header,
            _ if trimmed.starts_with(b"records:")
                && matches!(self.place, DocumentPart::Header | DocumentPart::Start) =>
            {
                self.place = DocumentPart::Records;
                self.has_header = true;
                visitor.header(&self.header)?;
                if !matches!(trimmed.get(8..).unwrap_or_default().trim_ascii(), b"" | b"[]" | b"[ ]") {
                    damage = Some(YamlFault { at: 8, field: None, expected: "a list".into(), found: shown(trimmed) });
                }
            }
            _ if self.place == DocumentPart::Header && is_indented => {
                damage = header_line(&mut self.header, text).err();
            }
            _ if self.place == DocumentPart::Records && trimmed.starts_with(b"-") => {
                let entry = &mut self.entry;
                let mut unknown = None;
                match read_entry(entry, text, &mut unknown) {
                    Ok(()) => {
                        if let Some(name) = unknown {
                            let report = rules::YAML_UNKNOWN_FIELD.at(at.offset).line(line, 1).record(at.seq);
                            visitor.report(report.found(name))?;
                        }
                        visitor.entry(entry, at, line)?;
                        self.seq += 1;
                    }
                    Err(bad) => damage = Some(bad),
                }
            }
            _ => {
                damage = Some(YamlFault {
                    at: 0,
                    field: None,
                    expected: "a header field or an entry".into(),
                    found: shown(trimmed),
                })
            }
        }
        if let Some(bad) = &damage {
            visitor.report(bad_report(bad, text, at, line))?;
        }
        visitor.text(text, damage.is_some())?;
        self.line += text.iter().filter(|&&b| b == b'\n').count() as u64;
        self.cursor.advance(length);
        Ok(true)
    }
}

/// The header of a text whose first bytes are buffered; `None` if they have none.
pub(crate) fn yaml_header(cursor: &mut Cursor, limits: &Limits) -> Result<YamlHeader, Error> {
    struct HeaderSeen(Option<YamlHeader>);

    impl YamlVisitor for HeaderSeen {
        fn header(&mut self, header: &YamlHeader) -> Result<(), Error> {
            self.0.get_or_insert(*header);
            Err(Error::usage("the rest is not wanted"))
        }
        fn entry(&mut self, _entry: &YamlEntry, _at: Place, _line: u64) -> Result<(), Error> {
            Ok(())
        }
        fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
            Ok(())
        }
    }

    cursor.fill(HEAD_BYTES)?;
    let head = cursor.window().get(..HEAD_BYTES).unwrap_or(cursor.window()).to_vec();
    let mut seen = HeaderSeen(None);
    let _stopped = walk_yaml(Cursor::new(Input::from_bytes("head", head)), limits, &mut seen);
    Ok(seen.0.unwrap_or_default())
}

#[cold]
fn bad_report(bad: &YamlFault, text: &[u8], at: Place, line: u64) -> Diagnostic {
    let before = text.get(..bad.at).unwrap_or(text);
    let line = line + before.iter().filter(|&&b| b == b'\n').count() as u64;
    let column = before.iter().rev().take_while(|&&b| b != b'\n').count() as u64 + 1;
    let rule = if bad.field.is_some() { &rules::YAML_FIELD } else { &rules::YAML_SYNTAX };
    let offset = at.offset + before.len() as u64;
    let mut report =
        rule.at(offset).line(line, column).record(at.seq).expected(bad.expected.clone()).found(bad.found.clone());
    if let Some(field) = &bad.field {
        report = report.field(field.clone());
    }
    report.skipped(text.len() as u64).resumed(at.seq)
}

fn shown(bytes: &[u8]) -> String {
    anytrace_core::text::escaped(bytes.get(..60).unwrap_or(bytes))
}

fn line_end(window: &[u8]) -> Option<usize> {
    window.iter().position(|&b| b == b'\n').map(|at| at + 1)
}

pub(crate) fn is_item(window: &[u8]) -> bool {
    let line = window.get(..line_end(window).unwrap_or(window.len())).unwrap_or_default().trim_ascii_start();
    line.starts_with(b"-") && !line.starts_with(b"---")
}

/// End of an entry. In flow style: the line on which its braces close. In block style: before the next line that begins
/// a list item or is not indented. `None` if more text is needed.
pub(crate) fn entry_end(window: &[u8]) -> Option<usize> {
    let first = line_end(window)?;
    let line = window.get(..first).unwrap_or_default();
    if !strip_comment(line).contains(&b'{') {
        let mut at = first;
        loop {
            let rest = window.get(at..)?;
            let next = rest.get(..line_end(rest)?).unwrap_or_default();
            // An item further to the right belongs to a list within the entry.
            let is_more = next.first().is_some_and(|&b| b == b' ' || b == b'\t')
                && (!is_item(next) || indent(next) > indent(line))
                && !next.trim_ascii().is_empty();
            if !is_more {
                return Some(at);
            }
            at += next.len();
        }
    }
    let mut at = 0;
    let (mut depth, mut quote) = (0_u32, None);
    let mut previous = b' ';
    while let Some(&byte) = window.get(at) {
        match (quote, byte) {
            (Some(b'"'), b'\\') => at += 1,
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') if matches!(previous, b' ' | b',' | b'{' | b'[' | b':') => quote = Some(byte),
            (None, b'{') => depth += 1,
            (None, b'}') => depth = depth.saturating_sub(1),
            (None, b'\n') => {
                let next = window.get(at + 1..).unwrap_or_default();
                // An entry that never closes must not swallow the rest of the file.
                if depth == 0 || is_item(next) || next.starts_with(b"...") {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        if quote.is_some() && byte == b'\n' && is_item(window.get(at + 1..).unwrap_or_default()) {
            return Some(at + 1);
        }
        previous = byte;
        at += 1;
    }
    None
}

fn indent(line: &[u8]) -> usize {
    line.iter().take_while(|&&b| b == b' ' || b == b'\t').count()
}

/// The line without a comment that begins it or follows a space.
fn strip_comment(line: &[u8]) -> &[u8] {
    if line.trim_ascii_start().starts_with(b"#") {
        return b"";
    }
    line
}

fn header_line(header: &mut YamlHeader, text: &[u8]) -> Result<(), YamlFault> {
    let mut scanner = Scanner::new(text);
    let key = scanner.key()?;
    let value = scanner.value(false)?;
    match key.as_slice() {
        b"version" => header.version = value.number("version")?,
        b"type" => header.type_code = value.number("type")?,
        b"constant-tsc" => header.constant_tsc = value.flag("constant-tsc")?,
        b"nonstop-tsc" => header.nonstop_tsc = value.flag("nonstop-tsc")?,
        b"cycle-frequency" => header.cycle_frequency = value.number("cycle-frequency")?,
        _ => return Err(YamlFault { at: 0, field: None, expected: "a header field".into(), found: shown(&key) }),
    }
    Ok(())
}

/// The fields of an entry so far.
#[derive(Default)]
struct SeenFields(u16);

impl SeenFields {
    /// A field that occurs twice has two values, neither of which can be trusted.
    fn add(&mut self, key: &[u8], at: usize) -> Result<(), YamlFault> {
        let Some(n) = FIELDS.iter().position(|name| name.as_bytes() == key) else { return Ok(()) };
        let bit = 1 << n;
        if self.0 & bit != 0 {
            let field = FIELDS.get(n).copied().unwrap_or_default();
            return Err(YamlFault {
                at,
                field: Some(field.into()),
                expected: "one value".into(),
                found: "a second".into(),
            });
        }
        self.0 |= bit;
        Ok(())
    }
}

pub(crate) fn read_entry(entry: &mut YamlEntry, text: &[u8], unknown: &mut Option<String>) -> Result<(), YamlFault> {
    let mut scanner = Scanner::new(text);
    scanner.item()?;
    let is_flow = scanner.take(b'{');
    let (mut kind, mut has_tsc, mut has_thread) = (None, false, false);
    let mut seen = SeenFields::default();
    (entry.event_type, entry.function, entry.cpu, entry.process) = (0, 0, 0, 0);
    entry.name.clear();
    entry.arguments.clear();
    entry.data.clear();
    while !scanner.is_over(is_flow)? {
        let place = scanner.place();
        let key = scanner.key()?;
        seen.add(&key, place)?;
        let value = scanner.value(is_flow)?;
        match key.as_slice() {
            b"type" => entry.event_type = value.number("type")?,
            b"func-id" => entry.function = value.number("func-id")?,
            b"function" => value.into_bytes("function", &mut entry.name)?,
            b"args" => value.into_list("args", &mut entry.arguments)?,
            b"cpu" => entry.cpu = value.number("cpu")?,
            b"thread" => (entry.thread, has_thread) = (value.number("thread")?, true),
            b"process" => entry.process = value.number("process")?,
            b"kind" => kind = Some(value.text("kind")?),
            b"tsc" => (entry.tsc, has_tsc) = (value.number("tsc")?, true),
            b"data" => value.into_bytes("data", &mut entry.data)?,
            _ => *unknown = Some(shown(&key)),
        }
        scanner.separator(is_flow)?;
    }
    let missing = |name: &'static str| YamlFault {
        at: 0,
        field: Some(name.into()),
        expected: "a value".into(),
        found: "nothing".into(),
    };
    let kind = kind.ok_or_else(|| missing("kind"))?;
    if !has_tsc || !has_thread {
        return Err(missing(if has_tsc { "thread" } else { "tsc" }));
    }
    entry.kind = kind_of(&kind, entry.event_type)?;
    Ok(())
}

fn kind_of(name: &[u8], event_type: u32) -> Result<MomentKind, YamlFault> {
    let kinds = [FunctionKind::Enter, FunctionKind::Exit, FunctionKind::TailExit, FunctionKind::EnterArgs];
    if let Some(kind) = kinds.into_iter().find(|kind| kind.name().as_bytes() == name) {
        return Ok(MomentKind::Function(kind));
    }
    let bad = |field: &'static str, found: String| YamlFault {
        at: 0,
        field: Some(field.into()),
        expected: "a kind of record".into(),
        found,
    };
    match name {
        b"custom-event" => Ok(MomentKind::Custom),
        b"typed-event" => match u16::try_from(event_type) {
            Ok(event_type) => Ok(MomentKind::Typed(event_type)),
            Err(_) => Err(bad("type", event_type.to_string())),
        },
        _ => Err(bad("kind", shown(name))),
    }
}

/// Walks a YAML trace into moments.
pub(crate) struct YamlMoments<'m, M, F> {
    /// Who receives them.
    pub(crate) moments: &'m mut M,
    /// Called with the header before the first moment.
    pub(crate) on_header: F,
}

impl<M: crate::wire::moment::Moments, F: FnMut(&mut M, &YamlHeader) -> Result<(), Error>> YamlVisitor
    for YamlMoments<'_, M, F>
{
    fn header(&mut self, header: &YamlHeader) -> Result<(), Error> {
        (self.on_header)(self.moments, header)
    }

    fn entry(&mut self, entry: &YamlEntry, at: Place, _line: u64) -> Result<(), Error> {
        self.moments.moment(&entry.moment(at))
    }

    fn text(&mut self, text: &[u8], is_damaged: bool) -> Result<(), Error> {
        if is_damaged {
            self.moments.lost(text.len() as u64);
        }
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.moments.report(diagnostic)
    }
}
