//! Formats one value, with everything nested in it, as text.

use anytrace_core::{Error, text};

use crate::tools::calls::Call;
use crate::tools::dictionary::Dictionary;
use crate::tools::float::{push_f32, push_f64};
use crate::tools::guids::guid_name;
use crate::tools::print::{BLUE, GREEN, NORMAL, Printer, Ways, until_nul};
use crate::tools::text::{Escape, push_wide};
use crate::tools::wire::{Value, Wire};
use crate::tools::workers::TEXT_BYTES_MAX;

/// What is open around the next value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level {
    /// An array: remaining values, and whether braces enclose it.
    Array { left: u64, is_first: bool, has_braces: bool },
    /// A structure: id, next member, and whether it is an unnamed member of another.
    Struct { id: u64, next: u64, is_first: bool, is_nameless: bool },
    /// The second value of a pair, which is not shown.
    Machine,
}

impl Printer {
    /// A value and everything nested in it.
    #[inline]
    pub(crate) fn value(
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

    /// A simple value. Returns false for compound ones.
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

    /// Arrays, structures and pairs, without recursion: nesting has no limit.
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
                    is_nameless = name.is_empty();
                    // The members of an unnamed structure are shown as those of the outer one. Other unnamed values are
                    // not shown.
                    if is_nameless && wire.rest().first() != Some(&12) {
                        wire.skip_value(&|id| dictionary.members(id));
                        continue;
                    }
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
                // Cut values do not get here, but a loop over a hostile count must end regardless.
                break;
            }
            if out.len() > TEXT_BYTES_MAX {
                if !self.may_flush {
                    self.is_long = true;
                    break;
                }
                (ways.flush)(out)?;
            }
            let value = wire.value();
            if !self.leaf(out, value, call, dictionary, ways)? {
                self.open(out, value, wire, dictionary, is_nameless);
            }
        }
        Ok(())
    }

    /// Begins a compound value.
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
                if !is_nameless && self.guid(out, id, wire, dictionary) {
                    return;
                }
                // The text before the first member depends on the innermost named structure.
                let is_first = !is_nameless || matches!(self.levels.last(), Some(Level::Struct { is_first: true, .. }));
                if !is_nameless {
                    out.push(b'{');
                }
                self.levels.push(Level::Struct { id, next: 0, is_first, is_nameless });
            }
            Value::Repr => {
                self.levels.push(Level::Machine);
                // The human value comes first; it is treated as an array of one without braces.
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

    /// A structure that is the GUID of an interface.
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
