//! Objects that a program makes and never deletes.
//!
//! All kinds of OpenGL objects, per share group and context. An object is reported when its owner is destroyed (its
//! context, or the last context of its group) or when the trace ends. [`peer`] reproduces `apitrace leaks`.

mod book;
pub mod peer;
mod render;

use anytrace_core::{Error, Sink};

use crate::lanes::calls::{Call, CallOptions, CallVisitor, read_calls};
use crate::lanes::dictionary::{Definition, Dictionary, Frame};
use crate::rules;
use crate::tools::gl::contexts::{Context, ContextVerb, System, context_action};
use crate::tools::gl::kind::Kind;
use crate::tools::gl::lifecycle::{Action, action};
use crate::tools::gl::values::Values;
use crate::wire::reader::{Reader, Totals};
use crate::wire::record::{Header, Space, VERSION_THREADS};
use crate::wire::visitor::RAW;

use book::Book;

pub use render::{Json, Text};

/// An object, or several in a row, that was not deleted.
#[derive(Debug, Clone)]
pub struct Leak<'a> {
    /// Its kind.
    pub kind: Kind,
    /// Its name, or the first.
    pub name: u64,
    /// How many consecutive names: more than 1 for display lists and the like.
    pub count: u64,
    /// The call that made it.
    pub call: u64,
    /// The function of that call.
    pub function: &'a [u8],
    /// It was made by being bound, not by a function that makes names.
    pub was_bound: bool,
    /// The thread of that call.
    pub thread: u64,
    /// The context of that call.
    pub context: &'a Context,
    /// The call that destroyed its context, or the last of its group; `None` if the trace ended first.
    pub until: Option<u64>,
    /// Ids of the stack frames of the call that made it, innermost first.
    pub frames: &'a [u64],
    /// For programs: shaders deleted while attached, which live as long, and the calls that deleted them.
    pub keeps: &'a [(u64, u64)],
    /// What ids denote.
    pub dictionary: &'a Dictionary,
}

impl<'a> Leak<'a> {
    /// The stack of the call that made it, innermost first.
    pub fn stack(&self) -> impl Iterator<Item = Frame<'a>> {
        self.frames.iter().map(|id| self.dictionary.frame(*id))
    }
}

/// Totals of [`find_leaks`].
#[derive(Debug, Clone, Default)]
pub struct LeakSummary {
    /// What was read.
    pub totals: Totals,
    /// Objects by kind, in the order of [`Kind::ALL`]. Consecutive objects are counted individually.
    pub by_kind: [u64; Kind::ALL.len()],
    /// The contexts of the trace; the first represents calls whose context is not known.
    pub contexts: Vec<Context>,
}

impl LeakSummary {
    /// The number of leaks.
    pub fn count(&self) -> u64 {
        self.by_kind.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// Takes leaks as they are found.
pub type LeakSink<'a> = &'a mut dyn FnMut(&Leak<'_>) -> Result<(), Error>;

/// Finds all objects that are made and not deleted, in the order in which their contexts end, then by call.
///
/// Memory grows with the number of live objects, up to 450,000. More are reported to the sink and not followed.
///
/// # Errors
/// I/O, limits, and what `found` or the sink return.
pub fn find_leaks(reader: &mut Reader, found: LeakSink<'_>, sink: &mut dyn Sink) -> Result<LeakSummary, Error> {
    let options = CallOptions::default().with_limits(&reader.limits);
    let mut finder = Finder {
        dictionary: Dictionary::default(),
        roles: Vec::new(),
        book: Book::new(true),
        found,
        is_full: false,
        counts: [0; Kind::ALL.len()],
    };
    let totals = read_calls(reader, options, &mut finder, sink)?;
    let last = finder.book.end_all();
    finder.report(&last)?;
    let contexts = finder.book.contexts().all().to_vec();
    Ok(LeakSummary { totals, by_kind: finder.counts, contexts })
}

/// How a function affects objects.
#[derive(Debug, Clone, Copy)]
enum Role {
    Object(Action),
    Context((System, ContextVerb)),
}

struct Finder<'f> {
    dictionary: Dictionary,
    /// By slot of the function.
    roles: Vec<Option<Role>>,
    book: Book,
    found: LeakSink<'f>,
    is_full: bool,
    counts: [u64; Kind::ALL.len()],
}

impl Finder<'_> {
    fn report(&mut self, ended: &[book::Ended]) -> Result<(), Error> {
        for one in ended {
            let entry = &one.entry;
            if let Some(count) = self.counts.get_mut(entry.kind.index()) {
                *count = count.saturating_add(one.count);
            }
            let leak = Leak {
                kind: entry.kind,
                name: one.name,
                count: one.count,
                call: entry.call,
                function: self.dictionary.function(entry.function).map_or(b"?", |function| function.name()),
                was_bound: entry.was_bound,
                thread: entry.thread,
                context: self.book.contexts().get(entry.context),
                until: one.until,
                frames: self.book.stack(entry.stack),
                keeps: &one.keeps,
                dictionary: &self.dictionary,
            };
            (self.found)(&leak)?;
        }
        Ok(())
    }
}

impl CallVisitor for Finder<'_> {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        self.dictionary = Dictionary::new(header.version);
        self.book = Book::new(header.version >= VERSION_THREADS);
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        self.dictionary.define(definition);
        if definition.space != Space::Function {
            return;
        }
        let at = definition.slot as usize;
        let name = self.dictionary.function(definition.slot).map_or(&b""[..], |function| function.name());
        let role = action(name).map(Role::Object).or_else(|| context_action(name).map(Role::Context));
        if self.roles.len() <= at {
            self.roles.resize(at + 1, None);
        }
        if let Some(place) = self.roles.get_mut(at) {
            *place = role;
        }
    }

    #[inline]
    fn call(&mut self, call: &Call<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        let Some(role) = self.roles.get(call.function as usize).copied().flatten() else { return Ok(()) };
        let values = Values::new(call, &self.dictionary);
        match role {
            Role::Object(action) => self.book.take(&action, call, &values),
            // A call that was never left may have had no effect.
            Role::Context(_) if call.is_incomplete => {}
            Role::Context(action) => {
                let ended = self.book.take_context(action, call, &values);
                self.report(&ended)?;
            }
        }
        if self.book.is_full() && !std::mem::replace(&mut self.is_full, true) {
            sink.report(rules::OBJECT_LIMIT.at(call.offset).within(RAW).record(call.seq))?;
        }
        Ok(())
    }
}
