//! Which samples are shown.

use anytrace_core::{Error, Place, Sink};

use crate::rules;

/// The event whose samples are shown: sums over several would mean nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen {
    pub(super) event: Option<usize>,
    is_given: bool,
    /// The first sample of another event, and how many there are.
    others: Option<(Place, u64)>,
}

impl Chosen {
    pub(super) fn new(event: Option<usize>) -> Self {
        Self { event, is_given: event.is_some(), others: None }
    }

    /// True for a sample of the event that is shown: the one that was chosen, or that of the first sample.
    pub(super) fn takes(&mut self, event: Option<usize>, place: Place) -> bool {
        let own = *self.event.get_or_insert(event.unwrap_or(0));
        if event.unwrap_or(0) == own {
            return true;
        }
        let (_, count) = self.others.get_or_insert((place, 0));
        *count += 1;
        false
    }

    /// Says that there were others.
    pub(super) fn finish(self, sink: &mut dyn Sink) -> Result<(), Error> {
        match self.others.filter(|_| !self.is_given) {
            Some((place, count)) => {
                let note = rules::OTHER_EVENT.at(place.offset).record(place.seq).found(count.to_string());
                sink.report(note.help("choose one with --event N; info lists them"))
            }
            None => Ok(()),
        }
    }
}
