//! The distribution of lengths of spans, one histogram per name.

use anytrace_core::NameMatch;
use anytrace_core::span::{NameId, Span, TimeUnit};

use crate::directory::Directory;
use crate::filter::units_of_ns;
use crate::pass::{About, Engine};

/// Most names with a histogram of their own; later ones are counted in [`Histograms::left_out`].
pub const NAMES_MAX: usize = 1024;

/// Lengths of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// The name.
    pub name: NameId,
    /// Spans in each class of [`Histograms::classes`].
    pub counts: Vec<u64>,
    /// Sum of the lengths in each class.
    pub sums: Vec<u128>,
}

impl Histogram {
    /// Spans in all.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// One class of lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// The shortest length in the class: in nanoseconds where the length of the unit is known, else in the source's
    /// unit. 1, 2 and 5 times powers of ten; the first class begins at 0.
    pub from: u64,
    /// The same in the source's unit.
    pub from_units: u64,
}

/// The engine.
pub struct Histograms {
    wanted: NameMatch,
    classes: Vec<Class>,
    /// For each name: not asked yet, not wanted, or its histogram.
    known: Vec<Known>,
    histograms: Vec<Histogram>,
    left_out: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    No,
    Unwanted,
    LeftOut,
    At(usize),
}

impl std::fmt::Debug for Histograms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histograms").field("histograms", &self.histograms).finish_non_exhaustive()
    }
}

impl Histograms {
    /// Histograms of the names that match.
    pub fn new(wanted: NameMatch) -> Self {
        Self { wanted, classes: Vec::new(), known: Vec::new(), histograms: Vec::new(), left_out: 0 }
    }

    /// The classes, from the shortest lengths on.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The histograms, in order of the first end.
    pub fn histograms(&self) -> &[Histogram] {
        &self.histograms
    }

    /// Spans of names beyond [`NAMES_MAX`].
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn histogram(&mut self, name: NameId, directory: &Directory) -> Known {
        let at = name as usize;
        // Names are numbered from 0 without gaps, so a table by number is dense.
        if at >= self.known.len() {
            self.known.resize(at + 1, Known::No);
        }
        if self.known[at] == Known::No {
            // The predicate may be a regular expression: it is asked once per name, not once per span.
            self.known[at] = if !(self.wanted)(directory.name(name)) {
                Known::Unwanted
            } else if self.histograms.len() >= NAMES_MAX {
                Known::LeftOut
            } else {
                let (counts, sums) = (vec![0; self.classes.len()], vec![0; self.classes.len()]);
                self.histograms.push(Histogram { name, counts, sums });
                Known::At(self.histograms.len() - 1)
            };
        }
        self.known[at]
    }
}

impl Engine for Histograms {
    fn spans(&mut self, spans: &[Span], about: About<'_>) {
        // The unit is known only when the source was announced, which precedes the first spans.
        if self.classes.is_empty() {
            self.classes = classes(about.directory.source().unit);
        }
        for span in spans {
            match self.histogram(span.name, about.directory) {
                Known::At(index) => {
                    let length = span.duration();
                    // The first class begins at 0, so at least one class precedes the partition point.
                    let class = self.classes.partition_point(|class| class.from_units <= length).saturating_sub(1);
                    let histogram = &mut self.histograms[index];
                    histogram.counts[class] += 1;
                    histogram.sums[class] += u128::from(length);
                }
                Known::LeftOut => self.left_out += 1,
                Known::No | Known::Unwanted => {}
            }
        }
    }
}

fn classes(unit: TimeUnit) -> Vec<Class> {
    let mut classes = vec![Class { from: 0, from_units: 0 }];
    let powers = std::iter::successors(Some(1_u64), |power| power.checked_mul(10));
    for from in powers.flat_map(|power| [1, 2, 5].map(|digit| power.saturating_mul(digit))) {
        let from_units = units_of_ns(from, unit).unwrap_or(from);
        // Classes shorter than one unit would stay empty.
        match classes.last_mut() {
            Some(last) if last.from_units == from_units && from_units > 0 => last.from = from,
            _ => classes.push(Class { from, from_units }),
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::SpanFilter;
    use crate::pass::Pass;
    use crate::played::{Random, obvious, play, random_edges};

    #[test]
    fn each_length_is_in_the_class_that_holds_it() {
        for (seed, unit) in [(1, TimeUnit::Nanoseconds), (2, TimeUnit::Ticks { per_second: Some(2_596_122_000) })] {
            let edges = random_edges(&mut Random(seed), 2, 4, 2000);
            let mut histograms = Histograms::new(Box::new(|name| name != b"f1"));
            let mut pass = Pass::new(SpanFilter::default(), false, vec![&mut histograms]);
            play(&edges, unit, &mut pass);
            pass.finish();
            let classes = histograms.classes().to_vec();
            assert_eq!(histograms.histograms().len(), 3);
            for histogram in histograms.histograms() {
                let spans: Vec<_> = obvious(&edges).into_iter().filter(|span| span.name() == histogram.name).collect();
                assert_eq!(histogram.count() as usize, spans.len());
                for (at, class) in classes.iter().enumerate() {
                    let next = classes.get(at + 1).map_or(u64::MAX, |next| next.from_units);
                    let own = spans.iter().map(|span| span.duration());
                    let own: Vec<u64> = own.filter(|length| (class.from_units..next).contains(length)).collect();
                    assert_eq!(histogram.counts[at] as usize, own.len());
                    assert_eq!(histogram.sums[at], own.iter().map(|&length| u128::from(length)).sum::<u128>());
                }
            }
        }
    }

    #[test]
    fn classes_are_round_numbers_and_strictly_grow() {
        for unit in [
            TimeUnit::Nanoseconds,
            TimeUnit::Order,
            TimeUnit::Ticks { per_second: None },
            TimeUnit::Ticks { per_second: Some(1) },
            TimeUnit::Ticks { per_second: Some(u64::MAX) },
        ] {
            let classes = classes(unit);
            assert!(classes.windows(2).all(|pair| pair[0].from_units < pair[1].from_units), "{unit:?}");
            assert_eq!(classes[0], Class { from: 0, from_units: 0 });
        }
    }
}
