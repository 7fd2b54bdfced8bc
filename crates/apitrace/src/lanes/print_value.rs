//! Formats the values of calls as text.

use anytrace_core::{Error, text};

use crate::lanes::dictionary::{Dictionary, number};
use crate::lanes::float::{push_f32, push_f64};
use crate::lanes::guids::guid_name;
use crate::lanes::style::{BLUE, GREEN, NORMAL, Style};
use crate::lanes::text::{Escape, push_wide, until_nul};
use crate::lanes::walk::{Calls, Flow};
use crate::lanes::wire::{Value, Wire};
use crate::wire::values::ValueWriter;

/// Takes a blob under the name that is printed.
pub type BlobSink<'a> = &'a mut dyn FnMut(&str, &[u8]) -> Result<(), Error>;

/// Type byte of structures.
const STRUCT: u8 = 12;

/// A compound value that is open. Of pairs the human value is shown, in their place.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level {
    Array {
        has_braces: bool,
    },
    Struct {
        id: u64,
        /// No member is shown since the innermost structure with a name began.
        is_first: bool,
        /// It is an unnamed member of another.
        is_nameless: bool,
        /// The member that follows has no name.
        is_next_nameless: bool,
    },
}

impl Level {
    /// True if the next element is a member without a name.
    pub(crate) fn is_next_nameless(&self) -> bool {
        matches!(self, Self::Struct { is_next_nameless: true, .. })
    }

    /// The members of an unnamed structure are shown as those of the outer one. Other unnamed values are not shown.
    #[inline]
    pub(crate) fn omits(&self, next: &Wire<'_>) -> bool {
        self.is_next_nameless() && next.rest().first() != Some(&STRUCT)
    }
}

/// Prints the values of one call.
pub(crate) struct CallText<'a> {
    pub(crate) style: Style,
    /// Number of the call.
    call: u64,
    /// Takes blobs, if they are requested.
    blobs: Option<BlobSink<'a>>,
    /// Blobs of the call that have names so far.
    pub(crate) blobs_named: u64,
}

impl<'a> CallText<'a> {
    pub(crate) fn new(style: Style, call: u64, blobs: Option<BlobSink<'a>>) -> Self {
        Self { style, call, blobs, blobs_named: 0 }
    }
}

impl ValueWriter<Calls> for CallText<'_> {
    type Level = Level;

    fn open(&mut self, out: &mut Vec<u8>, value: Value<'_>, outer: Option<&Level>, _: &Dictionary) -> Level {
        let Value::Struct(id) = value else {
            let has_braces = value != Value::Array(1);
            out.push(if has_braces { b'{' } else { b'&' });
            return Level::Array { has_braces };
        };
        let is_nameless = outer.is_some_and(Level::is_next_nameless);
        // The text before the first member depends on the innermost named structure.
        let is_first = !is_nameless || matches!(outer, Some(Level::Struct { is_first: true, .. }));
        if !is_nameless {
            out.push(b'{');
        }
        Level::Struct { id, is_first, is_nameless, is_next_nameless: false }
    }

    #[inline]
    fn before(&mut self, out: &mut Vec<u8>, level: &mut Level, at: u64, dictionary: &Dictionary) {
        let Level::Struct { id, is_first, is_next_nameless, .. } = level else {
            if at > 0 {
                out.extend_from_slice(b", ");
            }
            return;
        };
        let name = until_nul(dictionary.structure(*id).and_then(|names| names.get(at)).unwrap_or_default());
        *is_next_nameless = name.is_empty();
        if !name.is_empty() {
            if !std::mem::replace(is_first, false) {
                out.extend_from_slice(b", ");
            }
            out.extend_from_slice(name);
            self.style.paint(out, NORMAL);
            out.extend_from_slice(b" = ");
        }
    }

    #[inline]
    fn leaf(
        &mut self,
        out: &mut Vec<u8>,
        value: Value<'_>,
        dictionary: &Dictionary,
        _: &mut Flow<'_>,
    ) -> Result<(), Error> {
        let style = self.style;
        match value {
            Value::Pointer(_) => style.paint(out, GREEN),
            Value::Blob(..) => style.paint(out, GREEN),
            Value::Bitmask(id, value) => {
                self.bitmask(out, id, value, dictionary);
                return Ok(());
            }
            Value::Text(text) => {
                style.push_string(out, text);
                return Ok(());
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
            Value::Blob(length, content) => self.blob(out, length, content)?,
            Value::Enum(id, value) => {
                let names = dictionary.enumeration(id);
                match names.and_then(|names| names.name(value)) {
                    Some(name) => out.extend_from_slice(until_nul(name)),
                    None => text::push_dec(out, value.map_or(0, number)),
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
        Ok(())
    }

    #[inline]
    fn after(&mut self, _: &mut Vec<u8>, _: Option<&Level>) {}

    fn close(&mut self, out: &mut Vec<u8>, level: Level, outer: Option<&mut Level>, _: &Dictionary) {
        match (level, outer) {
            (Level::Array { has_braces: false }, _) => {}
            (Level::Struct { is_nameless: true, is_first, .. }, outer) => {
                if let Some(Level::Struct { is_first: outer, .. }) = outer {
                    *outer &= is_first;
                }
            }
            _ => out.push(b'}'),
        }
    }
}

impl CallText<'_> {
    fn blob(&mut self, out: &mut Vec<u8>, length: u64, content: Option<&[u8]>) -> Result<(), Error> {
        out.extend_from_slice(b"blob(");
        match (&mut self.blobs, content) {
            (Some(sink), Some(content)) => {
                let suffix = if self.blobs_named > 0 { format!("_{}", self.blobs_named) } else { String::new() };
                let name = format!("blob_call{}{suffix}.bin", self.call);
                sink(&name, content)?;
                self.blobs_named += 1;
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

    /// A structure that is the GUID of an interface.
    pub(crate) fn guid(&self, out: &mut Vec<u8>, id: u64, wire: &mut Wire<'_>, dictionary: &Dictionary) -> bool {
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
        let d = d.iter().fold(0, |word, byte| word << 8 | u128::from(*byte as u8));
        let (a, b, c) = (a as u32, b as u16, c as u16);
        self.style.paint(out, BLUE);
        match guid_name(u128::from(a) << 96 | u128::from(b) << 80 | u128::from(c) << 64 | d) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => {
                let (high, low) = (d >> 48, d & 0xffff_ffff_ffff);
                out.extend_from_slice(format!("uuid({a:08x}-{b:04x}-{c:04x}-{high:04x}-{low:012x})").as_bytes());
            }
        }
        self.style.paint(out, NORMAL);
        true
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
