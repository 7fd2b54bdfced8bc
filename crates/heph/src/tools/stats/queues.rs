//! Lengths of queues over time, as the scheduler's events report them.

use std::collections::BTreeMap;

use crate::lanes::event::Sorted;
use crate::wire::record::Value;

/// Number of equal parts into which the trace's time is divided.
pub const QUEUE_STEPS: usize = 60;

/// Most queues distinguished.
const QUEUES_MAX: usize = 4096;

/// A length that a runtime's event has as an attribute: `local amount`, `shared amount`, `total amount`, `amount`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// The worker's stream.
    pub stream: u32,
    /// The event's description.
    pub description: Vec<u8>,
    /// The attribute's name.
    pub attribute: String,
    /// All of them together.
    pub all: Step,
    /// In order of time, [`QUEUE_STEPS`] parts of the trace's time.
    pub steps: Vec<Step>,
}

/// Lengths in a part of the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// The greatest.
    pub max: u64,
}

impl Step {
    fn add(&mut self, length: u64) {
        self.count += 1;
        self.sum += u128::from(length);
        self.max = self.max.max(length);
    }

    /// The mean; 0 without lengths.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }
}

#[derive(Debug, Default)]
pub(super) struct Queues {
    known: BTreeMap<(u32, u32, &'static str), (Step, Vec<Step>)>,
}

const ATTRIBUTES: [&str; 4] = ["local amount", "shared amount", "total amount", "amount"];

impl Queues {
    /// Processes an event of the scheduler.
    pub(super) fn event(&mut self, event: &Sorted<'_>, range: (u64, u64)) {
        for attribute in event.attributes() {
            let (Some(&name), Value::Unsigned(length)) =
                (ATTRIBUTES.iter().find(|name| **name == attribute.name), attribute.value)
            else {
                continue;
            };
            let key = (event.stream, event.name, name);
            if self.known.len() >= QUEUES_MAX && !self.known.contains_key(&key) {
                continue;
            }
            let (all, steps) =
                self.known.entry(key).or_insert_with(|| (Step::default(), vec![Step::default(); QUEUE_STEPS]));
            all.add(length);
            if let Some(step) = steps.get_mut(step_of(event.start, range)) {
                step.add(length);
            }
        }
    }

    pub(super) fn finish(self, name: impl Fn(u32) -> Vec<u8>) -> Vec<Queue> {
        let made = self.known.into_iter().map(|((stream, description, attribute), (all, steps))| Queue {
            stream,
            description: name(description),
            attribute: attribute.to_owned(),
            all,
            steps,
        });
        let mut all: Vec<Queue> = made.collect();
        all.sort_by(|a, b| (a.stream, &a.description, &a.attribute).cmp(&(b.stream, &b.description, &b.attribute)));
        all
    }
}

fn step_of(time: u64, range: (u64, u64)) -> usize {
    let length = u128::from(range.1.saturating_sub(range.0)) + 1;
    let at = u128::from(time.saturating_sub(range.0)) * QUEUE_STEPS as u128 / length;
    usize::try_from(at).unwrap_or(0).min(QUEUE_STEPS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_moment_are_in_the_first_and_the_last_step() {
        assert_eq!(
            (step_of(100, (100, 700)), step_of(700, (100, 700)), step_of(5, (100, 700))),
            (0, QUEUE_STEPS - 1, 0)
        );
        assert_eq!(step_of(u64::MAX, (0, u64::MAX)), QUEUE_STEPS - 1);
        assert_eq!(step_of(3, (3, 3)), 0);
    }
}
