//! `info`: counts everything in one pass.

use std::collections::BTreeMap;

use anytrace_core::{Error, Info, Sink, Tally, TimeRange};
use serde_json::json;

use crate::model::session::{Go, Session, is_event, walk};
use crate::wire::content::Content;
use crate::wire::reader::Reader;
use crate::wire::record::NAME;

/// Reads the entire trace.
pub(crate) fn info(mut reader: Reader, distinct_max: usize, sink: &mut dyn Sink) -> Result<Info, Error> {
    let mut info = Info::new(NAME);
    info.set_container(reader.layers(), None);
    let mut session = Session::new(distinct_max);
    let mut kinds: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut threads = Tally::new(distinct_max);
    let (mut range, mut full, mut blob_bytes) = (None::<(u64, u64)>, 0_u64, 0_u64);
    let passed = walk(&mut reader, &mut session, sink, |session, _, record, content, _| {
        *kinds.entry(record.kind_name()).or_default() += 1;
        let Ok(content) = content else { return Ok(Go::On) };
        match content {
            Content::ProviderEvent { event: 0, .. } => full += 1,
            Content::Blob { bytes, .. } => blob_bytes += bytes.len() as u64,
            Content::LargeBlob { bytes, .. } => blob_bytes += bytes,
            _ => {}
        }
        if !is_event(&content) {
            return Ok(Go::On);
        }
        let facts = session.facts(&content);
        if let Some((_, thread)) = facts.thread {
            threads.add(thread, 1);
        }
        if let Some(time) = facts.time_ns {
            let end = time.saturating_add(facts.duration_ns.unwrap_or(0));
            let (first, last) = range.unwrap_or((time, end));
            range = Some((first.min(time), last.max(end)));
        }
        Ok(Go::On)
    })?;
    info.bytes = passed.bytes;
    info.records = passed.records;
    info.set_kinds(kinds);
    info.threads = threads.into_rows(|thread| thread.to_string());
    info.time = range.map(|(start, end)| TimeRange { start, end, unit: "ns", per_second: None, epoch_ns: None });
    if !session.provider_names.is_empty() {
        let names: Vec<&str> = session.provider_names.iter().map(|(_, name)| name.as_str()).collect();
        info.details.push(("providers", json!(names)));
    }
    let counts = [("buffers_full", full), ("blob_bytes", blob_bytes), ("lost_bytes", passed.bytes_lost)];
    info.details.extend(counts.into_iter().filter(|(_, count)| *count > 0).map(|(key, count)| (key, count.into())));
    Ok(info)
}
