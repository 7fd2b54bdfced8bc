//! `info`: counts everything in one pass.

use std::collections::BTreeMap;

use anytrace_core::{Error, Info, Sink, Tally, TimeRange};
use serde_json::{Value, json};

use crate::model::features::{self, Packing};
use crate::model::session::{Go, Session, What, walk};
use crate::verbs::check::say_limits;
use crate::wire::event::Event;
use crate::wire::reader::Reader;
use crate::wire::record::{Form, NAME, Record};

/// Most kinds of records that are counted apart; there are fewer.
const KINDS_MAX: usize = 256;

/// What is counted of an event.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    samples: u64,
    period: u128,
}

/// What is counted of compressed records.
#[derive(Debug, Clone, Copy, Default)]
struct Packed {
    records: u64,
    bytes: u64,
    /// Records in them, and their bytes.
    inside: u64,
    inside_bytes: u64,
}

impl Packed {
    #[inline]
    fn take(&mut self, event: &Event<'_>) {
        let bytes = event.bytes.len() as u64;
        if event.inside().is_some() {
            (self.inside, self.inside_bytes) = (self.inside + 1, self.inside_bytes + bytes);
        } else if event.is_compressed() {
            (self.records, self.bytes) = (self.records + 1, self.bytes + bytes);
        }
    }

    fn describe(&self, packing: Option<Packing>) -> Value {
        let mut all = json!({
            "records": self.records,
            "bytes": self.bytes,
            "records_inside": self.inside,
            "bytes_inside": self.inside_bytes,
        });
        if let (Some(packing), Some(all)) = (packing, all.as_object_mut()) {
            let name = if packing.kind == 1 { "zstd".to_owned() } else { format!("compression {}", packing.kind) };
            all.insert("compression".to_owned(), name.into());
            all.insert("level".to_owned(), packing.level.into());
        }
        all
    }
}

/// Reads the entire recording.
pub(crate) fn info(mut reader: Reader, distinct_max: usize, sink: &mut dyn Sink) -> Result<Info, Error> {
    let mut info = Info::new(NAME);
    info.set_container(reader.layers(), None);
    let form = reader.layout().form;
    info.dialect = Some(form.name().to_owned());
    if let Form::Data(endian) = form {
        info.byte_order = Some(endian);
    }
    let mut session = Session::new(distinct_max);
    let mut kinds: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut threads = Tally::new(distinct_max);
    let mut events: Vec<Count> = Vec::new();
    let (mut range, mut lost, mut losses, mut not_read) = (None::<(u64, u64)>, 0_u64, 0_u64, 0_u64);
    let mut packed = Packed::default();
    let passed = walk(&mut reader, &mut session, sink, |_, _, record, entered, _| {
        if let Record::Event(event) = record {
            packed.take(event);
        }
        if kinds.len() < KINDS_MAX {
            *kinds.entry(record.kind_name()).or_default() += 1;
        }
        if let Some(thread) = entered.thread {
            threads.add(thread, 1);
        }
        // Records that perf made of what was there before have the time 0.
        if let Some(time) = entered.time_ns.filter(|time| *time > 0) {
            let (start, end) = range.unwrap_or((time, time));
            range = Some((start.min(time), end.max(time)));
        }
        match entered.what {
            What::Lost(count) => {
                lost = lost.saturating_add(count);
                losses += 1;
            }
            What::NotRead(_) => not_read += 1,
            What::Sample(_) | What::Head => {
                let event = entered.event.unwrap_or(0);
                if event >= events.len() && event < distinct_max.max(1) {
                    events.resize(event + 1, Count::default());
                }
                if let Some(count) = events.get_mut(event) {
                    count.samples += 1;
                    count.period += u128::from(entered.weight);
                }
            }
            _ => {}
        }
        Ok(Go::On)
    })?;
    info.bytes = passed.bytes;
    info.records = passed.records;
    info.set_kinds(kinds);
    info.threads = threads.into_rows(|thread| thread.to_string());
    info.time = range.map(|(start, end)| TimeRange { start, end, unit: "ns", per_second: None, epoch_ns: None });
    let described: Vec<Value> = session
        .events
        .iter()
        .enumerate()
        .map(|(number, attr)| {
            let count = events.get(number).copied().unwrap_or_default();
            let period = u64::try_from(count.period).unwrap_or(u64::MAX);
            json!({"event": number, "name": attr.name, "samples": count.samples, "period": period})
        })
        .collect();
    info.details.push(("events", Value::Array(described)));
    if !session.features.is_empty() {
        let names: Vec<String> = session.features.iter().map(|number| features::name(*number)).collect();
        info.details.push(("features", json!(names)));
    }
    if packed.records > 0 {
        info.details.push(("compressed", packed.describe(session.packing)));
    }
    let is_full = session.is_full() || info.threads.len() > distinct_max;
    if is_full {
        info.details.push(("limits", json!(["names, threads or events: what has no room is counted together"])));
    }
    say_limits(is_full, sink)?;
    let counts =
        [("lost_records", lost), ("losses", losses), ("not_read", not_read), ("lost_bytes", passed.bytes_lost)];
    info.details.extend(counts.into_iter().filter(|(_, count)| *count > 0).map(|(key, count)| (key, count.into())));
    Ok(info)
}
