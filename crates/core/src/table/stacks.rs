//! The table `stacks`, made of the lane of spans.

use super::nest::Nest;
use super::{Column, ColumnType, RowSink, Rows, Scan, Table};
use crate::Error;
use crate::hash::Set;
use crate::span::{EdgeBatch, EdgeKind, Location, NameId, SpanSink, SpanSource, Track, TrackId};

/// Most different stacks: each takes a few bytes of memory until the end.
const STACKS_MAX: usize = 1 << 24;

/// Different stacks of spans.
pub const STACKS: Table = Table {
    name: "stacks",
    help: "a stack of names, from the outermost span to one inside it",
    columns: &[
        Column::new("stack", ColumnType::UInt64, "hash of the names; `spans` has it too"),
        Column::nullable("parent", ColumnType::UInt64, "the stack without its last name"),
        Column::new("name", ColumnType::Name, "its last name"),
        Column::new("depth", ColumnType::Int32, "names before the last"),
    ],
};

/// Makes the rows of [`STACKS`] of the lane of spans.
pub struct StackRows<'a> {
    rows: Rows<'a>,
    seen: Set<u64>,
    nest: Nest,
}

impl<'a> StackRows<'a> {
    /// Rows for a sink.
    pub fn new(scan: &Scan, out: &'a mut dyn RowSink) -> Self {
        Self { rows: Rows::new(&STACKS, scan, out), seen: Set::default(), nest: Nest::default() }
    }

    /// Hands out the last rows. Call it once, after all edges.
    ///
    /// # Errors
    /// What the sink of rows returns.
    pub fn finish(self) -> Result<(), Error> {
        self.rows.finish()
    }
}

impl SpanSink for StackRows<'_> {
    fn source(&mut self, _source: &SpanSource) -> Result<(), Error> {
        Ok(())
    }

    fn wants_lives(&self) -> bool {
        false
    }

    fn wants_attributes(&self) -> bool {
        false
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        self.nest.track(track);
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], _location: Option<&Location>) -> Result<(), Error> {
        self.nest.name(name);
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            match edge.kind {
                EdgeKind::Begin => {
                    let Some((stack, parent, depth)) = self.nest.begin(edge, None)? else { continue };
                    if !self.seen.insert(stack) {
                        continue;
                    }
                    if self.seen.len() > STACKS_MAX {
                        return Err(Error::limit(format!("more than {STACKS_MAX} different stacks")));
                    }
                    self.rows.uint64(stack);
                    self.rows.uint64(parent);
                    self.rows.numbered_name(edge.name, || self.nest.text(edge.name).into());
                    self.rows.int32(i32::try_from(depth).unwrap_or(i32::MAX));
                    self.rows.end()?;
                }
                EdgeKind::End => drop(self.nest.end(edge, None)),
                _ => {}
            }
        }
        Ok(())
    }
}
