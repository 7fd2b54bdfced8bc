//! The contents of a record: one transition with its thread and place in the source, borrowed from the trace.

pub use anytrace_casemate_model::{
    AtomicOp, Barrier, Domain, HintKind, Kind, MemoryOrder, Operand, Sysreg, Transition,
};

/// Where in the traced program a transition was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source<'a> {
    /// Not stated.
    Absent,
    /// A string, usually `file:line`, without its quotes.
    Text(&'a [u8]),
    /// A key into a map stored elsewhere.
    Key(u64),
}

impl<'a> Source<'a> {
    /// File and line, where the text ends in a colon and digits.
    pub fn file_line(&self) -> Option<(&'a [u8], u64)> {
        let Self::Text(text) = *self else { return None };
        let colon = text.iter().rposition(|b| *b == b':')?;
        let (file, line) = (text.get(..colon)?, text.get(colon + 1..)?);
        let line = std::str::from_utf8(line).ok()?;
        let all_digits = !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit());
        all_digits.then(|| Some((file, line.parse().ok()?)))?
    }
}

/// How a record is spelled, beyond its values: a set of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Spelling(pub(crate) u16);

impl Spelling {
    /// The name of the kind begins with a capital.
    pub const UPPER_CASE: Self = Self(1);
    /// At least one field is written `(key value)`.
    pub const KEYED: Self = Self(1 << 1);
    /// At least one field is a bare value.
    pub const POSITIONAL: Self = Self(1 << 2);
    /// The source place comes before the kind's own fields.
    pub const SOURCE_EARLY: Self = Self(1 << 3);
    /// There is no source place.
    pub const SOURCE_ABSENT: Self = Self(1 << 4);
    /// The source place is an integer.
    pub const SOURCE_KEY: Self = Self(1 << 5);
    /// At least one number of the kind's own fields has `0x` in front.
    pub const PREFIXED: Self = Self(1 << 6);
    /// At least one number of the kind's own fields has no `0x` in front.
    pub const BARE: Self = Self(1 << 7);
    /// A synonym is used: `msr`, `mem-zalloc`, `thread`, `cpu`, `release`, `ttbr_el2`, `(addr p)(level l)` and the like.
    pub const SYNONYM: Self = Self(1 << 8);
    /// Fields are in another order than in the document.
    pub const REORDERED: Self = Self(1 << 9);
    /// Field names or values begin with capitals.
    pub const UPPER_CASE_FIELD: Self = Self(1 << 10);

    /// How many combinations there are.
    pub(crate) const COMBINATIONS: usize = 1 << 11;

    /// Every flag with its name in `info`.
    pub(crate) const NAMES: [(Self, &'static str); 11] = [
        (Self::UPPER_CASE, "upper_case_kind"),
        (Self::UPPER_CASE_FIELD, "upper_case_field"),
        (Self::KEYED, "keyed"),
        (Self::POSITIONAL, "positional"),
        (Self::SOURCE_EARLY, "src_early"),
        (Self::SOURCE_ABSENT, "src_absent"),
        (Self::SOURCE_KEY, "src_integer"),
        (Self::PREFIXED, "hex_prefix"),
        (Self::BARE, "no_hex_prefix"),
        (Self::SYNONYM, "synonym"),
        (Self::REORDERED, "reordered"),
    ];

    /// True when all flags of `other` are set.
    #[inline]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets the flags of `other`.
    #[inline]
    pub fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// The convention that this record follows: `head`, `seed`, `positional` or `mixed`.
    pub fn dialect(self) -> Dialect {
        let any = |flags: Self| self.0 & flags.0 != 0;
        match (self.has(Self::KEYED), self.has(Self::POSITIONAL)) {
            (true, true) => Dialect::Mixed,
            (false, _) => Dialect::Positional,
            _ if any(Self::UPPER_CASE) || any(Self::SOURCE_EARLY) || any(Self::SYNONYM) => Dialect::Seed,
            _ => Dialect::Head,
        }
    }
}

/// The known conventions of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// `(key value)` fields, lower case, source last or absent: what today's tracer writes.
    Head,
    /// `(key value)` fields with capitals, synonyms or an early source: what the format's first document shows.
    Seed,
    /// Values without keys.
    Positional,
    /// Keys for some fields and not for others.
    Mixed,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 4] = [Self::Head, Self::Seed, Self::Positional, Self::Mixed];

    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Seed => "seed",
            Self::Positional => "positional",
            Self::Mixed => "mixed",
        }
    }
}

/// One record: a transition with its number, thread and source, and the bytes it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The number that the tracer assigned; the reference does not check it.
    pub id: u64,
    /// The thread (core) that made the step.
    pub thread: u32,
    /// What the step did.
    pub transition: Transition,
    /// Where in the program.
    pub source: Source<'a>,
    /// How it is written.
    pub spelling: Spelling,
    /// Its bytes, from `(` to `)`.
    pub text: &'a [u8],
}

impl Record<'_> {
    /// The kind of the transition.
    pub fn kind(&self) -> Kind {
        self.transition.kind()
    }

    /// True when id, thread, transition and source are equal, whatever their spelling.
    pub fn means_same(&self, other: &Record<'_>) -> bool {
        self.id == other.id
            && self.thread == other.thread
            && self.transition == other.transition
            && self.source == other.source
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_split_at_the_last_colon_before_digits() {
        assert_eq!(Source::Text(b"a:b.c:12").file_line(), Some((&b"a:b.c"[..], 12)));
        assert_eq!(Source::Text(b"a.c:1x").file_line(), None);
        assert_eq!(Source::Text(b"a.c:").file_line(), None);
        assert_eq!(Source::Text(b"nocolon").file_line(), None);
        assert_eq!(Source::Key(7).file_line(), None);
    }
}
