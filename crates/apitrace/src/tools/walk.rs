//! Walks through a call's arguments in the order of its signature, and through their values, for outputs that have a
//! place for each.

use anytrace_core::Error;

use crate::tools::calls::Call;
use crate::tools::dictionary::{Dictionary, Named};
use crate::tools::flags::CallFlags;
use crate::tools::idle::{is_idle, may_be_idle};
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
    /// Which values of pairs are written.
    fn pair(&self) -> Pair;

    /// What stands before the arguments. The function is unknown where its definition was lost.
    fn head(&mut self, out: &mut Vec<u8>, call: &Call<'_>, function: Option<&Named>);

    /// What stands before an argument's value; the function as in [`Self::head`], or none of its arguments.
    fn label(&mut self, out: &mut Vec<u8>, slot: u32, index: u64, function: &Named);

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
        walk: &mut Walk,
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
    /// Index, place and event of each argument.
    arguments: Vec<(u64, usize, bool)>,
    levels: Vec<(Level, u64)>,
}

impl Walk {
    /// Writes a call.
    pub(crate) fn call<W: CallWriter>(
        &mut self,
        writer: &mut W,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        drain: Drain<'_>,
    ) -> Result<(), Error> {
        let mut flow = Flow { drain, may_drain: false, is_long: false };
        let known = dictionary.function(call.function);
        writer.head(out, call, known);
        let start = out.len();
        let nameless = Named::default();
        let function = known.unwrap_or(&nameless);
        let in_order = self.in_order(writer, out, call, function, dictionary, &mut flow)?;
        let mut rest = match in_order {
            Some(rest) => rest,
            None => {
                out.truncate(start);
                flow.may_drain = true;
                self.in_any_order(writer, out, call, function, dictionary, &mut flow)?
            }
        };
        flow.may_drain = true;
        rest.flags = call_flags(call, function, rest.wire_flags, dictionary);
        writer.tail(out, call, rest, self, dictionary, &mut flow)
    }

    /// Writes arguments that come in order, as nearly all do; `None` when they do not.
    #[inline]
    fn in_order<'c, W: CallWriter>(
        &mut self,
        writer: &mut W,
        out: &mut Vec<u8>,
        call: &Call<'c>,
        function: &Named,
        dictionary: &Dictionary,
        flow: &mut Flow<'_>,
    ) -> Result<Option<Rest<'c>>, Error> {
        let (mut rest, mut expected) = (Rest::default(), 0);
        for details in [call.enter, call.leave] {
            let mut wire = dictionary.wire(details);
            loop {
                match wire.detail() {
                    Detail::End => break,
                    Detail::Argument(index) if index == expected => {
                        writer.label(out, call.function, index, function);
                        expected += 1;
                        self.value(writer, out, &mut wire, dictionary, flow)?;
                        writer.after_argument(out);
                        if flow.is_long {
                            return Ok(None);
                        }
                    }
                    Detail::Argument(_) => return Ok(None),
                    other => note(&mut rest, other, &mut wire, dictionary),
                }
            }
        }
        if expected < function.count() {
            return Ok(None);
        }
        Ok(Some(rest))
    }

    /// Writes arguments that stand in any order: the last of each index counts.
    #[cold]
    fn in_any_order<'c, W: CallWriter>(
        &mut self,
        writer: &mut W,
        out: &mut Vec<u8>,
        call: &Call<'c>,
        function: &Named,
        dictionary: &Dictionary,
        flow: &mut Flow<'_>,
    ) -> Result<Rest<'c>, Error> {
        let mut rest = Rest::default();
        let mut arguments = std::mem::take(&mut self.arguments);
        arguments.clear();
        for (details, is_leave) in [(call.enter, false), (call.leave, true)] {
            let mut wire = dictionary.wire(details);
            loop {
                match wire.detail() {
                    Detail::End => break,
                    Detail::Argument(index) => {
                        arguments.push((index, details.len() - wire.rest().len(), is_leave));
                        wire.skip_value(&|id| dictionary.members(id));
                    }
                    other => note(&mut rest, other, &mut wire, dictionary),
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
            let end = (*index).min(function.count());
            missing(writer, out, expected..end, call.function, function, flow)?;
            expected = index.saturating_add(1);
            writer.label(out, call.function, *index, function);
            let details = if *is_leave { call.leave } else { call.enter };
            let mut wire = dictionary.wire(details.get(*at..).unwrap_or_default());
            self.value(writer, out, &mut wire, dictionary, flow)?;
            writer.after_argument(out);
        }
        self.arguments = arguments;
        missing(writer, out, expected..function.count(), call.function, function, flow)?;
        Ok(rest)
    }

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
        self.levels.clear();
        let mut next = Some(outermost);
        loop {
            if let Some(level) = next.take() {
                if wants == Pair::Both || !matches!(level, Level::Pair { .. }) {
                    writer.open(out, level, dictionary);
                }
                self.levels.push((level, 0));
            }
            let Some((level, at)) = self.levels.last_mut() else { return Ok(()) };
            let is_over = match level {
                Level::Array { left } => *left == 0,
                Level::Struct { id, next } => *next >= dictionary.members(*id),
                Level::Pair { met } => *met == 2,
            };
            // Cut values do not come here; a loop over a hostile count must end all the same.
            if is_over || wire.rest().is_empty() {
                let level = *level;
                self.levels.pop();
                if wants == Pair::Both || !matches!(level, Level::Pair { .. }) {
                    writer.close(out, level, dictionary);
                }
                if let Some((outer, _)) = self.levels.last()
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

fn missing<W: CallWriter>(
    writer: &mut W,
    out: &mut Vec<u8>,
    indexes: std::ops::Range<u64>,
    slot: u32,
    function: &Named,
    flow: &mut Flow<'_>,
) -> Result<(), Error> {
    for index in indexes {
        flow.make_room(out)?;
        writer.label(out, slot, index, function);
        writer.missing(out);
        writer.after_argument(out);
    }
    Ok(())
}

/// All flags of a call, as the format's own tools give them.
#[inline]
fn call_flags(call: &Call<'_>, function: &Named, wire_flags: Option<u64>, dictionary: &Dictionary) -> CallFlags {
    let mut flags = function.flags;
    if wire_flags.is_some_and(|flags| flags & 1 == 1) {
        flags = flags.with(CallFlags::FAKE);
    }
    if call.is_incomplete {
        flags = flags.with(CallFlags::INCOMPLETE);
    }
    // All of its name have the flag, so the name itself is looked at only for them.
    if flags.has(CallFlags::NO_SIDE_EFFECTS)
        && may_be_idle(function)
        && is_idle(call, dictionary.has_enum_values(), dictionary)
    {
        flags = flags.with(CallFlags::VERBOSE);
    }
    flags
}
