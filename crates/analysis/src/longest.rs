//! The longest calls, of all and of each name, each with its complete stack.

use anytrace_core::span::{EdgeBatch, NameId, Span};

use crate::arguments::{Arguments, OpenArguments};
use crate::pass::{About, Engine};
use crate::top::Top;

/// What makes a span long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// From its begin to its end.
    Length,
    /// Without the spans inside it: what only contains others is short.
    SelfTime,
}

impl Measure {
    fn of(self, span: &Span) -> u64 {
        match self {
            Self::Length => span.duration(),
            Self::SelfTime => span.self_time,
        }
    }
}

/// A span that is shown by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Long {
    /// The span.
    pub span: Span,
    /// Its attributes.
    pub arguments: Arguments,
}

/// The engine: the `limit` longest spans; of equal ones those that ended first. Their stacks are in the pass's table.
#[derive(Debug)]
pub struct Longest {
    top: Top<Long>,
    measure: Measure,
    open: OpenArguments,
}

impl Longest {
    /// Keeps this many.
    pub fn new(limit: usize, measure: Measure) -> Self {
        Self { top: Top::new(limit), measure, open: OpenArguments::default() }
    }

    /// The spans, longest first.
    pub fn into_spans(self) -> Vec<Long> {
        self.top.into_sorted()
    }
}

impl Engine for Longest {
    fn spans(&mut self, spans: &[Span], _about: About<'_>) {
        for span in spans {
            self.top.offer(self.measure.of(span), || Long { span: *span, arguments: self.open.of(span) });
        }
    }

    fn wants_attributes(&self) -> bool {
        true
    }

    fn batch(&mut self, batch: &EdgeBatch, _about: About<'_>) {
        self.open.batch(batch);
    }
}

/// The engine: the `limit` longest spans of each name. Memory grows with names, not with spans.
#[derive(Debug)]
pub struct Outliers {
    limit: usize,
    measure: Measure,
    by_name: Vec<Top<Long>>,
    open: OpenArguments,
}

impl Outliers {
    /// Keeps this many of each.
    pub fn new(limit: usize, measure: Measure) -> Self {
        Self { limit, measure, by_name: Vec::new(), open: OpenArguments::default() }
    }

    /// The spans of a name, longest first. They are gone then.
    pub fn take(&mut self, name: NameId) -> Vec<Long> {
        let of_name = self.by_name.get_mut(name as usize);
        of_name.map(|top| std::mem::replace(top, Top::new(0)).into_sorted()).unwrap_or_default()
    }
}

impl Engine for Outliers {
    fn spans(&mut self, spans: &[Span], _about: About<'_>) {
        for span in spans {
            let at = span.name as usize;
            if at >= self.by_name.len() {
                self.by_name.resize_with(at + 1, || Top::new(self.limit));
            }
            if let Some(top) = self.by_name.get_mut(at) {
                top.offer(self.measure.of(span), || Long { span: *span, arguments: self.open.of(span) });
            }
        }
    }

    fn wants_attributes(&self) -> bool {
        true
    }

    fn batch(&mut self, batch: &EdgeBatch, _about: About<'_>) {
        self.open.batch(batch);
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::span::TimeUnit;

    use super::*;
    use crate::filter::SpanFilter;
    use crate::pass::Pass;
    use crate::played::{Random, obvious, play, random_edges};

    #[test]
    fn the_longest_are_those_of_the_obvious_version() {
        for seed in 1..20 {
            let edges = random_edges(&mut Random(seed), 3, 6, 300);
            let mut longest = Longest::new(10, Measure::Length);
            let mut pass = Pass::new(SpanFilter::default(), true, vec![&mut longest]);
            play(&edges, TimeUnit::Nanoseconds, &mut pass);
            let stacks = pass.finish().stacks.unwrap();
            let spans: Vec<_> = longest.into_spans().into_iter().map(|long| long.span).collect();
            let slow = obvious(&edges);
            let mut lengths: Vec<u64> = slow.iter().map(|span| span.duration()).collect();
            lengths.sort_unstable_by(|a, b| b.cmp(a));
            lengths.truncate(10);
            assert_eq!(spans.iter().map(Span::duration).collect::<Vec<_>>(), lengths);
            for span in spans {
                let same = slow.iter().find(|slow| slow.seq == span.seq).unwrap();
                assert_eq!(stacks.path(span.stack), same.path);
            }
        }
    }

    #[test]
    fn each_name_has_its_own_longest() {
        for (seed, measure) in (1..20).zip([Measure::Length, Measure::SelfTime].into_iter().cycle()) {
            let edges = random_edges(&mut Random(seed), 3, 6, 300);
            let mut outliers = Outliers::new(4, measure);
            let mut pass = Pass::new(SpanFilter::default(), true, vec![&mut outliers]);
            play(&edges, TimeUnit::Nanoseconds, &mut pass);
            pass.finish();
            let slow = obvious(&edges);
            for name in 0..7 {
                let of = |length: u64, own: u64| if measure == Measure::Length { length } else { own };
                let same = slow.iter().filter(|span| span.name() == name);
                let mut wanted: Vec<u64> = same.map(|span| of(span.duration(), span.self_time)).collect();
                wanted.sort_unstable_by(|a, b| b.cmp(a));
                wanted.truncate(4);
                let found: Vec<u64> =
                    outliers.take(name).iter().map(|long| of(long.span.duration(), long.span.self_time)).collect();
                assert_eq!(found, wanted, "{name}");
                assert!(outliers.take(name).is_empty());
            }
        }
    }
}
