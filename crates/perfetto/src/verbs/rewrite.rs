//! `convert`, `repair` and `trim`: the same packets, fewer of them, or JSON lines.

use std::io::Write;

use anytrace_core::{Collect, Error, Outcome, Place, Plan, Sink, Step, Target, TargetOptions};

use crate::model::compressed::inflate;
use crate::model::session::{Packet, Reports, Session, each_inside};
use crate::options::OPTIONS;
use crate::verbs::lines::{FULL_BYTES, push_header, push_json};
use crate::verbs::select::{Selector, has_events};
use crate::wire::proto::{Fields, push_bytes};
use crate::wire::reader::Reader;
use crate::wire::record::{Layout, NAME, Record, data};
use crate::wire::writer::Writer;

/// Writes packets in the form that was asked for.
pub(crate) enum Output<W> {
    /// A trace.
    Trace(Writer<W>),
    /// JSON lines, and what is not written yet.
    Jsonl(W, Vec<u8>),
}

impl<W: Write> Output<W> {
    /// Reads the target options.
    pub(crate) fn new(out: W, target: &TargetOptions, layout: &Layout) -> Result<Self, Error> {
        target.only(NAME, &[], OPTIONS)?;
        match target.to.as_deref() {
            None | Some(NAME) => Ok(Self::Trace(Writer::with_layout(out, layout))),
            Some("jsonl") => {
                let mut buffer = Vec::new();
                push_header(&mut buffer);
                Ok(Self::Jsonl(out, buffer))
            }
            Some(other) => Err(Error::usage(format!("a {NAME} trace cannot be written as {other}"))),
        }
    }

    pub(crate) fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        match self {
            Self::Trace(writer) => writer.write(record),
            Self::Jsonl(out, buffer) => {
                push_json(buffer, record, None);
                if buffer.len() < FULL_BYTES {
                    return Ok(());
                }
                let written = out.write_all(buffer);
                buffer.clear();
                Ok(written?)
            }
        }
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        match self {
            Self::Trace(writer) => writer.finish().map(|_| ()),
            Self::Jsonl(mut out, buffer) => Ok(out.write_all(&buffer)?),
        }
    }
}

/// Executes a plan.
pub(crate) fn rewrite(
    mut reader: Reader,
    distinct_max: usize,
    plan: &Plan,
    mut out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let mut way = match plan {
        Plan::Convert(_) => Way::All,
        Plan::Repair(_) => Way::Good(Box::new(Session::new(distinct_max, Reports::All)), 0, reader.packet_bytes_max()),
        Plan::Trim(selection, _) => {
            let selector = Selector::new(selection, &mut reader, distinct_max)?;
            selector.note(sink)?;
            Way::Selected(Box::new(selector), Vec::new())
        }
    };
    let mut output = Output::new(&mut out, plan.target(), reader.layout())?;
    let mut written = 0;
    while let Some(step) = reader.next()? {
        match step {
            Step::Damage(diagnostic) => sink.report(diagnostic)?,
            Step::Record(place, record) => written += way.write(place, &record, &mut output, sink)?,
        }
    }
    output.finish()?;
    let passed = reader.passed();
    let mut notes = match passed.bytes_lost {
        0 => Vec::new(),
        1 => vec!["1 byte that is not a packet was left out.".to_owned()],
        bytes => vec![format!("{bytes} bytes that are not packets were left out.")],
    };
    let mut bytes_lost = passed.bytes_lost;
    if let Way::Good(_, lost @ 1.., _) = way {
        notes.push(format!("{lost} bytes of packets that cannot be understood were left out."));
        bytes_lost += lost;
    }
    Ok(Outcome { records_read: passed.records, records_written: written, bytes_lost, notes })
}

/// Which packets are written.
enum Way<'a> {
    All,
    /// Those that can be understood; how many bytes were left out, and how many compressed packets may have.
    Good(Box<Session>, u64, u64),
    /// Selected events, and what gives them meaning; a packet being made.
    Selected(Box<Selector<'a>>, Vec<u8>),
}

impl Way<'_> {
    /// Writes a packet, or what is to be kept of it; returns how many packets were written.
    fn write<W: Write>(
        &mut self,
        place: Place,
        record: &Record<'_>,
        output: &mut Output<W>,
        sink: &mut dyn Sink,
    ) -> Result<u64, Error> {
        match self {
            Self::All => {
                output.write(record)?;
                Ok(1)
            }
            Self::Good(session, lost, bytes_max) => {
                let packet = Packet { record: *record, place, is_inside: false };
                if session.enter(&packet, sink)?.is_none() {
                    *lost += (record.prefix_bytes() + record.body().len()) as u64;
                    return Ok(0);
                }
                if record.kind() == data::COMPRESSED {
                    return good_inside(session, &packet, *bytes_max, lost, output, sink);
                }
                output.write(record)?;
                Ok(1)
            }
            Self::Selected(selector, body) => {
                let takes = selector.takes(place, record)?;
                if takes || !has_events(record) {
                    output.write(record)?;
                    return Ok(1);
                }
                let made = match context(record, body) {
                    true => Record::new(body).ok(),
                    false => None,
                };
                let Some(made) = made else { return Ok(0) };
                output.write(&made)?;
                Ok(1)
            }
        }
    }
}

/// Writes compressed packets as they are if all can be understood, else those that can, no longer compressed.
fn good_inside<W: Write>(
    session: &mut Session,
    outer: &Packet<'_>,
    bytes_max: u64,
    lost: &mut u64,
    output: &mut Output<W>,
    sink: &mut dyn Sink,
) -> Result<u64, Error> {
    let (bytes, fault) = inflate(outer.record.data(), bytes_max);
    let (mut good, mut bad) = (Vec::new(), 0);
    let mut found = Collect::default();
    let broken = each_inside(&bytes, |record| {
        let packet = Packet { record, place: outer.place, is_inside: true };
        match session.enter(&packet, &mut found)? {
            Some(_) => good.push((record.body().to_vec(), record.length_bytes)),
            None => bad += (record.prefix_bytes() + record.body().len()) as u64,
        }
        Ok(())
    })?;
    for diagnostic in found.0 {
        sink.report(diagnostic)?;
    }
    if let Some(why) = broken.or(fault) {
        let report = outer.diagnostic(&crate::rules::BAD_COMPRESSION, outer.record.data_at());
        let report = report.field("compressed_packets").expected("a zlib stream of packets").found(why);
        sink.report(report)?;
        let read: usize = good.iter().map(|(body, _)| body.len()).sum();
        *lost += bad.max(1) + (bytes.len().saturating_sub(read)) as u64;
    } else if bad == 0 {
        output.write(&outer.record)?;
        return Ok(1);
    } else {
        *lost += bad;
    }
    let mut written = 0;
    for (body, length_bytes) in &good {
        if let Ok(record) = Record::new(body) {
            output.write(&Record { length_bytes: *length_bytes, ..record })?;
            written += 1;
        }
    }
    Ok(written)
}

/// What other packets need of one whose events are not kept: everything but the events. Times are kept too, for they
/// may be differences. Returns false if nothing of it is needed.
fn context(record: &Record<'_>, body: &mut Vec<u8>) -> bool {
    body.clear();
    for field in Fields::of(record.body()) {
        let end = field.value_at + field.value.bytes().len();
        if field.number == record.kind() {
            if record.kind() == data::TRACK_EVENT {
                push_time(body, field.value.bytes());
            }
        } else if matches!(field.value, crate::wire::proto::Value::Bytes(_)) {
            body.extend_from_slice(record.body().get(field.at..end).unwrap_or_default());
        } else {
            crate::wire::proto::push_tag(body, field.number, 0);
            crate::wire::proto::push_varint(body, field.value.number(), 0);
        }
    }
    let is_needed = record.timestamp().is_some() || record.head.is_cleared || record.head.is_after_loss;
    is_needed || record.interned().is_some() || record.defaults().is_some() || has_own_time(record.data())
}

fn has_own_time(event: &[u8]) -> bool {
    Fields::of(event).any(|field| field.number == 1)
}

/// A track event that is nothing but a difference of time, as old traces have them.
fn push_time(body: &mut Vec<u8>, event: &[u8]) {
    let mut kept = Vec::new();
    for field in Fields::of(event).filter(|field| field.number == 1) {
        crate::wire::proto::push_tag(&mut kept, 1, 0);
        crate::wire::proto::push_varint(&mut kept, field.value.number(), 0);
    }
    if !kept.is_empty() {
        push_bytes(body, data::TRACK_EVENT, &kept);
    }
}
