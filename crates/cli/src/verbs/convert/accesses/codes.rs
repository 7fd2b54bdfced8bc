//! The file of code addresses beside a cacheray trace, made from the instruction fetches of another format's.

use std::path::{Path, PathBuf};

use anytrace_core::access::codes::{CodeSource, CodeWriter, FromFetches, beside};
use anytrace_core::access::{Access, AccessKind, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::{AccessSink, Error};
use anytrace_export::accesses::cacheray_records;

use crate::failure::Failure;
use crate::output::{Aside, Output};

/// The file, being written.
pub(super) struct CodesFile {
    path: PathBuf,
    writer: CodeWriter<Output>,
    fetches: FromFetches,
    is_any: bool,
}

impl CodesFile {
    /// Begins the file beside a trace that is being written.
    pub(super) fn create(trace: &Path, force: bool) -> Result<Self, Failure> {
        let path = beside(trace);
        let writer = CodeWriter::new(Output::create(&path, force)?).map_err(|error| Failure::output(&error))?;
        Ok(Self { path, writer, fetches: FromFetches::default(), is_any: false })
    }

    /// Completes the file; `None` where no instruction was fetched, so that there is nothing to say in it. One that is there
    /// is of the trace that is replaced, and goes with it.
    pub(super) fn finish(self) -> Result<Option<Aside>, Failure> {
        let output = self.writer.finish().map_err(|error| Failure::output(&error))?;
        if self.is_any || self.path.exists() { output.set_aside().map(Some) } else { Ok(None) }
    }

    fn push(&mut self, access: &Access) -> Result<(), Error> {
        let code = self.fetches.code(access);
        self.is_any |= access.kind == AccessKind::Fetch;
        for (address, _) in cacheray_records(access) {
            self.writer.code(code, address).map_err(|error| Error::io(self.path.display(), error))?;
        }
        Ok(())
    }
}

/// Writes code addresses besides what `out` makes of the accesses.
pub(super) struct WithCodes<'a> {
    pub(super) out: &'a mut dyn AccessSink,
    pub(super) codes: &'a mut CodesFile,
}

impl AccessSink for WithCodes<'_> {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.out.thread(number, id)
    }

    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.out.type_name(number, name)
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.out.region_added(region)
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.out.region_removed(region)
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        batch.iter().try_for_each(|access| self.codes.push(access))?;
        self.out.accesses(batch)
    }
}
