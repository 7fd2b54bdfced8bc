//! To which actor an event belongs.
//!
//! A worker's stream has the runs of its actors: "Running … process" with `id` and `name`. Old traces give an actor's
//! events its process id as substream; that id identifies the actor. New traces put all events of a worker into one
//! lane: an event that begins and ends inside one run certainly belongs to that actor; one that only begins inside,
//! because the actor waited in between, likely belongs to it; nothing is stated about other events.

use anytrace_core::hash::Map;

use super::event::Sorted;
use crate::wire::record::{Attributes, Value};

/// Most actors distinguished.
const ACTORS_MAX: usize = 65_536;

/// Longest name stored.
const NAME_BYTES_MAX: usize = 256;

/// An actor's id and name, from the attributes of a run.
pub(crate) fn run_of(attributes: Attributes<'_>) -> Option<(u64, &str)> {
    let (mut id, mut name) = (None, None);
    for attribute in attributes {
        match (attribute.name, attribute.value) {
            ("id", Value::Unsigned(v)) => id = Some(v),
            ("name", Value::Text(v)) => name = Some(v),
            _ => {}
        }
    }
    id.zip(name)
}

/// Actors by id, for traces whose substreams are ids.
#[derive(Debug, Clone, Default)]
pub(crate) struct Actors {
    known: Map<u64, KnownActor>,
    last: Option<u64>,
}

#[derive(Debug, Clone)]
struct KnownActor {
    name: Box<str>,
    /// Ids are addresses and may be used again after an actor ends.
    has_other_names: bool,
}

impl Actors {
    #[inline]
    pub(super) fn met(&mut self, id: u64, name: &str) {
        if self.last == Some(id) {
            return;
        }
        self.last = Some(id);
        let name = cut(name);
        if let Some(known) = self.known.get_mut(&id) {
            known.has_other_names |= *known.name != *name;
        } else if self.known.len() < ACTORS_MAX {
            self.known.insert(id, KnownActor { name: name.into(), has_other_names: false });
        }
    }

    /// How many are known.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// The name of the actor with this id.
    #[cfg(feature = "tools")]
    pub(crate) fn name_of(&self, id: u64) -> Option<&str> {
        self.known.get(&id).map(|known| &*known.name)
    }

    /// The actor whose id is this substream.
    pub(crate) fn by_substream(&self, substream: u64) -> Option<Actor<'_>> {
        let known = self.known.get(&substream).filter(|_| substream != 0)?;
        Some(Actor { id: substream, name: &known.name, is_certain: !known.has_other_names })
    }
}

fn cut(name: &str) -> &str {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default()
}

/// The actor of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Actor<'a> {
    pub(crate) id: u64,
    pub(crate) name: &'a str,
    /// False if it is only likely.
    pub(crate) is_certain: bool,
}

/// The current run of a lane, as its events come in order.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    lane: (u32, u64),
    start: u64,
    end: u64,
    id: u64,
    name: String,
    is_set: bool,
}

impl Runs {
    /// Processes a run.
    pub(crate) fn run(&mut self, event: &Sorted<'_>) {
        let Some((id, name)) = run_of(event.attributes()) else { return };
        (self.lane, self.start, self.end, self.id) = ((event.stream, event.lane), event.start, event.end, id);
        self.name.clear();
        self.name.push_str(cut(name));
        self.is_set = true;
    }

    /// The actor of a program's event.
    pub(crate) fn actor<'a>(&'a self, actors: &'a Actors, event: &Sorted<'_>) -> Option<Actor<'a>> {
        if event.substream != 0 {
            return actors.by_substream(event.substream);
        }
        let is_inside = self.is_set
            && self.lane == (event.stream, event.lane)
            && self.start <= event.start
            && (event.start < self.end || event.end == self.end);
        is_inside.then(|| Actor { id: self.id, name: &self.name, is_certain: event.end <= self.end })
    }
}
