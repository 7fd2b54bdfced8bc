//! Rules beyond grammar.

use anytrace_core::hash::{Map, Set};
use anytrace_core::{Diagnostic, Error, Place, Rule, Sink, Summary};

use super::open_spans::{OpenSpan, OpenSpans, Role, thread_key};
use crate::rules;
use crate::wire::event::{Event, FieldFault, digest, joint, name};
use crate::wire::excerpt::shown;
use crate::wire::json::{first_lenient, inner, is_number, members};
use crate::wire::reader::{Reader, Visit};
use crate::wire::record::{Kind, Record};

/// Reports every violation of a rule.
pub(crate) fn check(mut reader: Reader, distinct_max: usize, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let mut check = Check { distinct_max, ..Check::default() };
    let passed = reader.walk(&mut check, sink)?;
    check.finish(sink)?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

#[derive(Default)]
struct Check {
    distinct_max: usize,
    open: OpenSpans,
    /// Of each thread the time of its last beginning or end; none after one was not in order.
    last: Map<u64, Option<i64>>,
    flows: Set<u64>,
    /// Ends of arrows that did not begin so far.
    ends: Map<u64, (Place, &'static str)>,
    /// Names of processes and threads.
    names: Map<u64, u64>,
    is_full: bool,
    #[cfg(feature = "lanes")]
    overlaps: crate::lanes::overlaps::Overlaps,
    room: Vec<u8>,
}

/// A diagnostic of an event.
fn at_event(rule: &'static Rule, at: Place) -> Diagnostic {
    rule.at(at.offset).record(at.seq)
}

/// What a span that does not end, or an end, is called.
const fn is_async(kind: Kind) -> bool {
    !matches!(kind, Kind::Begin | Kind::End)
}

impl Visit for Check {
    fn record(&mut self, record: &Record<'_>, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        if let Some((wrong, what)) = first_lenient(record.text) {
            let report = rules::NOT_STRICT.at(at.offset + wrong as u64).record(at.seq);
            sink.report(report.found(what))?;
        }
        let event = match Event::of(record) {
            Ok(event) => event,
            Err(fault) => return sink.report(bad_field(&fault, at)),
        };
        match event.kind {
            Kind::Other => {
                let report = at_event(&rules::UNKNOWN_PHASE, at).field("ph");
                return sink.report(report.found(record.phase.map_or(String::new(), shown)));
            }
            Kind::Metadata => return self.metadata(record, &event, at, sink),
            Kind::Counter => return counter(record, at, sink),
            Kind::Complete => return self.complete(&event, at),
            Kind::FlowStart | Kind::FlowStep | Kind::FlowEnd => return self.flow(record, &event, at, sink),
            _ => {}
        }
        match Role::of(record, &event) {
            Role::Begin(key) if is_async(event.kind) || self.is_in_order(key, &event, at, sink)? => {
                self.open.begin(key, record, &event, at, true);
                Ok(())
            }
            Role::End(key) if is_async(event.kind) || self.is_in_order(key, &event, at, sink)? => {
                self.end(key, record, at, sink)
            }
            Role::Begin(_) | Role::End(_) => Ok(()),
            Role::Other if has_id(event.kind) && joint(record).is_none() => missing_id(at, sink),
            Role::Other => Ok(()),
        }
    }
}

/// True for kinds that are joined to others by an id.
const fn has_id(kind: Kind) -> bool {
    use Kind::{AsyncBegin, AsyncEnd, AsyncFinish, AsyncInstant, AsyncStart, AsyncStep};
    matches!(kind, AsyncBegin | AsyncEnd | AsyncInstant | AsyncStart | AsyncStep | AsyncFinish)
}

fn missing_id(at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
    sink.report(at_event(&rules::MISSING_ID, at).field("id").expected("id or id2").found("nothing"))
}

/// The report of a field that an event needs.
pub(crate) fn bad_field(fault: &FieldFault, at: Place) -> Diagnostic {
    let report = rules::BAD_FIELD.at(at.offset + fault.at as u64).record(at.seq);
    let found = fault.found.clone().unwrap_or_else(|| "nothing".to_owned());
    report.field(fault.field).expected(fault.expected).found(found)
}

impl Check {
    /// True where a thread's beginnings and ends are in order of time, so that they can be joined as they come.
    fn is_in_order(&mut self, key: u64, event: &Event<'_>, at: Place, sink: &mut dyn Sink) -> Result<bool, Error> {
        if !self.last.contains_key(&key) && !self.has_room(self.last.len(), at, sink)? {
            return Ok(false);
        }
        let last = self.last.entry(key).or_insert(Some(i64::MIN));
        match *last {
            Some(before) if event.start.ns >= before => {
                *last = Some(event.start.ns);
                Ok(true)
            }
            Some(before) => {
                *last = None;
                self.open.forget(key);
                let report = at_event(&rules::TIME_BACK, at).field("ts").expected(format!("at least {before} ns"));
                let help =
                    "the thread's beginnings and ends are joined in order of time, not checked in that of the file";
                sink.report(report.found(format!("{} ns", event.start.ns)).help(help))?;
                Ok(false)
            }
            None => Ok(false),
        }
    }

    /// True where another key can be followed; reports the first that cannot.
    fn has_room(&mut self, keys: usize, at: Place, sink: &mut dyn Sink) -> Result<bool, Error> {
        if keys < self.distinct_max {
            return Ok(true);
        }
        if !std::mem::replace(&mut self.is_full, true) {
            sink.report(at_event(&rules::TOO_MANY_KEYS, at).expected(format!("at most {}", self.distinct_max)))?;
        }
        Ok(false)
    }

    fn end(&mut self, key: u64, record: &Record<'_>, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        let Some(begin) = self.open.end(key) else {
            // It may be the end of one that was too many.
            if self.open.left_out > 0 {
                self.open.left_out -= 1;
                return Ok(());
            }
            return sink.report(at_event(&rules::END_WITHOUT_BEGIN, at).found(shown_name(record)));
        };
        match (begin.name, record.name) {
            (Some(expected), Some(raw)) if digest(&[raw]) != expected => {
                let report = at_event(&rules::NAME_DIFFERS, at).field("name");
                sink.report(report.expected(format!("the name of event {}", begin.seq)).found(shown(raw)))
            }
            _ => Ok(()),
        }
    }

    fn flow(&mut self, record: &Record<'_>, event: &Event<'_>, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        let Some(joint) = joint(record) else { return missing_id(at, sink) };
        let key = digest(&[record.category.unwrap_or_default(), record.name.unwrap_or_default(), joint.id]);
        if event.kind == Kind::FlowStart {
            if self.flows.contains(&key) || self.has_room(self.flows.len(), at, sink)? {
                self.flows.insert(key);
            }
        } else if !self.flows.contains(&key) && !self.is_full && self.has_room(self.ends.len(), at, sink)? {
            self.ends.entry(key).or_insert((at, event.kind.name()));
        }
        Ok(())
    }

    fn metadata(
        &mut self,
        record: &Record<'_>,
        event: &Event<'_>,
        at: Place,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let what = name(record, &mut self.room);
        let key = match what {
            b"process_name" => {
                digest(&[b"process", &thread_key(&Event { thread: event.process, ..*event }).to_le_bytes()])
            }
            b"thread_name" => thread_key(event),
            _ => return Ok(()),
        };
        let mut value = None;
        if let Some(arguments) = record.arguments {
            let _ = members(arguments, 0, |key, raw| {
                if key == b"name" {
                    value = Some(raw);
                }
            });
        }
        let Some(value) = value else { return Ok(()) };
        if !self.names.contains_key(&key) && !self.has_room(self.names.len(), at, sink)? {
            return Ok(());
        }
        let digest = digest(&[value]);
        if *self.names.entry(key).or_insert(digest) != digest {
            let report = at_event(&rules::METADATA_DIFFERS, at).field("args.name");
            return sink.report(report.expected("the name it had before").found(shown(value)));
        }
        Ok(())
    }

    #[cfg(feature = "lanes")]
    fn complete(&mut self, event: &Event<'_>, at: Place) -> Result<(), Error> {
        self.overlaps.add(thread_key(event), event, at)
    }

    #[cfg(not(feature = "lanes"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "with lanes it is otherwise")]
    fn complete(&mut self, _event: &Event<'_>, _at: Place) -> Result<(), Error> {
        Ok(())
    }

    fn finish(mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        for OpenSpan { seq, offset, .. } in self.open.rest() {
            sink.report(at_event(&rules::BEGIN_WITHOUT_END, Place { offset, seq }))?;
        }
        let flows = &self.flows;
        let mut ends: Vec<_> = self.ends.iter().filter(|(key, _)| !flows.contains(key)).map(|(_, end)| *end).collect();
        ends.sort_unstable_by_key(|(at, _)| at.seq);
        for (at, kind) in ends {
            sink.report(at_event(&rules::FLOW_WITHOUT_START, at).found(kind))?;
        }
        #[cfg(feature = "lanes")]
        self.overlaps.report(sink)?;
        Ok(())
    }
}

fn shown_name(record: &Record<'_>) -> String {
    record.name.map_or_else(|| "an end without a name".to_owned(), shown)
}

/// Values of a counter are numbers.
fn counter(record: &Record<'_>, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
    let mut wrong = None;
    let end = record.arguments.map(|arguments| {
        members(arguments, 0, |key, raw| {
            let text = inner(raw).unwrap_or(raw);
            if wrong.is_none() && !is_number(text) {
                wrong = Some((key, raw));
            }
        })
    });
    let report = at_event(&rules::COUNTER_VALUE, at);
    match (end, wrong) {
        (Some(Ok(_)), None) => Ok(()),
        (_, Some((key, raw))) => {
            let field = format!("args.{}", String::from_utf8_lossy(key));
            sink.report(report.field(field).expected("a number").found(shown(raw)))
        }
        (_, None) => sink.report(report.field("args").expected("an object of numbers").found("none")),
    }
}
