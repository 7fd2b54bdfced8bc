//! Samples of a text: the first line, then those of the stack.

use anytrace_core::span::Track;
use anytrace_core::text::shown;
use anytrace_core::{Error, Sink, SpanSink, Summary};

use super::chosen::Chosen;
use super::emit::{At, Axis, Emitter, FRAMES_MAX};
use crate::model::session::{Go, Session, What, walk};
use crate::verbs::check::{Strays, say_limits};
use crate::verbs::rewrite::Noting;
use crate::wire::reader::Reader;
use crate::wire::record::Record;
use crate::wire::text::{Content, frame, push_frame_name};

/// A sample that has not ended yet.
struct Pending {
    at: At,
    key: (u64, u64),
    comm: Vec<u8>,
    event: Option<usize>,
    /// True for a line that is a sample in itself, until another belongs to it.
    is_line: bool,
}

/// Emits the samples of a text, in one pass.
pub(super) fn emit(
    mut reader: Reader,
    distinct_max: usize,
    mut chosen: Chosen,
    out: &mut dyn SpanSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let mut maker =
        Maker { out: Some(out), emitter: None, pending: None, frames: Vec::new(), room: Vec::new(), distinct_max };
    let mut strays = Strays::default();
    let mut noting = Noting::new(sink);
    let mut session = Session::new(distinct_max);
    let passed = walk(&mut reader, &mut session, &mut noting, |session, place, record, entered, sink| {
        let Record::Line(line) = record else { return Ok(Go::On) };
        if std::mem::take(&mut sink.has_damage) {
            strays.lose();
            maker.lose(session)?;
        }
        let is_stray = strays.is_stray(record);
        match &line.content {
            Content::Head(head) => {
                maker.end(session)?;
                if entered.what == What::Head && chosen.takes(entered.event, place) {
                    let (time_ns, cpu, weight) = (head.time_ns.unwrap_or(0), head.cpu, entered.weight);
                    maker.begin(Pending {
                        at: At { seq: place.seq, time_ns, cpu, weight: weight.max(1) },
                        key: (head.process.unwrap_or(0), head.thread),
                        comm: head.comm.to_vec(),
                        event: entered.event,
                        is_line: !head.rest.trim_ascii().is_empty(),
                    });
                    if let Some(frame) = frame(head.rest).filter(|frame| !frame.symbol.is_empty()) {
                        maker.frame(&frame);
                    }
                }
            }
            Content::Frame(frame) if !is_stray => maker.frame(frame),
            Content::Blank => maker.end(session)?,
            _ => {}
        }
        Ok(Go::On)
    })?;
    if noting.has_damage {
        maker.lose(&session)?;
    }
    maker.end(&session)?;
    let is_full = maker.finish(&session, passed.records)?;
    say_limits(is_full || session.is_full(), sink)?;
    chosen.finish(sink)?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

struct Maker<'a> {
    /// Where spans go, until the first sample says in which unit.
    out: Option<&'a mut dyn SpanSink>,
    emitter: Option<Emitter<'a>>,
    pending: Option<Pending>,
    /// Names of the stack, innermost first, with where each ends in `room`.
    frames: Vec<usize>,
    room: Vec<u8>,
    distinct_max: usize,
}

impl Maker<'_> {
    fn begin(&mut self, pending: Pending) {
        self.frames.clear();
        self.room.clear();
        self.pending = Some(pending);
    }

    fn frame(&mut self, frame: &crate::wire::text::Frame<'_>) {
        let Some(pending) = &mut self.pending else { return };
        // The first one may be on the sample's own line.
        pending.is_line &= self.frames.is_empty();
        if self.frames.len() < FRAMES_MAX {
            push_frame_name(&mut self.room, frame);
            self.frames.push(self.room.len());
        } else if let Some(emitter) = &mut self.emitter {
            emitter.is_full = true;
        }
    }

    /// Damage: a sample of which a line may be missing is left out.
    fn lose(&mut self, session: &Session) -> Result<(), Error> {
        if self.pending.as_ref().is_some_and(|pending| pending.is_line) {
            return self.end(session);
        }
        self.pending = None;
        Ok(())
    }

    fn end(&mut self, session: &Session) -> Result<(), Error> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        let event = session.event_name(pending.event);
        if let Some(out) = self.out.take() {
            let axis = Axis::of(event, out);
            self.emitter = Some(Emitter::new(out, axis, pending.at.time_ns, self.distinct_max)?);
        }
        let Some(emitter) = &mut self.emitter else { return Ok(()) };
        let mut names = Vec::with_capacity(self.frames.len().max(1));
        let mut from = 0;
        for to in &self.frames {
            names.push(emitter.name(self.room.get(from..*to).unwrap_or_default())?);
            from = *to;
        }
        if names.is_empty() {
            names.push(emitter.name(event.as_bytes())?);
        }
        names.reverse();
        let track = emitter.track(pending.key, || Track {
            process: pending.key.0,
            thread: pending.key.1,
            lane: 0,
            // As perf calls a thread without a name.
            name: Some(shown(&pending.comm).into_owned())
                .filter(|name| !name.is_empty() && *name != format!(":{}", pending.key.1)),
            process_name: None,
            is_task: false,
        })?;
        emitter.sample(pending.at, track, &names)
    }

    /// Ends everything; true if there was more than is kept apart.
    fn finish(mut self, session: &Session, seq: u64) -> Result<bool, Error> {
        self.end(session)?;
        if let Some(out) = self.out.take() {
            self.emitter = Some(Emitter::new(out, Axis::Clock, 0, self.distinct_max)?);
        }
        let Some(emitter) = self.emitter else { return Ok(false) };
        let is_full = emitter.is_full();
        emitter.finish(seq)?;
        Ok(is_full)
    }
}
