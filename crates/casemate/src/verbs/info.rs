//! `info`: counts everything in one pass.

use anytrace_core::{Error, Info, Limits, Sink, Tally};
use serde_json::{Map, Value};

use crate::wire::output::claim_text;
use crate::wire::record::{Dialect, Kind, Record, Source, Spelling};
use crate::wire::walk::{Item, Walk};

/// A claimed verdict longer than this is shown truncated.
const CLAIM_BYTES_MAX: usize = 1024;

struct Counts {
    kinds: [u64; Kind::ALL.len()],
    spellings: Box<[u64; Spelling::COMBINATIONS]>,
    threads: Tally,
    ids: Option<(u64, u64)>,
    lowest_id: u64,
    highest_id: u64,
    sources: u64,
    claims: u64,
    claim: Option<String>,
    output_lines: u64,
    lost_bytes: u64,
}

impl Counts {
    #[inline]
    fn record(&mut self, record: &Record<'_>) {
        self.kinds[record.kind() as usize] += 1;
        self.spellings[usize::from(record.spelling.0) % Spelling::COMBINATIONS] += 1;
        self.threads.add(u64::from(record.thread), 1);
        self.ids = Some((self.ids.map_or(record.id, |(first, _)| first), record.id));
        self.lowest_id = self.lowest_id.min(record.id);
        self.highest_id = self.highest_id.max(record.id);
        self.sources += u64::from(record.source != Source::Absent);
    }

    #[cold]
    fn claim(&mut self, line: &[u8]) {
        self.claims += 1;
        let text = claim_text(line);
        self.claim = Some(String::from_utf8_lossy(&text[..text.len().min(CLAIM_BYTES_MAX)]).into_owned());
    }
}

/// Reads the entire trace.
pub(crate) fn info(reader: &mut Walk, limits: Limits, sink: &mut dyn Sink) -> Result<Info, Error> {
    let mut counts = Counts {
        kinds: [0; Kind::ALL.len()],
        spellings: Box::new([0; Spelling::COMBINATIONS]),
        threads: Tally::new(limits.distinct_max),
        ids: None,
        lowest_id: u64::MAX,
        highest_id: 0,
        sources: 0,
        claims: 0,
        claim: None,
        output_lines: 0,
        lost_bytes: 0,
    };
    reader.for_each(sink, |item, _| {
        match item {
            Item::Record(record) => counts.record(record),
            Item::Claim(line) => counts.claim(line),
            Item::Output(_) => counts.output_lines += 1,
            Item::Lost(bytes) => counts.lost_bytes += bytes.len() as u64,
            Item::Space(_) => {}
        }
        Ok(())
    })?;
    let mut info = Info::new("casemate");
    info.bytes = reader.offset();
    info.records = reader.records();
    info.set_container(reader.cursor().layers(), None);
    info.set_kinds(Kind::ALL.iter().map(|kind| (kind.name(), counts.kinds[*kind as usize])));
    let dialects = dialects(&counts.spellings[..]);
    info.dialect = dialect(&dialects);
    info.details = details(&counts, &dialects);
    info.threads = counts.threads.into_rows(|thread| thread.to_string());
    Ok(info)
}

fn dialects(spellings: &[u64]) -> Vec<(Dialect, u64)> {
    let count = |dialect| {
        let of = |(bits, n): (usize, &u64)| {
            let spelling = Spelling(u16::try_from(bits).unwrap_or(0));
            if spelling.dialect() == dialect { *n } else { 0 }
        };
        spellings.iter().enumerate().filter(|(_, n)| **n > 0).map(of).sum::<u64>()
    };
    Dialect::ALL.iter().map(|dialect| (*dialect, count(*dialect))).filter(|(_, n)| *n > 0).collect()
}

/// The only dialect, or "mixed".
fn dialect(dialects: &[(Dialect, u64)]) -> Option<String> {
    match dialects {
        [] => None,
        [(only, _)] => Some(only.name().to_owned()),
        _ => Some(Dialect::Mixed.name().to_owned()),
    }
}

fn details(counts: &Counts, dialects: &[(Dialect, u64)]) -> Vec<(&'static str, Value)> {
    let mut details = Vec::new();
    let Some((first, last)) = counts.ids else {
        push_claim(&mut details, counts);
        return details;
    };
    details.push(("first_id", first.into()));
    details.push(("last_id", last.into()));
    details.push(("lowest_id", counts.lowest_id.into()));
    details.push(("highest_id", counts.highest_id.into()));
    details.push(("records_with_src", counts.sources.into()));
    let table: Map<_, _> = dialects.iter().map(|(dialect, n)| (dialect.name().to_owned(), (*n).into())).collect();
    details.push(("dialects", Value::Object(table)));
    let mut spelling = Map::new();
    for (flag, name) in Spelling::NAMES {
        let has = |(bits, _): &(usize, &u64)| Spelling(u16::try_from(*bits).unwrap_or(0)).has(flag);
        let n: u64 = counts.spellings.iter().enumerate().filter(has).map(|(_, n)| *n).sum();
        if n > 0 {
            spelling.insert(name.to_owned(), n.into());
        }
    }
    details.push(("spelling", Value::Object(spelling)));
    push_claim(&mut details, counts);
    details
}

fn push_claim(details: &mut Vec<(&'static str, Value)>, counts: &Counts) {
    if let Some(claim) = &counts.claim {
        details.push(("claimed_violation", claim.clone().into()));
    }
    if counts.claims > 1 {
        details.push(("claims", counts.claims.into()));
    }
    if counts.output_lines > 0 {
        details.push(("reference_output_lines", counts.output_lines.into()));
    }
    if counts.lost_bytes > 0 {
        details.push(("lost_bytes", counts.lost_bytes.into()));
    }
}
