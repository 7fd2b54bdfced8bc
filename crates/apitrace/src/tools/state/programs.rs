//! Shaders, programs and related state.

use std::rc::Rc;

use crate::tools::gl::kind::Kind;
use crate::tools::gl::lifecycle::Action;
use crate::tools::gl::values::Values;
use crate::tools::state::machine::{At, Machine, own_target, source, value};
use crate::tools::state::model::{Detail, Linked, Program, Setting};
use crate::tools::state::ops::Special;
use crate::tools::state::value::Val;

impl Machine {
    pub(super) fn special_program(&mut self, special: Special, at: At<'_>, values: &Values<'_>) -> bool {
        match special {
            Special::ShaderSource => self.shader_source(at, values),
            Special::CompileShader => {
                let setting = Setting::new(Val::truth(true), at.number);
                self.put_property((Kind::Shader, values.name(0).unwrap_or(0)), "compiled", setting, at);
            }
            Special::ShaderStatus => self.status(Kind::Shader, 0x8b81, at, values),
            Special::ProgramStatus => self.status(Kind::Program, 0x8b82, at, values),
            Special::LinkProgram => self.link(values.name(0).unwrap_or(0), at),
            Special::AttribLocation => {
                let (Some(index), Some(name)) = (value(values, 1), text(values, 2)) else { return true };
                let budget = Rc::clone(&self.budget);
                if let Some(program) = self.program(values.name(0), at) {
                    budget.put(&mut program.attributes, name, Setting::new(index, at.number));
                }
            }
            Special::UniformLocation => {
                let budget = Rc::clone(&self.budget);
                if let (Some(location), Some(name)) = (returned(values), text(values, 1))
                    && let Some(program) = self.program(values.name(0), at)
                {
                    budget.put(&mut program.locations, location, name);
                }
            }
            Special::UniformBlockIndex => {
                let budget = Rc::clone(&self.budget);
                if let (Some(index), Some(name)) = (returned(values), text(values, 1))
                    && let Some(program) = self.program(values.name(0), at)
                {
                    budget.put(&mut program.block_names, index, name);
                }
            }
            Special::UniformBlockBinding => {
                let budget = Rc::clone(&self.budget);
                if let (Some(index), Some(point)) = (values.integer(1), value(values, 2))
                    && let Some(program) = self.program(values.name(0), at)
                {
                    budget.put(&mut program.blocks, index, Setting::new(point, at.number));
                }
            }
            Special::Uniform(is_named) => self.uniform(is_named, at, values),
            Special::UseStages => {
                if let (Some(pipeline), Some(stages), Some(program)) =
                    (values.name(0), value(values, 1), value(values, 2))
                {
                    let setting = Setting::new(program, at.number);
                    self.put_property((Kind::Pipeline, pipeline), &stages.to_key(), setting, at);
                }
            }
            Special::ActiveProgram => {
                if let (Some(pipeline), Some(program)) = (values.name(0), value(values, 1)) {
                    let setting = Setting::new(program, at.number);
                    self.put_property((Kind::Pipeline, pipeline), "GL_ACTIVE_PROGRAM", setting, at);
                }
            }
            _ => return false,
        }
        true
    }

    fn program(&mut self, name: Option<u64>, at: At<'_>) -> Option<&mut Program> {
        match &mut self.object_mut((Kind::Program, name?), at)?.detail {
            Detail::Program(program) => Some(program),
            _ => None,
        }
    }

    fn shader_source(&mut self, at: At<'_>, values: &Values<'_>) {
        let given = source(values, 2, Some(3), &self.budget, at.number);
        let object = self.object_mut((Kind::Shader, values.name(0).unwrap_or(0)), at);
        if let Some(Detail::Shader(source)) = object.map(|object| &mut object.detail) {
            let holders = source.holders;
            *source = given;
            source.holders = holders;
        }
    }

    /// The status of compiling and linking, as returned to the program.
    fn status(&mut self, kind: Kind, what: i64, at: At<'_>, values: &Values<'_>) {
        if values.integer(1) != Some(what) {
            return;
        }
        let Some(status) = values.integers(2).next() else { return };
        let name = if kind == Kind::Shader { "GL_COMPILE_STATUS" } else { "GL_LINK_STATUS" };
        let setting = Setting::new(Val::truth(status != 0), at.number);
        self.put_property((kind, values.name(0).unwrap_or(0)), name, setting, at);
    }

    /// A program runs its shaders as they were when it was linked.
    fn link(&mut self, name: u64, at: At<'_>) {
        let Some(program) = self.program(Some(name), at) else { return };
        let names: Vec<u64> = program.shaders.keys().copied().collect();
        let mut linked = Vec::new();
        for name in names {
            let object = self.objects.get(Kind::Shader, name, at.context, &self.contexts);
            let Some(object) = object else { continue };
            if let Detail::Shader(source) = &object.detail {
                let kind = object.properties.get("type").map_or(Val::Null, |setting| setting.value.clone());
                linked.push(Linked { name, kind, source: source.clone() });
            }
        }
        let Some(program) = self.program(Some(name), at) else { return };
        program.linked = linked;
        program.link = Some(at.number);
        // Linking resets all uniforms and assigns new locations.
        let gone = program.uniforms.len() + program.locations.len() + program.blocks.len() + program.block_names.len();
        program.uniforms.clear();
        program.locations.clear();
        program.blocks.clear();
        program.block_names.clear();
        self.budget.free(gone);
    }

    /// The program that `glUniform` is about.
    fn active_program(&mut self, context: u32) -> Option<u64> {
        let current = self.bound(context, own_target(Kind::Program), None).filter(|name| *name != 0);
        if current.is_some() {
            return current;
        }
        let pipeline = self.bound(context, own_target(Kind::Pipeline), None)?;
        let object = self.objects.get(Kind::Pipeline, pipeline, context, &self.contexts)?;
        match object.properties.get("GL_ACTIVE_PROGRAM")?.value {
            Val::Int(name) => Some(name as u64),
            _ => None,
        }
    }

    fn uniform(&mut self, is_named: bool, at: At<'_>, values: &Values<'_>) {
        let (name, location) = if is_named { (values.name(0), 1) } else { (self.active_program(at.context), 0) };
        // Locations below zero are of uniforms that do not exist.
        let Some(place) = values.integer(location).filter(|place| *place >= 0) else { return };
        let mut given: Vec<Val> = (location + 1..location + 5).filter_map(|index| value(values, index)).collect();
        if let Some(list) = given.iter().rposition(|value| matches!(value, Val::List(_) | Val::Many(_))) {
            // Number and transposition come before an array.
            given = vec![given.swap_remove(list)];
        }
        let given = match (given.pop(), given.is_empty()) {
            (Some(Val::List(mut items)), true) if items.len() == 1 => items.pop().unwrap_or(Val::Null),
            (Some(only), true) => only,
            (Some(last), false) => {
                given.push(last);
                Val::List(given)
            }
            (None, _) => return,
        };
        let budget = Rc::clone(&self.budget);
        if let Some(program) = self.program(name, at) {
            budget.put(&mut program.uniforms, place, Setting::new(given, at.number));
        }
    }

    pub(super) fn attach(&mut self, program: Option<u64>, shader: Option<u64>, at: At<'_>) {
        let (Some(program), Some(shader)) = (program, shader) else { return };
        let is_shader = |kind: Kind| kind == Kind::Shader;
        if !self.object_mut((Kind::Shader, shader), at).is_some_and(|object| is_shader(object.kind)) {
            return;
        }
        let budget = Rc::clone(&self.budget);
        let Some(holder) = self.program(Some(program), at) else { return };
        if holder.shaders.contains_key(&shader) {
            return;
        }
        budget.put(&mut holder.shaders, shader, at.number);
        let object = self.object_mut((Kind::Shader, shader), at);
        if let Some(Detail::Shader(source)) = object.map(|object| &mut object.detail) {
            source.holders += 1;
        }
    }

    pub(super) fn detach(&mut self, program: Option<u64>, shader: Option<u64>, at: At<'_>) {
        let Some(shader) = shader else { return };
        if self.program(program, at).and_then(|holder| holder.shaders.remove(&shader)).is_some() {
            self.budget.free(1);
            self.release_shader(shader, at);
        }
    }

    /// Detaches a shader from a program. Deleted shaders disappear with the last program.
    fn release_shader(&mut self, name: u64, at: At<'_>) {
        let Some(object) = self.object_mut((Kind::Shader, name), at) else { return };
        let is_deleted = object.deleted.is_some();
        if let Detail::Shader(source) = &mut object.detail {
            source.holders = source.holders.saturating_sub(1);
            if source.holders == 0 && is_deleted {
                self.remove(Kind::Shader, name, at.context);
            }
        }
    }

    /// Deletes one object. Shaders continue to exist while attached, programs while in use.
    pub(super) fn delete_program(&mut self, action: &Action, name: u64, at: At<'_>) {
        if !matches!(action.kind, Kind::Shader | Kind::Program) {
            self.remove(action.kind, name, at.context);
            return;
        }
        let is_used = self.is_in_use(name, at.context);
        let Some(object) = self.object_mut((action.kind, name), at) else { return };
        let goes_on = match &object.detail {
            Detail::Shader(source) => source.holders > 0,
            _ => is_used,
        };
        if goes_on {
            object.deleted = object.deleted.or(Some(at.number));
        } else {
            self.drop_program(name, at);
        }
    }

    fn drop_program(&mut self, name: u64, at: At<'_>) {
        let shaders: Vec<u64> =
            self.program(Some(name), at).map(|program| program.shaders.keys().copied().collect()).unwrap_or_default();
        for shader in shaders {
            self.release_shader(shader, at);
        }
        self.remove(Kind::Program, name, at.context);
    }

    /// A context uses another program than this now.
    pub(super) fn release_program(&mut self, name: u64, at: At<'_>) {
        let is_deleted =
            name != 0 && self.object_mut((Kind::Program, name), at).is_some_and(|object| object.deleted.is_some());
        if is_deleted && !self.is_in_use(name, at.context) {
            self.drop_program(name, at);
        }
    }

    /// True when a context of the group has the program.
    fn is_in_use(&self, name: u64, context: u32) -> bool {
        let group = self.contexts.get(context).group;
        let key = (own_target(Kind::Program).into(), None);
        let mut of_group = self.contexts.all().iter().zip(&self.states).filter(|(one, _)| one.group == group);
        of_group.any(|(_, state)| state.bindings.get(&key).is_some_and(|binding| binding.name == name))
    }
}

fn text(values: &Values<'_>, index: usize) -> Option<Rc<str>> {
    values.text(index).map(|bytes| String::from_utf8_lossy(bytes).into())
}

/// A location or index; those below zero and the invalid index are none.
fn returned(values: &Values<'_>) -> Option<i64> {
    values.returned_name().map(|number| number as i64).filter(|number| (0..0xffff_ffff).contains(number))
}
