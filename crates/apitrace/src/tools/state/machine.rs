//! Follows calls: contexts, parameters, bindings, objects made and deleted, display lists.

use std::rc::Rc;

use crate::lanes::calls::Call;
use crate::lanes::dictionary::Named;
use crate::tools::gl::commands::effects::{Of, Parameter, Source as Given};
use crate::tools::gl::contexts::{Change, Contexts};
use crate::tools::gl::kind::Kind;
use crate::tools::gl::lifecycle::{Action, Verb};
use crate::tools::gl::objects::Objects;
use crate::tools::gl::values::{Values, float, list_names};
use crate::tools::state::model::{
    Attachment, Binding, Budget, ContextState, Detail, Key, Linked, Object, Setting, Source,
};
use crate::tools::state::ops::{Op, Special};
use crate::tools::state::value::Val;

/// Most objects followed at a time.
const OBJECTS_MAX: usize = 200_000;

/// Most parameters, and most bindings, of a context, because these tables are scanned completely.
const TABLE_MAX: usize = 4096;

/// Most distinct notes about unknown state.
const UNKNOWN_MAX: usize = 64;

/// The call that is followed.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) number: u64,
    pub(super) context: u32,
    pub(super) function: &'a Named,
}

impl At<'_> {
    /// The names of arguments, and their values.
    pub(super) fn named(&self, values: &Values<'_>, arguments: std::ops::Range<usize>) -> Vec<(Rc<str>, Val)> {
        arguments.filter_map(|index| Some((self.label(index), value(values, index)?))).collect()
    }

    pub(super) fn label(&self, index: usize) -> Rc<str> {
        match self.function.get(index as u64) {
            Some(name) => String::from_utf8_lossy(name).into(),
            None => index.to_string().into(),
        }
    }

    pub(super) fn function_name(&self) -> Rc<str> {
        String::from_utf8_lossy(self.function.name()).into()
    }
}

/// An argument.
pub(super) fn value(values: &Values<'_>, index: usize) -> Option<Val> {
    values.argument(index).map(|mut wire| Val::read(&mut wire, values.dictionary()))
}

/// All that is followed.
pub(super) struct Machine {
    pub(super) contexts: Contexts,
    pub(super) objects: Objects<Object>,
    pub(super) states: Vec<ContextState>,
    pub(super) budget: Rc<Budget>,
    pub(super) list_calls: u32,
    pub(super) list_calls_all: u64,
    /// Unreachable: every context has a state.
    spare: ContextState,
}

impl Machine {
    pub(super) fn new(has_threads: bool) -> Self {
        Self {
            contexts: Contexts::new(has_threads),
            objects: Objects::new(OBJECTS_MAX),
            states: Vec::new(),
            budget: Rc::default(),
            list_calls: 0,
            list_calls_all: 0,
            spare: ContextState::default(),
        }
    }

    pub(super) fn is_short(&self) -> bool {
        self.budget.is_short() || self.objects.is_full() || self.contexts.is_full()
    }

    /// Follows a call.
    pub(super) fn take(&mut self, op: Op, call: &Call<'_>, values: &Values<'_>, function: &Named) {
        let context = self.contexts.current(call.thread);
        let at = At { number: call.number, context, function };
        self.list_calls = 0;
        if let Op::Context(action) = op {
            if !call.is_incomplete {
                self.take_context(action, call, values);
            }
            return;
        }
        if let Some(list) = &mut self.state(context).compiling
            && op.is_compiled()
        {
            let executes = list.executes;
            self.keep_in_list(op, call, context);
            if !executes {
                return;
            }
        }
        self.apply(op, at, values, 0);
    }

    pub(super) fn state(&mut self, context: u32) -> &mut ContextState {
        let at = context as usize;
        if self.states.len() <= at {
            self.states.resize_with(at + 1, ContextState::default);
        }
        match self.states.get_mut(at) {
            Some(state) => state,
            None => &mut self.spare,
        }
    }

    pub(super) fn unknown(&mut self, context: u32, text: String) {
        let unknown = &mut self.state(context).unknown;
        if unknown.len() < UNKNOWN_MAX && !unknown.contains(&text) {
            unknown.push(text);
        }
    }

    fn take_context(
        &mut self,
        action: (crate::tools::gl::contexts::System, crate::tools::gl::contexts::ContextVerb),
        call: &Call<'_>,
        values: &Values<'_>,
    ) {
        for change in self.contexts.take(action, values, call.thread, call.number) {
            match change {
                Change::Created(_) | Change::Current(_) => {}
                Change::Joined { from, to } => self.objects.join(from, to),
                Change::Ended { context, group } => {
                    let state = std::mem::take(self.state(context));
                    self.budget.free(state.parameters.len() + state.bindings.len());
                    let mut gone = self.objects.end_context(context);
                    gone.extend(group.map(|group| self.objects.end_group(group)).unwrap_or_default());
                    self.budget.free(gone.iter().map(|one| one.object.entries()).sum());
                }
            }
        }
    }

    pub(super) fn apply(&mut self, op: Op, at: At<'_>, values: &Values<'_>, depth: u32) {
        match op {
            Op::Context(_) => {}
            Op::Object(action) => self.take_object(&action, at, values),
            Op::Set(setters) => self.set_all(setters, at, values),
            Op::Matrix(op) => {
                let key = self.matrix_key(at.context);
                let numbers = numbers(values, 0);
                let budget = Rc::clone(&self.budget);
                let stacks = &mut self.state(at.context).matrices;
                if !stacks.contains_key(&key) && !budget.takes() {
                    return;
                }
                if !stacks.entry(key).or_default().apply(op, &numbers, at.number) {
                    self.unknown(at.context, format!("the matrix after call {}", at.number));
                }
            }
            Op::Special(Special::CallList) => {
                let name = values.name(0).unwrap_or(0);
                self.call_list(name, at, values, depth);
            }
            Op::Special(Special::CallLists) => {
                let base = self.parameter(at.context, "GL_LIST_BASE");
                for name in list_names(values) {
                    self.call_list(name.wrapping_add(base) & 0xffff_ffff, at, values, depth);
                }
            }
            Op::Special(special) => self.special(special, at, values),
        }
    }

    /// A parameter as an integer; 0 if no call set it.
    pub(super) fn parameter(&mut self, context: u32, name: &str) -> u64 {
        match self.state(context).parameters.get(&(name.into(), None)).map(|setting| &setting.value) {
            Some(Val::Int(number)) => *number as u64,
            _ => 0,
        }
    }

    /// The texture unit that is active.
    pub(super) fn unit(&mut self, context: u32, parameter: &str) -> u32 {
        let of = |number: i64| u32::try_from(number.saturating_sub(0x84c0)).unwrap_or(0);
        match self.state(context).parameters.get(&(parameter.into(), None)).map(|setting| &setting.value) {
            Some(Val::Name(name)) => {
                name.strip_prefix("GL_TEXTURE").and_then(|unit| unit.trim_end_matches("_ARB").parse().ok()).unwrap_or(0)
            }
            Some(Val::Int(number)) => of(*number),
            _ => 0,
        }
    }

    fn matrix_key(&mut self, context: u32) -> Key {
        let mode = self.state(context).parameters.get(&("GL_MATRIX_MODE".into(), None));
        let mode: Rc<str> = mode.map_or_else(|| "GL_MODELVIEW".into(), |setting| setting.value.to_key().into());
        let unit = (&*mode == "GL_TEXTURE").then(|| self.unit(context, "GL_ACTIVE_TEXTURE"));
        (mode, unit)
    }

    pub(super) fn set(&mut self, context: u32, key: Key, value: Val, number: u64) {
        let budget = Rc::clone(&self.budget);
        let parameters = &mut self.state(context).parameters;
        if parameters.len() < TABLE_MAX || parameters.contains_key(&key) {
            budget.put(parameters, key, Setting::new(value, number));
        } else {
            budget.leave_out();
        }
    }

    fn set_all(&mut self, setters: &[Parameter], at: At<'_>, values: &Values<'_>) {
        for (of, from) in setters {
            let given = match *from {
                Given::One(index) => value(values, index),
                Given::List(first, count) => {
                    Some(Val::List((first..first + count).filter_map(|index| value(values, index)).collect()))
                }
            };
            let Some(given) = given else { continue };
            let first = || value(values, 0).map(|value| value.to_key()).unwrap_or_default();
            let both = || format!("{} {}", first(), value(values, 1).map(|value| value.to_key()).unwrap_or_default());
            let key = match *of {
                Of::Named(name) => (name.into(), None),
                Of::Indexed(name) => (name.into(), values.integer(0).and_then(|index| u32::try_from(index).ok())),
                Of::First => (first().into(), None),
                Of::FirstSecond => (both().into(), None),
                Of::UnitFirstSecond => (both().into(), Some(self.unit(at.context, "GL_ACTIVE_TEXTURE"))),
            };
            self.set(at.context, key, given, at.number);
        }
    }

    /// Follows calls that make, delete, bind and attach objects.
    fn take_object(&mut self, action: &Action, at: At<'_>, values: &Values<'_>) {
        let count = |index| values.integer(index).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        match action.verb {
            Verb::MakeMany { count: number, names } => {
                let target = (number > 0).then(|| value(values, 0)).flatten();
                for name in values.integers(names).take(count(number)) {
                    self.make(action, name as u64, at, values, target.clone());
                }
            }
            Verb::Make => self.make(action, values.returned_name().unwrap_or(0), at, values, value(values, 0)),
            Verb::MakeInto(index) => {
                self.make(action, values.integers(index).next().unwrap_or(0) as u64, at, values, None);
            }
            Verb::MakeRange { count: index } => {
                let first = values.returned_name().unwrap_or(0);
                // Names only; a list is made by glNewList.
                if first != 0 && action.kind != Kind::List {
                    let object = self.object(action.kind, at);
                    let key = (action.kind, action.scope);
                    self.objects.insert_row(key, (first, count(index) as u64), object, at.context, &self.contexts);
                }
            }
            Verb::DeleteMany { count: number, names } => {
                for name in values.integers(names).take(count(number)) {
                    self.unbind(action.kind, name as u64, at);
                    self.remove(action.kind, name as u64, at.context);
                }
            }
            Verb::Delete(index) => self.delete_program(action, values.name(index).unwrap_or(0), at),
            Verb::DeleteRange { first, count: number } => {
                let first = values.name(first).unwrap_or(0);
                let names = (first, count(number) as u64);
                let gone = self.objects.remove_row(action.kind, names, at.context, &self.contexts);
                self.budget.free(gone.iter().map(Object::entries).sum());
            }
            Verb::Bind { name, target } => self.bind(action, values.name(name).unwrap_or(0), target, at, values),
            Verb::Attach { holder, attached } => self.attach(values.name(holder), values.name(attached), at),
            Verb::Detach { holder, attached } => self.detach(values.name(holder), values.name(attached), at),
        }
    }

    pub(super) fn object(&self, kind: Kind, at: At<'_>) -> Object {
        Object {
            kind,
            call: at.number,
            function: at.function_name(),
            label: None,
            deleted: None,
            properties: std::collections::BTreeMap::new(),
            detail: Detail::of(kind),
        }
    }

    fn make(&mut self, action: &Action, name: u64, at: At<'_>, values: &Values<'_>, first: Option<Val>) {
        if name == 0 {
            return;
        }
        let mut object = self.object(action.kind, at);
        let label = match action.kind {
            Kind::Texture | Kind::Query => "target",
            Kind::Shader => "type",
            Kind::Sync => "condition",
            _ => "",
        };
        if let Some(value) = first.filter(|_| !label.is_empty()) {
            self.budget.put(&mut object.properties, label.into(), Setting::new(value, at.number));
        }
        if let (Detail::Program(program), true) = (&mut object.detail, values.argument(0).is_some()) {
            // glCreateShaderProgramv: type, count, strings.
            let kind = value(values, 0).unwrap_or(Val::Null);
            let source = source(values, 2, None, &self.budget, at.number);
            program.linked.push(Linked { name: 0, kind, source });
            program.link = Some(at.number);
        }
        let key = (action.kind, action.scope);
        if let Some(before) = self.objects.insert(key, name, object, at.context, &self.contexts) {
            self.budget.free(before.entries());
        }
    }

    pub(super) fn remove(&mut self, kind: Kind, name: u64, context: u32) {
        if let Some(object) = self.objects.remove(kind, name, context, &self.contexts) {
            self.budget.free(object.entries());
        }
    }

    /// Removes the bindings of a deleted object in the context that deletes it.
    fn unbind(&mut self, kind: Kind, name: u64, at: At<'_>) {
        if name == 0 {
            return;
        }
        let framebuffers: Vec<u64> = ["GL_DRAW_FRAMEBUFFER", "GL_READ_FRAMEBUFFER"]
            .iter()
            .filter_map(|target| self.bound(at.context, target, None))
            .filter(|name| *name != 0)
            .collect();
        for binding in self.state(at.context).bindings.values_mut() {
            if binding.kind == kind && binding.name == name {
                (binding.name, binding.call) = (0, at.number);
                binding.more.clear();
            }
        }
        if matches!(kind, Kind::Texture | Kind::Renderbuffer) {
            let is_other = |attachment: &Attachment| attachment.kind != kind || attachment.name != name;
            for framebuffer in framebuffers {
                let object = self.objects.get_mut(Kind::Framebuffer, framebuffer, at.context, &self.contexts);
                if let Some(Detail::Framebuffer(attachments)) = object.map(|object| &mut object.detail) {
                    attachments.retain(|_, attachment| is_other(attachment));
                }
            }
        }
        if kind == Kind::Buffer
            && let Some(array) = self.vertex_array(at.context, None)
            && array.elements.as_ref().is_some_and(|setting| setting.value == Val::Int(name as i64))
        {
            array.elements = Some(Setting::new(Val::Int(0), at.number));
        }
    }

    /// The object bound at a target.
    pub(super) fn bound(&mut self, context: u32, target: &str, index: Option<u32>) -> Option<u64> {
        self.state(context).bindings.get(&(target.into(), index)).map(|binding| binding.name)
    }

    pub(super) fn put_binding(&mut self, context: u32, key: Key, binding: Binding) {
        let budget = Rc::clone(&self.budget);
        let bindings = &mut self.state(context).bindings;
        if bindings.len() < TABLE_MAX || bindings.contains_key(&key) {
            budget.put(bindings, key, binding);
        } else {
            budget.leave_out();
        }
    }

    fn bind(&mut self, action: &Action, name: u64, target: Option<usize>, at: At<'_>, values: &Values<'_>) {
        let kind = action.kind;
        if kind == Kind::List {
            self.begin_list(name, at, values);
            return;
        }
        let is_new = name != 0
            && action.makes_when_bound()
            && !self.contexts.get(at.context).is_core
            && !self.objects.has(kind, name, at.context, &self.contexts);
        let target_value = target.and_then(|index| value(values, index));
        if is_new {
            self.make(action, name, at, values, None);
        }
        if kind == Kind::Query {
            return;
        }
        let target_key: Rc<str> = target_value.as_ref().map_or_else(|| own_target(kind).into(), |v| v.to_key().into());
        if let (Kind::Texture, Some(target)) = (kind, target_value.clone()) {
            self.set_target(name, target, at);
        }
        let binding = Binding { kind, name, call: at.number, more: Vec::new() };
        let number = target.and_then(|index| values.integer(index)).unwrap_or(0);
        match (kind, number) {
            // The bindings of index buffers belong to vertex arrays.
            (Kind::Buffer, 0x8893) => {
                if let Some(array) = self.vertex_array(at.context, None) {
                    array.elements = Some(Setting::new(Val::Int(name as i64), at.number));
                }
            }
            (Kind::Buffer, _) => self.bind_buffer(target_key, binding, at, values),
            (Kind::Framebuffer, 0x8d40) => {
                for target in ["GL_DRAW_FRAMEBUFFER", "GL_READ_FRAMEBUFFER"] {
                    self.put_binding(at.context, (target.into(), None), binding.clone());
                }
            }
            (Kind::Texture, _) => {
                let unit = if target == Some(1) {
                    values.integer(0).and_then(|unit| u32::try_from(unit.saturating_sub(0x84c0)).ok()).unwrap_or(0)
                } else {
                    self.unit(at.context, "GL_ACTIVE_TEXTURE")
                };
                self.put_binding(at.context, (target_key, Some(unit)), binding);
            }
            (Kind::Program, _) => {
                let before = self.bound(at.context, own_target(kind), None);
                self.put_binding(at.context, (target_key, None), binding);
                self.release_program(before.unwrap_or(0), at);
            }
            _ => self.put_binding(at.context, (target_key, None), binding),
        }
    }

    fn bind_buffer(&mut self, target: Rc<str>, binding: Binding, at: At<'_>, values: &Values<'_>) {
        // glBindBuffer has two arguments; the others have an index before the name and a range after it.
        if values.argument(2).is_some() {
            let index = values.integer(1).and_then(|index| u32::try_from(index).ok()).unwrap_or(0);
            let more = at.named(values, 3..5);
            self.put_binding(at.context, (Rc::clone(&target), Some(index)), Binding { more, ..binding.clone() });
        }
        self.put_binding(at.context, (target, None), binding);
    }

    pub(super) fn set_target(&mut self, name: u64, target: Val, at: At<'_>) {
        let budget = Rc::clone(&self.budget);
        if let Some(object) = self.objects.get_mut(Kind::Texture, name, at.context, &self.contexts)
            && !object.properties.contains_key("target")
        {
            budget.put(&mut object.properties, "target".into(), Setting::new(target, at.number));
        }
    }
}

/// The target of kinds that have only one.
pub(super) fn own_target(kind: Kind) -> &'static str {
    match kind {
        Kind::VertexArray => "GL_VERTEX_ARRAY",
        Kind::Program => "GL_CURRENT_PROGRAM",
        Kind::Pipeline => "GL_PROGRAM_PIPELINE",
        _ => "",
    }
}

/// The numbers of all arguments from one on, those of arrays too.
pub(super) fn numbers(values: &Values<'_>, from: usize) -> Vec<f64> {
    let mut numbers = Vec::new();
    for index in from..16 {
        if let Some(number) = values.float(index) {
            numbers.push(number);
        }
        numbers.extend(values.array(index).take(16).filter_map(|mut wire| float(wire.value(), values.dictionary())));
    }
    numbers
}

/// The texts of an array argument, one after another; each is as long as the lengths say, where they do.
pub(super) fn source(
    values: &Values<'_>,
    texts: usize,
    lengths: Option<usize>,
    budget: &Rc<Budget>,
    number: u64,
) -> Source {
    let mut lengths = lengths.map(|index| values.integers(index));
    let (mut all, mut left_out) = (Vec::new(), 0_u64);
    for mut wire in values.array(texts) {
        let length = lengths.as_mut().and_then(Iterator::next).and_then(|length| usize::try_from(length).ok());
        match wire.value() {
            crate::lanes::wire::Value::Text(text) => {
                let text = text.get(..length.unwrap_or(text.len())).unwrap_or(text);
                all.extend_from_slice(text);
            }
            crate::lanes::wire::Value::Blob(bytes, None) => left_out = left_out.saturating_add(bytes),
            crate::lanes::wire::Value::Blob(_, Some(text)) => all.extend_from_slice(text),
            _ => {}
        }
    }
    let bytes = all.len() as u64 + left_out;
    let text = if left_out == 0 { budget.text(all) } else { None };
    let left_out_bytes = text.is_none().then_some(bytes);
    Source { text, call: Some(number), left_out_bytes, holders: 0 }
}
