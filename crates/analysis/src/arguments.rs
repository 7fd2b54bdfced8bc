//! The attributes of spans, for engines that show single spans: those of their begin and of their end.

use anytrace_core::hash::Map;
use anytrace_core::span::{EdgeBatch, EdgeKind, NameId, Span, TrackId, Value, push_json_value};

use crate::nest::OPEN_MAX;

/// Most attributes of a span, and most bytes of one of their values; more are counted.
const ATTRIBUTES_MAX: usize = 32;
const VALUE_BYTES_MAX: usize = 1024;

/// Attributes of one span: values as JSON, by the number of their key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Keys and values in the order of the trace.
    pub values: Vec<(NameId, String)>,
    /// How many more there are, or are too long.
    pub left_out: u64,
}

impl Arguments {
    /// True for a span that has none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.left_out == 0
    }

    fn add(&mut self, key: NameId, value: Value<'_>) {
        let mut json = Vec::new();
        if self.values.len() < ATTRIBUTES_MAX && is_short(value) {
            push_json_value(&mut json, value);
        }
        match String::from_utf8(json) {
            Ok(json) if (1..=VALUE_BYTES_MAX).contains(&json.len()) => self.values.push((key, json)),
            _ => self.left_out += 1,
        }
    }
}

/// True unless its JSON must be too long: what is not needed is not made.
fn is_short(value: Value<'_>) -> bool {
    match value {
        Value::Text(bytes) | Value::Bytes(bytes) => bytes.len() <= VALUE_BYTES_MAX,
        _ => true,
    }
}

/// Attributes of open spans, and of those that ended in the last batch. Memory grows with spans that are open.
#[derive(Debug, Default)]
pub(crate) struct OpenArguments {
    tracks: Vec<OnTrack>,
    ended: Map<(TrackId, u64), Arguments>,
}

#[derive(Debug, Default)]
struct OnTrack {
    /// The record of the begin, and its attributes; `None` where there are none, as in most spans of most traces.
    open: Vec<(u64, Option<Box<Arguments>>)>,
    /// Spans beyond the limit of open ones.
    deeper: u64,
}

impl OpenArguments {
    /// Takes in the next edges. What ended in those before is gone.
    pub(crate) fn batch(&mut self, batch: &EdgeBatch) {
        self.ended.clear();
        for edge in batch.edges() {
            if !matches!(edge.kind, EdgeKind::Begin | EdgeKind::End) {
                continue;
            }
            let at = edge.track as usize;
            if at >= self.tracks.len() {
                self.tracks.resize_with(at + 1, OnTrack::default);
            }
            let Some(track) = self.tracks.get_mut(at) else { continue };
            if edge.kind == EdgeKind::Begin && track.open.len() >= OPEN_MAX {
                track.deeper += 1;
                continue;
            }
            if edge.kind == EdgeKind::End && track.deeper > 0 {
                track.deeper -= 1;
                continue;
            }
            let (seq, mut arguments) = match edge.kind {
                EdgeKind::Begin => (edge.seq, None),
                _ => match track.open.pop() {
                    Some(open) => open,
                    None => continue,
                },
            };
            for (key, value) in batch.attributes(edge) {
                arguments.get_or_insert_with(Box::<Arguments>::default).add(key, value);
            }
            if edge.kind == EdgeKind::Begin {
                track.open.push((seq, arguments));
            } else if let Some(arguments) = arguments {
                self.ended.insert((edge.track, seq), *arguments);
            }
        }
    }

    /// Those of a span that ended in the last batch, or is open still.
    pub(crate) fn of(&self, span: &Span) -> Arguments {
        let ended = self.ended.get(&(span.track, span.seq));
        let open = || {
            let track = self.tracks.get(span.track as usize)?;
            track.open.iter().rev().find(|(seq, _)| *seq == span.seq)?.1.as_deref()
        };
        ended.or_else(open).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::span::{Edge, EdgeFlags, NO_CPU};

    use super::*;

    fn edge(kind: EdgeKind, seq: u64, track: TrackId) -> Edge {
        let (attributes, cpu, flags) = ((0, 0), NO_CPU, EdgeFlags::NONE);
        Edge { seq, time: seq, track, name: 0, attributes, cpu, kind, flags }
    }

    fn span(seq: u64, track: TrackId) -> Span {
        let (flags, cpu) = (EdgeFlags::NONE, NO_CPU);
        Span { seq, start: seq, end: seq, self_time: 0, track, name: 0, stack: 0, depth: 0, flags, cpu }
    }

    #[test]
    fn attributes_of_begin_and_end_belong_to_the_span() {
        let mut open = OpenArguments::default();
        let mut batch = EdgeBatch::default();
        batch.push(edge(EdgeKind::Begin, 1, 0));
        batch.attribute(7, Value::U64(5));
        batch.push(edge(EdgeKind::Begin, 2, 0));
        batch.push(edge(EdgeKind::Instant, 3, 0));
        batch.attribute(9, Value::U64(9));
        batch.push(edge(EdgeKind::Begin, 4, 1));
        batch.attribute(7, Value::Text(b"other"));
        open.batch(&batch);
        assert!(open.of(&span(2, 0)).is_empty());
        assert_eq!(open.of(&span(4, 1)).values, [(7, "\"other\"".to_owned())]);
        batch.clear();
        batch.push(edge(EdgeKind::End, 5, 0));
        batch.push(edge(EdgeKind::End, 6, 0));
        batch.attribute(8, Value::Bool(true));
        open.batch(&batch);
        assert_eq!(open.of(&span(1, 0)).values, [(7, "5".to_owned()), (8, "true".to_owned())]);
        assert!(open.of(&span(2, 0)).is_empty());
        batch.clear();
        open.batch(&batch);
        assert!(open.of(&span(1, 0)).is_empty(), "that of the batch before is gone");
    }

    #[test]
    fn what_is_too_long_or_too_much_is_counted() {
        let mut arguments = Arguments::default();
        arguments.add(1, Value::Text(&[b'x'; 1022]));
        arguments.add(1, Value::Text(&[b'x'; 1023]));
        arguments.add(1, Value::Bytes(&[0; 5000]));
        (0..40).for_each(|n| arguments.add(2, Value::U64(n)));
        assert_eq!((arguments.values.len(), arguments.left_out), (32, 2 + 9));
    }
}
