//! Statistics of events and arguments: counts, sizes of payloads, ranges of numbers.

use anytrace_core::hash::{Key, Map, Set};
use anytrace_core::span::{EdgeBatch, EdgeKind, NameId, Value};

use crate::pass::{About, Engine};

/// Most distinct values counted separately for one attribute.
pub const DISTINCT_MAX: usize = 4096;

/// Most events and attributes with statistics of their own.
pub const ROWS_MAX: usize = 65_536;

/// Events of one name: things of no length, counters, ends of arrows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRow {
    /// The name.
    pub name: NameId,
    /// Their kind.
    pub kind: EdgeKind,
    /// How many.
    pub count: u64,
    /// First and last time, in the source's unit.
    pub times: (u64, u64),
    /// Those with text or bytes.
    pub payloads: u64,
    /// Bytes of all payloads.
    pub payload_bytes: u64,
    /// Smallest and largest payload; no meaning without payloads.
    pub payload_range: (u64, u64),
}

/// Values of one attribute of spans or events of one name.
#[derive(Debug, Clone)]
pub struct AttributeRow {
    /// Name of the span or event.
    pub name: NameId,
    /// Key of the attribute.
    pub key: NameId,
    /// How many values.
    pub count: u64,
    /// Values that are numbers (booleans are 0 and 1).
    pub numbers: u64,
    /// Smallest and largest number; no meaning without numbers.
    pub range: (f64, f64),
    /// The same where all numbers are integers, exactly.
    pub integer_range: Option<(i128, i128)>,
    /// Sum of the numbers.
    pub sum: f64,
    /// Bytes of values that are text or bytes.
    pub text_bytes: u64,
    distinct: Set<u64>,
    /// The secret of the hashes by which texts are recognized.
    secret: Key,
    /// The sum as an integer, as long as all numbers are integers and it fits.
    integer_sum: Option<i128>,
}

impl AttributeRow {
    /// Mean of the numbers; `None` without numbers.
    pub fn mean(&self) -> Option<f64> {
        let count = self.numbers as f64;
        (self.numbers > 0).then(|| self.integer_sum.map_or(self.sum / count, |sum| sum as f64 / count))
    }

    /// Distinct values; at [`DISTINCT_MAX`] there may be more.
    pub fn distinct(&self) -> usize {
        self.distinct.len()
    }

    fn add(&mut self, value: Value<'_>) {
        self.count += 1;
        let (number, integer, hash) = match value {
            Value::U64(v) | Value::Address(v) => (Some(v as f64), Some(i128::from(v)), v),
            // The same bits are other values: -1 is not 2^64 - 1.
            Value::I64(v) if v < 0 => {
                (Some(v as f64), Some(i128::from(v)), self.secret.hash_pair(v.cast_unsigned(), 2))
            }
            Value::I64(v) => (Some(v as f64), Some(i128::from(v)), v.cast_unsigned()),
            Value::Bool(v) => (Some(f64::from(u8::from(v))), Some(i128::from(v)), u64::from(v)),
            Value::F64(v) => (Some(v), None, self.secret.hash_pair(v.to_bits(), 1)),
            Value::Text(v) | Value::Bytes(v) => {
                self.text_bytes += v.len() as u64;
                (None, None, self.secret.hash_bytes(v))
            }
            // For an array only its values count, each in its place.
            Value::Array(items) => {
                items.for_each(|item| self.add(item));
                self.count -= 1;
                return;
            }
        };
        if self.distinct.len() < DISTINCT_MAX {
            self.distinct.insert(hash);
        }
        // A number that is none has no place in a range.
        let Some(number) = number.filter(|number| !number.is_nan()) else { return };
        // Texts count as values but not as numbers, so the first number may be a later value.
        let is_first = self.numbers == 0;
        self.numbers += 1;
        self.sum += number;
        self.range = if is_first { (number, number) } else { (self.range.0.min(number), self.range.1.max(number)) };
        self.integer_range = match (integer, self.integer_range) {
            (Some(integer), None) if is_first => Some((integer, integer)),
            (Some(integer), Some((low, high))) => Some((low.min(integer), high.max(integer))),
            _ => None,
        };
        self.integer_sum = integer.and_then(|integer| self.integer_sum.and_then(|sum| sum.checked_add(integer)));
    }
}

/// The engine. Bounded by [`ROWS_MAX`] and [`DISTINCT_MAX`].
#[derive(Debug, Default)]
pub struct Events {
    events: Vec<EventRow>,
    event_numbers: Map<(NameId, u8), usize>,
    attributes: Vec<AttributeRow>,
    attribute_numbers: Map<(NameId, NameId), usize>,
    left_out: u64,
}

impl Events {
    /// Events by name and kind, in order of first appearance.
    pub fn events(&self) -> &[EventRow] {
        &self.events
    }

    /// Attributes by name and key, in order of first appearance.
    pub fn attributes(&self) -> &[AttributeRow] {
        &self.attributes
    }

    /// Events and values beyond [`ROWS_MAX`].
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn event(&mut self, name: NameId, kind: EdgeKind, time: u64) -> Option<&mut EventRow> {
        let next = self.events.len();
        let at = *self.event_numbers.entry((name, kind as u8)).or_insert(next);
        if at == next {
            if next >= ROWS_MAX {
                // A key without a row must not stay: the map would grow with names beyond the limit.
                self.event_numbers.remove(&(name, kind as u8));
                self.left_out += 1;
                return None;
            }
            let (times, payload_range) = ((time, time), (u64::MAX, 0));
            self.events.push(EventRow { name, kind, count: 0, times, payloads: 0, payload_bytes: 0, payload_range });
        }
        let row = &mut self.events[at];
        row.count += 1;
        row.times = (row.times.0.min(time), row.times.1.max(time));
        Some(row)
    }

    fn attribute(&mut self, name: NameId, key: NameId, value: Value<'_>) {
        let next = self.attributes.len();
        let at = *self.attribute_numbers.entry((name, key)).or_insert(next);
        if at == next {
            if next >= ROWS_MAX {
                // As for events: the map stays as short as the list of rows.
                self.attribute_numbers.remove(&(name, key));
                self.left_out += 1;
                return;
            }
            self.attributes.push(AttributeRow {
                name,
                key,
                count: 0,
                numbers: 0,
                range: (0.0, 0.0),
                integer_range: None,
                sum: 0.0,
                text_bytes: 0,
                distinct: Set::default(),
                secret: Key::new(),
                integer_sum: Some(0),
            });
        }
        self.attributes[at].add(value);
    }
}

impl Engine for Events {
    fn wants_counters(&self) -> bool {
        true
    }

    fn wants_attributes(&self) -> bool {
        true
    }

    fn batch(&mut self, batch: &EdgeBatch, about: About<'_>) {
        let filter = about.filter;
        for edge in batch.edges() {
            let is_span = matches!(edge.kind, EdgeKind::Begin | EdgeKind::End);
            // The hot case: most edges of spans have no attributes, and spans themselves are counted elsewhere.
            if is_span && edge.attributes.1 == 0 {
                continue;
            }
            if !(filter.keeps_track(edge.track) && filter.keeps_time(edge.time) && filter.keeps_name(edge.name)) {
                continue;
            }
            if !is_span {
                let payload: Option<u64> = batch
                    .attributes(edge)
                    .filter_map(|(_, value)| match value {
                        Value::Text(bytes) | Value::Bytes(bytes) => Some(bytes.len() as u64),
                        _ => None,
                    })
                    .reduce(|a, b| a + b);
                if let (Some(row), Some(bytes)) = (self.event(edge.name, edge.kind, edge.time), payload) {
                    row.payloads += 1;
                    row.payload_bytes += bytes;
                    row.payload_range = (row.payload_range.0.min(bytes), row.payload_range.1.max(bytes));
                }
            }
            for (key, value) in batch.attributes(edge) {
                self.attribute(edge.name, key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::SpanSink;
    use anytrace_core::span::Edge;

    use super::*;
    use crate::filter::SpanFilter;
    use crate::pass::Pass;
    use crate::played::{Random, begin, edge};

    fn events_of(edges: &[(Edge, Vec<(NameId, Value<'_>)>)]) -> Events {
        let mut events = Events::default();
        let mut pass = Pass::new(SpanFilter::default(), false, vec![&mut events]);
        for some in edges.chunks(10) {
            let mut batch = EdgeBatch::default();
            for (edge, attributes) in some {
                batch.push(*edge);
                attributes.iter().for_each(|&(key, value)| batch.attribute(key, value));
            }
            pass.edges(&batch).unwrap();
        }
        pass.finish();
        events
    }

    #[test]
    fn numbers_have_the_range_and_mean_of_the_list() {
        let mut random = Random(5);
        let values: Vec<u64> = (0..500).map(|_| random.below(90)).collect();
        let edges: Vec<_> = values.iter().map(|&v| (begin(v, 0, 3), vec![(9, Value::U64(v))])).collect();
        let events = events_of(&edges);
        let row = &events.attributes()[0];
        let distinct: std::collections::BTreeSet<_> = values.iter().collect();
        assert_eq!((row.name, row.key, row.count, row.numbers), (3, 9, 500, 500));
        let range = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
        assert_eq!(row.integer_range, Some((i128::from(range.0), i128::from(range.1))));
        assert_eq!(row.mean(), Some(values.iter().sum::<u64>() as f64 / 500.0));
        assert_eq!(row.distinct(), distinct.len());
        assert!(events.events().is_empty(), "the beginning of a span is no event");
    }

    #[test]
    fn payloads_are_measured_by_event() {
        let events = events_of(&[
            (edge(EdgeKind::Instant, 5, 0, 1), vec![(2, Value::Text(b"abc"))]),
            (edge(EdgeKind::Instant, 3, 0, 1), vec![(2, Value::Bytes(b"abcde")), (4, Value::Bool(true))]),
            (edge(EdgeKind::Instant, 4, 0, 1), vec![]),
            (edge(EdgeKind::Counter, 4, 0, 1), vec![(2, Value::F64(0.5))]),
        ]);
        let rows = events.events();
        assert_eq!(rows.len(), 2);
        let first = EventRow {
            name: 1,
            kind: EdgeKind::Instant,
            count: 3,
            times: (3, 5),
            payloads: 2,
            payload_bytes: 8,
            payload_range: (3, 5),
        };
        assert_eq!(rows[0], first);
        let text = &events.attributes()[0];
        assert_eq!((text.count, text.numbers, text.text_bytes, text.distinct()), (3, 1, 8, 3));
        assert_eq!((text.mean(), text.integer_range), (Some(0.5), None));
    }

    #[test]
    fn extreme_numbers_neither_overflow_nor_spoil_the_range() {
        let values = [Value::U64(u64::MAX), Value::I64(i64::MIN), Value::F64(f64::NAN), Value::U64(u64::MAX)];
        let edges: Vec<_> = values.iter().map(|&v| (begin(0, 0, 0), vec![(0, v)])).collect();
        let events = events_of(&edges);
        let row = &events.attributes()[0];
        assert_eq!(row.integer_range, Some((i128::from(i64::MIN), i128::from(u64::MAX))));
        assert_eq!((row.count, row.numbers), (4, 3));
    }
}
