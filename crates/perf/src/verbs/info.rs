//! `info`: counts everything in one pass.

use std::collections::BTreeMap;

use anytrace_core::{Error, Info, Sink, Tally, TimeRange};
use serde_json::{Value, json};

use crate::model::features;
use crate::model::session::{Go, Session, What, walk};
use crate::wire::reader::Reader;
use crate::wire::record::{Form, NAME};

/// Most kinds of records that are counted apart; there are fewer.
const KINDS_MAX: usize = 256;

/// What is counted of an event.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    samples: u64,
    period: u128,
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
    let passed = walk(&mut reader, &mut session, sink, |_, _, record, entered, _| {
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
    let counts =
        [("lost_records", lost), ("losses", losses), ("not_read", not_read), ("lost_bytes", passed.bytes_lost)];
    info.details.extend(counts.into_iter().filter(|(_, count)| *count > 0).map(|(key, count)| (key, count.into())));
    Ok(info)
}
