//! Hands out the places where reading can begin.

use anytrace_core::index::{Mark, MarkSink};
use anytrace_core::{Error, Place, Sink};

use crate::wire::reader::{Visit, run_of};
use crate::wire::record::{Layout, Record};

/// Passes marks on; records are only framed.
pub(crate) struct Marks<'a> {
    pub(crate) layout: Layout,
    pub(crate) out: &'a mut dyn MarkSink,
}

impl Visit for Marks<'_> {
    fn run(&mut self, window: &[u8], _at: Place, _sink: &mut dyn Sink) -> Result<usize, Error> {
        Ok(run_of(window, self.layout).len())
    }

    fn rtta(&mut self, _record: &Record<'_>, _raw: &[u8], _at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        Ok(())
    }

    fn mark(&mut self, mark: Mark) -> Result<(), Error> {
        self.out.mark(mark)
    }
}
