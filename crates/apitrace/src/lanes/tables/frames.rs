//! The table of frames.

use anytrace_core::table::{Column, ColumnType, Rows, Table};
use anytrace_core::{Error, Sink, Summary};

use crate::wire::reader::Reader;
use crate::wire::record::{Event, EventKind};
use crate::wire::signatures::Signatures;
use crate::wire::visitor::{Before, Visitor};

pub(super) const FRAMES: Table = Table {
    name: "frames",
    help: "a frame: the calls entered in it, up to the one that ends it",
    columns: &[
        Column::new("frame", ColumnType::Int64, "its number, from 0"),
        Column::new("first_call", ColumnType::Int64, "number of its first call"),
        Column::new("calls", ColumnType::Int64, "how many calls are entered in it"),
    ],
};

/// Reads the table.
pub(super) fn read(mut reader: Reader, rows: Rows<'_>, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let mut made = FrameRows { rows, frame: None };
    let totals = reader.read(&mut made, sink)?;
    // A frame that goes on in the next part is a row there.
    if !totals.ends_early {
        made.push()?;
    }
    made.rows.finish()?;
    Ok(Summary { records: totals.events, bytes: totals.raw_bytes })
}

/// Makes the rows.
struct FrameRows<'a> {
    rows: Rows<'a>,
    /// Number, first call and number of calls of the frame at hand.
    frame: Option<(u64, u64, u64)>,
}

impl FrameRows<'_> {
    #[inline]
    fn count(&mut self, event: &Event) -> Result<(), Error> {
        if event.kind != EventKind::Enter {
            return Ok(());
        }
        match &mut self.frame {
            Some((frame, _, calls)) if *frame == event.frame => {
                *calls += 1;
                Ok(())
            }
            _ => {
                self.push()?;
                self.frame = Some((event.frame, event.call, 1));
                Ok(())
            }
        }
    }

    fn push(&mut self) -> Result<(), Error> {
        let Some((frame, first, calls)) = self.frame.take() else { return Ok(()) };
        self.rows.count(frame);
        self.rows.count(first);
        self.rows.count(calls);
        self.rows.end()
    }
}

impl Visitor for FrameRows<'_> {
    fn takes_plain(&self) -> bool {
        true
    }

    fn keeps_definitions(&self) -> bool {
        false
    }

    fn resume(&mut self, before: &Before<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        self.frame = before.last_frame.map(|(frame, first)| (frame, first, before.calls.saturating_sub(first)));
        Ok(())
    }

    #[inline]
    fn plain_event(&mut self, event: &Event, _: &[u8], _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        self.count(event)?;
        Ok(0)
    }

    #[inline]
    fn plain_call(&mut self, enter: &Event, _: [&[u8]; 2], _: &mut dyn Sink) -> Result<bool, Error> {
        self.count(enter)?;
        Ok(true)
    }

    fn end(&mut self, event: &Event, _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        self.count(event)?;
        Ok(0)
    }
}
