//! Follows a recording: which event a record belongs to, and what it says.

use anytrace_core::hash::Map;
use anytrace_core::{Diagnostic, Endian, Error, Passed, Place, Room, Rule, Sink, Step};

use super::features::{self, BUILD_ID, COMPRESSED, EVENT_DESC, Packing};
use crate::rules;
use crate::wire::attr::{Attr, has};
use crate::wire::bytes::{Bytes, until_zero};
use crate::wire::event::{self, Event, Mapping, kind};
use crate::wire::fault::Fault;
use crate::wire::header::{Header, Section};
use crate::wire::packed::within;
use crate::wire::reader::{Reader, features_table};
use crate::wire::record::Record;
use crate::wire::sample::{self, Sample};
use crate::wire::text::{Content, Head};

/// Flag of a record `comm`: the process begins another program.
const MISC_EXEC: u16 = 1 << 13;

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What<'a> {
    /// Nothing that is used.
    Nothing,
    /// A sample of `perf.data`, with its addresses.
    Sample(Sample<'a>),
    /// The first line of a sample of a text.
    Head,
    Mapping(Mapping<'a>),
    Comm {
        name: &'a [u8],
        is_exec: bool,
    },
    Fork {
        parent: u32,
    },
    Exit,
    Lost(u64),
    Throttled,
    /// Something that is not read: why.
    NotRead(&'static str),
    Bad(&'static Rule, Fault),
}

/// A record with what is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entered<'a> {
    pub(crate) what: What<'a>,
    /// The number of its event.
    pub(crate) event: Option<usize>,
    pub(crate) process: Option<u64>,
    pub(crate) thread: Option<u64>,
    pub(crate) cpu: Option<u32>,
    pub(crate) time_ns: Option<u64>,
    /// What the sample represents; without a period in the record that of the event's description, or 1.
    pub(crate) weight: u64,
}

const NOTHING: Entered<'_> =
    Entered { what: What::Nothing, event: None, process: None, thread: None, cpu: None, time_ns: None, weight: 1 };

impl Entered<'_> {
    /// True for a sample.
    pub(crate) fn is_sample(&self) -> bool {
        matches!(self.what, What::Sample(_) | What::Head)
    }
}

/// What is known of a recording.
#[derive(Debug, Default)]
pub(crate) struct Session {
    endian: Endian,
    /// The events; those of a text have nothing but a name.
    pub(crate) events: Vec<Attr>,
    /// The events by the numbers of their records.
    ids: Map<u64, usize>,
    /// The events of a text by name.
    named: Map<Box<[u8]>, usize>,
    /// The event that those of a text are for whose names had no room.
    other_event: Option<usize>,
    /// True when an event did not get a place of its own.
    is_full: bool,
    /// Build ids by the path of the file.
    pub(crate) build_ids: Map<Vec<u8>, Vec<u8>>,
    /// The features of the header.
    pub(crate) features: Vec<u32>,
    pub(crate) packing: Option<Packing>,
    distinct_max: usize,
    /// For names of events and paths of files.
    room: Room,
    /// True when the events all have the same fields.
    is_uniform: bool,
}

impl Session {
    pub(crate) fn new(distinct_max: usize) -> Self {
        Self { distinct_max: distinct_max.max(1), is_uniform: true, ..Self::default() }
    }

    /// True when an event, a name or a build id did not get a place of its own.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full || self.room.refused() > 0
    }

    /// The name of an event.
    pub(crate) fn event_name(&self, event: Option<usize>) -> &str {
        event.and_then(|event| self.events.get(event)).map_or("", |attr| &attr.name)
    }

    /// Takes a record.
    #[inline]
    pub(crate) fn enter<'a>(&mut self, record: &Record<'a>) -> Entered<'a> {
        match record {
            Record::Event(event) => self.event(event),
            Record::Line(line) => match &line.content {
                Content::Head(head) => self.head(head),
                _ => NOTHING,
            },
            Record::Header(header) => {
                self.header(header);
                NOTHING
            }
            Record::Features(_) => NOTHING,
        }
    }

    fn head<'a>(&mut self, head: &Head<'a>) -> Entered<'a> {
        let mut entered = Entered {
            process: head.process,
            thread: Some(head.thread),
            cpu: head.cpu,
            time_ns: head.time_ns,
            weight: head.period.unwrap_or(1),
            ..NOTHING
        };
        if !head.is_side_band() {
            entered.event = Some(self.text_event(head.event));
            entered.what = What::Head;
            return entered;
        }
        let mut words = head.rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let mut lost = || words.nth(1).and_then(|word| std::str::from_utf8(word).ok()?.parse().ok()).unwrap_or(1);
        entered.what = match head.event {
            b"PERF_RECORD_LOST" | b"PERF_RECORD_LOST_SAMPLES" => What::Lost(lost()),
            b"PERF_RECORD_THROTTLE" => What::Throttled,
            _ => What::Nothing,
        };
        entered
    }

    fn text_event(&mut self, name: &[u8]) -> usize {
        if let Some(known) = self.named.get(name) {
            return *known;
        }
        // As a key, and in the list.
        let has_room = self.events.len() < self.distinct_max && self.room.takes(2 * name.len());
        let number = self.events.len();
        let name = if has_room {
            self.named.insert(name.into(), number);
            if name.is_empty() { "samples".into() } else { String::from_utf8_lossy(name).into_owned() }
        } else {
            self.is_full = true;
            if let Some(known) = self.other_event {
                return known;
            }
            self.other_event = Some(number);
            "(other)".to_owned()
        };
        self.events.push(Attr { name, ..Attr::default() });
        number
    }

    fn header(&mut self, header: &Header<'_>) {
        self.endian = header.endian;
        self.features = header.features().collect();
        for (attr, ids) in header.attrs() {
            self.describe(attr, ids);
        }
    }

    /// Takes the description of an event.
    fn describe(&mut self, attr: &[u8], ids: &[u8]) {
        let Some(attr) = Attr::read(attr, self.endian) else { return };
        if self.events.len() >= self.distinct_max {
            self.is_full = true;
            return;
        }
        self.is_uniform &= self
            .events
            .first()
            .is_none_or(|first| (first.sample_type, first.has_ids()) == (attr.sample_type, attr.has_ids()));
        let words = crate::wire::bytes::Words { bytes: ids, endian: self.endian };
        for id in words.iter() {
            if self.ids.len() < self.distinct_max.saturating_mul(16) {
                self.ids.insert(id, self.events.len());
            }
        }
        self.events.push(attr);
    }

    /// Takes a table that is behind the records, or in a record of a stream.
    pub(crate) fn feature(&mut self, number: u32, table: &[u8]) {
        match number {
            EVENT_DESC => {
                for (name, ids) in features::event_names(table, self.endian) {
                    let known = ids.iter().find_map(|id| self.ids.get(id).copied());
                    // An event without numbers is the only one.
                    let own = known.or((self.events.len() == 1).then_some(0));
                    if let Some(attr) = own.and_then(|own| self.events.get_mut(own)) {
                        attr.name = name;
                    }
                }
            }
            COMPRESSED => self.packing = features::packing(table, self.endian).or(self.packing),
            BUILD_ID => {
                for (id, path) in features::build_ids(table, self.endian) {
                    if self.build_ids.len() < self.distinct_max && self.room.takes(id.len() + path.len()) {
                        self.build_ids.insert(path, id);
                    }
                }
            }
            _ => {}
        }
    }

    /// The event that a record belongs to.
    #[inline]
    fn event_of(&self, event: &Event<'_>) -> Option<usize> {
        if self.events.len() <= 1 {
            return (!self.events.is_empty()).then_some(0);
        }
        let id = sample::event_id(event.body(), event.is_sample(), self.events.first()?);
        match id.map(|id| (id, self.ids.get(&id))) {
            Some((_, Some(own))) => Some(*own),
            // Records that perf itself made have the number 0, and records without one belong to the first.
            Some((0, None)) | None if self.is_uniform || !event.is_sample() => Some(0),
            _ => None,
        }
    }

    #[inline]
    fn event<'a>(&mut self, event: &Event<'a>) -> Entered<'a> {
        if event.kind >= kind::USER {
            return self.own_record(event);
        }
        let Some(own) = self.event_of(event) else {
            let fault = Fault { field: "id", expected: "the number of an event", at: event::HEAD_BYTES };
            return Entered { what: What::Bad(&rules::UNKNOWN_EVENT, fault), ..NOTHING };
        };
        let Some(attr) = self.events.get(own) else { return NOTHING };
        if event.is_sample() {
            return sampled(event, own, attr);
        }
        let bad = |field| {
            let fault = Fault { field, expected: "inside the record", at: event::HEAD_BYTES };
            Entered { what: What::Bad(&rules::BAD_FIELD, fault), event: Some(own), ..NOTHING }
        };
        let Some((body, ids)) = sample::split_ids(event.body(), attr) else { return bad("sample_id") };
        let entered = Entered {
            event: Some(own),
            thread: ids.thread.map(u64::from),
            cpu: ids.cpu,
            time_ns: ids.time_ns,
            ..NOTHING
        };
        side_band(event, body, entered).unwrap_or_else(|| bad("body"))
    }

    /// Records that `perf` itself writes.
    #[cold]
    fn own_record<'a>(&mut self, event: &Event<'a>) -> Entered<'a> {
        let mut body = event.body();
        match event.kind {
            kind::HEADER_ATTR => {
                if let Some((attr, ids)) =
                    Attr::bytes(body.rest, self.endian).and_then(|bytes| body.rest.split_at_checked(bytes))
                {
                    self.describe(attr, ids);
                    return NOTHING;
                }
                let fault = Fault { field: "attr.size", expected: "inside the record", at: event::HEAD_BYTES + 4 };
                Entered { what: What::Bad(&rules::BAD_FIELD, fault), ..NOTHING }
            }
            kind::EVENT_UPDATE => {
                // Of four kinds of updates, 2 is that of the name.
                if let (Some(2), Some(id)) = (body.u64(), body.u64())
                    && let Some(attr) = self.ids.get(&id).and_then(|own| self.events.get_mut(*own))
                {
                    attr.name = String::from_utf8_lossy(until_zero(body.rest)).into_owned();
                }
                NOTHING
            }
            kind::HEADER_FEATURE => {
                if let Some(number) = body.u64().and_then(|number| u32::try_from(number).ok()) {
                    self.feature(number, body.rest);
                }
                NOTHING
            }
            kind::COMPRESSED | kind::COMPRESSED2 if event.inside.is_some() => {
                Entered { what: What::NotRead("a compressed record in another one"), ..NOTHING }
            }
            _ => NOTHING,
        }
    }
}

fn sampled<'a>(event: &Event<'a>, own: usize, attr: &Attr) -> Entered<'a> {
    if attr.sample_type & !has::ALL != 0 {
        return Entered { what: What::NotRead("samples with fields that are not known"), event: Some(own), ..NOTHING };
    }
    match sample::read(event.body(), attr) {
        Ok(sample) => Entered {
            what: What::Sample(sample),
            event: Some(own),
            process: sample.process.map(u64::from),
            thread: sample.thread.map(u64::from),
            cpu: sample.cpu,
            time_ns: sample.time_ns,
            weight: sample.period.unwrap_or(attr.period),
        },
        Err(fault) => Entered { what: What::Bad(&rules::BAD_FIELD, fault), event: Some(own), ..NOTHING },
    }
}

/// Records of the kernel that are no samples; `None` if one is too short.
fn side_band<'a>(event: &Event<'a>, mut body: Bytes<'a>, mut entered: Entered<'a>) -> Option<Entered<'a>> {
    entered.what = match event.kind {
        kind::MMAP | kind::MMAP2 => {
            let mapping = event::mapping(event, body)?;
            entered.process = Some(mapping.process.into());
            What::Mapping(mapping)
        }
        kind::COMM => {
            (entered.process, entered.thread) = (Some(body.u32()?.into()), Some(body.u32()?.into()));
            What::Comm { name: until_zero(body.rest), is_exec: event.misc & MISC_EXEC != 0 }
        }
        kind::FORK | kind::EXIT => {
            entered.process = Some(body.u32()?.into());
            let parent = body.u32()?;
            entered.thread = Some(body.u32()?.into());
            body.u32()?;
            let time = body.u64()?;
            entered.time_ns = entered.time_ns.or(Some(time));
            if event.kind == kind::FORK { What::Fork { parent } } else { What::Exit }
        }
        kind::LOST => {
            body.u64()?;
            What::Lost(body.u64()?)
        }
        kind::LOST_SAMPLES => What::Lost(body.u64()?),
        kind::THROTTLE => What::Throttled,
        _ => What::Nothing,
    };
    Some(entered)
}

/// Whether a walk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Stop,
}

/// A diagnostic about a byte of a record, which a compressed one may contain.
pub(crate) fn about(rule: &'static Rule, place: Place, record: &Record<'_>, at: usize) -> Diagnostic {
    let inside = if let Record::Event(event) = record { event.inside() } else { None };
    let diagnostic = rule.at(inside.unwrap_or(place.offset).saturating_add(at as u64)).record(place.seq);
    if inside.is_some() { within(diagnostic, place.offset) } else { diagnostic }
}

/// Reads a recording and passes its records to `visit` with what they say; damage goes to the sink.
pub(crate) fn walk<S: Sink + ?Sized>(
    reader: &mut Reader,
    session: &mut Session,
    sink: &mut S,
    mut visit: impl FnMut(&Session, Place, &Record<'_>, &Entered<'_>, &mut S) -> Result<Go, Error>,
) -> Result<Passed, Error> {
    loop {
        let table = match reader.next()? {
            None => break,
            Some(Step::Damage(diagnostic)) => {
                sink.report(diagnostic)?;
                continue;
            }
            Some(Step::Record(place, record)) => {
                let entered = session.enter(&record);
                if visit(session, place, &record, &entered, sink)? == Go::Stop {
                    break;
                }
                match &record {
                    Record::Header(header) if !header.is_pipe() && header.data().bytes > 0 => features_table(header),
                    _ => continue,
                }
            }
        };
        learn(reader, session, table)?;
    }
    Ok(reader.passed())
}

/// Reads the tables behind the records, where the input can be read from there.
pub(crate) fn learn(reader: &mut Reader, session: &mut Session, table: Section) -> Result<(), Error> {
    let Some(found) = reader.peek(table)? else { return Ok(()) };
    let sections = features::sections(&found, session.endian);
    let wanted: Vec<(u32, Section)> = session.features.iter().copied().zip(sections).collect();
    for (number, section) in wanted {
        if [EVENT_DESC, BUILD_ID, COMPRESSED].contains(&number)
            && let Some(bytes) = reader.peek(section)?
        {
            session.feature(number, &bytes);
        }
    }
    Ok(())
}
