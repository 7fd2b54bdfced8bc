//! Display lists: their commands are calls that stay with the list, and take effect when it is called.

use crate::lanes::calls::Call;
use crate::lanes::wire::Value;
use crate::tools::gl::kind::{Kind, Scope};
use crate::tools::gl::values::Values;
use crate::tools::gltrim::buffers::PIXEL_UNPACK;
use crate::tools::gltrim::list_commands::{ListBuild, STEPS_MAX};
use crate::tools::gltrim::log::Effect;
use crate::tools::gltrim::model::{At, Model};
use crate::tools::gltrim::objects::Id;
use crate::tools::gltrim::rules::Rule;

/// Nesting of lists, as deep as drivers allow.
const DEPTH_MAX: u8 = 64;

/// Most bytes of commands remembered of all lists.
const ALL_BYTES_MAX: usize = 16 << 20;

/// Most commands that all lists execute.
const ALL_STEPS_MAX: u64 = 1 << 30;

impl Model {
    pub(super) fn new_list(&mut self, values: &Values<'_>, at: At) {
        let Some(id) = self.named(Kind::List, Scope::Group, values.name(0).unwrap_or(0)) else { return };
        let content = self.content(id);
        self.kills(content);
        self.read_birth(Some(id));
        // GL_COMPILE is 0x1300, GL_COMPILE_AND_EXECUTE 0x1301.
        let runs_too = values.integer(1) != Some(0x1300);
        let build = ListBuild::new(id, at.call, at.is_forced, runs_too);
        self.effect(Effect::Open);
        self.state().list = Some(build);
    }

    pub(super) fn end_list(&mut self) {
        let Some(build) = self.state().list.take() else { return };
        let content = self.content(build.id);
        self.writes(content);
        self.close(build.call, build.is_forced);
        if let Some(old) = self.lists.remove(&build.id) {
            self.list_bytes -= old.bytes;
        }
        self.list_bytes += build.list.bytes;
        self.lists.insert(build.id, build.list);
    }

    pub(super) fn drop_list(&mut self, id: Id) {
        if let Some(old) = self.lists.remove(&id) {
            self.list_bytes -= old.bytes;
        }
    }

    /// True when the current call is compiled into a list and has no other effect.
    pub(super) fn compile(&mut self, rule: Rule, at: At, enter: &[u8]) -> bool {
        if self.state().list.is_none() || !is_compiled(rule) {
            return false;
        }
        let is_full = self.list_bytes > ALL_BYTES_MAX;
        let Some(build) = &mut self.state().list else { return false };
        let (id, runs_too) = (build.id, build.runs_too);
        build.add(rule, at.function, enter, is_full);
        let content = self.content(id);
        self.writes(content);
        self.read_client(rule);
        !runs_too
    }

    /// Data in the program's memory (arrays, and pixels with their layout) are read when a list is compiled, not when
    /// it is called (OpenGL 2.1, section 5.4).
    fn read_client(&mut self, rule: Rule) {
        // Elements of arrays between `glBegin` and `glEnd` are counted at the latter.
        if !matches!(rule, Rule::Draw | Rule::End | Rule::Texture(..)) {
            return;
        }
        let mut effects = self.take_scratch();
        self.use_arrays(&mut effects);
        let state = self.state();
        effects.extend([Effect::Read(state.client), Effect::Read(state.pixels)]);
        if let Some(pixels) = self.bound_buffer(PIXEL_UNPACK) {
            effects.push(Effect::Read(self.content(pixels)));
        }
        self.record.effects.append(&mut effects);
        self.give_scratch(effects);
    }

    pub(super) fn call_list(&mut self, name: u64, values: &Values<'_>, at: At) {
        if self.record.effects.len() > STEPS_MAX {
            return;
        }
        let Some(id) = self.named(Kind::List, Scope::Group, name) else { return };
        let (content, made) = (self.content(id), self.made(id));
        self.reads(content);
        self.reads(made);
        let Some(list) = self.lists.get(&id) else { return };
        self.list_steps += list.commands.len() as u64;
        if list.is_cut || at.depth >= DEPTH_MAX || self.list_steps > ALL_STEPS_MAX {
            // It may have any effect of calls in a list.
            self.read_levels();
            self.effect(Effect::Always);
            return self.draw(at);
        }
        let commands = list.commands.clone();
        for (function, enter) in commands {
            let rule = self.rules.get(function as usize).copied().unwrap_or(Rule::Unknown);
            let call = Call {
                number: at.call,
                thread: at.thread,
                function,
                is_incomplete: false,
                enter: &enter,
                ..Call::NONE
            };
            // The effects of lists that call lists may grow without bound.
            if self.record.effects.len() > STEPS_MAX {
                return self.effect(Effect::Always);
            }
            let inner = Values::new(&call, values.dictionary());
            self.effect(Effect::Then);
            self.apply(rule, &inner, At { function, depth: at.depth + 1, ..at });
        }
    }

    pub(super) fn call_lists(&mut self, values: &Values<'_>, at: At) {
        self.read_rows(&["ListBase"]);
        let base = self.list_base();
        let names: Vec<u64> = values
            .array(2)
            .filter_map(|mut wire| match wire.value() {
                Value::Unsigned(name) => Some(base.wrapping_add(name)),
                _ => None,
            })
            .take(4096)
            .collect();
        if names.is_empty() {
            // Their names cannot be read here, so any list of the group may be called.
            let bytes = match values.argument(2).map(|mut wire| wire.value()) {
                Some(Value::Blob(_, Some(bytes))) if values.integer(1) == Some(0x1401) => bytes,
                _ => {
                    self.effect(Effect::Always);
                    return self.read_lists(at);
                }
            };
            for byte in bytes.iter().take(4096) {
                self.call_list(base.wrapping_add(u64::from(*byte)), values, at);
            }
            return;
        }
        for name in names {
            self.call_list(name, values, at);
        }
    }

    fn read_lists(&mut self, at: At) {
        let mut lists: Vec<Id> =
            self.names.iter().filter(|(slot, _)| slot.0 == Kind::List).map(|(_, id)| *id).collect();
        lists.sort_unstable();
        for id in lists {
            let (content, made) = (self.content(id), self.made(id));
            self.reads(content);
            self.reads(made);
        }
        self.draw(at);
    }

    fn list_base(&mut self) -> u64 {
        self.list_bases.get(&self.ctx).copied().unwrap_or(0)
    }
}

/// True for calls that are compiled into lists; other calls take effect at once (OpenGL 2.1, section 5.4).
fn is_compiled(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::State(_)
            | Rule::ActiveTexture
            | Rule::MatrixMode
            | Rule::MatrixLoad
            | Rule::MatrixMultiply
            | Rule::MatrixPush
            | Rule::MatrixPop
            | Rule::AttribPush
            | Rule::AttribPop
            | Rule::Begin
            | Rule::End
            | Rule::Vertex
            | Rule::Draw
            | Rule::Clear
            | Rule::ClearBuffer { .. }
            | Rule::Blit { .. }
            | Rule::Accumulate
            | Rule::CallList
            | Rule::CallLists
            | Rule::Uniform
            | Rule::DrawBuffers { is_named: false }
            | Rule::ReadBuffer { is_named: false }
            | Rule::Unknown
    ) || is_bound(rule)
}

/// Of functions that bind, those of textures and programs are compiled into lists.
fn is_bound(rule: Rule) -> bool {
    use crate::tools::gl::lifecycle::Verb;
    match rule {
        Rule::Object(action) => {
            matches!(action.verb, Verb::Bind { .. })
                && matches!(action.kind, Kind::Texture | Kind::Program | Kind::AssemblyProgram | Kind::Query)
        }
        Rule::Texture(..) => true,
        _ => false,
    }
}
