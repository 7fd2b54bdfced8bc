//! Memory: a map from pages to their cells (2.1).

use std::collections::BTreeMap;

use super::descriptor::{Descriptor, PAGE, WORDS};
use super::verdict::{ASSERT_FALSE, Fault};

/// Pages the reference can track.
const PAGES_MAX: usize = 8192;

/// The cleaning progress of an invalidated entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lis {
    /// `n`: nothing was done.
    Unguarded,
    /// `d`: a DSB.
    Dsbed,
    /// `ti`: then a TLBI by IPA.
    TlbiIpa,
    /// `td`: then a DSB.
    TlbiIpaDsbed,
    /// `ta`: then every TLBI it needs.
    Tlbied,
}

impl Lis {
    /// The reference's letters.
    pub(crate) fn letters(self) -> &'static str {
        match self {
            Self::Unguarded => "n",
            Self::Dsbed => "d",
            Self::TlbiIpa => "ti",
            Self::TlbiIpaDsbed => "td",
            Self::Tlbied => "ta",
        }
    }
}

/// State of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Automaton {
    /// `V`.
    Valid,
    /// `IU`: invalid and perhaps still cached.
    Unclean {
        /// Who invalidated it.
        invalidator: u32,
        /// Its progress.
        lis: Lis,
    },
    /// `I`: invalid and clean.
    Clean {
        /// Whether the last valid descriptor was a table, and has been one since the entry was last valid.
        was_table: bool,
    },
}

/// One word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    /// Whether it was ever initialized.
    pub(crate) initialised: bool,
    /// Its value.
    pub(crate) value: u64,
    /// Whether it is in a registered tree.
    pub(crate) is_pte: bool,
    /// The cached descriptor of an entry: the last valid one until it is clean.
    pub(crate) desc: Option<Descriptor>,
    /// A TLB may contain an earlier value of the live entry with AF=1.
    pub(crate) was_accessed: bool,
    /// State of an entry.
    pub(crate) automaton: Automaton,
    /// Root of an entry.
    pub(crate) owner: u64,
    /// The thread that may write it without a lock; negative: none.
    pub(crate) thread_owner: i32,
    /// Whether a table above it is unclean.
    pub(crate) frozen: bool,
}

impl Cell {
    const NEW: Self = Self {
        initialised: false,
        value: 0,
        is_pte: false,
        desc: None,
        was_accessed: false,
        automaton: Automaton::Valid,
        owner: 0,
        thread_owner: -1,
        frozen: false,
    };

    /// The thread that owns it.
    pub(crate) fn thread(&self) -> Option<u32> {
        u32::try_from(self.thread_owner).ok()
    }
}

/// Pages of cells.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pages: BTreeMap<u64, Vec<Cell>>,
}

impl Memory {
    /// The cell of an address, if its page was ever touched.
    pub(crate) fn get(&self, address: u64) -> Option<&Cell> {
        self.pages.get(&(address / PAGE))?.get(index(address))
    }

    /// The same, to change.
    pub(crate) fn get_mut(&mut self, address: u64) -> Option<&mut Cell> {
        self.pages.get_mut(&(address / PAGE))?.get_mut(index(address))
    }

    /// The cell of an address; its page is tracked from now on.
    pub(crate) fn touch(&mut self, address: u64, is_limited: bool) -> Result<&mut Cell, Fault> {
        let full = is_limited && self.pages.len() >= PAGES_MAX && !self.pages.contains_key(&(address / PAGE));
        if full {
            return Err(Fault::Assert(ASSERT_FALSE));
        }
        let page = self.pages.entry(address / PAGE).or_insert_with(|| vec![Cell::NEW; 512]);
        page.get_mut(index(address)).ok_or(Fault::Assert(ASSERT_FALSE))
    }

    /// The cell, if it was initialized.
    pub(crate) fn initialised(&self, address: u64) -> Option<&Cell> {
        self.get(address).filter(|cell| cell.initialised)
    }

    /// The cell, if it is an entry.
    pub(crate) fn pte(&self, address: u64) -> Option<&Cell> {
        self.initialised(address).filter(|cell| cell.is_pte)
    }
}

fn index(address: u64) -> usize {
    usize::try_from(address / 8 % WORDS).unwrap_or(0)
}
