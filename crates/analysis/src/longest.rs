//! The longest calls, each with its complete stack.

use anytrace_core::span::Span;

use crate::pass::{About, Engine};
use crate::top::Top;

/// The engine: the `limit` longest spans; of equal ones those that ended first. Their stacks are in the pass's table.
#[derive(Debug)]
pub struct Longest {
    top: Top<Span>,
}

impl Longest {
    /// Keeps this many.
    pub fn new(limit: usize) -> Self {
        Self { top: Top::new(limit) }
    }

    /// The spans, longest first.
    pub fn into_spans(self) -> Vec<Span> {
        self.top.into_sorted()
    }
}

impl Engine for Longest {
    fn spans(&mut self, spans: &[Span], _about: About<'_>) {
        for span in spans {
            self.top.offer(span.duration(), || *span);
        }
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
            let mut longest = Longest::new(10);
            let mut pass = Pass::new(SpanFilter::default(), true, vec![&mut longest]);
            play(&edges, TimeUnit::Nanoseconds, &mut pass);
            let stacks = pass.finish().stacks.unwrap();
            let spans = longest.into_spans();
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
}
