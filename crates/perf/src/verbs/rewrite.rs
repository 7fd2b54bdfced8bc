//! `convert`, `repair` and `trim`: the same records, fewer of them, or JSON lines.

use std::io::Write;

use anytrace_core::{Diagnostic, Error, Outcome, Place, Plan, Sink, Target, TargetOptions};

use crate::model::session::{Entered, Go, Session, What, walk};
use crate::options::OPTIONS;
use crate::verbs::check::{Faults, Strays};
use crate::verbs::lines::{FULL_BYTES, push_header, push_json};
use crate::verbs::patch::Patch;
use crate::verbs::select::Selector;
use crate::verbs::unpack::unpack_from;
use crate::wire::event::Event;
use crate::wire::reader::Reader;
use crate::wire::record::{Layout, NAME, Record};
use crate::wire::text::Content;
use crate::wire::writer::Writer;

/// Most bytes of the lines of a sample that are kept until its end is known; a longer one is written as it comes.
const SAMPLE_BYTES_MAX: usize = 16 << 20;

/// Writes records in the form that was asked for.
pub(crate) enum Output<W> {
    /// A recording.
    Trace(Writer<W>),
    /// JSON lines, what is not written yet, and what the records mean.
    Jsonl(W, Vec<u8>, Box<Session>),
}

impl<W: Write> Output<W> {
    /// Reads the target options.
    pub(crate) fn new(out: W, target: &TargetOptions, layout: &Layout, distinct_max: usize) -> Result<Self, Error> {
        target.only(NAME, &[], OPTIONS)?;
        match target.to.as_deref() {
            None | Some(NAME) => Ok(Self::Trace(Writer::with_layout(out, layout))),
            Some("jsonl") => {
                let mut buffer = Vec::new();
                push_header(&mut buffer, layout);
                Ok(Self::Jsonl(out, buffer, Box::new(Session::new(distinct_max))))
            }
            Some(other) => Err(Error::usage(format!("a {NAME} recording cannot be written as {other}"))),
        }
    }

    pub(crate) fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        match self {
            Self::Trace(writer) => writer.write(record),
            Self::Jsonl(out, buffer, session) => {
                let entered = session.enter(record);
                push_json(buffer, record, &entered, session, None);
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
            Self::Jsonl(mut out, buffer, _) => Ok(out.write_all(&buffer)?),
        }
    }
}

/// Passes diagnostics on, and remembers that there was one.
pub(crate) struct Noting<'a> {
    inner: &'a mut dyn Sink,
    /// True after damage, until it is reset.
    pub(crate) has_damage: bool,
}

impl<'a> Noting<'a> {
    pub(crate) fn new(inner: &'a mut dyn Sink) -> Self {
        Self { inner, has_damage: false }
    }

    /// Reports something that is no damage of the records.
    pub(crate) fn say(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.inner.report(diagnostic)
    }
}

impl Sink for Noting<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.has_damage = true;
        self.inner.report(diagnostic)
    }
}

/// Executes a plan.
pub(crate) fn rewrite(
    mut reader: Reader,
    distinct_max: usize,
    plan: &Plan,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let (mut way, unpacks_from) = match plan {
        Plan::Convert(_) => (Way::All, None),
        Plan::Repair(_) => (Way::Good(Good::default()), unpack_from(&mut reader, distinct_max)?),
        Plan::Trim(selection, _) => {
            let selector = Selector::new(selection, &mut reader, distinct_max)?;
            selector.note(sink)?;
            (Way::Selected(selector), Some(0))
        }
    };
    let start = out.position();
    let mut target = &mut *out;
    let mut writing = Writing {
        output: Output::new(&mut target, plan.target(), reader.layout(), distinct_max)?,
        patch: Patch::default(),
        written: 0,
        is_filled: false,
        unpacks_from,
        unpacked: 0,
    };
    let mut session = Session::new(distinct_max);
    let mut noting = Noting::new(sink);
    let passed = walk(&mut reader, &mut session, &mut noting, |session, place, record, entered, sink| {
        way.write(place, record, entered, session, &mut writing, sink)?;
        Ok(Go::On)
    })?;
    if let Way::Good(good) = &mut way {
        good.end(noting.has_damage, &mut writing)?;
    }
    writing.fill()?;
    let mut notes = Vec::new();
    if writing.is_filled {
        notes.push("A record that says nothing was added: a file without records looks unfinished.".to_owned());
    }
    if writing.unpacked > 0 {
        notes.push(format!("What {} compressed records contained was written without compression.", writing.unpacked));
    }
    let Writing { output, patch, written, .. } = writing;
    let is_trace = matches!(output, Output::Trace(_));
    output.finish()?;
    if is_trace && patch.apply(out, start)? {
        notes.push("The header no longer says that tables follow the records, which are not there.".to_owned());
    }
    let dropped = if let Way::Good(good) = &way { good.bytes_lost } else { 0 };
    let bytes_lost = passed.bytes_lost + dropped;
    if bytes_lost > 0 {
        notes.push(format!("Bytes that are not in readable records were left out: {bytes_lost}."));
    }
    Ok(Outcome { records_read: passed.records, records_written: written, bytes_lost, notes })
}

/// Where records go.
struct Writing<W> {
    output: Output<W>,
    patch: Patch,
    written: u64,
    /// True when a record was added.
    is_filled: bool,
    /// From this offset on compressed records are not written, but what they contain is.
    unpacks_from: Option<u64>,
    /// How many were not.
    unpacked: u64,
}

impl<W: Write> Writing<W> {
    /// Writes a record, or a record in a compressed one at this place.
    fn write_at(&mut self, place: Place, record: &Record<'_>) -> Result<(), Error> {
        match record {
            Record::Event(event) if self.unpacks_from.is_some_and(|from| place.offset >= from) => {
                if event.inside().is_none() && event.is_compressed() {
                    self.unpacked += 1;
                    return Ok(());
                }
                self.write(&Record::Event(Event { inside: None, ..*event }))
            }
            _ => self.write(record),
        }
    }

    fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        if matches!(record, Record::Features(_)) {
            self.fill()?;
        }
        self.patch.see(record);
        self.written += 1;
        self.output.write(record)
    }

    /// Adds a record to a file that would have none; only where bytes of records are the output.
    fn fill(&mut self) -> Result<(), Error> {
        if let Output::Trace(writer) = &mut self.output
            && let Some(filler) = self.patch.filler()
        {
            self.is_filled = true;
            writer.write_bytes(&filler, false)?;
        }
        Ok(())
    }
}

/// Which records are written.
enum Way<'a> {
    All,
    /// Those that can be understood.
    Good(Good),
    /// Selected samples, and what gives them meaning.
    Selected(Selector<'a>),
}

impl Way<'_> {
    fn write<W: Write>(
        &mut self,
        place: Place,
        record: &Record<'_>,
        entered: &Entered<'_>,
        session: &Session,
        out: &mut Writing<W>,
        sink: &mut Noting<'_>,
    ) -> Result<(), Error> {
        match self {
            Self::All => out.write_at(place, record),
            Self::Selected(selector) => {
                let keeps = selector.keeps(place, record, entered, session);
                if keeps { out.write_at(place, record) } else { Ok(()) }
            }
            Self::Good(good) => good.take(place, record, entered, out, sink),
        }
    }
}

/// Leaves out records that cannot be understood, and samples of a text of which a line is damaged: without it their
/// stacks would be others.
#[derive(Default)]
struct Good {
    faults: Faults,
    strays: Strays,
    /// Lines of the sample that has not ended yet.
    kept: Vec<u8>,
    /// True while these are one line that is a sample in itself.
    is_line: bool,
    bytes_lost: u64,
}

impl Good {
    fn take<W: Write>(
        &mut self,
        place: Place,
        record: &Record<'_>,
        entered: &Entered<'_>,
        out: &mut Writing<W>,
        sink: &mut Noting<'_>,
    ) -> Result<(), Error> {
        if let Some(diagnostic) = self.faults.of(place, record, entered) {
            sink.say(diagnostic)?;
        }
        let Record::Line(line) = record else {
            sink.has_damage = false;
            if matches!(entered.what, What::Bad(..)) {
                self.bytes_lost += record.bytes().len() as u64;
                return Ok(());
            }
            return out.write_at(place, record);
        };
        if std::mem::take(&mut sink.has_damage) {
            self.lose(out)?;
        }
        if matches!(line.content, Content::Head(_)) {
            self.flush(out)?;
        }
        if self.strays.is_stray(record) {
            self.bytes_lost += line.text.len() as u64 + 1;
            return Ok(());
        }
        self.kept.extend_from_slice(line.text);
        self.kept.push(b'\n');
        self.is_line = matches!(&line.content, Content::Head(head) if !head.rest.trim_ascii().is_empty());
        let is_end = matches!(line.content, Content::Blank | Content::Comment) || self.kept.len() > SAMPLE_BYTES_MAX;
        if is_end { self.flush(out) } else { Ok(()) }
    }

    /// Damage: the sample that has not ended is left out.
    fn lose<W: Write>(&mut self, out: &mut Writing<W>) -> Result<(), Error> {
        self.strays.lose();
        if self.is_line {
            return self.flush(out);
        }
        self.bytes_lost += self.kept.len() as u64;
        self.kept.clear();
        Ok(())
    }

    fn flush<W: Write>(&mut self, out: &mut Writing<W>) -> Result<(), Error> {
        let kept = std::mem::take(&mut self.kept);
        for line in kept.split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            if let Some(line) = crate::wire::text::read(text) {
                out.write(&Record::Line(line))?;
            }
        }
        self.kept = kept;
        self.kept.clear();
        Ok(())
    }

    fn end<W: Write>(&mut self, has_damage: bool, out: &mut Writing<W>) -> Result<(), Error> {
        if has_damage {
            self.lose(out)?;
        }
        self.flush(out)
    }
}
