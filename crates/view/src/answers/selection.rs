//! Statistics of the slices that begin in a window.

use anytrace_analysis::quantiles::Quantiles;
use anytrace_core::hash::Map;
use serde_json::{Value, json};

use super::rows::{Chosen, Which, depths, each_slice, in_parallel, tracks, window};
use super::{Problem, Reply, Work};
use crate::axis::{Axis, to_u64};
use crate::http::Parameters;
use crate::pyramid::Slice;

/// The slowest slices that are listed.
const SLOWEST: usize = 100;

/// Buckets of the histogram for each doubling of the length.
const BUCKETS: u64 = 4;

/// `api/selection`.
pub(super) fn selection(work: &Work<'_>, parameters: &Parameters) -> Result<Reply, Problem> {
    let depth_max = parameters.number::<usize>("depth_max")?;
    let mut rows = Vec::new();
    for chosen in tracks(work, parameters)? {
        let window = window(parameters, chosen.axis)?;
        rows.extend((0..depths(&chosen, depth_max)).map(|depth| (chosen.clone(), depth, window)));
    }
    // Lengths are counted one by one: one answer after the other has room for that.
    let _turn = work.turn()?;
    let parts = in_parallel(work.view.options.threads, &rows, Totals::default, |totals, (chosen, depth, window)| {
        each_slice(work, chosen, *depth, (*window, Which::Begin), |slice| {
            totals.add(chosen, *depth, slice);
            true
        })
    })?;
    let mut all = Totals::default();
    parts.into_iter().for_each(|part| all.merge(part));
    Ok(Reply::Json(all.json(work)))
}

/// Sums over all slices of a name.
#[derive(Default)]
struct OfName {
    total: f64,
    own: f64,
    lengths: Quantiles,
}

/// Sums over all slices of a track.
#[derive(Default, Clone, Copy)]
struct OfTrack {
    count: u64,
    total: f64,
    own: f64,
}

/// A slice and its row.
#[derive(Clone, Copy)]
struct Slow {
    track: u64,
    depth: usize,
    slice: Slice,
    axis: Axis,
}

#[derive(Default)]
struct Totals {
    names: Map<u32, OfName>,
    tracks: Map<u64, OfTrack>,
    slowest: Vec<Slow>,
    /// Length of the shortest of `slowest` once that is full.
    threshold: f64,
}

impl Totals {
    fn add(&mut self, chosen: &Chosen, depth: usize, slice: &Slice) {
        let axis = chosen.axis;
        let (length, own) = (axis.length(slice.length()), axis.length(slice.own()));
        let of_name = self.names.entry(slice.name).or_default();
        of_name.total += length;
        of_name.own += own;
        // Percentiles are of the axis's unit: lengths of several clocks meet in one table.
        #[expect(clippy::float_cmp, reason = "exactly 1 where lengths stay as they are")]
        let whole = if axis.scale == 1.0 { slice.length() } else { to_u64(length.round()) };
        of_name.lengths.push(whole);
        let of_track = self.tracks.entry(chosen.id).or_default();
        of_track.count += 1;
        of_track.total += length;
        of_track.own += own;
        if length > self.threshold || self.slowest.len() < SLOWEST {
            self.slowest.push(Slow { track: chosen.id, depth, slice: *slice, axis });
            if self.slowest.len() >= 2 * SLOWEST {
                self.cut();
            }
        }
    }

    /// Keeps the slowest.
    fn cut(&mut self) {
        self.slowest.sort_by(|a, b| {
            let key = |slow: &Slow| (slow.axis.place(slow.slice.start), slow.track, slow.depth);
            let lengths = b.length().total_cmp(&a.length());
            lengths.then_with(|| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal))
        });
        self.slowest.truncate(SLOWEST);
        self.threshold = self.slowest.last().filter(|_| self.slowest.len() == SLOWEST).map_or(0.0, Slow::length);
    }

    fn merge(&mut self, other: Self) {
        for (name, of) in other.names {
            let own = self.names.entry(name).or_default();
            own.total += of.total;
            own.own += of.own;
            own.lengths.merge(of.lengths);
        }
        for (track, of) in other.tracks {
            let own = self.tracks.entry(track).or_default();
            own.count += of.count;
            own.total += of.total;
            own.own += of.own;
        }
        self.slowest.extend(other.slowest);
        self.cut();
    }

    fn json(mut self, work: &Work<'_>) -> Value {
        self.cut();
        let mut histogram = Histogram::default();
        let (mut count, mut total) = (0, 0.0);
        let mut names = Vec::new();
        for (id, of) in self.names {
            count += of.lengths.count();
            total += of.total;
            let row = of_name(id, &work.view.names.text(id), of, &mut histogram);
            names.push(row);
        }
        names.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let names: Vec<Value> = names.into_iter().map(|(_, _, row)| row).collect();
        let mut threads: Vec<_> = self.tracks.into_iter().collect();
        threads.sort_by_key(|(track, _)| *track);
        let thread =
            |(track, of): (u64, OfTrack)| json!({"track": track, "count": of.count, "total": of.total, "self": of.own});
        let slow = |slow: &Slow| {
            json!({
                "track": slow.track,
                "depth": slow.depth,
                "start": slow.axis.place(slow.slice.start),
                "end": slow.axis.place(slow.slice.end),
                "name": slow.slice.name,
            })
        };
        json!({
            "count": count,
            "total": total,
            "names": names,
            "threads": threads.into_iter().map(thread).collect::<Vec<_>>(),
            "histogram": histogram.json(),
            "slowest": self.slowest.iter().map(slow).collect::<Vec<_>>(),
            "exact": work.view.is_complete(),
        })
    }
}

impl Slow {
    fn length(&self) -> f64 {
        self.axis.length(self.slice.length())
    }
}

/// The row of a name, with its text and its total to sort by; its lengths go into the histogram.
fn of_name(id: u32, text: &str, of: OfName, histogram: &mut Histogram) -> (String, f64, Value) {
    let (count, min, max) = (of.lengths.count(), of.lengths.min(), of.lengths.max());
    let sorted = of.lengths.sorted();
    sorted.counts().iter().for_each(|(length, count)| histogram.add(*length, *count));
    let at = |numerator, denominator| sorted.fraction(numerator, denominator);
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    let mean = of.total / count.max(1) as f64;
    let row = json!({
        "id": id, "name": text, "count": count, "total": of.total, "self": of.own, "mean": mean, "min": min, "max": max,
        "p50": at(1, 2), "p90": at(9, 10), "p99": at(99, 100),
    });
    (text.to_owned(), of.total, row)
}

/// Counts by length: four buckets for each doubling.
#[derive(Default)]
struct Histogram(std::collections::BTreeMap<u64, u64>);

impl Histogram {
    fn add(&mut self, length: u64, count: u64) {
        *self.0.entry(bucket(length)).or_default() += count;
    }

    fn json(&self) -> Value {
        let (first, last) = (self.0.keys().next(), self.0.keys().next_back());
        let Some((&first, &last)) = first.zip(last) else { return json!({"edges": [], "counts": []}) };
        let edges: Vec<f64> = (first..=last + 1).map(edge).collect();
        let counts: Vec<u64> = (first..=last).map(|at| self.0.get(&at).copied().unwrap_or(0)).collect();
        json!({"edges": edges, "counts": counts})
    }
}

/// The bucket of a length: lengths below 4 have one each.
fn bucket(length: u64) -> u64 {
    if length < BUCKETS {
        return length;
    }
    let octave = u64::from(length.ilog2());
    let quarter = (length >> (octave - 2)) & (BUCKETS - 1);
    (octave - 1) * BUCKETS + quarter
}

/// The shortest length of a bucket.
fn edge(bucket: u64) -> f64 {
    if bucket < BUCKETS {
        return f64::from(u32::try_from(bucket).unwrap_or(0));
    }
    let (octave, quarter) = (bucket / BUCKETS + 1, bucket % BUCKETS);
    let exponent = i32::try_from(octave).unwrap_or(64) - 2;
    f64::from(u32::try_from(BUCKETS + quarter).unwrap_or(0)) * f64::from(exponent).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "small numbers and powers of two")]
    fn a_length_lies_between_the_edges_of_its_bucket() {
        for length in (0..5000).chain([1 << 40, (1 << 40) + 1, 1 << 63]) {
            let at = bucket(length);
            assert!(edge(at) <= length as f64 && (length as f64) < edge(at + 1), "{length}");
        }
        assert_eq!((bucket(3), bucket(4), bucket(5), bucket(7), bucket(8), bucket(9)), (3, 4, 5, 7, 8, 8));
    }
}
