//! Effects of drawing: what it needs and what it changes.

use crate::tools::gl::kind::Kind;
use crate::tools::gl::values::Values;
use crate::tools::gltrim::buffers::{ATOMIC, DISPATCH_INDIRECT, FEEDBACK, INDIRECT, PARAMETERS, SHADER_STORAGE};
use crate::tools::gltrim::framebuffers::Planes;
use crate::tools::gltrim::log::Effect;
use crate::tools::gltrim::model::{At, Model};
use crate::tools::gltrim::nodes::Node;
use crate::tools::gltrim::objects::Id;

impl Model {
    /// Follows a call that draws, recording the set of what drawing reads and writes.
    pub(super) fn draw(&mut self, at: At) {
        self.read_matrices();
        if at.depth > 0 {
            // The commands of a list are ordered, so each has its own effects.
            let mut effects = self.take_scratch();
            self.draw_effects(&mut effects);
            self.record.effects.extend_from_slice(&effects);
            return self.give_scratch(effects);
        }
        // The set depends on bindings only, and these rarely change between two draws. Sets are stored by block of the
        // log.
        let (version, block) = (self.version, self.log.block());
        let known = self.state().set.filter(|known| (known.0, known.1) == (version, block)).map(|known| known.2);
        if let Some(set) = known {
            self.record.set = Some(set);
            return;
        }
        let mut effects = self.take_scratch();
        self.draw_effects(&mut effects);
        let set = self.log.set(&effects);
        self.record.set = Some(set);
        self.state().set = Some((version, block, set));
        self.give_scratch(effects);
    }

    /// What drawing reads and writes with the current bindings.
    fn draw_effects(&mut self, effects: &mut Vec<Effect>) {
        self.use_state(effects);
        self.use_arrays(effects);
        self.use_programs(effects);
        self.use_textures(effects);
        self.write_targets(effects);
    }

    fn use_state(&mut self, effects: &mut Vec<Effect>) {
        let state = self.state();
        for (at, level) in state.levels.iter().enumerate() {
            effects.push(Effect::Read(level.node));
            if at > 0 {
                effects.push(Effect::Read(level.pushed));
            }
        }
        effects.push(Effect::Read(state.client));
        effects.push(Effect::Read(state.pixels));
        let drawn = self.drawn();
        self.use_framebuffer(drawn, effects);
    }

    fn use_buffer(&mut self, id: Id, effects: &mut Vec<Effect>) {
        if let Some(object) = self.object(id) {
            effects.extend([Effect::Read(object.made), Effect::Read(object.content)]);
        }
    }

    pub(super) fn use_arrays(&mut self, effects: &mut Vec<Effect>) {
        let state = self.state();
        let array = state.array;
        let mut buffers: Vec<Id> = [INDIRECT, DISPATCH_INDIRECT, PARAMETERS]
            .iter()
            .filter_map(|target| state.buffers.get(target).copied())
            .collect();
        buffers.extend(state.indexed.values().copied());
        if let Some(object) = self.object(array) {
            effects.push(Effect::Read(object.made));
            buffers.extend(object.links.iter().map(|link| link.1));
        }
        // A buffer may be bound in several places: it is read once.
        buffers.sort_unstable();
        buffers.dedup();
        for id in buffers {
            self.use_buffer(id, effects);
        }
    }

    fn use_programs(&mut self, effects: &mut Vec<Effect>) {
        let state = self.state();
        let mut programs: Vec<Id> =
            state.program.into_iter().chain(state.pipeline).chain(state.assembly.values().copied()).collect();
        if let Some(pipeline) = state.pipeline {
            programs
                .extend(self.object(pipeline).into_iter().flat_map(|object| object.links.iter().map(|link| link.1)));
        }
        programs.sort_unstable();
        programs.dedup();
        effects.extend(programs.into_iter().map(|id| Effect::Read(self.made(id))));
    }

    /// Textures of all units, samplers and images: which of them a shader uses is not known.
    pub(super) fn use_textures(&mut self, effects: &mut Vec<Effect>) {
        let state = self.state();
        let mut textures: Vec<Id> =
            state.textures.values().copied().chain(state.images.values().map(|image| image.0)).collect();
        textures.extend(&state.nameless);
        let samplers: Vec<Id> = state.samplers.values().copied().collect();
        textures.sort_unstable();
        textures.dedup();
        for id in textures {
            let links: Vec<Id> =
                self.object(id).map(|object| object.links.iter().map(|link| link.1).collect()).unwrap_or_default();
            self.use_buffer(id, effects);
            for id in links {
                self.use_buffer(id, effects);
            }
        }
        effects.extend(samplers.into_iter().map(|id| Effect::Read(self.made(id))));
    }

    /// What drawing may change.
    fn write_targets(&mut self, effects: &mut Vec<Effect>) {
        let drawn = self.drawn();
        let masks = self.state().masks;
        let tested = Planes { color: false, depth: masks.tests_depth, stencil: masks.tests_stencil, ..Planes::ALL };
        if !masks.has_discard {
            // Without a depth test, depth is not written either (OpenGL 4.6, section 17.3.4).
            for (node, _) in self.planes(drawn, Planes { color: true, ..tested }) {
                effects.push(Effect::Write(node));
            }
            for (node, _) in self.planes(drawn, tested) {
                effects.push(Effect::Read(node));
            }
        }
        if self.object(drawn).is_some_and(|object| object.name == 0) {
            let shown = self.shown(drawn);
            effects.push(Effect::Read(shown));
        }
        let state = self.state();
        let has_feedback = state.feedback.is_some();
        let mut written: Vec<Id> = state.images.values().filter(|image| image.1).map(|image| image.0).collect();
        written.extend(
            state
                .indexed
                .iter()
                .filter(|(place, _)| matches!(place.0, SHADER_STORAGE | ATOMIC) || place.0 == FEEDBACK && has_feedback)
                .map(|(_, id)| *id),
        );
        written.extend(state.queries.values().map(|query| query.0));
        written.sort_unstable();
        written.dedup();
        effects.extend(written.into_iter().map(|id| Effect::Write(self.content(id))));
        if let Some((_, _, id)) = self.state().conditional {
            let content = self.content(id);
            effects.push(Effect::Read(content));
        }
    }

    /// `glBegin`: the calls between it and `glEnd` stay if `glEnd` does.
    pub(super) fn begin(&mut self, at: At) {
        if at.depth == 0 {
            let state = self.state();
            (state.is_primitive, state.has_vertex) = (true, false);
            self.effect(Effect::Inner);
        }
    }

    /// A vertex. The first one needs the values that were current before, whatever is set after it.
    pub(super) fn vertex(&mut self, at: At) {
        if at.depth == 0 {
            self.effect(Effect::Inner);
            if std::mem::replace(&mut self.state().has_vertex, true) {
                return;
            }
        }
        self.read_levels();
    }

    pub(super) fn end(&mut self, at: At) {
        self.draw(at);
        if at.depth == 0 {
            self.state().is_primitive = false;
            self.effect(Effect::EndPrimitive);
        }
    }

    pub(super) fn accumulate(&mut self) {
        let drawn = self.drawn();
        self.read_levels();
        for (node, _) in self.planes(drawn, Planes { accumulation: true, ..Planes::ALL }) {
            self.writes(node);
            self.reads(node);
        }
    }

    pub(super) fn begin_query(&mut self, values: &Values<'_>, id: Option<Id>, is_indexed: bool, at: At) {
        let (target, index) = self.query_place(values, is_indexed);
        let Some(id) = id else { return };
        self.state().queries.insert((target, index), (id, at.call, at.is_forced));
        let content = self.content(id);
        self.kills(content);
        self.read_birth(Some(id));
        self.effect(Effect::Open);
        self.touch();
    }

    fn query_place(&mut self, values: &Values<'_>, is_indexed: bool) -> (u32, u32) {
        let number = |index: usize| values.integer(index).unwrap_or(0) as u32;
        (number(0), if is_indexed { number(1) } else { 0 })
    }

    pub(super) fn end_query(&mut self, values: &Values<'_>, name: &[u8]) {
        if name.starts_with(b"glQueryCounter") {
            let Some(id) = self.find(Kind::Query, values.name(0)) else { return };
            let content = self.content(id);
            self.kills(content);
            return self.read_birth(Some(id));
        }
        let place = self.query_place(values, name.windows(7).any(|part| part == b"Indexed"));
        let Some((id, call, is_forced)) = self.state().queries.remove(&place) else { return };
        let content = self.content(id);
        self.writes(content);
        self.close(call, is_forced);
        self.touch();
    }

    pub(super) fn conditional(&mut self, values: &Values<'_>, is_end: bool, at: At) {
        if is_end {
            if let Some((call, is_forced, _)) = self.state().conditional.take() {
                self.close(call, is_forced);
            }
        } else if let Some(id) = self.find(Kind::Query, values.name(0)) {
            self.state().conditional = Some((at.call, at.is_forced, id));
            let node = self.condition();
            self.kills(node);
            let content = self.content(id);
            self.reads(content);
            self.read_birth(Some(id));
            self.effect(Effect::Open);
        }
        self.touch();
    }

    /// The node for conditional rendering: it is state, so that drawing reads it.
    fn condition(&mut self) -> Node {
        let node = self.state().levels.first().map_or(0, |level| level.node);
        self.nodes.child(node, 22 << 32, crate::tools::gltrim::nodes::Label::Pushed)
    }

    pub(super) fn feedback(&mut self, is_end: bool, at: At) {
        if is_end {
            if let Some((call, is_forced)) = self.state().feedback.take() {
                self.close(call, is_forced);
            }
        } else {
            self.state().feedback = Some((at.call, at.is_forced));
            let written: Vec<Id> =
                self.state().indexed.iter().filter(|(place, _)| place.0 == FEEDBACK).map(|(_, id)| *id).collect();
            for id in written {
                let content = self.content(id);
                self.writes(content);
            }
            self.effect(Effect::Open);
        }
        self.touch();
    }

    /// Debug groups: they stay only if selected frames begin or end them.
    pub(super) fn group(&mut self, is_end: bool, at: At) {
        if !is_end {
            if self.state().groups.len() < 1024 {
                self.state().groups.push((at.call, at.is_forced));
                self.effect(Effect::Open);
            }
            return;
        }
        if let Some((call, is_forced)) = self.state().groups.pop() {
            self.close(call, is_forced);
        }
    }
}
