//! One call as text, straight from its bytes.

use anytrace_core::{Error, text};

use crate::tools::calls::Call;
use crate::tools::dictionary::{Dictionary, Frame, Named};
use crate::tools::flags::CallFlags;
use crate::tools::float::{push_f32, push_f64};
use crate::tools::guids::guid_name;
use crate::tools::labels::LabelCache;
use crate::tools::text::{Escape, Quoting, push_text, push_wide};
use crate::tools::wire::{Detail, Value, Wire};

/// How calls are printed.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Style {
    pub(crate) has_colour: bool,
    pub(crate) has_numbers: bool,
    pub(crate) has_threads: bool,
    pub(crate) has_argument_names: bool,
    pub(crate) has_lines: bool,
    pub(crate) escape: Escape,
}

const NORMAL: &[u8] = b"\x1b[0m";
const BOLD: &[u8] = b"\x1b[1m";
const RED: &[u8] = b"\x1b[31m";
const GREEN: &[u8] = b"\x1b[32m";
const BLUE: &[u8] = b"\x1b[34m";

impl Style {
    #[inline]
    fn paint(&self, out: &mut Vec<u8>, colour: &'static [u8]) {
        if self.has_colour {
            out.extend_from_slice(colour);
        }
    }

    pub(crate) fn push_name(&self, out: &mut Vec<u8>, name: &[u8], flags: CallFlags) {
        self.paint(out, if flags.has(CallFlags::NO_SIDE_EFFECTS) { NORMAL } else { BOLD });
        out.extend_from_slice(until_nul(name));
        self.paint(out, NORMAL);
    }

    /// What stands before an argument.
    pub(crate) fn push_label(&self, out: &mut Vec<u8>, index: u64, function: &Named) {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        if self.has_argument_names {
            match function.get(index) {
                Some(name) => out.extend_from_slice(until_nul(name)),
                None => {
                    out.push(b'#');
                    text::push_dec(out, index);
                }
            }
            self.paint(out, NORMAL);
            out.extend_from_slice(b" = ");
        }
    }

    fn quoting(&self) -> Quoting {
        let line_end: &[u8] = match (self.escape, self.has_lines, self.has_colour) {
            (Escape::C, ..) | (_, false, _) => b"\\n",
            (_, _, false) => b"\n",
            // Colours end with the line, for pagers' sake.
            (..) => b"\x1b[0m\n\x1b[34m",
        };
        Quoting { escape: self.escape, line_end }
    }

    /// A property of the trace.
    pub(crate) fn push_property(&self, out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        out.extend_from_slice(b"// ");
        out.extend_from_slice(until_nul(name));
        out.extend_from_slice(b" = ");
        self.push_string(out, value);
        out.push(b'\n');
    }

    fn push_string(&self, out: &mut Vec<u8>, value: &[u8]) {
        self.paint(out, BLUE);
        out.push(b'"');
        push_text(out, value, self.quoting());
        out.push(b'"');
        self.paint(out, NORMAL);
    }
}

/// The format's own tool keeps names as C does.
fn until_nul(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Takes a blob under the name that is printed.
pub type BlobSink<'a> = &'a mut dyn FnMut(&str, &[u8]) -> Result<(), Error>;

/// Where text and blobs go.
pub(crate) struct Ways<'a> {
    /// Takes the text made so far and leaves the vector empty.
    pub(crate) drain: &'a mut dyn FnMut(&mut Vec<u8>) -> Result<(), Error>,
    /// Takes blobs, where they are wanted.
    pub(crate) blobs: Option<BlobSink<'a>>,
}

/// Text of one call may grow to this size before it is drained.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Prints calls.
pub(crate) struct Printer {
    pub(crate) style: Style,
    labels: LabelCache,
    arguments: Vec<(u64, usize, bool)>,
    levels: Vec<Level>,
    blobs: u64,
    /// Text may go out before the call is over: nothing of it will be taken back.
    may_drain: bool,
    /// The call's text grew too long to be taken back.
    is_long: bool,
}

/// What is open around the value to come.
#[derive(Debug, Clone, Copy)]
enum Level {
    /// An array: values to come, and whether braces are around it.
    Array { left: u64, is_first: bool, has_braces: bool },
    /// A structure: id, next member, and whether it stands in another without a name.
    Struct { id: u64, next: u64, is_first: bool, is_nameless: bool },
    /// The second value of a pair, which is not shown.
    Machine,
}

impl Printer {
    pub(crate) fn new(style: Style) -> Self {
        let labels = LabelCache::default();
        Self { style, labels, arguments: Vec::new(), levels: Vec::new(), blobs: 0, may_drain: false, is_long: false }
    }

    /// Appends the line or lines of a call.
    pub(crate) fn call(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        let style = self.style;
        if style.has_numbers {
            text::push_dec(out, call.number);
            out.push(b' ');
        }
        if style.has_threads {
            out.push(b'@');
            // The peer keeps 32 bits of it.
            push_hex_digits(out, u64::from(call.thread as u32));
            out.push(b' ');
        }
        self.blobs = 0;
        (self.may_drain, self.is_long) = (false, false);
        let Some(function) = dictionary.function(call.function) else {
            return self.nameless(out, call, dictionary, ways);
        };
        let labels = self.labels.get(call.function, function, &style);
        let mut flags = labels.flags;
        out.extend_from_slice(labels.head());
        let start = out.len();
        let (mut expected, mut returned, mut stack) = (0, None, None);
        for details in [call.enter, call.leave] {
            let mut wire = dictionary.wire(details);
            loop {
                match wire.detail() {
                    Detail::End => break,
                    Detail::Argument(index) if index == expected => {
                        let labels = self.labels.get(call.function, function, &style);
                        match labels.argument(index) {
                            Some(label) => out.extend_from_slice(label),
                            None => style.push_label(out, index, function),
                        }
                        expected += 1;
                        self.value(out, &mut wire, call, dictionary, ways)?;
                        if self.is_long {
                            return self.anew(out, start, call, function, dictionary, ways);
                        }
                    }
                    // What is missing, comes late or comes twice needs a look at all of them first.
                    Detail::Argument(_) => {
                        return self.anew(out, start, call, function, dictionary, ways);
                    }
                    Detail::Return => {
                        returned = Some(wire);
                        wire.skip_value(&|id| dictionary.members(id));
                    }
                    Detail::Backtrace(count) => {
                        stack = Some((wire, count));
                        skip_frames(&mut wire, count);
                    }
                    Detail::Flags(number) => flags = with_fake(flags, number),
                    Detail::Thread(_) => {}
                }
            }
        }
        self.tail(out, call, dictionary, (flags, returned, stack), ways)
    }

    /// Takes the arguments' text back and prints them all again, however they stand.
    #[cold]
    fn anew(
        &mut self,
        out: &mut Vec<u8>,
        start: usize,
        call: &Call<'_>,
        function: &Named,
        dictionary: &Dictionary,
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        out.truncate(start);
        self.blobs = 0;
        self.disordered(out, call, function, dictionary, ways)
    }

    /// What stands behind the arguments.
    fn tail(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        (flags, returned, stack): (CallFlags, Option<Wire<'_>>, Option<(Wire<'_>, u64)>),
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        let style = self.style;
        self.may_drain = true;
        out.push(b')');
        if let Some(mut wire) = returned {
            out.extend_from_slice(b" = ");
            self.value(out, &mut wire, call, dictionary, ways)?;
        }
        if call.is_incomplete || flags.has(CallFlags::FAKE) {
            out.extend_from_slice(b" //");
            if flags.has(CallFlags::FAKE) {
                out.extend_from_slice(b" fake");
            }
            if call.is_incomplete {
                out.push(b' ');
                style.paint(out, RED);
                out.extend_from_slice(b"incomplete");
                style.paint(out, NORMAL);
            }
        }
        out.push(b'\n');
        if style.has_lines {
            if let Some((mut wire, count)) = stack {
                self.backtrace(out, &mut wire, count, dictionary, ways)?;
            }
            if flags.has(CallFlags::END_FRAME) {
                out.push(b'\n');
            }
        }
        Ok(())
    }

    fn backtrace(
        &self,
        out: &mut Vec<u8>,
        wire: &mut Wire<'_>,
        count: u64,
        dictionary: &Dictionary,
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        self.style.paint(out, BOLD);
        self.style.paint(out, RED);
        out.extend_from_slice(b"Backtrace:\n");
        self.style.paint(out, NORMAL);
        for _ in 0..count {
            if wire.rest().is_empty() {
                break;
            }
            if out.len() > TEXT_BYTES_MAX {
                (ways.drain)(out)?;
            }
            push_frame(out, &dictionary.frame(wire.uint()));
            out.push(b'\n');
        }
        Ok(())
    }

    /// A call whose function's definition was lost.
    fn nameless(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        self.style.push_name(out, b"?", CallFlags::default());
        out.push(b'(');
        self.disordered(out, call, &Named::default(), dictionary, ways)
    }

    /// Arguments in any order: the last of each index counts, and missing ones are shown up to the highest.
    fn disordered(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        function: &Named,
        dictionary: &Dictionary,
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        let (mut flags, mut returned, mut stack) = (function.flags, None, None);
        (self.may_drain, self.is_long) = (true, false);
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
                    Detail::Return => {
                        returned = Some(wire);
                        wire.skip_value(&|id| dictionary.members(id));
                    }
                    Detail::Backtrace(count) => {
                        stack = Some((wire, count));
                        skip_frames(&mut wire, count);
                    }
                    Detail::Flags(number) => flags = with_fake(flags, number),
                    Detail::Thread(_) => {}
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
            for missing in expected..(*index).min(function.count()) {
                if out.len() > TEXT_BYTES_MAX {
                    (ways.drain)(out)?;
                }
                self.style.push_label(out, missing, function);
                out.push(b'?');
            }
            expected = index.saturating_add(1);
            self.style.push_label(out, *index, function);
            let details = if *is_leave { call.leave } else { call.enter };
            let mut wire = dictionary.wire(details.get(*at..).unwrap_or_default());
            self.value(out, &mut wire, call, dictionary, ways)?;
        }
        self.arguments = arguments;
        self.tail(out, call, dictionary, (flags, returned, stack), ways)
    }

    /// A value and all it holds.
    #[inline]
    fn value(
        &mut self,
        out: &mut Vec<u8>,
        wire: &mut Wire<'_>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        let value = wire.value();
        if self.leaf(out, value, call, dictionary, ways)? {
            return Ok(());
        }
        self.nested(out, wire, value, call, dictionary, ways)
    }

    /// A value that holds no others. False for those that do.
    #[inline]
    fn leaf(
        &mut self,
        out: &mut Vec<u8>,
        value: Value<'_>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        ways: &mut Ways<'_>,
    ) -> Result<bool, Error> {
        let style = self.style;
        match value {
            Value::Array(_) | Value::Struct(_) | Value::Repr => return Ok(false),
            Value::Pointer(_) => style.paint(out, GREEN),
            Value::Blob(..) => style.paint(out, GREEN),
            Value::Bitmask(id, value) => {
                self.bitmask(out, id, value, dictionary);
                return Ok(true);
            }
            Value::Text(text) => {
                style.push_string(out, text);
                return Ok(true);
            }
            _ => style.paint(out, BLUE),
        }
        match value {
            Value::Null => out.extend_from_slice(b"NULL"),
            Value::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Value::Negative(magnitude) => text::push_dec(out, (magnitude as i64).wrapping_neg()),
            Value::Unsigned(value) => push_number(out, value),
            Value::Float(value) => push_f32(out, value),
            Value::Double(value) => push_f64(out, value),
            Value::Blob(length, content) => self.blob(out, length, content, call, ways)?,
            Value::Enum(id, value) => {
                let names = dictionary.enumeration(id);
                match names.and_then(|names| names.name(value)) {
                    Some(name) => out.extend_from_slice(until_nul(name)),
                    None => text::push_dec(out, value.map_or(0, crate::tools::dictionary::number)),
                }
            }
            Value::Pointer(value) => text::push_hex(out, value),
            Value::Wide(mut chars) => {
                out.push(b'L');
                style.paint(out, BLUE);
                out.push(b'"');
                while !chars.rest().is_empty() {
                    // Characters have 32 bits in the peer, which stops at the first zero.
                    let char = chars.uint() as u32;
                    if char == 0 && style.escape == Escape::Peer {
                        break;
                    }
                    push_wide(out, char, style.quoting());
                }
                out.push(b'"');
            }
            _ => out.push(b'?'),
        }
        style.paint(out, NORMAL);
        Ok(true)
    }

    fn blob(
        &mut self,
        out: &mut Vec<u8>,
        length: u64,
        content: Option<&[u8]>,
        call: &Call<'_>,
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        out.extend_from_slice(b"blob(");
        match (&mut ways.blobs, content) {
            (Some(sink), Some(content)) => {
                let suffix = if self.blobs > 0 { format!("_{}", self.blobs) } else { String::new() };
                let name = format!("blob_call{}{suffix}.bin", call.number);
                sink(&name, content)?;
                self.blobs += 1;
                out.push(b'"');
                out.extend_from_slice(name.as_bytes());
                out.push(b'"');
            }
            _ => text::push_dec(out, length),
        }
        out.push(b')');
        Ok(())
    }

    fn bitmask(&self, out: &mut Vec<u8>, id: u64, value: u64, dictionary: &Dictionary) {
        let (mut rest, mut is_first) = (value, true);
        if let Some(mask) = dictionary.bitmask(id) {
            for (name, flag) in mask.flags() {
                let is_set = if flag == 0 { rest == 0 } else { rest & flag == flag };
                if is_set {
                    self.separate(out, &mut is_first);
                    out.extend_from_slice(until_nul(name));
                    self.style.paint(out, NORMAL);
                    rest &= !flag;
                }
                if rest == 0 {
                    break;
                }
            }
        }
        if rest != 0 || is_first {
            self.separate(out, &mut is_first);
            text::push_hex(out, rest);
            self.style.paint(out, NORMAL);
        }
    }

    fn separate(&self, out: &mut Vec<u8>, is_first: &mut bool) {
        if !std::mem::replace(is_first, false) {
            out.extend_from_slice(b" | ");
        }
        self.style.paint(out, BLUE);
    }

    /// Arrays, structures and pairs, without recursion: programs may nest as deep as they like.
    fn nested(
        &mut self,
        out: &mut Vec<u8>,
        wire: &mut Wire<'_>,
        value: Value<'_>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        self.levels.clear();
        self.open(out, value, wire, dictionary, false);
        while let Some(level) = self.levels.last_mut() {
            let mut is_nameless = false;
            match level {
                Level::Array { left: 0, has_braces, .. } => {
                    if *has_braces {
                        out.push(b'}');
                    }
                    self.levels.pop();
                    continue;
                }
                Level::Array { left, is_first, .. } => {
                    *left -= 1;
                    if !std::mem::replace(is_first, false) {
                        out.extend_from_slice(b", ");
                    }
                }
                Level::Machine => {
                    self.levels.pop();
                    wire.skip_value(&|id| dictionary.members(id));
                    continue;
                }
                Level::Struct { id, next, .. } if *next >= dictionary.members(*id) => {
                    self.close_struct(out);
                    continue;
                }
                Level::Struct { id, next, is_first, .. } => {
                    let name = dictionary.structure(*id).and_then(|names| names.get(*next)).unwrap_or_default();
                    let name = until_nul(name);
                    *next += 1;
                    // A structure without a name shows its members as those of the outer one.
                    is_nameless = name.is_empty() && wire.rest().first() == Some(&12);
                    if !is_nameless {
                        if !std::mem::replace(is_first, false) {
                            out.extend_from_slice(b", ");
                        }
                        out.extend_from_slice(name);
                        self.style.paint(out, NORMAL);
                        out.extend_from_slice(b" = ");
                    }
                }
            }
            if wire.rest().is_empty() {
                // Cut values do not come here; a loop over a hostile count must end all the same.
                break;
            }
            if out.len() > TEXT_BYTES_MAX {
                if !self.may_drain {
                    self.is_long = true;
                    break;
                }
                (ways.drain)(out)?;
            }
            let value = wire.value();
            if !self.leaf(out, value, call, dictionary, ways)? {
                self.open(out, value, wire, dictionary, is_nameless);
            }
        }
        Ok(())
    }

    /// Begins a value that holds others.
    fn open(
        &mut self,
        out: &mut Vec<u8>,
        value: Value<'_>,
        wire: &mut Wire<'_>,
        dictionary: &Dictionary,
        is_nameless: bool,
    ) {
        match value {
            Value::Array(left) => {
                let has_braces = left != 1;
                out.push(if has_braces { b'{' } else { b'&' });
                self.levels.push(Level::Array { left, is_first: true, has_braces });
            }
            Value::Struct(id) => {
                if self.guid(out, id, wire, dictionary) {
                    return;
                }
                // What stands before the first member is for the innermost structure with a name to say.
                let is_first = !is_nameless || matches!(self.levels.last(), Some(Level::Struct { is_first: true, .. }));
                if !is_nameless {
                    out.push(b'{');
                }
                self.levels.push(Level::Struct { id, next: 0, is_first, is_nameless });
            }
            Value::Repr => {
                self.levels.push(Level::Machine);
                // The human value stands first; as an array of one without its sign.
                self.levels.push(Level::Array { left: 1, is_first: true, has_braces: false });
            }
            _ => {}
        }
    }

    fn close_struct(&mut self, out: &mut Vec<u8>) {
        let Some(Level::Struct { is_first, is_nameless, .. }) = self.levels.pop() else { return };
        if !is_nameless {
            return out.push(b'}');
        }
        if let Some(Level::Struct { is_first: outer, .. }) = self.levels.last_mut() {
            *outer &= is_first;
        }
    }

    /// A structure that is an interface's identity.
    fn guid(&mut self, out: &mut Vec<u8>, id: u64, wire: &mut Wire<'_>, dictionary: &Dictionary) -> bool {
        let is_guid = dictionary.structure(id).is_some_and(|names| names.count() == 4 && names.name() == b"GUID");
        if !is_guid {
            return false;
        }
        let mut after = *wire;
        let mut parts = [0_u64; 11];
        for part in parts.iter_mut().take(3) {
            let Value::Unsigned(value) = after.value() else { return false };
            *part = value;
        }
        if after.value() != Value::Array(8) {
            return false;
        }
        for part in parts.iter_mut().skip(3) {
            let Value::Unsigned(value) = after.value() else { return false };
            *part = value;
        }
        *wire = after;
        let [a, b, c, d @ ..] = parts;
        let rest: String = d.iter().map(|byte| format!("{:02x}", *byte as u8)).collect();
        let (head, tail) = rest.split_at(4);
        let uuid = format!("{:08x}-{:04x}-{:04x}-{head}-{tail}", a as u32, b as u16, c as u16);
        self.style.paint(out, BLUE);
        match guid_name(&uuid) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => out.extend_from_slice(format!("uuid({uuid})").as_bytes()),
        }
        self.style.paint(out, NORMAL);
        true
    }
}

fn with_fake(flags: CallFlags, number: u64) -> CallFlags {
    if number & 1 == 1 { flags.with(CallFlags::FAKE) } else { flags }
}

fn skip_frames(wire: &mut Wire<'_>, count: u64) {
    for _ in 0..count {
        if wire.rest().is_empty() {
            break;
        }
        wire.uint();
    }
}

fn push_frame(out: &mut Vec<u8>, frame: &Frame<'_>) {
    out.extend_from_slice(frame.module.map_or(b"?", until_nul));
    if let Some(function) = frame.function {
        out.extend_from_slice(b": ");
        out.extend_from_slice(until_nul(function));
    }
    if let Some(offset) = frame.offset {
        out.push(b'+');
        text::push_hex(out, offset);
    }
    if let Some(file) = frame.file {
        out.extend_from_slice(b": ");
        out.extend_from_slice(until_nul(file));
        if let Some(line) = frame.line {
            out.push(b':');
            text::push_dec(out, line);
        }
    }
}

#[inline]
fn push_number(out: &mut Vec<u8>, value: u64) {
    if value < 10 {
        out.push(b'0' + value as u8);
    } else {
        text::push_dec(out, value);
    }
}

fn push_hex_digits(out: &mut Vec<u8>, value: u64) {
    let at = out.len();
    text::push_hex(out, value);
    out.drain(at..at + 2);
}
