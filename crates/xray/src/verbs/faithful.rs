//! Writes an FDR trace again as it is: every complete record, in the same version, in either byte order.

use anytrace_core::{Diagnostic, Error, Outcome, Place, Severity, Sink};

use crate::verbs::check::VerifierState;
use crate::wire::fdr::{GapKind, Run, Visitor};
use crate::wire::put::{Out, put_function, put_metadata};
use crate::wire::record::{Body, METADATA_BYTES, Metadata, Orders};

/// Zero bytes that are written at once.
const ZEROS: [u8; 4096] = [0; 4096];

/// Copies record by record. Extents are corrected where records were lost.
pub(crate) struct Faithful<'a, 't> {
    out: &'a mut Out<'t>,
    sink: &'a mut dyn Sink,
    from: Orders,
    to: Orders,
    version: u16,
    outcome: Outcome,
    /// Output position after the extents, and the size they state.
    extents: Option<(u64, u64)>,
    /// Bytes left out of this version 1 buffer.
    dropped: u64,
    corrected: u64,
    /// Part of this buffer was lost.
    is_damaged: bool,
    /// The preamble of this buffer so far; empty once a record after it was written.
    preamble: Preamble,
    /// Records of preambles that were left out.
    left_out: u64,
    /// The last record of this buffer is an end-of-buffer record.
    has_end: bool,
    /// What was written last is a version 1 buffer that lost its end-of-buffer record.
    lacks_end: bool,
}

/// Records that a buffer begins with. They are written with the first record after them: a buffer that breaks off
/// before holds nothing, and what exists of it is not a valid buffer.
#[derive(Default)]
struct Preamble {
    bytes: Vec<u8>,
    /// The size that the extents among them state.
    stated: Option<u64>,
    may_end: bool,
    is_over: bool,
}

impl<'a, 't> Faithful<'a, 't> {
    pub(crate) fn new(out: &'a mut Out<'t>, sink: &'a mut dyn Sink, from: Orders, to: Orders, version: u16) -> Self {
        Self {
            out,
            sink,
            from,
            to,
            version,
            outcome: Outcome::default(),
            extents: None,
            dropped: 0,
            corrected: 0,
            is_damaged: false,
            preamble: Preamble::default(),
            left_out: 0,
            has_end: false,
            lacks_end: false,
        }
    }

    pub(crate) fn finish(mut self) -> Result<Outcome, Error> {
        self.outcome.records_read = self.outcome.records_written + self.left_out;
        if self.lacks_end {
            self.put_end();
            self.outcome.records_written += 1;
            self.outcome.notes.push("The last buffer is incomplete; an end-of-buffer record was added.".to_owned());
        }
        self.out.flush()?;
        if self.corrected > 0 {
            self.outcome
                .notes
                .push(format!("The extents of {} buffers were corrected to the bytes written.", self.corrected));
        }
        Ok(self.outcome)
    }

    /// Writes the preamble, where that was not done yet.
    fn write_preamble(&mut self) -> Result<(), Error> {
        self.preamble.is_over = true;
        if self.preamble.bytes.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.preamble.bytes);
        if let Some(stated) = self.preamble.stated.take() {
            self.extents = Some((self.out.position() + METADATA_BYTES as u64, stated));
        }
        self.outcome.records_written += (bytes.len() / METADATA_BYTES) as u64;
        self.out.put(&bytes)?;
        Ok(())
    }

    fn put_end(&mut self) {
        put_metadata(&mut self.out.buffer, &Metadata { body: Body::EndOfBuffer, reserved: &[] }, self.to);
    }

    /// Leaves out the preamble of a buffer that breaks off in it.
    fn leave_out_preamble(&mut self) {
        let length = self.preamble.bytes.len();
        self.outcome.bytes_lost += length as u64;
        self.dropped += length as u64;
        self.left_out += (length / METADATA_BYTES) as u64;
    }

    fn pad_version_1(&mut self) -> Result<(), Error> {
        let mut left = std::mem::take(&mut self.dropped);
        while left > 0 {
            let step = usize::try_from(left).unwrap_or(ZEROS.len()).min(ZEROS.len());
            self.out.put(ZEROS.get(..step).unwrap_or_default())?;
            left -= step as u64;
        }
        Ok(())
    }
}

impl Visitor for Faithful<'_, '_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        self.write_preamble()?;
        self.has_end = false;
        self.outcome.records_written += run.len();
        if self.from == self.to {
            self.out.put(run.bytes)?;
            return Ok(());
        }
        for (_, function) in run.records() {
            put_function(&mut self.out.buffer, &function, self.to);
        }
        self.out.settle()?;
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, raw: &[u8], _at: Place) -> Result<(), Error> {
        if self.version == 1 && matches!(metadata.body, Body::NewBuffer { .. }) {
            self.pad_version_1()?;
            self.lacks_end = false;
        }
        let state = VerifierState::of(&metadata.body);
        let is_of_preamble = matches!(
            state,
            VerifierState::Extents | VerifierState::NewBuffer | VerifierState::WallTime | VerifierState::Pid
        );
        if is_of_preamble && !self.preamble.is_over {
            match self.from == self.to {
                true => self.preamble.bytes.extend_from_slice(raw),
                false => put_metadata(&mut self.preamble.bytes, metadata, self.to),
            }
            if let Body::BufferExtents { bytes } = metadata.body {
                self.preamble.stated = Some(bytes);
            }
            self.preamble.may_end = state.may_be_last();
            return Ok(());
        }
        self.write_preamble()?;
        self.has_end = state == VerifierState::EndOfBuffer;
        self.outcome.records_written += 1;
        if self.from == self.to {
            self.out.put(raw)?;
        } else {
            put_metadata(&mut self.out.buffer, metadata, self.to);
            self.out.settle()?;
        }
        Ok(())
    }

    fn gap(&mut self, kind: GapKind, bytes: &[u8], _at: Place) -> Result<(), Error> {
        if kind == GapKind::Damage {
            self.outcome.bytes_lost += bytes.len() as u64;
            self.dropped += bytes.len() as u64;
            return Ok(());
        }
        if !self.preamble.bytes.is_empty() {
            self.write_preamble()?;
        }
        self.lacks_end = false;
        self.out.put(bytes)?;
        Ok(())
    }

    fn buffer_end(&mut self, _at: Place) -> Result<(), Error> {
        let is_damaged = std::mem::take(&mut self.is_damaged);
        if is_damaged && !self.preamble.bytes.is_empty() && !self.preamble.may_end {
            self.leave_out_preamble();
        } else {
            self.write_preamble()?;
            self.lacks_end = self.version == 1 && is_damaged && !self.has_end;
        }
        self.preamble = Preamble::default();
        self.has_end = false;
        if let Some((start, stated)) = self.extents.take() {
            let written = self.out.position() - start;
            // Extents that were wrong but lost nothing are kept.
            if written != stated && is_damaged {
                self.out.patch(start - 15, &self.to.endian.put_u64(written))?;
                self.corrected += 1;
            }
        }
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.is_damaged |= diagnostic.severity == Severity::Error;
        self.sink.report(diagnostic)
    }
}
