//! Matrices, and what `glPushAttrib` and similar functions save.
//!
//! State set after a push gets a separate node, which the pop removes. So a pair of push and pop stays if a call
//! between them does, and is dropped with all of them otherwise.

use crate::tools::gl::attribute_groups::{COLOR, DEPTH, ENABLE, SCISSOR, STENCIL, TEXTURE, TRANSFORM};
use crate::tools::gl::values::Values;
use crate::tools::gltrim::context_state::{Entry, Level};
use crate::tools::gltrim::log::Effect;
use crate::tools::gltrim::model::{At, Model};
use crate::tools::gltrim::nodes::{Label, key};
use crate::tools::gltrim::rules::Rule;

/// More stack entries than any driver accepts.
const DEPTH_MAX: usize = 1024;

const TEXTURE_MATRIX: u32 = 0x1702;
const MODE: u64 = 2 << 32;

impl Model {
    pub(super) fn matrix_mode(&mut self, values: &Values<'_>) {
        let mode = values.integer(0).unwrap_or(0) as u32;
        self.state().mode = mode;
        self.kill_state(TRANSFORM, key(&[MODE]), Label::Binding("matrix mode"));
        self.keep_state();
    }

    /// The current stack: each unit has its own for texture matrices.
    fn stack(&mut self) -> (u32, u32) {
        let state = self.state();
        (state.mode, if state.mode == TEXTURE_MATRIX { state.unit } else { 0 })
    }

    fn top(&mut self, stack: (u32, u32)) -> Entry {
        if let Some(entry) = self.state().stacks.get(&stack).and_then(|stack| stack.last()) {
            return *entry;
        }
        let (matrix, pushed) = (self.nodes.root(Label::Matrix), self.nodes.root(Label::Pushed));
        let entry = Entry { matrix, pushed, call: 0, is_forced: false };
        self.state().stacks.insert(stack, vec![entry]);
        entry
    }

    fn read_mode(&mut self, stack: (u32, u32)) {
        self.read_state(key(&[MODE]), Label::Binding("matrix mode"));
        if stack.0 == TEXTURE_MATRIX {
            self.read_unit();
        }
    }

    pub(super) fn matrix(&mut self, rule: Rule, at: At) {
        let stack = self.stack();
        let top = self.top(stack);
        match rule {
            Rule::MatrixLoad | Rule::MatrixMultiply => {
                if rule == Rule::MatrixLoad {
                    self.kills(top.matrix);
                } else {
                    self.writes(top.matrix);
                }
                self.reads(top.pushed);
                self.keep_state();
            }
            Rule::MatrixPush => {
                let (matrix, pushed) = self.next_entry(stack);
                let entry = Entry { matrix, pushed, call: at.call, is_forced: at.is_forced };
                let stack = self.state().stacks.entry(stack).or_default();
                if stack.len() < DEPTH_MAX {
                    stack.push(entry);
                }
                self.kills(matrix);
                self.kills(pushed);
                self.reads(top.matrix);
                self.reads(top.pushed);
                self.effect(Effect::Open);
            }
            _ => {
                let entries = self.state().stacks.entry(stack).or_default();
                if entries.len() > 1 {
                    entries.pop();
                    self.close(top.call, top.is_forced);
                    let below = self.top(stack);
                    self.reads(below.pushed);
                }
            }
        }
        self.read_mode(stack);
    }

    /// The nodes for the next entry, which are the same each time for a given height.
    fn next_entry(&mut self, stack: (u32, u32)) -> (u32, u32) {
        let root = self.state().levels.first().map_or(0, |level| level.pushed);
        let height = self.state().stacks.get(&stack).map_or(0, Vec::len) as u64;
        let parts = [u64::from(stack.0), u64::from(stack.1), height];
        // A separate tree below the first level's mark, which nothing reads.
        let matrix = self.nodes.child(root, key(&[parts[0], parts[1], parts[2], 0]), Label::Matrix);
        let pushed = self.nodes.child(root, key(&[parts[0], parts[1], parts[2], 1]), Label::Pushed);
        (matrix, pushed)
    }

    /// Marks a matrix as read.
    pub(super) fn read_matrix(&mut self, mode: u32, unit: u32) {
        let top = self.top((mode, unit));
        self.reads(top.matrix);
        self.reads(top.pushed);
    }

    /// Marks all matrices as read.
    pub(super) fn read_matrices(&mut self) {
        let tops: Vec<Entry> = self.state().stacks.values().filter_map(|stack| stack.last().copied()).collect();
        for top in tops {
            self.reads(top.matrix);
            self.reads(top.pushed);
        }
    }

    /// The current call ends what another began.
    pub(super) fn close(&mut self, open: u64, is_forced: bool) {
        self.effect(Effect::Close(open));
        if is_forced {
            self.effect(Effect::Always);
        }
    }

    pub(super) fn keep_state(&mut self) {
        if self.keeps_states {
            self.effect(Effect::Always);
        }
    }

    pub(super) fn attrib_push(&mut self, values: &Values<'_>, at: At) {
        let groups = values.integer(0).unwrap_or(-1) as u32;
        let height = self.state().levels.len();
        if height >= DEPTH_MAX {
            return self.effect(Effect::Always);
        }
        let (root, outer) = match self.state().levels.last() {
            Some(level) => (level.node, level.pushed),
            None => return,
        };
        // Use roots, because reading the level below must not read these.
        let marks = self.state().levels.first().map_or(0, |level| level.pushed);
        let node = self.nodes.child(marks, key(&[height as u64, 2]), Label::Level);
        let pushed = self.nodes.child(marks, key(&[height as u64, 3]), Label::Pushed);
        let state = self.state();
        let textures = state.textures.iter().map(|(place, id)| (*place, *id)).collect();
        let level = Level {
            node,
            pushed,
            groups,
            call: at.call,
            is_forced: at.is_forced,
            masks: state.masks,
            unit: state.unit,
            mode: state.mode,
            textures,
        };
        state.levels.push(level);
        self.touch();
        self.kills(node);
        self.kills(pushed);
        self.reads(root);
        if height > 1 {
            self.reads(outer);
        }
        self.effect(Effect::Open);
    }

    pub(super) fn attrib_pop(&mut self) {
        if self.state().levels.len() < 2 {
            return;
        }
        let Some(level) = self.state().levels.pop() else { return };
        let state = self.state();
        let has = |groups: u32| level.groups & groups != 0;
        if has(SCISSOR | ENABLE) {
            state.masks.has_scissor = level.masks.has_scissor;
        }
        if has(ENABLE) {
            state.masks.has_discard = level.masks.has_discard;
        }
        if has(COLOR) {
            state.masks.is_color_complete = level.masks.is_color_complete;
        }
        if has(DEPTH | ENABLE) {
            state.masks.tests_depth = level.masks.tests_depth;
        }
        if has(STENCIL | ENABLE) {
            state.masks.tests_stencil = level.masks.tests_stencil;
        }
        if has(DEPTH) {
            state.masks.is_depth_complete = level.masks.is_depth_complete;
        }
        if has(STENCIL) {
            state.masks.is_stencil_complete = level.masks.is_stencil_complete;
        }
        if has(TRANSFORM) {
            state.mode = level.mode;
        }
        if has(TEXTURE) {
            state.unit = level.unit;
            state.textures = level.textures.into_iter().collect();
        }
        let outer = state.levels.last().map(|outer| outer.pushed).filter(|_| state.levels.len() > 1);
        self.touch();
        self.close(level.call, level.is_forced);
        if let Some(outer) = outer {
            self.reads(outer);
        }
    }

    /// Client state is saved or restored, without distinguishing its parts.
    pub(super) fn client_stack(&mut self, is_pop: bool, at: At) {
        let (client, pixels, array) = {
            let state = self.state();
            (state.client, state.pixels, state.array)
        };
        let array = self.made(array);
        if is_pop {
            let Some((call, is_forced, saved)) = self.state().client_stack.pop() else { return };
            self.close(call, is_forced);
            for node in [client, pixels, array] {
                self.writes(node);
            }
            self.reads(saved);
            return;
        }
        if self.state().client_stack.len() >= DEPTH_MAX {
            return self.effect(Effect::Always);
        }
        let marks = self.state().levels.first().map_or(0, |level| level.pushed);
        let height = self.state().client_stack.len() as u64;
        let saved = self.nodes.child(marks, key(&[height, 4]), Label::Pushed);
        self.state().client_stack.push((at.call, at.is_forced, saved));
        self.kills(saved);
        for node in [client, pixels, array] {
            self.reads(node);
        }
        self.effect(Effect::Open);
    }
}
