//! The state of OpenGL at a call, as far as the calls before it determine it.
//!
//! Nothing is replayed. Each parameter is the last value that was set, with the call that did so; objects are listed
//! with the calls that made them, textures and buffers with their sizes, programs with the sources of their shaders and
//! their uniforms. State that no call set has OpenGL's initial value if the context's creation is in the trace, and is
//! unknown otherwise.

mod arrays;
mod lists;
mod machine;
mod matrices;
mod model;
mod ops;
mod parameters;
mod programs;
mod render;
mod special;
mod value;

use anytrace_core::{Error, Sink};

use crate::lanes::calls::{Call, CallOptions, CallVisitor, read_calls};
use crate::lanes::dictionary::{Definition, Dictionary};
use crate::rules;
use crate::tools::gl::contexts::Context;
use crate::tools::gl::kind::{Kind, Scope};
use crate::tools::gl::values::Values;
use crate::wire::reader::{Reader, Totals};
use crate::wire::record::{Header, Space, VERSION_THREADS};
use crate::wire::visitor::RAW;

use machine::Machine;
use ops::{Op, op};

pub use matrices::{Matrix, Stack};
pub use model::{
    Attachment, Attribute, Binding, ContextState, Detail, Key, Level, Linked, List, Object, Program, Setting, Source,
    Text, VertexArray,
};
pub use render::{ShaderFile, shader_files, write_json, write_text};
pub use value::Val;

/// An object, whose it is, and its name.
#[derive(Debug, Clone)]
pub struct Named {
    /// Of all contexts of a group, or of one.
    pub scope: Scope,
    /// The group's or the context's number.
    pub owner: u32,
    /// Its name, or the first of several in a row.
    pub name: u64,
    /// How many in a row.
    pub count: u64,
    /// The object.
    pub object: Object,
}

/// The state after a call.
#[derive(Debug, Clone, Default)]
pub struct StateAtCall {
    /// What was read.
    pub totals: Totals,
    /// The last call that was followed; `None` in a trace without calls.
    pub call: Option<u64>,
    /// Its function.
    pub function: String,
    /// Its thread.
    pub thread: u64,
    /// The context of that thread.
    pub current: u32,
    /// All contexts by number and what is known about them; the first represents calls without one.
    pub contexts: Vec<(Context, ContextState)>,
    /// All objects, by kind and name.
    pub objects: Vec<Named>,
    /// The requested call was reached.
    pub is_met: bool,
}

/// Follows the calls of a trace in the order they are left, up to and including the one with this number; all calls if
/// there is none.
///
/// Memory grows with the state at the call, up to about a million settings and 64 MiB of sources. State beyond that is
/// omitted and reported to the sink.
///
/// # Errors
/// I/O, limits, and what the sink returns.
pub fn state_at(reader: &mut Reader, number: Option<u64>, sink: &mut dyn Sink) -> Result<StateAtCall, Error> {
    let options = CallOptions::default().with_limits(&reader.limits);
    let mut follower = Follower {
        dictionary: Dictionary::default(),
        ops: Vec::new(),
        machine: Machine::new(true),
        until: number,
        last: None,
        is_met: false,
        is_short: false,
    };
    let totals = read_calls(reader, options, &mut follower, sink)?;
    Ok(follower.state(totals))
}

struct Follower {
    dictionary: Dictionary,
    /// By slot of the function.
    ops: Vec<Option<Op>>,
    machine: Machine,
    until: Option<u64>,
    /// Number, thread and function of the last call.
    last: Option<(u64, u64, u32)>,
    is_met: bool,
    is_short: bool,
}

impl Follower {
    fn state(self, totals: Totals) -> StateAtCall {
        let Self { dictionary, mut machine, last, is_met, .. } = self;
        let (_, thread, slot) = last.unwrap_or((0, 0, u32::MAX));
        let current = machine.contexts.current(thread);
        let function = dictionary
            .function(slot)
            .map_or_else(String::new, |function| String::from_utf8_lossy(function.name()).into_owned());
        let mut objects: Vec<Named> = machine
            .objects
            .all()
            .map(|(scope, owner, _, name, count, object)| Named { scope, owner, name, count, object: object.clone() })
            .collect();
        objects.sort_by_key(|one| (one.object.kind, one.scope, one.owner, one.name));
        let contexts = machine.contexts.all().to_vec();
        let numbers = 0..u32::try_from(contexts.len()).unwrap_or(u32::MAX);
        let states = numbers.map(|number| std::mem::take(machine.state(number)));
        let contexts = contexts.into_iter().zip(states).collect();
        StateAtCall { totals, call: last.map(|last| last.0), function, thread, current, contexts, objects, is_met }
    }
}

impl CallVisitor for Follower {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        self.dictionary = Dictionary::new(header.version);
        self.machine = Machine::new(header.version >= VERSION_THREADS);
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        self.dictionary.define(definition);
        if definition.space != Space::Function {
            return;
        }
        let at = definition.slot as usize;
        let op = self.dictionary.function(definition.slot).and_then(|function| op(function.name()));
        if self.ops.len() <= at {
            self.ops.resize(at + 1, None);
        }
        if let Some(place) = self.ops.get_mut(at) {
            *place = op;
        }
    }

    #[inline]
    fn call(&mut self, call: &Call<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        if self.is_met {
            return Ok(());
        }
        self.last = Some((call.number, call.thread, call.function));
        self.is_met = self.until == Some(call.number);
        let Some(op) = self.ops.get(call.function as usize).copied().flatten() else { return Ok(()) };
        let Some(function) = self.dictionary.function(call.function) else { return Ok(()) };
        self.machine.take(op, call, &Values::new(call, &self.dictionary), function);
        if self.machine.is_short() && !std::mem::replace(&mut self.is_short, true) {
            sink.report(rules::OBJECT_LIMIT.at(call.offset).within(RAW).record(call.seq))?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.is_met
    }
}

impl StateAtCall {
    /// Objects of a kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Named> {
        self.objects.iter().filter(move |one| one.object.kind == kind)
    }
}
