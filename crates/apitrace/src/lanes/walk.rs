//! Visits a call's arguments in the order of its signature, and their values, for outputs with a slot for each
//! argument.

use anytrace_core::Error;

use crate::lanes::calls::Call;
use crate::lanes::dictionary::{Dictionary, Named};
use crate::lanes::flags::CallFlags;
use crate::lanes::formatter::{Flush, TEXT_BYTES_MAX};
use crate::lanes::idle::{is_idle, may_be_idle};
use crate::lanes::labels::{LabelCache, Labeling, Labels};
use crate::lanes::wire::{Detail, Value, Wire};
use crate::wire::values::{Source, ValueWriter};

/// Which values of a human and machine pair are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pair {
    Human,
    Machine,
    Both,
}

/// Values of assembled calls.
pub(crate) enum Calls {}

impl Source for Calls {
    type Value<'a> = Value<'a>;
    type Names = Dictionary;
    type Flow<'a> = Flow<'a>;
}

/// What is known about a call besides its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rest<'a> {
    /// Its function.
    pub(crate) function: &'a Named,
    /// The flags on the wire.
    pub(crate) wire_flags: Option<u64>,
    /// Its return value.
    pub(crate) returned: Option<Wire<'a>>,
    /// The frames of its backtrace and how many there are.
    pub(crate) stack: Option<(Wire<'a>, u64)>,
}

/// Writes a call, part by part.
pub(crate) trait CallWriter: ValueWriter<Calls> {
    type Names: Labeling;

    /// Which values of pairs are written.
    fn pair(&self) -> Pair;

    /// The texts before names and arguments.
    fn labeling(&self) -> &Self::Names;

    /// Writes what precedes the function's name.
    fn head(&mut self, out: &mut Vec<u8>, call: &Call<'_>);

    /// Writes a placeholder for a function whose definition was lost.
    fn nameless(&self, out: &mut Vec<u8>);

    /// The arguments written so far were taken back.
    fn restart(&mut self) {}

    /// Writes a placeholder for an argument's missing value.
    fn missing(&self, out: &mut Vec<u8>);

    /// Writes what follows an argument's value.
    fn after_argument(&self, out: &mut Vec<u8>);

    /// True if the next element of this level is not shown. [`ValueWriter::before`] was called for it.
    #[inline]
    fn omits(&self, level: &Self::Level, next: &Wire<'_>) -> bool {
        let _ = (level, next);
        false
    }

    /// Writes a structure, inside of `outer`, as a simple value and moves past its members, or returns false.
    #[inline]
    fn compact(
        &mut self,
        out: &mut Vec<u8>,
        id: u64,
        outer: Option<&Self::Level>,
        members: &mut Wire<'_>,
        dictionary: &Dictionary,
    ) -> bool {
        let _ = (out, id, outer, members, dictionary);
        false
    }

    /// Writes what follows the arguments.
    fn tail(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        rest: Rest<'_>,
        levels: &mut Levels<Self::Level>,
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
#[derive(Debug)]
pub(crate) struct Walk<L> {
    labels: LabelCache,
    arguments: Vec<Place>,
    levels: Levels<L>,
}

impl<L> Default for Walk<L> {
    fn default() -> Self {
        Self { labels: LabelCache::default(), arguments: Vec::new(), levels: Levels::default() }
    }
}

/// Where an argument of a call is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    index: u64,
    /// Where in its event the value is.
    at: usize,
    is_leave: bool,
}

impl Place {
    /// The argument's index.
    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    /// The argument's value.
    pub(crate) fn wire<'c>(&self, call: &Call<'c>, dictionary: &Dictionary) -> Wire<'c> {
        let details = if self.is_leave { call.leave } else { call.enter };
        dictionary.wire(details.get(self.at..).unwrap_or_default())
    }
}

/// Finds the arguments of a call, by index; of those with the same index the last one counts. Returns the rest.
pub(crate) fn note_details<'k>(
    call: &Call<'k>,
    function: &'k Named,
    dictionary: &Dictionary,
    arguments: &mut Vec<Place>,
) -> Rest<'k> {
    let mut rest = Rest::new(function);
    arguments.clear();
    for (details, is_leave) in [(call.enter, false), (call.leave, true)] {
        let mut wire = dictionary.wire(details);
        loop {
            match wire.detail() {
                Detail::End => break,
                Detail::Argument(index) => {
                    arguments.push(Place { index, at: details.len() - wire.rest().len(), is_leave });
                    wire.skip_value(&|id| dictionary.members(id));
                }
                other => note(&mut rest, other, &mut wire, dictionary),
            }
        }
    }
    // The sort is stable: of equal indexes the last in the call stays last.
    arguments.sort_by_key(|place| place.index);
    rest
}

/// A compound value that is open.
#[derive(Debug)]
struct Open<L> {
    level: L,
    /// How many of its elements were read.
    at: u64,
    /// How many follow.
    left: u64,
    /// How many machine values, which are not shown, follow it.
    unshown: u64,
}

/// What is open around the next value.
#[derive(Debug)]
pub(crate) struct Levels<L>(Vec<Open<L>>);

impl<L> Default for Levels<L> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

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
            None => writer.labeling().push_label(out, index, self.function),
        }
    }
}

impl<L: Copy> Walk<L> {
    /// Writes a call.
    #[inline]
    pub(crate) fn call<W: CallWriter + ValueWriter<Calls, Level = L>>(
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
        let (nameless, unlabeled) = (Named::default(), Labels::default());
        let function = dictionary.function(call.function);
        let known = match function {
            Some(function) => {
                let labels = labels.get(call.function, function, writer.labeling());
                out.extend_from_slice(labels.head());
                Known { call, function, labels, dictionary }
            }
            None => {
                writer.nameless(out);
                Known { call, function: &nameless, labels: &unlabeled, dictionary }
            }
        };
        let start = out.len();
        let in_order = if function.is_some() { known.in_order(writer, out, levels, &mut flow)? } else { None };
        flow.may_flush = true;
        let rest = match in_order {
            Some(rest) => rest,
            None => {
                out.truncate(start);
                writer.restart();
                known.in_any_order(writer, out, arguments, levels, &mut flow)?
            }
        };
        writer.tail(out, call, rest, levels, dictionary, &mut flow)
    }

    /// Writes a value. A text that grows too long ends early; then it returns true.
    pub(crate) fn value<W: CallWriter + ValueWriter<Calls, Level = L>>(
        &mut self,
        writer: &mut W,
        out: &mut Vec<u8>,
        wire: &mut Wire<'_>,
        dictionary: &Dictionary,
    ) -> Result<bool, Error> {
        let flow = &mut Flow { flush: &mut |_| Ok(()), may_flush: false, is_long: false };
        self.levels.value(writer, out, wire, dictionary, flow)?;
        Ok(flow.is_long)
    }
}

impl<'k> Known<'k, '_> {
    /// Writes arguments that come in order, as nearly all do; returns `None` if they do not.
    #[inline]
    fn in_order<W: CallWriter>(
        &self,
        writer: &mut W,
        out: &mut Vec<u8>,
        levels: &mut Levels<W::Level>,
        flow: &mut Flow<'_>,
    ) -> Result<Option<Rest<'k>>, Error> {
        let (mut rest, mut expected) = (Rest::new(self.function), 0);
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
        self.missing(writer, out, expected..self.function.count(), flow)?;
        Ok((!flow.is_long).then_some(rest))
    }

    /// Writes arguments in any order: the last one of each index counts.
    #[cold]
    fn in_any_order<W: CallWriter>(
        &self,
        writer: &mut W,
        out: &mut Vec<u8>,
        arguments: &mut Vec<Place>,
        levels: &mut Levels<W::Level>,
        flow: &mut Flow<'_>,
    ) -> Result<Rest<'k>, Error> {
        let rest = note_details(self.call, self.function, self.dictionary, arguments);
        let mut expected = 0;
        for (at, place) in arguments.iter().enumerate() {
            let index = place.index;
            if arguments.get(at + 1).is_some_and(|next| next.index == index) {
                continue;
            }
            // Indexes beyond the signature break a rule: nothing is written for those in between.
            self.missing(writer, out, expected..index.min(self.function.count()), flow)?;
            expected = index.saturating_add(1);
            self.label(writer, out, index);
            let mut wire = place.wire(self.call, self.dictionary);
            levels.value(writer, out, &mut wire, self.dictionary, flow)?;
            writer.after_argument(out);
        }
        self.missing(writer, out, expected..self.function.count(), flow)?;
        Ok(rest)
    }

    fn missing<W: CallWriter>(
        &self,
        writer: &mut W,
        out: &mut Vec<u8>,
        indexes: std::ops::Range<u64>,
        flow: &mut Flow<'_>,
    ) -> Result<(), Error> {
        for index in indexes {
            if !flow.make_room(out)? {
                break;
            }
            self.label(writer, out, index);
            writer.missing(out);
            writer.after_argument(out);
        }
        Ok(())
    }
}

impl<'a> Rest<'a> {
    fn new(function: &'a Named) -> Self {
        Self { function, wire_flags: None, returned: None, stack: None }
    }

    /// Flags of the function, and whether the tracer inserted the call.
    #[inline]
    pub(crate) fn flags(&self) -> CallFlags {
        let is_fake = self.wire_flags.is_some_and(|flags| flags & 1 == 1);
        if is_fake { self.function.flags.with(CallFlags::FAKE) } else { self.function.flags }
    }

    /// All flags of the call, as computed by the format's tools.
    #[inline]
    pub(crate) fn all_flags(&self, call: &Call<'_>, dictionary: &Dictionary) -> CallFlags {
        let mut flags = self.flags();
        if call.is_incomplete {
            flags = flags.with(CallFlags::INCOMPLETE);
        }
        // `glGetError` has this flag, so the name is compared only for functions that have it.
        if flags.has(CallFlags::NO_SIDE_EFFECTS)
            && may_be_idle(self.function)
            && is_idle(call, dictionary.has_enum_values(), dictionary)
        {
            flags = flags.with(CallFlags::VERBOSE);
        }
        flags
    }
}

impl<L: Copy> Levels<L> {
    /// Writes a value and everything nested in it.
    #[inline]
    pub(crate) fn value<W: CallWriter + ValueWriter<Calls, Level = L>>(
        &mut self,
        writer: &mut W,
        out: &mut Vec<u8>,
        wire: &mut Wire<'_>,
        dictionary: &Dictionary,
        flow: &mut Flow<'_>,
    ) -> Result<(), Error> {
        match wire.value() {
            value @ (Value::Array(_) | Value::Struct(_) | Value::Repr) => {
                self.nested(writer, out, wire, value, dictionary, flow)
            }
            value => writer.leaf(out, value, dictionary, flow),
        }
    }

    /// Writes a compound value, without recursion: nesting has no limit.
    fn nested<'w, W: CallWriter + ValueWriter<Calls, Level = L>>(
        &mut self,
        writer: &mut W,
        out: &mut Vec<u8>,
        wire: &mut Wire<'w>,
        mut value: Value<'w>,
        dictionary: &Dictionary,
        flow: &mut Flow<'_>,
    ) -> Result<(), Error> {
        let members = |id| dictionary.members(id);
        let pair = writer.pair();
        self.0.clear();
        loop {
            let mut unshown = 0;
            while value == Value::Repr && pair != Pair::Both {
                match pair {
                    Pair::Human => unshown += 1,
                    _ => wire.skip_value(&members),
                }
                value = wire.value();
            }
            let outer = self.0.last().map(|open| &open.level);
            let left = match value {
                Value::Array(count) => Some(count),
                Value::Struct(id) if writer.compact(out, id, outer, wire, dictionary) => None,
                Value::Struct(id) => Some(dictionary.members(id)),
                Value::Repr => Some(2),
                leaf => {
                    writer.leaf(out, leaf, dictionary, flow)?;
                    None
                }
            };
            match left {
                Some(left) => {
                    let level = writer.open(out, value, outer, dictionary);
                    self.0.push(Open { level, at: 0, left, unshown });
                }
                None => {
                    writer.after(out, outer);
                    (0..unshown).for_each(|_| wire.skip_value(&members));
                }
            }
            if !self.next(writer, out, wire, dictionary) || !flow.make_room(out)? {
                return Ok(());
            }
            value = wire.value();
        }
    }

    /// Goes to the next element that is shown, past the ends of compound values. Returns false where there is none.
    #[inline]
    fn next<W: CallWriter + ValueWriter<Calls, Level = L>>(
        &mut self,
        writer: &mut W,
        out: &mut Vec<u8>,
        wire: &mut Wire<'_>,
        dictionary: &Dictionary,
    ) -> bool {
        while let Some(open) = self.0.last_mut() {
            // Cut values do not get here, but a loop over a hostile count must end regardless.
            if open.left > 0 && !wire.rest().is_empty() {
                writer.before(out, &mut open.level, open.at, dictionary);
                (open.at, open.left) = (open.at + 1, open.left - 1);
                if !writer.omits(&open.level, wire) {
                    return true;
                }
                wire.skip_value(&|id| dictionary.members(id));
                continue;
            }
            let Open { level, unshown, .. } = *open;
            self.0.pop();
            let mut outer = self.0.last_mut().map(|open| &mut open.level);
            writer.close(out, level, outer.as_deref_mut(), dictionary);
            writer.after(out, outer.as_deref());
            (0..unshown).for_each(|_| wire.skip_value(&|id| dictionary.members(id)));
        }
        false
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
            // Once set, the fake bit stays, as in the format's tool. The other bits are those of the last flags.
            rest.wire_flags = Some(number | rest.wire_flags.unwrap_or(0) & 1);
        }
        Detail::Thread(_) | Detail::Argument(_) | Detail::End => {}
    }
}
