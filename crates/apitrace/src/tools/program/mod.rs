//! A trace as a program of OpenGL calls, for whatever repeats them: a C program ([`super::to_c`]) or a driver.
//!
//! What a call means is found here, once: which arguments name objects, what its pointers point to, what must be done
//! around it, which context and drawable it belongs to. A [`Machine`] carries it out.

mod call;
mod frames;
mod loops;
mod rules;
mod windows;

use std::collections::HashMap;
use std::rc::Rc;

use anytrace_core::{Error, Limits, Sink};

use crate::lanes::calls::{Call, CallOptions, CallVisitor, read_calls};
use crate::lanes::dictionary::{Definition, Dictionary, Named};
use crate::lanes::flags::CallFlags;
use crate::tools::callset::CallSet;
use crate::tools::gl::contexts::{Change, ContextVerb, Contexts, System};
use crate::tools::gl::values::Values;
use crate::wire::reader::{Reader, Totals};
use crate::wire::record::{Header, VERSION_THREADS};

pub use call::{Answer, Argument, Around, Array, GlCall, MemoryChange, Scalar, Unfit};
pub use frames::frames_of;
use loops::Looped;
use rules::Rules;
pub use rules::{ARGUMENTS_MAX, split_types, types_of};
pub use windows::{Asked, DrawableSize, drawable_sizes};
use windows::{Windows, asked};

/// Which calls are repeated.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Only these calls; `None`: all. Calls that make and select contexts are always repeated.
    pub calls: Option<CallSet>,
    /// Only calls of these frames, by number. Combined with `calls`: those of either.
    pub frames: Option<CallSet>,
    /// Calls that are not repeated although the others say so.
    pub ignored: Option<CallSet>,
    /// Nothing after this frame is read; `None`: everything is.
    pub last_frame: Option<u64>,
    /// Nothing is read after this call returned; `None`: everything is.
    pub last_call: Option<u64>,
    /// How often the last frame is repeated after it; `u64::MAX`: until the process ends.
    pub loops: u64,
}

impl Wanted {
    fn has(&self, number: u64, frame: u64, flags: CallFlags) -> bool {
        if self.ignored.as_ref().is_some_and(|ignored| ignored.has(number, flags)) {
            return false;
        }
        match (&self.calls, &self.frames) {
            (None, None) => true,
            (calls, frames) => {
                calls.as_ref().is_some_and(|calls| calls.has(number, flags))
                    || frames.as_ref().is_some_and(|frames| frames.has(frame, flags))
            }
        }
    }
}

/// A call of the trace, whether it is repeated or not.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Its number.
    pub number: u64,
    /// Its classes.
    pub flags: CallFlags,
    /// The frame it belongs to, counted from 0.
    pub frame: u64,
    /// The largest corner, in pixels, that the viewports of its drawable have had so far.
    pub extent: (u32, u32),
}

/// A context to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewContext {
    /// Its number, from 1 on; 0 is the context of calls whose context is unknown, and is never announced.
    pub context: u32,
    /// An earlier context with which it shares objects.
    pub share: Option<u32>,
    /// What the program requested.
    pub asked: Asked,
}

/// Carries out the calls of a trace. Errors end the reading.
pub trait Machine {
    /// What follows is of this thread of the trace. True where its context must be made current anew.
    fn thread(&mut self, _number: u64) -> bool {
        false
    }

    /// Makes a context.
    ///
    /// # Errors
    /// The machine's own, here and below.
    fn new_context(&mut self, new: &NewContext) -> Result<(), Error>;

    /// All objects of the contexts of two groups are shared from now on; each context stands for its group.
    ///
    /// # Errors
    /// As above.
    fn share_contexts(&mut self, first: u32, second: u32) -> Result<(), Error>;

    /// Destroys a context.
    ///
    /// # Errors
    /// As above.
    fn end_context(&mut self, context: u32) -> Result<(), Error>;

    /// Makes a context current, with a drawable.
    ///
    /// # Errors
    /// As above.
    fn make_current(&mut self, context: u32, drawable: usize) -> Result<(), Error>;

    /// A frame ends with this call.
    ///
    /// # Errors
    /// As above.
    fn end_frame(&mut self, number: u64) -> Result<(), Error>;

    /// Repeats a call.
    ///
    /// # Errors
    /// [`Unfit::Value`] where it cannot: the call is left out, and reported.
    fn call(&mut self, call: &GlCall<'_>) -> Result<(), Unfit>;

    /// Whether the machine wants no more calls: nothing more is read.
    fn is_done(&self) -> bool {
        false
    }

    /// Whether [`Machine::call`] also gets calls that only ask ([`Around::Asks`]).
    fn asks(&self) -> bool {
        false
    }

    /// Repeats what the program did to its memory.
    ///
    /// # Errors
    /// As [`Machine::call`].
    fn memory(&mut self, number: u64, change: &MemoryChange<'_>) -> Result<(), Unfit>;

    /// A call that would be repeated is left out.
    ///
    /// # Errors
    /// As above.
    fn left_out(&mut self, number: u64, name: &str, why: &'static str) -> Result<(), Error> {
        let _ = (number, name, why);
        Ok(())
    }

    /// Everything about this call of the trace is done.
    ///
    /// # Errors
    /// As above.
    fn done(&mut self, moment: &Moment) -> Result<(), Error> {
        let _ = moment;
        Ok(())
    }
}

/// Most omitted functions that are reported by name.
const LEFT_OUT_MAX: usize = 256;

/// What became of a program.
#[derive(Debug, Default)]
pub struct Played {
    /// What was read.
    pub totals: Totals,
    /// Calls that were repeated.
    pub repeated: u64,
    /// Sizes of the drawables, by number, as far as the calls show them.
    pub sizes: Vec<DrawableSize>,
    /// The functions that were not repeated, and why: a sentence each.
    pub notes: Vec<String>,
}

/// Has a machine repeat the calls of a trace.
///
/// # Errors
/// I/O, limits, and what the machine or the sink return.
pub fn play(
    reader: &mut Reader,
    wanted: &Wanted,
    limits: &Limits,
    machine: &mut dyn Machine,
    sink: &mut dyn Sink,
) -> Result<Played, Error> {
    let mut player = Player {
        wanted,
        machine,
        dictionary: Rc::default(),
        rules: Rules::default(),
        contexts: Contexts::new(false),
        windows: Windows::new(),
        binds_gl: HashMap::new(),
        shown: None,
        frame: 0,
        is_met: false,
        left_out: LeftOut::default(),
        repeated: 0,
    };
    let how = CallOptions { keeps_blobs: true, ..CallOptions::default().with_limits(limits) };
    let totals = if wanted.loops == 0 {
        read_calls(reader, how, &mut player, sink)?
    } else {
        let mut looped = Looped::new(&mut player);
        let totals = read_calls(reader, how, &mut looped, sink)?;
        looped.finish(wanted.loops)?;
        totals
    };
    let Player { windows, left_out, repeated, .. } = player;
    Ok(Played { totals, repeated, sizes: windows.sizes(), notes: left_out.notes() })
}

/// Calls that were not repeated, by function and reason.
#[derive(Debug, Default)]
struct LeftOut {
    known: std::collections::BTreeMap<(String, &'static str), u64>,
    rest: u64,
}

impl LeftOut {
    fn add(&mut self, name: &str, why: &'static str) {
        let key = (name.to_owned(), why);
        if self.known.len() >= LEFT_OUT_MAX && !self.known.contains_key(&key) {
            self.rest += 1;
            return;
        }
        *self.known.entry(key).or_default() += 1;
    }

    fn notes(self) -> Vec<String> {
        let mut notes: Vec<String> = self
            .known
            .into_iter()
            .map(|((name, why), calls)| {
                format!("{name}: {calls} call{} left out: {why}", if calls == 1 { "" } else { "s" })
            })
            .collect();
        if self.rest > 0 {
            notes.push(format!("{} calls of other functions left out", self.rest));
        }
        notes
    }
}

struct Player<'o> {
    wanted: &'o Wanted,
    machine: &'o mut dyn Machine,
    /// Shared while a call is taken, which changes everything else here.
    dictionary: Rc<Dictionary>,
    rules: Rules,
    contexts: Contexts,
    windows: Windows,
    /// Threads for which EGL makes contexts of OpenGL instead of OpenGL ES.
    binds_gl: HashMap<u64, bool>,
    /// The context and drawable that are current in the machine.
    shown: Option<(u32, usize)>,
    frame: u64,
    /// The last call that is wanted was taken. Calls come in the order in which they return, so that its number alone says
    /// nothing of those before it.
    is_met: bool,
    left_out: LeftOut,
    repeated: u64,
}

impl CallVisitor for Player<'_> {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        self.dictionary = Rc::new(Dictionary::new(header.version));
        self.contexts = Contexts::new(header.version >= VERSION_THREADS);
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        // Between calls nobody else has it.
        if let Some(dictionary) = Rc::get_mut(&mut self.dictionary) {
            dictionary.define(definition);
        }
    }

    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        if self.is_done() {
            return Ok(());
        }
        let dictionary = Rc::clone(&self.dictionary);
        if self.machine.thread(call.thread) {
            self.shown = None;
        }
        self.take(call, &dictionary)
    }

    fn is_done(&self) -> bool {
        self.wanted.last_frame.is_some_and(|last| self.frame > last) || self.is_met || self.machine.is_done()
    }
}

impl Player<'_> {
    fn take(&mut self, call: &Call<'_>, dictionary: &Dictionary) -> Result<(), Error> {
        let Some(function) = dictionary.function(call.function) else {
            self.left_out.add("?", "its name was lost");
            return Ok(());
        };
        let flags = function.flags;
        let values = Values::new(call, dictionary);
        let frame = self.frame;
        self.is_met |= self.wanted.last_call == Some(call.number);
        self.frame += u64::from(flags.has(CallFlags::END_FRAME));
        self.repeat(call, function, frame, &values)?;
        let extent = self.windows.extent(self.windows.of_thread(call.thread));
        self.machine.done(&Moment { number: call.number, flags, frame, extent })
    }

    fn repeat(&mut self, call: &Call<'_>, function: &Named, frame: u64, values: &Values<'_>) -> Result<(), Error> {
        let rule = self.rules.of(call.function, function);
        if rule.binds_api && (self.binds_gl.len() < 1 << 14 || self.binds_gl.contains_key(&call.thread)) {
            self.binds_gl.insert(call.thread, values.integer(0) == Some(0x30a2));
        }
        if let Some(action) = rule.context {
            return self.take_context(call, function.name(), action, values);
        }
        let context = self.contexts.current(call.thread);
        if rule.shows_sizes {
            self.windows.take(rule.stem, function.name(), values, context, call.thread);
        }
        if !self.wanted.has(call.number, frame, function.flags) {
            return Ok(());
        }
        if function.flags.has(CallFlags::END_FRAME) {
            self.show(context, call.thread)?;
            self.repeated += 1;
            return self.machine.end_frame(call.number);
        }
        if rule.is_silent && !(rule.asks && self.machine.asks()) {
            return Ok(());
        }
        if call.is_incomplete {
            let name = rule.name.clone();
            return self.leave_out(call.number, &name, "it never returned");
        }
        // The context first: what the machine does for arguments is done in it.
        let wanted = (context, self.windows.of_thread(call.thread));
        let (shown, machine) = (&mut self.shown, &mut *self.machine);
        let done = rule.interpret(values, call.number, &mut |act| {
            if *shown != Some(wanted) {
                machine.make_current(wanted.0, wanted.1)?;
                *shown = Some(wanted);
            }
            match act {
                call::Act::Call(call) => machine.call(call),
                call::Act::Memory(change) => machine.memory(call.number, change),
            }
        });
        match done {
            Ok(()) => {
                self.repeated += 1;
                Ok(())
            }
            Err(Unfit::Failed(error)) => Err(error),
            Err(Unfit::Value(why)) => {
                let name = rule.name.clone();
                self.leave_out(call.number, &name, why)
            }
        }
    }

    /// Makes the context of a thread current in the machine.
    fn show(&mut self, context: u32, thread: u64) -> Result<(), Error> {
        let wanted = (context, self.windows.of_thread(thread));
        if self.shown == Some(wanted) {
            return Ok(());
        }
        self.shown = Some(wanted);
        self.machine.make_current(context, wanted.1)
    }

    fn take_context(
        &mut self,
        call: &Call<'_>,
        name: &[u8],
        action: (System, ContextVerb),
        values: &Values<'_>,
    ) -> Result<(), Error> {
        let changes =
            if call.is_incomplete { Vec::new() } else { self.contexts.take(action, values, call.thread, call.number) };
        let binds_gl = self.binds_gl.get(&call.thread).copied().unwrap_or(false);
        if let ContextVerb::MakeCurrent(_) = action.1 {
            self.windows.make_current(name, values, call.thread);
        }
        for change in changes {
            match change {
                Change::Created(context) => {
                    let row = self.contexts.get(context);
                    let mut asked = asked(row.system, name, values, binds_gl);
                    if row.created.is_none() {
                        // Its creation is not in the trace. With EGL it is most probably one of OpenGL ES.
                        asked = Asked { is_es: asked.is_es, ..Asked::default() };
                        asked.version.0 = if asked.is_es { 3 } else { 0 };
                    }
                    let group = row.group;
                    let before = self.contexts.all().get(1..context as usize).unwrap_or_default();
                    let share = before.iter().position(|other| other.group == group);
                    let share = share.and_then(|at| u32::try_from(at + 1).ok());
                    self.machine.new_context(&NewContext { context, share, asked })?;
                }
                Change::Current(Some(context)) => self.show(context, call.thread)?,
                Change::Joined { to, .. } => self.join(to)?,
                Change::Ended { context, .. } => {
                    if self.shown.is_some_and(|(shown, _)| shown == context) {
                        self.shown = None;
                    }
                    self.machine.end_context(context)?;
                }
                Change::Current(None) => {}
            }
        }
        self.repeated += 1;
        Ok(())
    }

    /// All contexts of a group share. Joining them again is harmless.
    fn join(&mut self, group: u32) -> Result<(), Error> {
        let of_group = |(at, context): (usize, &crate::tools::gl::contexts::Context)| {
            (context.group == group && at > 0 && !context.has_ended).then_some(at as u32)
        };
        let members: Vec<u32> = self.contexts.all().iter().enumerate().filter_map(of_group).collect();
        let Some((first, others)) = members.split_first() else { return Ok(()) };
        for other in others {
            self.machine.share_contexts(*first, *other)?;
        }
        Ok(())
    }

    fn leave_out(&mut self, number: u64, name: &str, why: &'static str) -> Result<(), Error> {
        self.left_out.add(name, why);
        self.machine.left_out(number, name, why)
    }
}
