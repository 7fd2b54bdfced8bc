//! A record of any form, what a reader must know to parse it, and the parser: pure, no I/O.

use std::borrow::Cow;

use anytrace_core::{Limits, Rule};

use crate::rules;
use crate::wire::fdr::bad_rule;
use crate::wire::parse::{parse_basic, parse_record};
use crate::wire::record::{
    BASIC_BYTES, BasicRecord, Body, FDR_VERSION_MAX, FdrRecord, Function, Header, Metadata, Orders, TYPE_FDR,
};
use crate::wire::yaml::{YamlEntry, YamlHeader, entry_end, is_item, read_entry};
use crate::wire::yaml_scan::YamlFault;

/// The form of a trace, with its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutForm {
    /// Flight data recorder, versions 1 to 5.
    Fdr(Header),
    /// Basic, also called naive, versions 1 to 3.
    Basic(Header),
    /// Text.
    Yaml(YamlHeader),
}

/// What a reader must know to parse a record, and a writer to write one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The form, with its header.
    pub form: LayoutForm,
    /// Order of bytes and bits; YAML has none.
    pub orders: Orders,
    /// Longest payload of an event, and longest YAML entry, in bytes.
    pub record_bytes_max: u64,
}

/// FDR version 5, little-endian, of unknown frequency.
impl Default for Layout {
    fn default() -> Self {
        let header = Header { version: FDR_VERSION_MAX, type_code: TYPE_FDR, ..Header::default() };
        Self {
            form: LayoutForm::Fdr(header),
            orders: Orders::default(),
            record_bytes_max: Limits::default().record_bytes_max,
        }
    }
}

impl Layout {
    /// The version in the header; for YAML, that of the trace it was made from.
    pub fn version(&self) -> u32 {
        match self.form {
            LayoutForm::Fdr(header) | LayoutForm::Basic(header) => u32::from(header.version),
            LayoutForm::Yaml(header) => header.version,
        }
    }
}

/// One record of a trace, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// FDR: eight bytes.
    Function(Function),
    /// FDR: sixteen bytes and an event's payload.
    Metadata(Metadata<'a>),
    /// Basic: 32 bytes.
    Basic(BasicRecord),
    /// YAML: an entry of the list. Its text is decoded, so that it does not borrow from the trace.
    Entry(YamlEntry),
}

impl Record<'_> {
    /// Name in every output: `function-enter`, `new-buffer`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Function(function) => function.kind.name(),
            Self::Metadata(metadata) => metadata.body.name(),
            Self::Basic(record) => record.name(),
            Self::Entry(entry) => entry.kind.name(),
        }
    }

    /// The thread that the record names: every record of Basic and YAML traces does, and the first of an FDR buffer.
    pub fn thread(&self) -> Option<u32> {
        match self {
            Self::Metadata(Metadata { body: Body::NewBuffer { thread }, .. }) => Some(thread.cast_unsigned()),
            Self::Metadata(_) | Self::Function(_) => None,
            Self::Basic(record) => Some(record.thread),
            Self::Entry(entry) => Some(entry.thread),
        }
    }
}

/// A metadata record whose reserved bytes are zero.
impl<'a> From<Body<'a>> for Record<'a> {
    fn from(body: Body<'a>) -> Self {
        Self::Metadata(Metadata { body, reserved: &[] })
    }
}

/// Where and how bytes break the grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The rule.
    pub rule: &'static Rule,
    /// Offset from the record's first byte.
    pub at: usize,
    /// The field.
    pub field: Option<Cow<'static, str>>,
    /// What was expected there.
    pub expected: Option<Cow<'static, str>>,
    /// What was found there, escaped.
    pub found: Cow<'static, str>,
}

/// Why [`parse`] returned no record.
pub type Need = anytrace_core::Need<Box<Fault>>;

/// Reads the record of the layout's form that begins at the first byte. Returns it and its length in bytes.
///
/// A YAML entry ends with the line on which its braces close; without braces, where the next entry begins or the
/// indentation ends. At the end of the data, append a line end, and a line `...` for an entry without braces.
///
/// ```
/// use anytrace_xray::record::{Function, FunctionKind};
/// use anytrace_xray::{Layout, Record, parse};
///
/// let (record, used) = parse(&[0x12, 0, 0, 0, 7, 0, 0, 0, 1], &Layout::default()).unwrap();
/// assert_eq!(record, Record::Function(Function { kind: FunctionKind::Exit, id: 1, delta: 7 }));
/// assert_eq!(used, 8);
/// ```
///
/// # Errors
/// [`Need::More`] when the window ends inside the record; [`Need::Bad`] when the bytes are not a record of this form.
pub fn parse<'a>(window: &'a [u8], layout: &Layout) -> Result<(Record<'a>, usize), Need> {
    let parsed =
        match layout.form {
            LayoutForm::Fdr(header) => parse_record(window, layout.orders, header.version, layout.record_bytes_max)
                .map(|(record, used)| match record {
                    FdrRecord::Function(function) => (Record::Function(function), used),
                    FdrRecord::Metadata(metadata) => (Record::Metadata(metadata), used),
                }),
            LayoutForm::Basic(_) => {
                parse_basic(window, layout.orders.endian).map(|record| (Record::Basic(record), BASIC_BYTES))
            }
            LayoutForm::Yaml(_) => {
                return parse_entry(window).map(|(entry, used)| (Record::Entry(entry), used));
            }
        };
    parsed.map_err(|need| match need {
        anytrace_core::Need::More(bytes) => Need::More(bytes),
        anytrace_core::Need::Bad(bad) => {
            let (rule, found) = bad_rule(bad);
            Need::Bad(Box::new(Fault { rule, at: 0, field: None, expected: None, found }))
        }
    })
}

fn parse_entry(window: &[u8]) -> Result<(YamlEntry, usize), Need> {
    let more = || Need::More(window.len() as u64 + 1);
    let start = window.iter().position(|byte| !matches!(byte, b' ' | b'\t')).ok_or_else(more)?;
    if window.get(start) == Some(&b'-') && window.get(start + 1).is_none() {
        return Err(more());
    }
    if !is_item(window) {
        let line = window.get(start..).unwrap_or_default();
        let found = anytrace_core::text::escaped(line.get(..60).unwrap_or(line));
        return Err(no_entry(YamlFault { at: start, field: None, expected: "-".into(), found }));
    }
    let length = entry_end(window).ok_or_else(more)?;
    entry_of(window.get(..length).unwrap_or(window)).map(|entry| (entry, length)).map_err(no_entry)
}

/// An entry from all of its text.
pub(crate) fn entry_of(text: &[u8]) -> Result<YamlEntry, YamlFault> {
    let mut entry = YamlEntry::default();
    read_entry(&mut entry, text, &mut None)?;
    Ok(entry)
}

#[cold]
fn no_entry(bad: YamlFault) -> Need {
    let rule = if bad.field.is_some() { &rules::YAML_FIELD } else { &rules::YAML_SYNTAX };
    let (field, expected, found) = (bad.field, Some(bad.expected), Cow::Owned(bad.found));
    Need::Bad(Box::new(Fault { rule, at: bad.at, field, expected, found }))
}
