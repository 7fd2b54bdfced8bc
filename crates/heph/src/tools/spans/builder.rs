//! Turns events in order into lines of a tree.

use anytrace_core::Error;
use anytrace_core::hash::Map;

use super::line::{About, Line};
use super::printer::Printer;
use crate::lanes::actors::Runs;
use crate::lanes::event::Sorted;
use crate::lanes::names::NO_ROOM;
use crate::lanes::rule::Sweep;
use crate::lanes::runtime::{self, Kind};

/// An open span.
#[derive(Debug, Clone, Copy)]
struct TreeNode {
    name: u32,
    seq: u64,
}

/// Makes a tree of events in order.
pub(super) struct Builder {
    sweep: Sweep<TreeNode>,
    lane: Option<(u32, u64)>,
    runs: Runs,
    /// Kinds of descriptions, as far as they were needed.
    kinds: Vec<Option<Kind>>,
    /// Descriptions of open spans that have no number, by record.
    unnamed: Map<u64, Box<[u8]>>,
    gone: Vec<u64>,
}

impl Default for Builder {
    fn default() -> Self {
        let (unnamed, gone) = (Map::default(), Vec::new());
        Self { sweep: Sweep::new(), lane: None, runs: Runs::default(), kinds: Vec::new(), unnamed, gone }
    }
}

impl Builder {
    /// Processes the next event in order and prints its line.
    pub(super) fn event(
        &mut self,
        event: &Sorted<'_>,
        is_parent_unknown: bool,
        about: About<'_>,
        printer: &mut Printer<'_>,
    ) -> Result<(), Error> {
        let lane = (event.stream, event.lane);
        let gone = &mut self.gone;
        let mut closed = |done: crate::lanes::rule::OpenSpan<TreeNode>| {
            if done.what.name == NO_ROOM {
                gone.push(done.what.seq);
            }
        };
        if self.lane != Some(lane) {
            self.sweep.finish(&mut closed);
            self.lane = Some(lane);
            printer.lane(lane, about)?;
        }
        let placed =
            self.sweep.place(event.start, event.end, TreeNode { name: event.name, seq: event.seq }, &mut closed);
        let kind = self.kind(event.name, about);
        if kind == Kind::Run {
            self.runs.run(event);
        }
        let look = |node: TreeNode| -> &[u8] {
            match node.name {
                NO_ROOM => self.unnamed.get(&node.seq).map(|name| &**name).unwrap_or_default(),
                name => about.names.get(name).unwrap_or_default(),
            }
        };
        let line = Line {
            event,
            description: about.names.get(event.name).unwrap_or(event.description),
            parent: placed.parent.map(|node| (look(node), node.seq)),
            overlaps: placed.overlaps.map(look),
            depth: placed.depth,
            is_parent_unknown: is_parent_unknown && placed.parent.is_none(),
            actor: if kind == Kind::User { self.runs.actor(&about.facts.actors, event) } else { None },
        };
        printer.line(&line)?;
        if event.name == NO_ROOM {
            self.unnamed.insert(event.seq, event.description.into());
        }
        for seq in self.gone.drain(..) {
            self.unnamed.remove(&seq);
        }
        Ok(())
    }

    #[inline]
    fn kind(&mut self, name: u32, about: About<'_>) -> Kind {
        let at = name as usize;
        if at >= about.names.len() {
            return Kind::User;
        }
        if at >= self.kinds.len() {
            self.kinds.resize(about.names.len(), None);
        }
        let look_up = || {
            let name = about.names.get(name).and_then(|name| std::str::from_utf8(name).ok());
            name.map_or(Kind::User, runtime::kind_of)
        };
        self.kinds.get_mut(at).map_or(Kind::User, |kind| *kind.get_or_insert_with(look_up))
    }

    /// Ends a piece of a lane whose spans have all been emitted: later events are not inside them.
    pub(super) fn cut(&mut self) {
        self.sweep.finish(&mut |_| {});
        self.unnamed.clear();
    }
}
