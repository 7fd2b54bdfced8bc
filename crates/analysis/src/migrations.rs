//! Which processors tracks ran on, and how often they changed.

use anytrace_core::span::{EdgeBatch, NO_CPU, TrackId};

use crate::pass::{About, Engine};

/// A track on one processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OnProcessor {
    /// The processor.
    pub cpu: u16,
    /// Edges there.
    pub edges: u64,
    /// Time between edges that were both there, in the source's unit.
    pub time: u64,
    /// How often the track arrived there from another.
    pub arrivals: u64,
}

/// The migrations of one track.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// Changes of processor.
    pub changes: u64,
    /// The processors, in order of first appearance.
    pub processors: Vec<OnProcessor>,
    /// Place of the last in the list, and the time of the last edge.
    last: Option<(usize, u64)>,
}

/// The engine. Edges without a processor are ignored.
#[derive(Debug, Default)]
pub struct Migrations {
    tracks: Vec<Places>,
}

impl Migrations {
    /// The migrations of each track, by its number.
    pub fn tracks(&self) -> &[Places] {
        &self.tracks
    }

    fn add(&mut self, track: TrackId, cpu: u16, time: u64) {
        let track = track as usize;
        if track >= self.tracks.len() {
            self.tracks.resize_with(track + 1, Places::default);
        }
        let places = &mut self.tracks[track];
        let before = places.last;
        let at = match before {
            Some((at, _)) if places.processors[at].cpu == cpu => at,
            _ => places.processors.iter().position(|place| place.cpu == cpu).unwrap_or_else(|| {
                places.processors.push(OnProcessor { cpu, ..OnProcessor::default() });
                places.processors.len() - 1
            }),
        };
        let place = &mut places.processors[at];
        place.edges += 1;
        match before {
            Some((last, then)) if last == at => place.time += time.saturating_sub(then),
            Some(_) => {
                place.arrivals += 1;
                places.changes += 1;
            }
            None => {}
        }
        places.last = Some((at, time));
    }
}

impl Engine for Migrations {
    fn wants_counters(&self) -> bool {
        true
    }

    fn batch(&mut self, batch: &EdgeBatch, about: About<'_>) {
        for edge in batch.edges() {
            if edge.cpu != NO_CPU && about.filter.keeps_track(edge.track) && about.filter.keeps_time(edge.time) {
                self.add(edge.track, edge.cpu, edge.time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::span::{Edge, TimeUnit};

    use super::*;
    use crate::filter::SpanFilter;
    use crate::pass::Pass;
    use crate::played::{Random, play, random_edges};

    fn migrations(edges: &[Edge]) -> Vec<Places> {
        let mut migrations = Migrations::default();
        let mut pass = Pass::new(SpanFilter::default(), false, vec![&mut migrations]);
        play(edges, TimeUnit::Nanoseconds, &mut pass);
        pass.finish();
        migrations.tracks
    }

    #[test]
    fn changes_are_neighbors_that_differ() {
        for seed in 1..20 {
            let edges = random_edges(&mut Random(seed), 3, 3, 300);
            for (track, places) in (0..).zip(migrations(&edges)) {
                let own: Vec<&Edge> = edges.iter().filter(|edge| edge.track == track).collect();
                let changes = own.windows(2).filter(|pair| pair[0].cpu != pair[1].cpu).count();
                assert_eq!(places.changes as usize, changes);
                assert_eq!(places.processors.iter().map(|place| place.arrivals).sum::<u64>(), places.changes);
                for place in &places.processors {
                    assert_eq!(place.edges as usize, own.iter().filter(|edge| edge.cpu == place.cpu).count());
                    let both = |pair: &&[&Edge]| pair.iter().all(|edge| edge.cpu == place.cpu);
                    let time: u64 = own.windows(2).filter(both).map(|pair| pair[1].time - pair[0].time).sum();
                    assert_eq!(place.time, time);
                }
            }
        }
    }

    #[test]
    fn edges_without_a_processor_are_passed_over() {
        use crate::played::begin;
        let on = |cpu, time| Edge { cpu, ..begin(time, 0, 0) };
        let places = migrations(&[on(1, 0), on(NO_CPU, 1), on(1, 2), on(2, 3)]);
        assert_eq!((places[0].changes, places[0].processors[0].time), (1, 2));
    }
}
