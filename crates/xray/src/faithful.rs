//! Writes an FDR trace again as it is: every complete record, in the same version, in either byte order.

use anytrace_core::{Diagnostic, Error, Outcome, Severity, Sink};

use crate::reader::{At, GapKind, Run, Visitor};
use crate::record::{Body, Layout, Metadata};
use crate::writer::{Out, put_function, put_metadata};

/// Zero bytes that are written at once.
const ZEROS: [u8; 4096] = [0; 4096];

/// Copies record by record. Extents are corrected where records were lost.
pub(crate) struct Faithful<'a, 't> {
    out: &'a mut Out<'t>,
    sink: &'a mut dyn Sink,
    from: Layout,
    to: Layout,
    version: u16,
    outcome: Outcome,
    /// Output position after the extents, and the size they state.
    extents: Option<(u64, u64)>,
    /// Bytes left out of this version 1 buffer.
    dropped: u64,
    corrected: u64,
    /// Part of this buffer was lost.
    is_damaged: bool,
}

impl<'a, 't> Faithful<'a, 't> {
    pub(crate) fn new(out: &'a mut Out<'t>, sink: &'a mut dyn Sink, from: Layout, to: Layout, version: u16) -> Self {
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
        }
    }

    pub(crate) fn finish(mut self) -> Result<Outcome, Error> {
        self.out.flush()?;
        if self.corrected > 0 {
            self.outcome
                .notes
                .push(format!("The extents of {} buffers were corrected to what was written.", self.corrected));
        }
        self.outcome.records_read = self.outcome.records_written;
        Ok(self.outcome)
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

    fn metadata(&mut self, metadata: &Metadata<'_>, raw: &[u8], _at: At) -> Result<(), Error> {
        self.outcome.records_written += 1;
        if self.version == 1 && matches!(metadata.body, Body::NewBuffer { .. }) {
            self.pad_version_1()?;
        }
        if self.from == self.to {
            self.out.put(raw)?;
        } else {
            put_metadata(&mut self.out.buffer, metadata, self.to);
            self.out.settle()?;
        }
        if let Body::BufferExtents { bytes } = metadata.body {
            self.extents = Some((self.out.position(), bytes));
        }
        Ok(())
    }

    fn gap(&mut self, kind: GapKind, bytes: &[u8], _at: At) -> Result<(), Error> {
        if kind == GapKind::Damage {
            self.outcome.bytes_lost += bytes.len() as u64;
            self.dropped += bytes.len() as u64;
            return Ok(());
        }
        self.out.put(bytes)?;
        Ok(())
    }

    fn buffer_end(&mut self, _at: At) -> Result<(), Error> {
        if let Some((start, stated)) = self.extents.take() {
            let written = self.out.position() - start;
            // Extents that were wrong but lost nothing are kept.
            if written != stated && std::mem::take(&mut self.is_damaged) {
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
