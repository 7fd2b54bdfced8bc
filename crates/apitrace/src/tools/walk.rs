//! Visits a call's arguments in the order of its signature, and their values, for outputs with a slot for each
//! argument.

use anytrace_core::Error;

use crate::tools::calls::Call;
use crate::tools::dictionary::{Dictionary, Named};
use crate::tools::flags::CallFlags;
use crate::tools::idle::{is_idle, may_be_idle};
use crate::tools::labels::{LabelCache, Labelling, Labels};
use crate::tools::wire::{Detail, Value, Wire};
use crate::tools::workers::{Flush, TEXT_BYTES_MAX};

/// Which values of a human and machine pair are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pair {
    Human,
    Machine,
    Both,
}

/// A compound value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level {
    /// An array, and how many values follow.
    Array { left: u64 },
    /// A structure and its next member.
    Struct { id: u64, next: u64 },
    /// A pair; how many of its values were written.
    Pair { met: u8 },
}

/// What is known about a call besides its arguments.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rest<'a> {
    /// Flags of its function and its own.
    pub(crate) flags: CallFlags,
    /// The flags on the wire.
    pub(crate) wire_flags: Option<u64>,
    /// Its return value.
    pub(crate) returned: Option<Wire<'a>>,
    /// The frames of its backtrace and how many there are.
    pub(crate) stack: Option<(Wire<'a>, u64)>,
}

/// Writes a call, part by part.
pub(crate) trait CallWriter {
    type Names: Labelling;

    /// Which values of pairs are written.
    fn pair(&self) -> Pair;

    /// The texts before names and arguments.
    fn labelling(&self) -> &Self::Names;

    /// Writes what precedes the function's name.
    fn head(&mut self, out: &mut Vec<u8>, call: &Call<'_>);

    /// Writes a placeholder for a function whose definition was lost.
    fn nameless(&self, out: &mut Vec<u8>);

    /// Writes a placeholder for an argument's missing value.
    fn missing(&self, out: &mut Vec<u8>);

    /// Writes what follows an argument's value.
    fn after_argument(&self, out: &mut Vec<u8>);

    /// Writes a simple value.
    fn leaf(
        &self,
        out: &mut Vec<u8>,
        value: Value<'_>,
        dictionary: &Dictionary,
        flow: &mut Flow<'_>,
    ) -> Result<(), Error>;

    /// A compound value begins.
    fn open(&self, out: &mut Vec<u8>, level: Level, dictionary: &Dictionary);

    /// One of its elements follows; `at` counts them.
    fn before(&self, out: &mut Vec<u8>, level: Level, at: u64, dictionary: &Dictionary);

    /// An element was written.
    fn after(&self, out: &mut Vec<u8>, level: Level);

    /// A compound value ends.
    fn close(&self, out: &mut Vec<u8>, level: Level, dictionary: &Dictionary);

    /// Writes what follows the arguments.
    fn tail(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        rest: Rest<'_>,
        levels: &mut Levels,
        dictionary: &Dictionary,
        flow: &mut Flow<'_>,
    ) -> Result<(), Error>;
}

/// How text that grows too long is flushed.
pub(crate) struct Flow<'a> {
    flush: Flush<'a>,
    /// None of the text will be taken back.
    may_flush: bool,
    /// The text grew too long to be taken back.
    is_long: bool,
}

impl Flow<'_> {
    /// Makes room for more text. Returns false if the call must be restarted for that.
    #[inline]
    pub(crate) fn make_room(&mut self, out: &mut Vec<u8>) -> Result<bool, Error> {
        if out.len() > TEXT_BYTES_MAX {
            if !self.may_flush {
                self.is_long = true;
                return Ok(false);
            }
            (self.flush)(out)?;
        }
        Ok(true)
    }
}

/// Memory for walking, kept from call to call.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    labels: LabelCache,
    arguments: Vec<Place>,
    levels: Levels,
}

/// Index of an argument, where in its event the value is, and whether that event is the leave.
type Place = (u64, usize, bool);

/// What is open around the next value, and how many values of each were written.
#[derive(Debug, Default)]
pub(crate) struct Levels(Vec<(Level, u64)>);

/// A call and what is known about it.
struct Known<'k, 'c> {
    call: &'k Call<'c>,
    function: &'k Named,
    labels: &'k Labels,
    dictionary: &'k Dictionary,
}

impl Known<'_, '_> {
    /// Writes what precedes an argument's value.
    #[inline]
    fn label<W: CallWriter>(&self, writer: &W, out: &mut Vec<u8>, index: u64) {
        match self.labels.argument(index) {
            Some(label) => out.extend_from_slice(label),
            None => writer.labelling().push_label(out, index, self.function),
        }
    }
}

impl Walk {
    /// Writes a call.
    #[inline]
    pub(crate) fn call<W: CallWriter>(
        &mut self,
        writer: &mut W,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        flush: Flush<'_>,
    ) -> Result<(), Error> {
        let mut flow = Flow { flush, may_flush: false, is_long: false };
        let Self { labels, arguments, levels } = self;
        writer.head(out, call);
        let (nameless, unlabelled) = (Named::default(), Labels::default());
        let known = match dictionary.function(call.function) {
            Some(function) => {
                let labels = labels.get(call.function, function, writer.labelling());
                out.extend_from_slice(labels.head());
                Known { call, function, labels, dictionary }
            }
            None => {
                writer.nameless(out);
                Known { call, function: &nameless, labels: &unlabelled, dictionary }
            }
        };
        let start = out.len();
        let mut rest = match known.in_order(writer, out, levels, &mut flow)? {
            Some(rest) => rest,
            None => {
                out.truncate(start);
                flow.may_flush = true;
                known.in_any_order(writer, out, arguments, levels, &mut flow)?
            }
        };
        flow.may_flush = true;
        rest.flags = known.flags(rest.wire_flags);
        writer.tail(out, call, rest, levels, dictionary, &mut flow)
    }
}

impl<'c> Known<'_, 'c> {
    /// Writes arguments that come in order, as nearly all do; returns `None` if they do not.
    #[inline]
    fn in_order<W: CallWriter>(
        &self,
        writer: &W,
        out: &mut Vec<u8>,
        levels: &mut Levels,
        flow: &mut Flow<'_>,
    ) -> Result<Option<Rest<'c>>, Error> {
        let (mut rest, mut expected) = (Rest::default(), 0);
        for details in [self.call.enter, self.call.leave] {
            let mut wire = self.dictionary.wire(details);
            loop {
                match wire.detail() {
                    Detail::End => break,
                    Detail::Argument(index) if index == expected => {
                        self.label(writer, out, index);
                        expected += 1;
                        levels.value(writer, out, &mut wire, self.dictionary, flow)?;
                        writer.after_argument(out);
                        if flow.is_long {
                            return Ok(None);
                        }
                    }
                    Detail::Argument(_) => return Ok(None),
                    other => note(&mut rest, other, &mut wire, self.dictionary),
                }
            }
        }
        if expected < self.function.count() {
            return Ok(None);
        }
        Ok(Some(rest))
    }

    /// Writes arguments in any order: the last one of each index counts.
    #[cold]
    fn in_any_order<W: CallWriter>(
        &self,
        writer: &W,
        out: &mut Vec<u8>,
        arguments: &mut Vec<Place>,
        levels: &mut Levels,
        flow: &mut Flow<'_>,
    ) -> Result<Rest<'c>, Error> {
        let mut rest = Rest::default();
        arguments.clear();
        for (details, is_leave) in [(self.call.enter, false), (self.call.leave, true)] {
            let mut wire = self.dictionary.wire(details);
            loop {
                match wire.detail() {
                    Detail::End => break,
                    Detail::Argument(index) => {
                        arguments.push((index, details.len() - wire.rest().len(), is_leave));
                        wire.skip_value(&|id| self.dictionary.members(id));
                    }
                    other => note(&mut rest, other, &mut wire, self.dictionary),
                }
            }
        }
        // The sort is stable: of equal indexes the last in the call stays last.
        arguments.sort_by_key(|(index, ..)| *index);
        let mut expected = 0;
        for (place, (index, at, is_leave)) in arguments.iter().enumerate() {
            if arguments.get(place + 1).is_some_and(|next| next.0 == *index) {
                continue;
            }
            // Indexes beyond the signature break a rule: nothing is written for those in between.
            self.missing(writer, out, expected..(*index).min(self.function.count()), flow)?;
            expected = index.saturating_add(1);
            self.label(writer, out, *index);
            let details = if *is_leave { self.call.leave } else { self.call.enter };
            let mut wire = self.dictionary.wire(details.get(*at..).unwrap_or_default());
            levels.value(writer, out, &mut wire, self.dictionary, flow)?;
            writer.after_argument(out);
        }
        self.missing(writer, out, expected..self.function.count(), flow)?;
        Ok(rest)
    }

    fn missing<W: CallWriter>(
        &self,
        writer: &W,
        out: &mut Vec<u8>,
        indexes: std::ops::Range<u64>,
        flow: &mut Flow<'_>,
    ) -> Result<(), Error> {
        for index in indexes {
            flow.make_room(out)?;
            self.label(writer, out, index);
            writer.missing(out);
            writer.after_argument(out);
        }
        Ok(())
    }

    /// All flags of the call, as computed by the format's own tools.
    #[inline]
    fn flags(&self, wire_flags: Option<u64>) -> CallFlags {
        let mut flags = self.function.flags;
        if wire_flags.is_some_and(|flags| flags & 1 == 1) {
            flags = flags.with(CallFlags::FAKE);
        }
        if self.call.is_incomplete {
            flags = flags.with(CallFlags::INCOMPLETE);
        }
        // `glGetError` has this flag, so the name is compared only for functions that have it.
        if flags.has(CallFlags::NO_SIDE_EFFECTS)
            && may_be_idle(self.function)
            && is_idle(self.call, self.dictionary.has_enum_values(), self.dictionary)
        {
            flags = flags.with(CallFlags::VERBOSE);
        }
        flags
    }
}

impl Levels {
    /// Writes a value and everything nested in it.
    #[inline]
    pub(crate) fn value<W: CallWriter>(
        &mut self,
        writer: &W,
        out: &mut Vec<u8>,
        wire: &mut Wire<'_>,
        dictionary: &Dictionary,
        flow: &mut Flow<'_>,
    ) -> Result<(), Error> {
        match level_of(wire.value()) {
            Err(value) => writer.leaf(out, value, dictionary, flow),
            Ok(level) => self.nested(writer, out, wire, level, dictionary, flow),
        }
    }

    /// Writes a compound value, without recursion: nesting has no limit.
    fn nested<W: CallWriter>(
        &mut self,
        writer: &W,
        out: &mut Vec<u8>,
        wire: &mut Wire<'_>,
        outermost: Level,
        dictionary: &Dictionary,
        flow: &mut Flow<'_>,
    ) -> Result<(), Error> {
        let wants = writer.pair();
        self.0.clear();
        let mut next = Some(outermost);
        loop {
            if let Some(level) = next.take() {
                if wants == Pair::Both || !matches!(level, Level::Pair { .. }) {
                    writer.open(out, level, dictionary);
                }
                self.0.push((level, 0));
            }
            let Some((level, at)) = self.0.last_mut() else { return Ok(()) };
            let is_over = match level {
                Level::Array { left } => *left == 0,
                Level::Struct { id, next } => *next >= dictionary.members(*id),
                Level::Pair { met } => *met == 2,
            };
            // Cut values do not get here, but a loop over a hostile count must end regardless.
            if is_over || wire.rest().is_empty() {
                let level = *level;
                self.0.pop();
                if wants == Pair::Both || !matches!(level, Level::Pair { .. }) {
                    writer.close(out, level, dictionary);
                }
                if let Some((outer, _)) = self.0.last()
                    && (wants == Pair::Both || !matches!(outer, Level::Pair { .. }))
                {
                    writer.after(out, *outer);
                }
                continue;
            }
            if let Level::Pair { met } = level
                && wants != Pair::Both
            {
                *met += 1;
                if (*met == 1) != (wants == Pair::Human) {
                    wire.skip_value(&|id| dictionary.members(id));
                    continue;
                }
            } else {
                writer.before(out, *level, *at, dictionary);
                *at += 1;
                match level {
                    Level::Array { left } => *left -= 1,
                    Level::Struct { next, .. } => *next += 1,
                    Level::Pair { met } => *met += 1,
                }
            }
            if !flow.make_room(out)? {
                return Ok(());
            }
            match level_of(wire.value()) {
                Ok(inner) => next = Some(inner),
                Err(value) => {
                    let outer = *level;
                    writer.leaf(out, value, dictionary, flow)?;
                    if wants == Pair::Both || !matches!(outer, Level::Pair { .. }) {
                        writer.after(out, outer);
                    }
                }
            }
        }
    }
}

#[inline]
fn level_of(value: Value<'_>) -> Result<Level, Value<'_>> {
    match value {
        Value::Array(left) => Ok(Level::Array { left }),
        Value::Struct(id) => Ok(Level::Struct { id, next: 0 }),
        Value::Repr => Ok(Level::Pair { met: 0 }),
        leaf => Err(leaf),
    }
}

/// Records a detail that is not an argument.
fn note<'c>(rest: &mut Rest<'c>, detail: Detail, wire: &mut Wire<'c>, dictionary: &Dictionary) {
    match detail {
        Detail::Return => {
            rest.returned = Some(*wire);
            wire.skip_value(&|id| dictionary.members(id));
        }
        Detail::Backtrace(count) => {
            rest.stack = Some((*wire, count));
            for _ in 0..count {
                if wire.rest().is_empty() {
                    break;
                }
                wire.uint();
            }
        }
        Detail::Flags(number) => {
            // Once set, the fake bit stays, as in the format's own tool. The other bits are those of the last flags.
            rest.wire_flags = Some(number | rest.wire_flags.unwrap_or(0) & 1);
        }
        Detail::Thread(_) | Detail::Argument(_) | Detail::End => {}
    }
}
