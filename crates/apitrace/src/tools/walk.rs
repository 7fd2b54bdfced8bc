//! Walks through a call's arguments in the order of its signature, and through their values, for outputs that have a
//! place for each.

use anytrace_core::Error;

use crate::tools::calls::Call;
use crate::tools::dictionary::{Dictionary, Named};
use crate::tools::flags::CallFlags;
use crate::tools::idle::{is_idle, may_be_idle};
use crate::tools::labels::{LabelCache, Labelling, Labels};
use crate::tools::wire::{Detail, Value, Wire};
use crate::tools::workers::{Drain, TEXT_BYTES_MAX};

/// What is written of a pair of values, one for people and one for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pair {
    Human,
    Machine,
    Both,
}

/// What holds other values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level {
    /// An array, and how many values are to come.
    Array { left: u64 },
    /// A structure and its next member.
    Struct { id: u64, next: u64 },
    /// A pair; how many of its values were met.
    Pair { met: u8 },
}

/// What is known of a call besides its arguments.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rest<'a> {
    /// Flags of its function and its own.
    pub(crate) flags: CallFlags,
    /// The flags as they stand on the wire.
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

    /// What stands before names and arguments.
    fn labelling(&self) -> &Self::Names;

    /// What stands before the function's name.
    fn head(&mut self, out: &mut Vec<u8>, call: &Call<'_>);

    /// What stands for a function whose definition was lost.
    fn nameless(&self, out: &mut Vec<u8>);

    /// What stands for an argument's value that is not there.
    fn missing(&self, out: &mut Vec<u8>);

    /// What stands behind an argument's value.
    fn after_argument(&self, out: &mut Vec<u8>);

    /// A value that holds no others.
    fn leaf(
        &self,
        out: &mut Vec<u8>,
        value: Value<'_>,
        dictionary: &Dictionary,
        flow: &mut Flow<'_>,
    ) -> Result<(), Error>;

    /// A value that holds others begins.
    fn open(&self, out: &mut Vec<u8>, level: Level, dictionary: &Dictionary);

    /// One of those it holds comes; `at` counts them.
    fn before(&self, out: &mut Vec<u8>, level: Level, at: u64, dictionary: &Dictionary);

    /// It is written.
    fn after(&self, out: &mut Vec<u8>, level: Level);

    /// A value that holds others ends.
    fn close(&self, out: &mut Vec<u8>, level: Level, dictionary: &Dictionary);

    /// What stands behind the arguments.
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

/// Where text goes that grows too long.
pub(crate) struct Flow<'a> {
    drain: Drain<'a>,
    /// Nothing of the text will be taken back.
    may_drain: bool,
    /// The text grew too long to be taken back.
    is_long: bool,
}

impl Flow<'_> {
    /// Makes room for more text; false when the call must be begun anew for that.
    #[inline]
    pub(crate) fn make_room(&mut self, out: &mut Vec<u8>) -> Result<bool, Error> {
        if out.len() > TEXT_BYTES_MAX {
            if !self.may_drain {
                self.is_long = true;
                return Ok(false);
            }
            (self.drain)(out)?;
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

/// Index of an argument, where in its event the value stands, and whether that is the leave.
type Place = (u64, usize, bool);

/// What is open around the value to come, and how many values of each were met.
#[derive(Debug, Default)]
pub(crate) struct Levels(Vec<(Level, u64)>);

/// A call and what is known of it.
struct Known<'k, 'c> {
    call: &'k Call<'c>,
    function: &'k Named,
    labels: &'k Labels,
    dictionary: &'k Dictionary,
}

impl Known<'_, '_> {
    /// What stands before an argument's value.
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
        drain: Drain<'_>,
    ) -> Result<(), Error> {
        let mut flow = Flow { drain, may_drain: false, is_long: false };
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
                flow.may_drain = true;
                known.in_any_order(writer, out, arguments, levels, &mut flow)?
            }
        };
        flow.may_drain = true;
        rest.flags = known.flags(rest.wire_flags);
        writer.tail(out, call, rest, levels, dictionary, &mut flow)
    }
}

impl<'c> Known<'_, 'c> {
    /// Writes arguments that come in order, as nearly all do; `None` when they do not.
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

    /// Writes arguments that stand in any order: the last of each index counts.
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
            // Indexes beyond the signature are a breach: nothing stands for those between.
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

    /// All flags of the call, as the format's own tools give them.
    #[inline]
    fn flags(&self, wire_flags: Option<u64>) -> CallFlags {
        let mut flags = self.function.flags;
        if wire_flags.is_some_and(|flags| flags & 1 == 1) {
            flags = flags.with(CallFlags::FAKE);
        }
        if self.call.is_incomplete {
            flags = flags.with(CallFlags::INCOMPLETE);
        }
        // The function has this flag, so that the name is looked at only where it may be the one.
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
    /// Writes a value and all it holds.
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

    /// Writes what holds other values, without recursion: programs may nest as deep as they like.
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
            // Cut values do not come here; a loop over a hostile count must end all the same.
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

/// Takes note of a detail that is no argument.
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
            // Fake once is fake for good, as in the format's own tool; the other bits are the last ones.
            rest.wire_flags = Some(number | rest.wire_flags.unwrap_or(0) & 1);
        }
        Detail::Thread(_) | Detail::Argument(_) | Detail::End => {}
    }
}
