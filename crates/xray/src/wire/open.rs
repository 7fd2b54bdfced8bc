//! How a trace begins and ends: what its first bytes contain, and what is reported after its last.

use anytrace_core::index::Part;
use anytrace_core::{Cursor, Endian, Error, Input, Limits, OpenOptions, Sink};

use crate::rules;
use crate::wire::parse::parse_header;
use crate::wire::record::{HEADER_BYTES, Header, METADATA_BYTES, Orders, TYPE_BASIC, TYPE_FDR, kind};
use crate::wire::yaml::looks_like_yaml;

/// A trace that is to be read.
pub(crate) struct XrayTrace {
    input: Input,
    endian: Option<Endian>,
    limits: Limits,
    /// What tables read of it.
    pub(crate) part: Part,
    /// How many threads may be used.
    #[cfg(feature = "lanes")]
    pub(crate) threads: usize,
}

/// What the first bytes contain.
pub(crate) enum Form {
    Empty,
    Yaml,
    Binary(Header, Orders),
    /// Not readable any further; already reported.
    Unreadable(Option<(Header, Orders)>),
}

/// A trace whose header was read.
pub(crate) struct Opened {
    pub(crate) cursor: Cursor,
    pub(crate) form: Form,
    pub(crate) limits: Limits,
}

impl XrayTrace {
    pub(crate) fn new(input: Input, options: &OpenOptions) -> Self {
        Self {
            input,
            endian: options.endian,
            limits: options.limits,
            part: options.part.clone().unwrap_or_default(),
            #[cfg(feature = "lanes")]
            threads: options.threads,
        }
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

/// Reports compression layers that did not end well; returns the result of every verb.
pub(crate) fn end(cursor: &Cursor, sink: &mut dyn Sink) -> Result<u64, Error> {
    cursor.report_layers(sink)?;
    Ok(cursor.offset())
}

/// Reads to the end of the data.
pub(crate) fn read_to_end(mut cursor: Cursor) -> Result<Cursor, Error> {
    cursor.skip(u64::MAX)?;
    Ok(cursor)
}

/// True when these bytes begin as the first buffer of an FDR trace does, in any byte order.
pub(crate) fn starts_as_fdr(body: &[u8], layout: Orders) -> bool {
    let layouts = [layout, Orders::of(Endian::Little), Orders::of(Endian::Big)];
    layouts.into_iter().any(|layout| {
        let is = |at: usize, number| body.get(at).is_none_or(|&b| b == layout.metadata_byte(number));
        (is(0, kind::BUFFER_EXTENTS) && is(16, kind::NEW_BUFFER))
            || (is(0, kind::NEW_BUFFER) && is(16, kind::WALL_TIME))
    })
}
