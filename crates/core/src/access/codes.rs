//! Where in a program accesses are made. Formats have no room for it, or have it in records of their own: fetches.

mod file;

use std::path::{Path, PathBuf};

use super::{Access, AccessKind};
use crate::Error;
use crate::span::Location;

pub use file::{CodeReader, CodeWriter, CodesRead};

/// The file with the code addresses of a trace: beside it, with `.pc` after its name.
pub fn beside(trace: &Path) -> PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(".pc");
    PathBuf::from(name)
}

/// A file that was mapped as code while the program ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// First address.
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    /// Where in the file the first address is, in bytes.
    pub offset: u64,
    /// What its linker made of its contents; empty where it has none.
    pub build_id: Vec<u8>,
    /// The file.
    pub path: Vec<u8>,
}

/// What is at a code address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The function with code of its own that contains it; `None` where no program says so.
    pub function: Option<String>,
    /// The line, in the innermost function that is inlined there.
    pub location: Option<Location>,
    /// The file that has the code.
    pub file: Option<PathBuf>,
    /// The address in that file; of the run where there is no file.
    pub address: u64,
}

/// Says of each access of a trace, in order, which instruction makes it.
pub trait CodeSource: Send {
    /// An address inside the instruction; 0 where it is unknown. Must be asked for each access once, in the order of
    /// records, instruction fetches included.
    fn code(&mut self, access: &Access) -> u64;
}

/// Of traces that have instruction fetches: an access is made by the instruction fetched before it. For one thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct FromFetches {
    fetched: u64,
    is_any: bool,
}

impl CodeSource for FromFetches {
    fn code(&mut self, access: &Access) -> u64 {
        if access.kind == AccessKind::Fetch {
            (self.fetched, self.is_any) = (access.address, true);
        }
        if self.is_any { self.fetched } else { 0 }
    }
}

impl CodesRead {
    /// What is missing because the file ends before the trace, in words.
    pub fn shortfall(&self) -> Option<String> {
        let count = self.ends_after?;
        Some(format!("only the first {count} accesses have code addresses: the recording was cut short"))
    }
}

/// Where the codes of a trace come from.
#[derive(Debug)]
pub enum Codes {
    /// The file beside it.
    File(Box<CodeReader>),
    /// Its own fetches, if it has any.
    Fetches(FromFetches),
}

impl Codes {
    /// Of a trace: from this file, or else from the one beside it where there is one.
    ///
    /// # Errors
    /// As [`CodeReader::open`].
    pub fn of(trace: &Path, file: Option<&Path>) -> Result<Self, Error> {
        let own = beside(trace);
        Ok(match file.or_else(|| Some(own.as_path()).filter(|file| file.exists())) {
            Some(file) => Self::File(Box::new(CodeReader::open(file)?)),
            None => Self::Fetches(FromFetches::default()),
        })
    }

    /// The modules, and what became of the codes. Call it after the last access.
    pub fn finish(self) -> (Vec<Module>, CodesRead) {
        match self {
            Self::File(reader) => (reader.modules().to_vec(), reader.finish()),
            Self::Fetches(_) => (Vec::new(), CodesRead::default()),
        }
    }
}

impl CodeSource for Codes {
    fn code(&mut self, access: &Access) -> u64 {
        match self {
            Self::File(reader) => reader.code(access),
            Self::Fetches(fetches) => fetches.code(access),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::AccessFlags;
    use super::*;

    #[test]
    fn an_access_is_made_by_the_instruction_fetched_before() {
        let access = |kind, address| Access { address, seq: 0, thread: 0, bytes: 4, kind, flags: AccessFlags::NONE };
        let mut source = FromFetches::default();
        let mut code = |kind, address| source.code(&access(kind, address));
        assert_eq!(code(AccessKind::Read, 5), 0);
        assert_eq!(code(AccessKind::Fetch, 0x400), 0x400);
        assert_eq!((code(AccessKind::Read, 5), code(AccessKind::Write, 6)), (0x400, 0x400));
        assert_eq!(code(AccessKind::Fetch, 0x404), 0x404);
        assert_eq!(code(AccessKind::Write, 5), 0x404);
    }
}
