//! Classes of bytes, and the keywords of the checker's crate.

pub(crate) use anytrace_casemate_model::keywords;
pub(crate) use anytrace_casemate_model::words::{Key, key_at, key_of};

/// The class of a byte in the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Part of a word. `;` is included: it begins a comment only where a token may begin.
    Word,
    /// White space.
    Space,
    /// `(`, `)` or `"`.
    Mark,
    /// A control character that is not allowed outside strings and comments.
    Control,
}

/// The class of each byte.
pub(crate) static CLASS: [Class; 256] = {
    let mut table = [Class::Word; 256];
    let mut at = 0;
    while at < 0x20 {
        table[at] = Class::Control;
        at += 1;
    }
    table[0x7f] = Class::Control;
    table[b' ' as usize] = Class::Space;
    // Tab, line feed, vertical tab, form feed, carriage return (the reference accepts only the first two).
    at = 0x09;
    while at <= 0x0d {
        table[at] = Class::Space;
        at += 1;
    }
    table[b'(' as usize] = Class::Mark;
    table[b')' as usize] = Class::Mark;
    table[b'"' as usize] = Class::Mark;
    table
};

/// The class of a byte.
#[inline(always)]
pub(crate) fn class(byte: u8) -> Class {
    CLASS[usize::from(byte)]
}

/// The value of each hex digit; 16 and more for anything else.
pub(crate) static DIGIT: [u8; 256] = {
    let mut table = [0xff; 256];
    let mut at = 0;
    while at < 10 {
        table[b'0' as usize + at] = at as u8;
        at += 1;
    }
    at = 0;
    while at < 6 {
        table[b'a' as usize + at] = 10 + at as u8;
        table[b'A' as usize + at] = 10 + at as u8;
        at += 1;
    }
    table
};
