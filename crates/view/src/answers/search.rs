//! Slices and instants by name.

use anytrace_core::hash::{Map, Set};
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::rows::{Chosen, Which, depths, each_slice, in_parallel, tracks, window};
use super::{Problem, Reply, Work};
use crate::http::Parameters;
use crate::pyramid::Slice;

/// Hits of an answer, at most.
const HITS_MAX: usize = 10_000;

/// Bytes that a compiled pattern may take.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// `api/search`.
pub(super) fn search(work: &Work<'_>, parameters: &Parameters) -> Result<Reply, Problem> {
    let query = parameters.text("q").unwrap_or_default();
    let limit = parameters.number::<usize>("limit")?.unwrap_or(1000).min(HITS_MAX);
    let wanted = names(work, query)?;
    let mut rows = Vec::new();
    if !wanted.is_empty() {
        for chosen in tracks(work, parameters)? {
            let window = window(parameters, chosen.axis)?;
            let of = |depth| [false, true].map(|are_instants| (chosen.clone(), depth, are_instants, window));
            rows.extend((0..depths(&chosen, None)).flat_map(of));
        }
    }
    let found = || Found { counts: Map::default(), hits: Vec::new() };
    let parts =
        in_parallel(work.view.options.threads, &rows, found, |found, (chosen, depth, are_instants, window)| {
            let mut in_row = 0;
            let visit = |slice: &Slice| {
                if wanted.contains(&slice.name) {
                    *found.counts.entry(slice.name).or_default() += 1;
                    if in_row < limit {
                        in_row += 1;
                        found.hits.push(Hit::of(chosen, *depth, slice));
                    }
                }
                true
            };
            let which = Which::Begin;
            match are_instants {
                false => each_slice(work, chosen, *depth, (*window, which), visit)?,
                true => super::rows::each_instant(work, chosen, *depth, (*window, which), visit)?,
            }
            found.cut(limit);
            Ok(())
        })?;
    let mut all = Found { counts: Map::default(), hits: Vec::new() };
    for part in parts {
        part.counts.into_iter().for_each(|(name, count)| *all.counts.entry(name).or_default() += count);
        all.hits.extend(part.hits);
    }
    all.cut(limit);
    Ok(Reply::Json(all.json(work, query)))
}

/// The names that a query means: a part of the name in any case, or a pattern between slashes.
fn names(work: &Work<'_>, query: &str) -> Result<Set<u32>, Problem> {
    let pattern = match query.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
        Some(pattern) => pattern.to_owned(),
        None => format!("(?i){}", regex::escape(query)),
    };
    if query.is_empty() {
        return Ok(Set::default());
    }
    let built = RegexBuilder::new(&pattern).size_limit(PATTERN_BYTES_MAX).build();
    let regex: Regex = built.map_err(|error| Problem::new(400, format!("q: {error}")))?;
    let texts = work.view.names.texts_from(0);
    Ok((0..).zip(&texts).filter(|(_, text)| regex.is_match(text)).map(|(number, _)| number).collect())
}

struct Hit {
    track: u64,
    depth: usize,
    start: f64,
    end: f64,
    name: u32,
}

impl Hit {
    fn of(chosen: &Chosen, depth: usize, slice: &Slice) -> Self {
        let (start, end) = (chosen.axis.place(slice.start), chosen.axis.place(slice.end));
        Self { track: chosen.id, depth, start, end, name: slice.name }
    }
}

struct Found {
    counts: Map<u32, u64>,
    hits: Vec<Hit>,
}

impl Found {
    /// Keeps the first hits.
    fn cut(&mut self, limit: usize) {
        self.hits.sort_by(|a, b| a.start.total_cmp(&b.start).then((a.track, a.depth).cmp(&(b.track, b.depth))));
        self.hits.truncate(limit);
    }

    fn json(&self, work: &Work<'_>, query: &str) -> Value {
        let total: u64 = self.counts.values().sum();
        let mut names: Vec<_> = self.counts.iter().map(|(id, count)| (*id, *count)).collect();
        names.sort_by_key(|(id, count)| (std::cmp::Reverse(*count), *id));
        let name = |(id, count): (u32, u64)| json!({"id": id, "name": &*work.view.names.text(id), "count": count});
        let hit = |hit: &Hit| json!({"track": hit.track, "depth": hit.depth, "start": hit.start, "end": hit.end, "name": hit.name});
        json!({
            "query": query,
            "total": total,
            "names": names.into_iter().map(name).collect::<Vec<_>>(),
            "hits": self.hits.iter().map(hit).collect::<Vec<_>>(),
            "truncated": total > self.hits.len() as u64,
            "complete": work.view.is_complete(),
        })
    }
}
