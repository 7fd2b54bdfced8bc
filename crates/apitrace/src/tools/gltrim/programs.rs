//! Shaders, programs, their uniforms, pipelines, programs in assembly.

use crate::tools::gl::kind::Kind;
use crate::tools::gl::values::Values;
use crate::tools::gltrim::log::Effect;
use crate::tools::gltrim::model::{At, Model};
use crate::tools::gltrim::nodes::{Label, Node, key};
use crate::tools::gltrim::objects::Id;

const PROGRAM_KEY: u64 = 18 << 32;
const PIPELINE_KEY: u64 = 19 << 32;

/// The link of a pipeline to its active program, which uniform calls set.
const ACTIVE: u32 = u32::MAX;

impl Model {
    fn code(&mut self, id: Id) -> Node {
        let made = self.made(id);
        self.nodes.child(made, 2, Label::Code)
    }

    /// Follows a function that changes its first argument, a program or shader.
    pub(super) fn say(&mut self, values: &Values<'_>, name: &[u8]) {
        if name.starts_with(b"glShaderBinary") {
            // Sets several shaders at once.
            for shader in values.integers(1) {
                if let Some(id) = self.find(Kind::Shader, Some(shader as u64)) {
                    let code = self.code(id);
                    self.writes(code);
                    self.read_birth(Some(id));
                }
            }
            return;
        }
        let Some(id) = self.find(Kind::Program, values.name(0)) else { return };
        self.read_birth(Some(id));
        let code = self.code(id);
        if name.starts_with(b"glShaderSource") {
            let source = self.nodes.child(code, 1, Label::Code);
            return self.kills(source);
        }
        if name.starts_with(b"glDetach")
            && let Some(shader) = self.find(Kind::Shader, values.name(1))
            && let Some(object) = self.object_mut(id)
        {
            object.links.retain(|(_, known)| *known != shader);
        }
        self.writes(code);
        // Compiling needs the current source.
        self.reads(code);
    }

    pub(super) fn attach_shader(&mut self, values: &Values<'_>) {
        let (program, shader) = (self.find(Kind::Program, values.name(0)), self.find(Kind::Shader, values.name(1)));
        let (Some(program), Some(shader)) = (program, shader) else { return };
        if let Some(object) = self.object_mut(program) {
            object.links.push((0, shader));
        }
        self.read_birth(Some(program));
        let (code, made) = (self.code(program), self.made(shader));
        self.writes(code);
        self.reads(made);
    }

    pub(super) fn link(&mut self, values: &Values<'_>) {
        let Some(program) = self.find(Kind::Program, values.name(0)) else { return };
        self.read_birth(Some(program));
        let code = self.code(program);
        self.writes(code);
        self.reads(code);
        let shaders: Vec<Id> =
            self.object(program).map(|object| object.links.iter().map(|link| link.1).collect()).unwrap_or_default();
        for shader in shaders {
            let made = self.made(shader);
            self.reads(made);
        }
    }

    pub(super) fn use_program(&mut self, id: Option<Id>) {
        self.state().program = id;
        self.kill_state(0, PROGRAM_KEY, Label::Binding("program"));
        if let Some(id) = id {
            self.read_birth(Some(id));
            let code = self.code(id);
            self.reads(code);
        }
        self.touch();
    }

    pub(super) fn bind_pipeline(&mut self, id: Option<Id>) {
        self.state().pipeline = id;
        self.kill_state(0, PIPELINE_KEY, Label::Binding("pipeline"));
        self.read_birth(id);
        self.touch();
    }

    pub(super) fn use_stages(&mut self, values: &Values<'_>, name: &[u8]) {
        let Some(pipeline) = self.find(Kind::Pipeline, values.name(0)) else { return };
        let is_active = name.starts_with(b"glActive");
        let (place, program) = if is_active { (ACTIVE, 1) } else { (values.integer(1).unwrap_or(0) as u32, 2) };
        let program = self.find(Kind::Program, values.name(program));
        if let Some(object) = self.object_mut(pipeline) {
            if is_active {
                object.links.retain(|link| link.0 != ACTIVE);
            }
            // Stages overlap: earlier programs stay linked, which at worst keeps too much.
            if !object.links.iter().any(|link| Some(link.1) == program && link.0 == place) {
                object.links.extend(program.map(|program| (place, program)));
            }
        }
        let made = self.made(pipeline);
        let node = self.nodes.child(made, key(&[20, u64::from(place)]), Label::Code);
        self.kills(node);
        self.read_birth(Some(pipeline));
        if let Some(program) = program {
            let code = self.code(program);
            self.reads(code);
        }
        self.touch();
    }

    /// The program that uniform calls set.
    fn current_program(&mut self) -> Option<Id> {
        self.read_state(PROGRAM_KEY, Label::Binding("program"));
        if let Some(program) = self.state().program {
            return Some(program);
        }
        let pipeline = self.state().pipeline?;
        self.read_state(PIPELINE_KEY, Label::Binding("pipeline"));
        let made = self.made(pipeline);
        self.reads(made);
        self.object(pipeline)?.links.iter().find(|link| link.0 == ACTIVE).map(|link| link.1)
    }

    pub(super) fn uniform(&mut self, values: &Values<'_>) {
        let Some(program) = self.current_program() else { return };
        self.set_uniform(program, values, 0, 0);
    }

    /// `glProgramUniform*` and the bindings of blocks.
    pub(super) fn program_uniform(&mut self, values: &Values<'_>, name: &[u8]) {
        let Some(program) = self.find(Kind::Program, values.name(0)) else { return };
        self.read_birth(Some(program));
        let family = u64::from(name.ends_with(b"Binding")) + 2 * u64::from(name.starts_with(b"glShaderStorage"));
        self.set_uniform(program, values, 1, family);
    }

    fn set_uniform(&mut self, program: Id, values: &Values<'_>, at: usize, family: u64) {
        let location = values.integer(at).unwrap_or(-1);
        // An array's count determines how much is set. For single values this is a part of the value, which is
        // harmless.
        let count = if values.argument(at + 2).is_some() { values.integer(at + 1).unwrap_or(1) } else { 1 };
        let is_array = values.array(at + 2).next().is_some() || values.array(at + 3).next().is_some();
        let count = if is_array { count } else { 1 };
        let code = self.code(program);
        let made = self.made(program);
        let uniforms = self.nodes.child(made, 3, Label::Code);
        let node = self.nodes.child(uniforms, key(&[family, location as u64, count as u64]), Label::Uniform(location));
        self.kills(node);
        self.reads(code);
        // The location may be computed: for an array element, the program queried the location of the array's first
        // element, so the locations just below are read too.
        let places = self.nodes.child(made, 4, Label::Code);
        let place = self.nodes.child(places, key(&[family, location as u64]), Label::Location(location));
        self.reads(place);
        if is_array || count > 1 {
            return;
        }
        for before in 1..=location.clamp(0, 8) {
            let place = self.nodes.child(places, key(&[family, (location - before) as u64]), Label::Location(location));
            self.reads(place);
        }
    }

    /// `glGetUniformLocation` and similar: replayers map locations by these calls.
    pub(super) fn location(&mut self, values: &Values<'_>, name: &[u8], function: u32) {
        let Some(program) = self.find(Kind::Program, values.name(0)) else { return };
        let Some(location) = values.returned_name() else { return };
        let family = match name {
            _ if name.starts_with(b"glGetUniformLocation") => 0,
            _ if name.starts_with(b"glGetUniformBlockIndex") => 1,
            _ => 4 + u64::from(function),
        };
        self.read_birth(Some(program));
        let made = self.made(program);
        let code = self.code(program);
        let places = self.nodes.child(made, 4, Label::Code);
        let node = self.nodes.child(places, key(&[family, location]), Label::Location(location as i64));
        self.kills(node);
        self.reads(code);
    }

    pub(super) fn bind_assembly(&mut self, target: u32, id: Option<Id>) {
        let state = self.state();
        match id {
            Some(id) => state.assembly.insert(target, id),
            None => state.assembly.remove(&target),
        };
        self.kill_state(0, key(&[21 << 32, u64::from(target)]), Label::Binding("program"));
        self.read_birth(id);
        self.touch();
    }

    /// The bound assembly program, or for `glLoadProgramNV` the one named.
    fn assembly(&mut self, values: &Values<'_>, name: &[u8]) -> Option<Id> {
        if name.starts_with(b"glLoad") {
            return self.find(Kind::AssemblyProgram, values.name(1));
        }
        let target = values.integer(0)? as u32;
        self.read_state(key(&[21 << 32, u64::from(target)]), Label::Binding("program"));
        match self.state().assembly.get(&target) {
            Some(id) => Some(*id),
            None => Some(self.nameless(Kind::AssemblyProgram, target)),
        }
    }

    pub(super) fn assembly_code(&mut self, values: &Values<'_>, name: &[u8]) {
        let Some(id) = self.assembly(values, name) else { return };
        self.read_birth(Some(id));
        let code = self.code(id);
        self.kills(code);
    }

    pub(super) fn assembly_parameter(&mut self, values: &Values<'_>, name: &[u8], at: At) {
        // Functions that name the program are rare: they stay.
        if name.starts_with(b"glNamed") || name.starts_with(b"glProgramNamed") {
            return self.effect(Effect::Always);
        }
        let Some(id) = self.assembly(values, name) else { return };
        let made = self.made(id);
        let node = self.nodes.child(
            made,
            key(&[13, u64::from(at.function), values.integer(1).unwrap_or(0) as u64]),
            Label::Parameter,
        );
        self.kills(node);
    }
}
