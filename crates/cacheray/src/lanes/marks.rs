//! Hands out the places where reading can begin.

use anytrace_core::index::{Mark, MarkSink, Needs};
use anytrace_core::{Error, Place, Selection, Sink};

use crate::wire::reader::{Visit, run_of};
use crate::wire::record::{Layout, Record};

/// What a dump needs: records up to the last of the selection, where it stops. Which accesses belong to a type depends on
/// all records before them.
pub(crate) fn dump_needs(selection: &Selection) -> Option<Needs> {
    let stops_at = selection.records.as_ref().map(|records| records.end);
    let is_served = selection.name.is_none() && selection.own.is_empty();
    is_served.then(|| Needs { stops_at, ..Needs::of(selection) })
}

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
