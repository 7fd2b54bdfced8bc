//! The table of events.

use std::cell::RefCell;
use std::io::{self, Write};

use anytrace_core::table::{Filter, Rows};
use anytrace_core::text::shown;
use anytrace_core::{DumpOptions, Error, Kind, Sink, Summary};

use crate::rules;
use crate::verbs::events::EventPrinter;
use crate::verbs::jsonl::JsonLines;
use crate::wire::reader::Reader;
use crate::wire::record::{Event, Header, Token};
use crate::wire::signatures::Signatures;
use crate::wire::visitor::{Context, RAW, Visitor};

/// Number of the column `attributes`.
const ATTRIBUTES: usize = 7;

/// Longest attributes of an event. Blobs take two bytes for each of theirs.
const ATTRIBUTES_BYTES_MAX: usize = 128 << 20;

/// Reads the table.
pub(super) fn read(mut reader: Reader, rows: Rows<'_>, filter: &Filter, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let (line, options) = (Line::default(), DumpOptions::default());
    let mut target = &line;
    let has_attributes = rows.wants(ATTRIBUTES);
    let printer = has_attributes.then(|| EventPrinter::new(JsonLines::attributes(), &options, &mut target));
    let mut made = EventRows { rows, filter, printer, line: &line, is_left_out: false, is_done: false };
    let totals = reader.read(&mut made, sink)?;
    made.rows.finish()?;
    Ok(Summary { records: totals.events, bytes: totals.raw_bytes })
}

/// The attributes of the event at hand: the printer writes them, the visitor takes them.
#[derive(Debug, Default)]
struct Line(RefCell<Attributes>);

#[derive(Debug, Default)]
struct Attributes {
    bytes: Vec<u8>,
    /// They are longer than the limit.
    is_long: bool,
}

impl Write for &Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut line = self.0.borrow_mut();
        line.is_long |= line.bytes.len() + bytes.len() > ATTRIBUTES_BYTES_MAX;
        if line.is_long {
            line.bytes = Vec::new();
        } else {
            line.bytes.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes the rows.
struct EventRows<'a, 'p> {
    rows: Rows<'a>,
    filter: &'p Filter,
    /// Writes attributes, if they are asked for.
    printer: Option<EventPrinter<'p, JsonLines>>,
    line: &'p Line,
    /// The attributes of the event at hand cannot be written.
    is_left_out: bool,
    is_done: bool,
}

impl EventRows<'_, '_> {
    fn is_wanted(&self, event: &Event) -> bool {
        self.filter.has_seq(signed(event.seq))
            && self.filter.has_thread(event.thread.cast_signed())
            && self.filter.has_kind(event.kind.name())
    }

    fn push(&mut self, event: &Event, signatures: &Signatures, attributes: Option<&str>) -> Result<(), Error> {
        self.is_done = self.filter.ends_before(signed(event.seq + 1));
        if !self.is_wanted(event) {
            return Ok(());
        }
        let rows = &mut self.rows;
        rows.count(event.seq);
        rows.count(event.offset);
        rows.int64(event.thread.cast_signed());
        rows.int64(None);
        rows.int64(None);
        rows.name(event.kind.name());
        let row = event.function.and_then(|slot| signatures.function(slot)).filter(|row| row.is_at_hand());
        match (event.function, row) {
            (Some(slot), Some(row)) => rows.numbered_name(slot, || shown(row.name())),
            _ => rows.name(None),
        }
        rows.text(attributes);
        rows.end()
    }

    /// Takes the attributes of an event that is complete; the line is empty afterwards.
    fn take_line(&mut self) -> Result<Attributes, Error> {
        if let Some(printer) = &mut self.printer {
            printer.flush()?;
        }
        Ok(self.line.0.take())
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Visitor for EventRows<'_, '_> {
    fn takes_plain(&self) -> bool {
        self.printer.is_none()
    }

    fn keeps_definitions(&self) -> bool {
        self.printer.is_some()
    }

    fn header(&mut self, header: &Header, sink: &mut dyn Sink) -> Result<(), Error> {
        self.printer.as_mut().map_or(Ok(()), |printer| printer.header(header, sink))
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    #[inline]
    fn plain_event(&mut self, event: &Event, _: &[u8], names: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        self.push(event, names, None)?;
        Ok(0)
    }

    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        let Some(printer) = &mut self.printer else { return Ok(()) };
        if let Token::Enter { .. } | Token::Leave { .. } = token {
            self.is_left_out = false;
        }
        match printer.token(token, context, sink) {
            // What JSON lines cannot show leaves a row without attributes.
            Err(error) if error.kind() == Kind::Unsupported => {
                self.is_left_out = true;
                printer.abandon(Some(context.event))
            }
            other => other,
        }
    }

    fn end(&mut self, event: &Event, signatures: &Signatures, sink: &mut dyn Sink) -> Result<u64, Error> {
        if self.printer.is_none() {
            self.push(event, signatures, None)?;
            return Ok(0);
        }
        let mut line = self.take_line()?;
        let is_lost = self.is_left_out || line.is_long;
        if is_lost && self.is_wanted(event) {
            let expected = format!("at most {ATTRIBUTES_BYTES_MAX} bytes of attributes, at most 40 levels deep");
            sink.report(rules::VALUE_LIMIT.at(event.offset).within(RAW).record(event.seq).expected(expected))?;
        }
        let text = std::str::from_utf8(&line.bytes).ok().map(str::trim_end).filter(|_| !is_lost);
        self.push(event, signatures, text)?;
        line.bytes.clear();
        if line.bytes.capacity() <= 1 << 20 {
            self.line.0.borrow_mut().bytes = line.bytes;
        }
        Ok(0)
    }

    fn abandon(&mut self, event: Option<&Event>) -> Result<(), Error> {
        if let Some(printer) = &mut self.printer {
            printer.abandon(event)?;
        }
        self.take_line().map(drop)
    }
}
