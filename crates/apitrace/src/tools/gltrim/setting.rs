//! State: what sets it, on which level of `glPushAttrib` it is, what reads it.

use crate::tools::gl::attribute_groups::{ENABLE, TEXTURE, of_capability};
use crate::tools::gl::commands::effects::On;
use crate::tools::gl::commands::{self, COMMANDS, Command};
use crate::tools::gl::values::Values;
use crate::tools::gltrim::log::Effect;
use crate::tools::gltrim::model::{Model, UNIT};
use crate::tools::gltrim::nodes::{Label, Node, key};

impl Model {
    /// The numbers that select what is set.
    fn selectors(&mut self, state: &Command, is_of_unit: bool, values: &Values<'_>) -> u64 {
        let mut parts = [0_u64; 5];
        if is_of_unit {
            parts[0] = u64::from(self.state().unit);
        }
        for (at, part) in parts.iter_mut().skip(1).take(usize::from(state.selectors)).enumerate() {
            *part = values.integer(at).map_or(u64::MAX, |value| value as u64);
        }
        key(&parts)
    }

    /// Follows a function of the table.
    pub(super) fn set_state(&mut self, row: u16, values: &Values<'_>) {
        let Some(state) = COMMANDS.get(usize::from(row)) else { return };
        let is_switch = state.groups == ENABLE;
        let switch = values.integer(0).filter(|_| is_switch).and_then(|number| u32::try_from(number).ok());
        let groups = switch.map_or(state.groups, of_capability);
        // Texture targets and coordinate generation are enabled for each unit.
        let is_of_unit = if is_switch { groups & TEXTURE != 0 } else { groups == TEXTURE && state.on != On::Nothing };
        if is_of_unit {
            self.read_unit();
        }
        let key = self.selectors(state, is_of_unit, values);
        let subject = commands::subject(row);
        if let Some(family) = self.set_level(groups).map(|node| self.family(node, subject)) {
            let node = if state.selectors == 0 && state.on == On::Nothing {
                family
            } else {
                self.nodes.child(family, key, Label::State(subject))
            };
            self.kills(node);
        }
        match state.on {
            On::ModelView => self.read_matrix(0x1700, 0),
            On::Everything => {
                self.read_levels();
                self.read_matrices();
            }
            _ => {}
        }
        self.follow_masks(state.stem, values);
        if self.keeps_states {
            self.effect(Effect::Always);
        }
    }

    /// The node above state that groups save: that of the last push that saves it.
    fn set_level(&mut self, groups: u32) -> Option<Node> {
        let state = self.state();
        let at = state.levels.iter().rposition(|level| level.groups & groups != 0).unwrap_or(0);
        let (node, pushed) = state.levels.get(at).map(|level| (level.node, level.pushed))?;
        if at > 0 {
            self.reads(pushed);
        }
        Some(node)
    }

    /// The node for what the functions of a row set.
    fn family(&mut self, level: Node, row: u16) -> Node {
        self.nodes.child(level, u64::from(row), Label::State(row))
    }

    /// Overwrites state that groups save.
    pub(super) fn kill_state(&mut self, groups: u32, key: u64, label: Label) {
        let Some(node) = self.set_level(groups) else { return };
        let node = self.nodes.child(node, key, label);
        self.kills(node);
    }

    /// Marks the state set by functions of these stems as read.
    pub(super) fn read_rows(&mut self, stems: &[&str]) {
        for row in stems.iter().filter_map(|stem| commands::place(stem)) {
            for at in 0.. {
                let Some(node) = self.state().levels.get(at).map(|level| level.node) else { break };
                let node = self.family(node, row);
                self.reads(node);
            }
        }
        let pushed: Vec<Node> = self.state().levels.iter().skip(1).map(|level| level.pushed).collect();
        for pushed in pushed {
            self.reads(pushed);
        }
    }

    /// Marks state that groups save as read.
    pub(super) fn read_state(&mut self, key: u64, label: Label) {
        for at in 0.. {
            let Some(node) = self.state().levels.get(at).map(|level| level.node) else { return };
            let node = self.nodes.child(node, key, label);
            self.reads(node);
        }
    }

    pub(super) fn read_levels(&mut self) {
        for at in 0.. {
            let Some((node, pushed)) = self.state().levels.get(at).map(|level| (level.node, level.pushed)) else {
                return;
            };
            self.reads(node);
            if at > 0 {
                self.reads(pushed);
            }
        }
    }

    /// Marks the active texture unit as read.
    pub(super) fn read_unit(&mut self) {
        self.read_state(key(&[UNIT]), Label::Binding("texture unit"));
    }

    fn follow_masks(&mut self, stem: &str, values: &Values<'_>) {
        let is_true = |index: usize| values.integer(index) != Some(0);
        let first = values.integer(0).unwrap_or(0);
        let mut masks = self.state().masks;
        match stem {
            "Enable" | "Disable" => {
                let is_on = stem == "Enable";
                match first {
                    0x0c11 => masks.has_scissor = is_on,
                    0x8c89 => masks.has_discard = is_on,
                    0x0b71 => masks.tests_depth = is_on,
                    0x0b90 => masks.tests_stencil = is_on,
                    _ => return,
                }
            }
            // One of several represents all: a clear counts as partial then.
            "Enablei" | "EnableIndexed" if first == 0x0c11 => masks.has_scissor = true,
            "ColorMask" => masks.is_color_complete = (0..4).all(is_true),
            "ColorMaski" | "ColorMaskIndexed" => masks.is_color_complete &= (1..5).all(is_true),
            "DepthMask" => masks.is_depth_complete = is_true(0),
            "StencilMask" => masks.is_stencil_complete = first & 0xff == 0xff,
            "StencilMaskSeparate" => {
                masks.is_stencil_complete &= values.integer(1).is_some_and(|mask| mask & 0xff == 0xff);
            }
            _ => return,
        }
        if masks != self.state().masks {
            self.state().masks = masks;
            self.touch();
        }
    }
}
