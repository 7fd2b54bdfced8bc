//! The contents of a line.
//!
//! The layout is known from the text that `valgrind --tool=lackey --help` describes and from the logs of Valgrind 3.19 in
//! the corpus (`rows.lackey`, `blocks.lackey`).

/// What a reader must know to read a record: nothing. It is there because readers of other formats need one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Layout {}

/// What a record describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// `I`: an instruction is executed.
    Fetch = 0,
    /// ` L`: data are read.
    Read = 1,
    /// ` S`: data are written.
    Write = 2,
    /// ` M`: the same data are read and then written by one instruction.
    Modify = 3,
    /// `SB`: a superblock is entered; it has an address and no size.
    Block = 4,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Fetch, Self::Read, Self::Write, Self::Modify, Self::Block];

    /// `fetch`, `read`, `write`, `modify` or `block`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Read => "read",
            Self::Write => "write",
            Self::Modify => "modify",
            Self::Block => "block",
        }
    }

    /// Parses the output of [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What Valgrind writes before the address.
    pub const fn mark(self) -> &'static [u8; 3] {
        match self {
            Self::Fetch => b"I  ",
            Self::Read => b" L ",
            Self::Write => b" S ",
            Self::Modify => b" M ",
            Self::Block => b"SB ",
        }
    }

    /// The kind with this mark.
    #[inline(always)]
    pub(crate) const fn from_mark(mark: [u8; 3]) -> Option<Self> {
        match &mark {
            b"I  " => Some(Self::Fetch),
            b" L " => Some(Self::Read),
            b" S " => Some(Self::Write),
            b" M " => Some(Self::Modify),
            b"SB " => Some(Self::Block),
            _ => None,
        }
    }
}

/// A record, borrowed from its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// What it describes.
    pub kind: Kind,
    /// First address.
    pub address: u64,
    /// Bytes; 0 for [`Kind::Block`].
    pub size: u16,
    /// Its line as stored, with the line end if there is one; text before it on the line is left out. Empty in a record
    /// that was not read from a trace.
    pub text: &'a [u8],
    /// True when Valgrind would spell it the same, except for a missing line end.
    pub is_usual: bool,
}

impl Record<'static> {
    /// A record that is spelled as Valgrind does when it is written.
    pub const fn new(kind: Kind, address: u64, size: u16) -> Self {
        Self { kind, address, size, text: b"", is_usual: true }
    }
}

impl Record<'_> {
    /// True when the last byte lies past the last address.
    #[inline]
    pub const fn wraps(&self) -> bool {
        self.size > 1 && u64::MAX - self.address < self.size as u64 - 1
    }
}

/// Largest size a record may name: the limit of an access in the analyses. Valgrind itself never writes more than 512.
pub const SIZE_MAX: u16 = u16::MAX;

/// Most hex digits of an address.
pub(crate) const ADDRESS_DIGITS_MAX: usize = 16;
