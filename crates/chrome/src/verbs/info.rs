//! `info`: counts everything in one pass.

use anytrace_core::hash::Map;

use anytrace_core::text::escaped;
use anytrace_core::{Error, Info, Place, Room, Sink, TimeRange};
use serde_json::{Value, json};

use crate::wire::event::Event;
use crate::wire::reader::{Reader, Visit};
use crate::wire::record::{Form, Kind, NAME, Record};

/// Reads the entire trace.
pub(crate) fn info(mut reader: Reader, distinct_max: usize, sink: &mut dyn Sink) -> Result<Info, Error> {
    let mut info = Info::new(NAME);
    info.set_container(reader.layers(), None);
    let mut counts = Counts { distinct_max, ..Counts::default() };
    let passed = reader.walk(&mut counts, sink)?;
    info.bytes = passed.bytes;
    info.records = passed.records;
    info.dialect = (passed.records > 0 || reader.is_closed()).then(|| reader.form().name().to_owned());
    info.set_kinds(Kind::ALL.iter().map(|kind| (kind.name(), counts.kinds[*kind as usize])));
    counts.put_threads(&mut info);
    info.time = counts.times.map(|(start, end)| {
        let [start, end] = [start, end].map(|ns| u64::try_from(ns).unwrap_or(0));
        TimeRange { start, end, unit: "ns", per_second: None, epoch_ns: None }
    });
    info.details = counts.details(&reader, passed.bytes_lost);
    Ok(info)
}

#[derive(Default)]
struct Counts {
    kinds: [u64; Kind::ALL.len()],
    distinct_max: usize,
    /// By process and thread, raw.
    threads: Map<Vec<u8>, usize>,
    counts: Vec<(Vec<u8>, u64)>,
    /// The last thread's place among the counts.
    last: usize,
    others: u64,
    key: Vec<u8>,
    /// For the threads.
    room: Room,
    times: Option<(i64, i64)>,
    rounded: u64,
    faults: u64,
}

impl Visit for Counts {
    #[inline]
    fn record(&mut self, record: &Record<'_>, _at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        if let Some(count) = self.kinds.get_mut(record.kind() as usize) {
            *count += 1;
        }
        self.thread(record);
        let Ok(event) = Event::of(record) else {
            self.faults += 1;
            return Ok(());
        };
        if event.kind.has_time() {
            let (start, end) = self.times.unwrap_or((i64::MAX, i64::MIN));
            self.times = Some((start.min(event.start.ns), end.max(event.end_ns())));
            self.rounded += u64::from(event.start.is_rounded || event.duration.is_rounded);
        }
        Ok(())
    }
}

impl Counts {
    #[inline]
    fn thread(&mut self, record: &Record<'_>) {
        let [process, thread] = [record.process, record.thread].map(|raw| raw.unwrap_or(b"0"));
        self.key.clear();
        self.key.extend_from_slice(process);
        self.key.push(b'/');
        self.key.extend_from_slice(thread);
        match self.counts.get_mut(self.last) {
            Some((key, count)) if *key == self.key => *count += 1,
            _ => self.another_thread(),
        }
    }

    fn another_thread(&mut self) {
        if let Some(&known) = self.threads.get(&self.key) {
            self.last = known;
            if let Some((_, count)) = self.counts.get_mut(known) {
                *count += 1;
            }
        } else if self.counts.len() < self.distinct_max && self.room.takes(2 * self.key.len()) {
            self.last = self.counts.len();
            self.threads.insert(self.key.clone(), self.last);
            self.counts.push((self.key.clone(), 1));
        } else {
            self.others += 1;
        }
    }

    fn put_threads(&mut self, info: &mut Info) {
        let number = |key: &[u8]| {
            let text = String::from_utf8_lossy(key).into_owned();
            let numbers = text.split_once('/').map(|(one, two)| (one.parse::<u64>(), two.parse::<u64>()));
            let numbers = numbers.and_then(|(one, two)| Some((one.ok()?, two.ok()?)));
            (numbers.is_none(), numbers, text)
        };
        self.counts.sort_by_cached_key(|(key, _)| number(key));
        info.threads = self.counts.iter().map(|(key, count)| (escaped(key), *count)).collect();
        info.threads.extend((self.others > 0).then(|| ("other".to_owned(), self.others)));
    }

    fn details(&self, reader: &Reader, bytes_lost: u64) -> Vec<(&'static str, Value)> {
        let mut details = Vec::new();
        let is_open_array = !reader.is_closed() && reader.form() == Form::Array && info_has_events(&self.kinds);
        details.extend(is_open_array.then(|| ("array_end", json!("missing, as the format allows"))));
        let facts = reader.facts();
        let text = |raw: &[u8]| serde_json::from_slice::<Value>(raw).ok();
        if let Some(unit) = facts.iter().find(|fact| fact.key == b"displayTimeUnit").and_then(|fact| text(&fact.value))
        {
            details.push(("display_time_unit", unit));
        }
        if let Some(other) = facts.iter().find(|fact| fact.key == b"otherData").and_then(|fact| text(&fact.value)) {
            details.push(("other_data", other));
        }
        let is_shown = |key: &[u8]| matches!(key, b"displayTimeUnit" | b"otherData");
        let keys: Vec<_> = facts.iter().filter(|fact| !is_shown(&fact.key)).map(|fact| escaped(&fact.key)).collect();
        details.extend((!keys.is_empty()).then(|| ("other_keys", json!(keys))));
        if let Some((start, _)) = self.times.filter(|(start, _)| *start < 0) {
            details.push(("earliest_ns", start.into()));
        }
        for (key, count) in
            [("times_rounded_to_ns", self.rounded), ("events_with_bad_fields", self.faults), ("lost_bytes", bytes_lost)]
        {
            details.extend((count > 0).then(|| (key, count.into())));
        }
        details
    }
}

fn info_has_events(kinds: &[u64]) -> bool {
    kinds.iter().any(|count| *count > 0)
}
