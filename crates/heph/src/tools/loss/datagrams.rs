//! Captured datagrams: `{ sender's port u16, length u32, bytes }` repeated, big-endian.
//!
//! A datagram contains complete packets. A remainder is an error of that datagram alone and is never joined with the
//! next (page, section 4).

use std::collections::BTreeMap;

use anytrace_core::bytes::array_at;
use anytrace_core::{Cursor, Diagnostic, Error, Input, Limits, OpenOptions, Place, Sink};

use super::file::Books;
use super::{LossOptions, LossReport, Sessions};
use crate::rules;
use crate::wire::fault::Damage;
use crate::wire::parse::parse_within;
use crate::wire::reader::{Reader, Visitor};
use crate::wire::record::Record;

/// Port and length.
const HEAD_BYTES: usize = 6;

/// Reads a capture and returns the counts of each sender. Damage is reported to the sink, with its place in the
/// capture.
///
/// # Errors
/// I/O errors, and whatever the sink returns.
pub fn read_datagrams(
    input: Input,
    limits: &Limits,
    options: &LossOptions,
    sink: &mut dyn Sink,
) -> Result<LossReport, Error> {
    let mut cursor = Cursor::new(input);
    let mut capture = Capture {
        limits: *limits,
        options: *options,
        senders: BTreeMap::new(),
        sessions: Sessions::new(*options),
        number: 0,
        sink,
    };
    loop {
        let have = cursor.fill(HEAD_BYTES)?;
        if have == 0 {
            break;
        }
        let window = cursor.window();
        let (Some(port), Some(length)) = (array_at(window, 0), array_at(window, 2)) else {
            capture.cut(cursor.offset(), have, HEAD_BYTES)?;
            break;
        };
        let (port, length) = (u16::from_be_bytes(port), u32::from_be_bytes(length) as usize);
        if length as u64 > limits.record_bytes_max {
            capture.too_long(cursor.offset(), length)?;
            break;
        }
        let end = HEAD_BYTES + length;
        let have = cursor.fill(end)?;
        let Some(datagram) = cursor.window().get(HEAD_BYTES..end) else {
            capture.cut(cursor.offset(), have, end)?;
            break;
        };
        capture.datagram(port, cursor.offset() + HEAD_BYTES as u64, datagram)?;
        cursor.advance(end);
    }
    cursor.report_layers(capture.sink)?;
    Ok(capture.finish())
}

struct Capture<'s> {
    limits: Limits,
    options: LossOptions,
    senders: BTreeMap<u16, Books>,
    sessions: Sessions,
    number: u64,
    sink: &'s mut dyn Sink,
}

impl Capture<'_> {
    fn datagram(&mut self, port: u16, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let options = self.options;
        let books = self.senders.entry(port).or_insert_with(|| {
            let mut books = Books::new(&port.to_string(), options);
            books.source.port = Some(port);
            books
        });
        let sessions = &mut self.sessions;
        books.source.datagrams += 1;
        let number = self.number;
        self.number += 1;
        let mut rest = bytes;
        while !rest.is_empty() {
            match parse_within(rest, self.limits.record_bytes_max) {
                Ok((packet, used)) => {
                    let (packet_bytes, after) = rest.split_at(used);
                    books.packet(packet_bytes, &packet, sessions);
                    rest = after;
                }
                Err(_) => {
                    books.source.bad_datagrams += 1;
                    let at = offset + (bytes.len() - rest.len()) as u64;
                    return salvage(rest, at, number, &self.limits, books, sessions, self.sink);
                }
            }
        }
        Ok(())
    }

    fn cut(&mut self, offset: u64, have: usize, needed: usize) -> Result<(), Error> {
        let report = rules::CAPTURE_CUT.at(offset).record(self.number).skipped(have as u64);
        self.sink.report(report.expected(format!("{needed} bytes")).found(format!("{have} bytes")))
    }

    fn too_long(&mut self, offset: u64, length: usize) -> Result<(), Error> {
        let report = rules::CAPTURE_CUT.at(offset).record(self.number).field("length");
        let report = report.expected(format!("at most {}", self.limits.record_bytes_max)).found(length.to_string());
        self.sink.report(report.help("nothing after it can be read; use --record-limit to raise the limit"))
    }

    fn finish(self) -> LossReport {
        let sources = self.senders.into_values().map(Books::close).collect();
        LossReport { sources, sessions: self.sessions.report() }
    }
}

/// What can be read of the rest of a datagram whose next packet is damaged, by the reader's own resynchronization.
#[cold]
fn salvage(
    rest: &[u8],
    offset: u64,
    number: u64,
    limits: &Limits,
    books: &mut Books,
    sessions: &mut Sessions,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let input = Input::from_bytes_as_is("datagram", rest.to_vec());
    let options = OpenOptions { limits: *limits, ..OpenOptions::default() };
    Reader::new(input, &options)?.read(&mut Salvage { rest, offset, number, books, sessions, sink })?;
    Ok(())
}

struct Salvage<'a> {
    rest: &'a [u8],
    offset: u64,
    number: u64,
    books: &'a mut Books,
    sessions: &'a mut Sessions,
    sink: &'a mut dyn Sink,
}

impl Visitor for Salvage<'_> {
    fn packet(&mut self, _: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        self.books.packet(bytes, packet, self.sessions);
        Ok(())
    }

    fn report(&mut self, mut diagnostic: Diagnostic) -> Result<(), Error> {
        diagnostic.offset += self.offset;
        diagnostic.record = Some(self.number);
        self.sink.report(diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        let start = usize::try_from(damage.offset).unwrap_or(usize::MAX);
        let bytes = self.rest.get(start..).unwrap_or_default();
        let packet = usize::try_from(damage.skipped).ok().and_then(|length| bytes.get(..length));
        self.books.damage(damage, packet.unwrap_or(bytes), self.sessions);
        let mut moved = damage.clone();
        moved.offset += self.offset;
        moved.seq = self.number;
        self.sink.report(moved.to_diagnostic())
    }
}
