//! The earliest time of a trace that is read in wire order: times in seconds count from it, as they do where the trace
//! is read in order of time.

use anytrace_core::{Cursor, Diagnostic, Error, Input, Limits, Place, Selection, Sink};

use crate::rules;
use crate::wire::fdr::{FdrWalk, Run, Visitor};
use crate::wire::moment::{Clock, Moment, Moments};
use crate::wire::moments::{WireForm, walk};
use crate::wire::open::{Form, Opened};
use crate::wire::record::{Body, HEADER_BYTES, Metadata, TYPE_FDR};

/// First bytes of a long stream that are searched for a moment: they are copied for this.
const LOOKED_AT_BYTES: usize = 1 << 20;

impl Opened {
    /// Finds the earliest time of the trace, if the selection counts from it.
    pub(crate) fn find_start(
        mut self,
        selection: &Selection,
        sink: &mut dyn Sink,
    ) -> Result<(Option<u64>, Self), Error> {
        if selection.start.is_some() {
            return Ok((selection.start, self));
        }
        let Some(form) = self.wire_form().filter(|_| selection.has_relative_time()) else { return Ok((None, self)) };
        let start;
        (start, self.cursor) = first_tsc(self.cursor, form, &self.limits, Cursor::BUFFERED_BYTES_MAX, sink)?;
        Ok((start, self))
    }

    /// The form, where there are records.
    pub(crate) fn wire_form(&self) -> Option<WireForm> {
        match self.form {
            Form::Empty | Form::Unreadable(_) => None,
            Form::Yaml => Some(WireForm::Yaml),
            Form::Binary(header, layout) if header.type_code == TYPE_FDR => Some(WireForm::Fdr(header, layout)),
            Form::Binary(header, layout) => Some(WireForm::Basic(header, layout)),
        }
    }
}

/// Earliest time of all moments, the same as `Ordered::first_tsc`; the cursor is at the first byte again.
///
/// A stream of more than `buffered_bytes_max` bytes cannot be read twice: the result is the time of its first moment,
/// and a note says so. Damage is not reported: the pass that follows does that.
pub(crate) fn first_tsc(
    mut cursor: Cursor,
    form: WireForm,
    limits: &Limits,
    buffered_bytes_max: usize,
    sink: &mut dyn Sink,
) -> Result<(Option<u64>, Cursor), Error> {
    if cursor.can_read_twice(buffered_bytes_max)? {
        let mut earliest = Earliest::new(form, false);
        let mut cursor = earliest.walk(cursor, form, limits)?;
        cursor.rewind();
        cursor.fill(HEADER_BYTES)?;
        return Ok((earliest.tsc, cursor));
    }
    let window = cursor.window();
    let first = [LOOKED_AT_BYTES, window.len()]
        .into_iter()
        .find_map(|length| first_of(window.get(..length).unwrap_or(window), form, limits));
    let found = first.map_or("no time".to_owned(), |tsc| format!("tick {tsc}"));
    sink.report(rules::STREAM_TIME.at(0).found(found).help("a file given by name is read twice"))?;
    Ok((first, cursor))
}

/// Time of the first moment in wire order.
fn first_of(head: &[u8], form: WireForm, limits: &Limits) -> Option<u64> {
    let mut earliest = Earliest::new(form, true);
    let _stopped = earliest.walk(Cursor::new(Input::from_bytes_as_is("head", head.to_vec())), form, limits);
    earliest.tsc
}

/// Finds the earliest time, or stops at the first.
struct Earliest {
    tsc: Option<u64>,
    stops_at_first: bool,
    clock: Clock,
}

impl Earliest {
    fn new(form: WireForm, stops_at_first: bool) -> Self {
        let version = if let WireForm::Fdr(header, _) = form { header.version } else { 0 };
        Self { tsc: None, stops_at_first, clock: Clock::new(version) }
    }

    fn walk(&mut self, cursor: Cursor, form: WireForm, limits: &Limits) -> Result<Cursor, Error> {
        let (_records, cursor) = match form {
            // Runs of function records need only two additions each.
            WireForm::Fdr(header, layout) => FdrWalk::new(cursor, header, layout, limits).walk(self)?,
            WireForm::Basic(..) | WireForm::Yaml => walk(cursor, form, limits, self)?,
        };
        Ok(cursor)
    }

    fn time(&mut self, tsc: u64) -> Result<(), Error> {
        self.tsc = Some(self.tsc.map_or(tsc, |earliest| earliest.min(tsc)));
        if self.stops_at_first { Err(Error::limit("the first time is enough")) } else { Ok(()) }
    }
}

impl Visitor for Earliest {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        let (first, sum) = run.deltas();
        let before = self.clock.tsc;
        self.clock.tsc = before.wrapping_add(sum);
        match (before.checked_add(first), before.checked_add(sum)) {
            (Some(first), Some(_)) => self.time(first),
            // Time overflows within the run: the index counts such a piece from 0.
            _ => self.time(0),
        }
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, _raw: &[u8], _at: Place) -> Result<(), Error> {
        let tsc = self.clock.metadata(&metadata.body).unwrap_or(self.clock.tsc);
        match metadata.body {
            Body::CustomEvent { .. } | Body::TypedEvent { .. } => self.time(tsc),
            _ => Ok(()),
        }
    }

    fn buffer_end(&mut self, _at: Place) -> Result<(), Error> {
        self.clock = Clock::new(self.clock.version());
        Ok(())
    }

    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

impl Moments for Earliest {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        self.time(moment.tsc)
    }

    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}
