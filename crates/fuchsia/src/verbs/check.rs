//! Rules beyond grammar.

use anytrace_core::hash::Map;
use anytrace_core::{Error, Place, Sink, Summary};

use crate::model::session::{Go, Missing, Session, Thread, about, is_event, unreadable, walk};
use crate::rules;
use crate::wire::arguments::{Arguments, Value};
use crate::wire::content::Content;
use crate::wire::reader::Reader;

/// Most threads of which unfinished durations are reported.
const THREADS_MAX: usize = 100;

/// Durations of a thread that are open.
#[derive(Debug, Clone, Copy)]
struct Open {
    count: u64,
    last: Place,
    has_orphans: bool,
}

/// Reports every violation of a rule.
pub(crate) fn check(mut reader: Reader, distinct_max: usize, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let mut session = Session::new(distinct_max);
    let mut checker = Checker::default();
    let passed = walk(&mut reader, &mut session, sink, |session, place, record, content, sink| {
        if place.seq == 0 && content != Ok(Content::Magic) {
            sink.report(about(&rules::NO_MAGIC, place, 0))?;
        }
        match &content {
            Err(fault) => sink.report(unreadable(place, fault))?,
            Ok(Content::Unknown) => checker.unknown(record.kind(), place, sink)?,
            Ok(Content::ProviderEvent { event: 0, id }) => {
                sink.report(about(&rules::BUFFER_FULL, place, 0).found(format!("provider {id}")))?;
            }
            Ok(content) => checker.event(content, session, place, distinct_max, sink)?,
        }
        Ok(Go::On)
    })?;
    checker.finish(sink)?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

#[derive(Debug, Default)]
struct Checker {
    threads: Map<Thread, Open>,
    order: Vec<Thread>,
    unknown: Vec<u8>,
    said: Missing,
}

impl Checker {
    fn unknown(&mut self, kind: u8, place: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        if self.unknown.contains(&kind) {
            return Ok(());
        }
        self.unknown.push(kind);
        sink.report(about(&rules::UNKNOWN_RECORD, place, 0).field("type").found(kind.to_string()))
    }

    fn event(
        &mut self,
        content: &Content<'_>,
        session: &mut Session,
        place: Place,
        distinct_max: usize,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        session.missing = Missing::default();
        let facts = session.facts(content);
        for argument in arguments(content) {
            session.text(argument.name);
            if let Value::Text(text) = argument.value {
                session.text(text);
            }
        }
        let missing = session.missing;
        // One of each is enough: a provider that lost its records lost them all.
        if let Some(number) = missing.string
            && self.said.string.replace(number).is_none()
        {
            sink.report(about(&rules::UNKNOWN_STRING, place, 0).found(number.to_string()))?;
        }
        if let Some(number) = missing.thread
            && self.said.thread.replace(number).is_none()
        {
            sink.report(about(&rules::UNKNOWN_THREAD, place, 0).found(number.to_string()))?;
        }
        if missing.rate && is_event(content) && !std::mem::replace(&mut self.said.rate, true) {
            sink.report(about(&rules::NO_RATE, place, 0))?;
        }
        let (Content::Event(event), Some(thread)) = (content, facts.thread) else { return Ok(()) };
        if !matches!(event.kind, 2 | 3) || (self.threads.len() >= distinct_max && !self.threads.contains_key(&thread)) {
            return Ok(());
        }
        let order = &mut self.order;
        let open = self.threads.entry(thread).or_insert_with(|| {
            order.push(thread);
            Open { count: 0, last: place, has_orphans: false }
        });
        if event.kind == 2 {
            open.count += 1;
            open.last = place;
        } else if open.count > 0 {
            open.count -= 1;
        } else if !std::mem::replace(&mut open.has_orphans, true) {
            sink.report(about(&rules::END_WITHOUT_BEGIN, place, 0).found(format!("thread {}", thread.1)))?;
        }
        Ok(())
    }

    fn finish(self, sink: &mut dyn Sink) -> Result<(), Error> {
        let open = self.order.iter().filter_map(|thread| Some((thread, self.threads.get(thread)?)));
        for (thread, open) in open.filter(|(_, open)| open.count > 0).take(THREADS_MAX) {
            let found = format!("{} on thread {}", open.count, thread.1);
            sink.report(about(&rules::BEGIN_WITHOUT_END, open.last, 0).found(found))?;
        }
        Ok(())
    }
}

fn arguments<'a>(content: &Content<'a>) -> Arguments<'a> {
    match *content {
        Content::Event(event) => event.arguments,
        Content::LargeBlob { arguments, .. }
        | Content::UserspaceObject { arguments, .. }
        | Content::KernelObject { arguments, .. }
        | Content::Switch { arguments, .. }
        | Content::Wakeup { arguments, .. } => arguments,
        _ => Arguments::NONE,
    }
}
