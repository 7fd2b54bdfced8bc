//! The flags that the format's tools derive from a function's name: whether it draws, ends a frame, is worth
//! showing.

use crate::lanes::packed::{Packed, find};
use crate::wire::signatures::Signatures;

/// Names of functions and the numbers of their flags.
static CALL_FLAGS: Packed = include_str!("../tables/flags.txt");

/// Flags of a call. The numbers are those of apitrace 11.1, as its pickles show them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CallFlags(pub u16);

impl CallFlags {
    /// The call was inserted by the tracer.
    pub const FAKE: Self = Self(1);
    /// Its result differs from run to run.
    pub const NON_REPRODUCIBLE: Self = Self(2);
    /// It only queries.
    pub const NO_SIDE_EFFECTS: Self = Self(4);
    /// It draws.
    pub const RENDER: Self = Self(8);
    /// It changes what is drawn to.
    pub const SWAP_RENDERTARGET: Self = Self(16);
    /// It ends a frame.
    pub const END_FRAME: Self = Self(32);
    /// It was never left.
    pub const INCOMPLETE: Self = Self(64);
    /// It is shown only on request.
    pub const VERBOSE: Self = Self(128);
    /// It puts a mark into the stream of calls.
    pub const MARKER: Self = Self(256);
    /// It begins a group of calls.
    pub const MARKER_PUSH: Self = Self(512);
    /// It ends a group of calls.
    pub const MARKER_POP: Self = Self(1024);

    /// Every flag with the word for it.
    pub const WORDS: [(Self, &'static str); 11] = [
        (Self::FAKE, "fake"),
        (Self::NON_REPRODUCIBLE, "non_reproducible"),
        (Self::NO_SIDE_EFFECTS, "no_side_effects"),
        (Self::RENDER, "render"),
        (Self::SWAP_RENDERTARGET, "swap_rendertarget"),
        (Self::END_FRAME, "end_frame"),
        (Self::INCOMPLETE, "incomplete"),
        (Self::VERBOSE, "verbose"),
        (Self::MARKER, "marker"),
        (Self::MARKER_PUSH, "marker_push"),
        (Self::MARKER_POP, "marker_pop"),
    ];

    /// True when any of the flags is set.
    #[inline]
    pub fn has(self, any: Self) -> bool {
        self.0 & any.0 != 0
    }

    /// The union of both.
    #[inline]
    #[must_use]
    pub fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }
}

/// The flags of a function; none for unknown ones.
pub fn call_flags(name: &[u8]) -> CallFlags {
    if let Some(flags) = flags_by_pattern(name) {
        return flags;
    }
    CallFlags(find(CALL_FLAGS, name).and_then(|(_, flags)| flags.parse().ok()).unwrap_or(0))
}

/// The flags of the functions of a trace, by slot.
#[derive(Debug, Default)]
pub(crate) struct FunctionFlags(Vec<CallFlags>);

impl FunctionFlags {
    /// Stores the flags of the function in a slot.
    pub(crate) fn learn(&mut self, slot: u32, signatures: &Signatures) {
        let (at, Some(row)) = (slot as usize, signatures.function(slot)) else { return };
        if self.0.len() <= at {
            self.0.resize(at + 1, CallFlags::default());
        }
        if let Some(place) = self.0.get_mut(at) {
            *place = call_flags(row.name());
        }
    }

    /// The flags of a function; none for unknown ones.
    #[inline]
    pub(crate) fn of(&self, slot: Option<u32>) -> CallFlags {
        slot.and_then(|slot| self.0.get(slot as usize)).copied().unwrap_or_default()
    }
}

/// Flags of families of functions, present and future, by their names (section 3 of the page, and the results of
/// apitrace 11.1 for names invented for the purpose).
fn flags_by_pattern(name: &[u8]) -> Option<CallFlags> {
    if let Some(rest) = name.strip_prefix(b"gl") {
        if draws_vertices(rest) || draws_otherwise(rest) {
            return Some(CallFlags::RENDER);
        }
        if rest.strip_prefix(b"BindFramebuffer").is_some_and(is_suffix) {
            return Some(CallFlags::SWAP_RENDERTARGET);
        }
        return asks(rest).then_some(CallFlags::NO_SIDE_EFFECTS);
    }
    let at = name.windows(2).position(|pair| pair == b"::")?;
    let (interface, method) = (name.get(..at)?, name.get(at + 2..)?);
    if let Some(version) = interface.strip_prefix(b"IDXGI") {
        let rest = version.strip_prefix(b"Decode").unwrap_or(version).strip_prefix(b"SwapChain")?;
        let presents = method.strip_prefix(b"Present").is_some_and(is_word);
        return (is_word(rest) && presents).then_some(CallFlags::END_FRAME);
    }
    direct3d(interface, method)
}

/// Methods of Direct3D 10 and 11.
fn direct3d(interface: &[u8], method: &[u8]) -> Option<CallFlags> {
    let is_version = |rest: &[u8]| rest.iter().all(u8::is_ascii_digit);
    let is_of = |stem: &[u8]| interface.strip_prefix(stem).is_some_and(is_version);
    if is_of(b"ID3D10Device") || is_of(b"ID3D11DeviceContext") {
        if method == b"ExecuteCommandList" || method.strip_prefix(b"Draw").is_some_and(is_word) {
            return Some(CallFlags::RENDER);
        }
        if method.strip_prefix(b"OMSetRenderTargets").is_some_and(is_word) {
            return Some(CallFlags::SWAP_RENDERTARGET);
        }
    }
    let checks = (is_of(b"ID3D10Device") || is_of(b"ID3D11Device"))
        && (method == b"CheckMultisampleQualityLevels" || method == b"CheckFormatSupport");
    checks.then(|| CallFlags::NO_SIDE_EFFECTS.with(CallFlags::VERBOSE))
}

fn is_word(rest: &[u8]) -> bool {
    rest.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// True for vendors' suffixes and numbers.
fn is_suffix(rest: &[u8]) -> bool {
    rest.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// True for an empty rest, and for one that begins with a capital letter.
fn is_more(rest: &[u8]) -> bool {
    rest.first().is_none_or(u8::is_ascii_uppercase) && rest.iter().all(u8::is_ascii_alphabetic)
}

/// Draws of arrays and elements in all their forms. Each word before them is a capital followed by small letters.
fn draws_vertices(name: &[u8]) -> bool {
    let mut rest = name;
    loop {
        if let Some(what) = rest.strip_prefix(b"Draw") {
            let what = what.strip_prefix(b"Range").or_else(|| what.strip_prefix(b"Mesh")).unwrap_or(what);
            let more = what.strip_prefix(b"Arrays").or_else(|| what.strip_prefix(b"Elements"));
            if more.is_some_and(is_more) {
                return true;
            }
        }
        let Some((first, tail)) = rest.split_first() else { return false };
        let small = tail.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        if !first.is_ascii_uppercase() || small == 0 {
            return false;
        }
        rest = tail.get(small..).unwrap_or_default();
    }
}

fn draws_otherwise(name: &[u8]) -> bool {
    let stems: [&[u8]; 6] = [b"CallLists", b"CallList", b"Clear", b"End", b"DrawPixels", b"BlitFramebuffer"];
    if stems.iter().any(|stem| name.strip_prefix(*stem).is_some_and(is_suffix)) {
        return true;
    }
    if let Some(more) = name.strip_prefix(b"DrawTransformFeedback") {
        let letters = more.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (word, suffix) = more.split_at(letters);
        return is_suffix(more) || is_more(word) && is_suffix(suffix);
    }
    if let Some([kind, more @ ..]) = name.strip_prefix(b"Rect") {
        let more = more.strip_prefix(b"v").unwrap_or(more);
        return b"dfis".contains(kind) && is_suffix(more);
    }
    name.strip_prefix(b"EvalMesh").is_some_and(|more| more.first().is_some_and(u8::is_ascii_digit) && is_suffix(more))
}

fn asks(name: &[u8]) -> bool {
    let Some(what) = name.strip_prefix(b"Get") else { return false };
    let stems: [&[u8]; 3] = [b"Float", b"Integer", b"VertexAttrib"];
    let is_more = |rest: &[u8]| !rest.is_empty() && is_word(rest);
    if stems.iter().any(|stem| what.strip_prefix(*stem).is_some_and(is_more)) {
        return true;
    }
    let Some(rest) = what.strip_prefix(b"Tex") else { return false };
    let rest = rest.strip_prefix(b"ture").unwrap_or(rest);
    rest.strip_prefix(b"Level").unwrap_or(rest).strip_prefix(b"Parameter").is_some_and(is_more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::packed::checked_keys;
    use crate::wire::record::ends_frame;

    /// The flags of every function that apitrace 11.1 knows; see the README of the corpus.
    const OBSERVED: &str = include_str!("../../corpus/callflags.tsv");

    fn observed() -> impl Iterator<Item = (&'static str, u16)> {
        OBSERVED.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let mut fields = line.split('\t');
            (fields.next().unwrap(), fields.next().unwrap().parse().unwrap())
        })
    }

    #[test]
    fn the_table_is_sorted_and_says_what_was_observed() {
        checked_keys(CALL_FLAGS);
        for (name, flags) in observed() {
            assert_eq!(call_flags(name.as_bytes()), CallFlags(flags), "{name}");
        }
        assert_eq!(observed().count(), 633);
    }

    #[test]
    fn frames_end_where_the_reader_ends_them() {
        for (name, flags) in observed() {
            assert_eq!(CallFlags(flags).has(CallFlags::END_FRAME), ends_frame(name.as_bytes()), "{name}");
        }
        assert_eq!(call_flags(b"glBindTexture"), CallFlags::default());
    }
}
