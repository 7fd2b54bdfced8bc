//! The tracks that rows are shown on, and their names.

use std::collections::BTreeMap;

use anytrace_core::span::{NameId, Track, TrackId};
use anytrace_core::{Error, SpanSink};

use super::rows::Group;
use crate::lanes::collect::Facts;
use crate::lanes::event::{Sorted, TASKS};
use crate::lanes::names::{NO_ROOM, Names};
use crate::lanes::runtime;

/// Actors have rows of their own if there are no more than this.
const ACTORS_MAX: usize = 256;

/// Groups of tasks have the numbers of threads from here on: no stream has them.
const TASKS_FIRST: u64 = 1 << 32;

/// The tracks so far.
pub(super) struct Tracks<'a> {
    names: &'a Names,
    facts: &'a Facts,
    count: TrackId,
    /// Tracks of the current stream.
    lanes: u32,
    /// Tracks of each group of tasks.
    roots: BTreeMap<NameId, (u64, u32)>,
}

impl<'a> Tracks<'a> {
    pub(super) fn new(names: &'a Names, facts: &'a Facts) -> Self {
        Self { names, facts, count: 0, lanes: 0, roots: BTreeMap::new() }
    }

    /// What a lane belongs to that begins with this event.
    pub(super) fn group(&self, event: &Sorted<'_>) -> Group {
        if event.home == TASKS {
            return Group::Root(event.name);
        }
        let actors = &self.facts.actors;
        let is_actor = actors.len() <= ACTORS_MAX && actors.by_substream(event.substream).is_some();
        if is_actor { Group::Actor(event.substream) } else { Group::Stream }
    }

    /// Adds a track for a row of a group.
    pub(super) fn add(&mut self, event: &Sorted<'_>, group: Group, out: &mut dyn SpanSink) -> Result<TrackId, Error> {
        let (thread, lane, name) = match group {
            Group::Root(root) => self.task(root),
            Group::Stream | Group::Actor(_) => self.thread(event.stream, group),
        };
        let session = self.facts.session.as_ref();
        let process = session.map_or(0, |session| session.process);
        let process_name = session.map(|session| session.program.clone()).filter(|name| !name.is_empty());
        let id = self.count;
        self.count += 1;
        let is_task = matches!(group, Group::Root(_));
        out.track(id, &Track { process, thread, lane, name: Some(name), process_name, is_task })?;
        Ok(id)
    }

    fn task(&mut self, root: NameId) -> (u64, u32, String) {
        let next = TASKS_FIRST + self.roots.len() as u64;
        let (thread, lanes) = self.roots.entry(root).or_insert((next, 0));
        let lane = *lanes;
        *lanes += 1;
        let name = match self.names.get(root) {
            _ if root == NO_ROOM => "(other)".to_owned(),
            name => String::from_utf8_lossy(name.unwrap_or_default()).into_owned(),
        };
        (*thread, lane, format!("tasks: {name}"))
    }

    fn thread(&mut self, stream: u32, group: Group) -> (u64, u32, String) {
        let facts = self.facts;
        let is_runtime = !facts.workers.is_empty();
        let known = facts.threads.get(&stream).map(|name| name.to_string());
        let mut name =
            known.unwrap_or_else(|| runtime::stream_name(stream, facts.workers.contains(&stream), is_runtime));
        if let Group::Actor(id) = group
            && let Some(actor) = facts.actors.by_substream(id)
        {
            name.push_str(&format!(", {} {}", actor.name, actor.id));
        }
        let lane = self.lanes;
        self.lanes += 1;
        (u64::from(stream), lane, name)
    }

    /// The next stream begins.
    pub(super) fn end_home(&mut self) {
        self.lanes = 0;
    }
}
