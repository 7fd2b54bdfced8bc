//! The commands of a display list.

use std::collections::HashMap;

use crate::tools::gl::attribute_groups::CURRENT;
use crate::tools::gl::commands::COMMANDS;
use crate::tools::gltrim::objects::Id;
use crate::tools::gltrim::rules::Rule;

/// Most bytes of commands remembered of a list.
const LIST_BYTES_MAX: usize = 1 << 20;

/// Most effects of one call of a list.
pub(super) const STEPS_MAX: usize = 1 << 16;

/// A list's commands: slots of functions and the bytes of their arguments.
#[derive(Debug, Default, Clone)]
pub(super) struct List {
    pub(super) commands: Vec<(u32, Box<[u8]>)>,
    pub(super) bytes: usize,
    /// There were more commands than are remembered, so the list's effect is unknown.
    pub(super) is_cut: bool,
}

/// A list that is being made.
pub(super) struct ListBuild {
    pub(super) id: Id,
    pub(super) call: u64,
    pub(super) is_forced: bool,
    pub(super) runs_too: bool,
    pub(super) list: List,
    /// The index of the last command of each function that sets a vertex value: only the last one counts.
    last: HashMap<u32, usize>,
    steps: usize,
    /// Functions that drew since the last command of another kind.
    drawn: Vec<u32>,
}

impl ListBuild {
    pub(super) fn new(id: Id, call: u64, is_forced: bool, runs_too: bool) -> Self {
        let (last, drawn) = (HashMap::new(), Vec::new());
        Self { id, call, is_forced, runs_too, list: List::default(), last, steps: 0, drawn }
    }

    /// Adds a command. `is_full`: no more are remembered.
    pub(super) fn add(&mut self, rule: Rule, function: u32, enter: &[u8], is_full: bool) {
        if rule == Rule::Begin {
            return;
        }
        let is_current = match rule {
            Rule::State(row) => {
                COMMANDS.get(usize::from(row)).is_some_and(|state| state.groups == CURRENT && state.selectors == 0)
            }
            _ => false,
        };
        // Drawing again has the same effects as before, as long as only vertex values are set in between.
        if matches!(rule, Rule::Vertex | Rule::End | Rule::Draw) {
            // All vertices are treated alike.
            let function = if rule == Rule::Vertex { u32::MAX } else { function };
            if self.drawn.contains(&function) {
                return;
            }
            self.drawn.push(function);
        } else if !is_current {
            self.drawn.clear();
        }
        self.steps += 1;
        if self.list.bytes + enter.len() > LIST_BYTES_MAX || is_full || self.steps > STEPS_MAX {
            self.list.is_cut = true;
            return;
        }
        if is_current && let Some(place) = self.last.get(&function).and_then(|at| self.list.commands.get_mut(*at)) {
            place.1 = enter.into();
            return;
        }
        self.last.insert(function, self.list.commands.len());
        self.list.bytes += enter.len() + 32;
        self.list.commands.push((function, enter.into()));
    }
}
