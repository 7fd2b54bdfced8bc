//! The numbers in a file's header that depend on how long its records are.

use anytrace_core::bytes::array_at;
use anytrace_core::{Endian, Error, Target};

use crate::wire::header::{DATA_SIZE_AT, FEATURES_AT, Section};
use crate::wire::record::Record;

/// Most bytes of the table of the features: 256 entries.
const TABLE_BYTES_MAX: usize = 4096;

/// A record that says nothing, for a file without any: `PERF_RECORD_FINISHED_ROUND`.
const ROUND: u32 = 68;

/// What is known of a file while it is written.
#[derive(Debug, Default)]
pub(crate) struct Patch {
    endian: Endian,
    /// The header's range of records; `None` for texts and streams.
    data: Option<Section>,
    features: usize,
    /// Bytes of records that were written.
    records_bytes: u64,
    /// The start of what follows the records.
    table: Vec<u8>,
}

impl Patch {
    /// Takes a record that is written.
    pub(crate) fn see(&mut self, record: &Record<'_>) {
        match record {
            Record::Header(header) if !header.is_pipe() => {
                (self.data, self.endian) = (Some(header.data()), header.endian);
                self.features = header.features().count();
            }
            Record::Event(event) if event.inside().is_none() => self.records_bytes += event.bytes.len() as u64,
            Record::Features(bytes) => {
                let room = TABLE_BYTES_MAX.min(self.features * 16).saturating_sub(self.table.len());
                self.table.extend(bytes.iter().take(room));
            }
            Record::Event(_) | Record::Header(_) | Record::Line(_) => {}
        }
    }

    /// A record for a file that has none, whose length would be that of a recording without an end.
    pub(crate) fn filler(&mut self) -> Option<Vec<u8>> {
        let is_empty = self.data.is_some() && self.records_bytes == 0;
        is_empty.then(|| {
            self.records_bytes = 8;
            let mut bytes = self.endian.put_u32(ROUND).to_vec();
            bytes.extend_from_slice(&[0, 0]);
            bytes.extend_from_slice(&self.endian.put_u16(8));
            bytes
        })
    }

    /// Writes the numbers; `start` is where the file begins. Returns true if its features were removed.
    pub(crate) fn apply(&self, out: &mut dyn Target, start: u64) -> Result<bool, Error> {
        let Some(data) = self.data else { return Ok(false) };
        if data.bytes != self.records_bytes {
            out.patch(start + DATA_SIZE_AT as u64, &self.endian.put_u64(self.records_bytes))?;
        }
        if data.bytes == 0 || self.table.len() < self.features * 16 {
            let has_any = self.features > 0;
            if has_any {
                out.patch(start + FEATURES_AT as u64, &[0; 32])?;
            }
            return Ok(has_any);
        }
        let table = start + data.offset + self.records_bytes;
        for (number, entry) in (0..).zip(self.table.chunks_exact(16)) {
            let Some(offset) = array_at::<8>(entry, 0).map(|offset| self.endian.u64(offset)) else { continue };
            let Some(behind) = offset.checked_sub(data.end()).filter(|_| data.bytes != self.records_bytes) else {
                continue;
            };
            let moved = data.offset.saturating_add(self.records_bytes).saturating_add(behind);
            out.patch(table + number * 16, &self.endian.put_u64(moved))?;
        }
        Ok(false)
    }
}
