//! Which compressed records a copy cannot have, so that what they contain is written without compression.

use anytrace_core::{Collect, Error};

use crate::model::features::COMPRESSED;
use crate::model::session::{Go, Session, What, walk};
use crate::wire::reader::Reader;
use crate::wire::record::{Form, Record};

/// The offset from which on a repair writes what compressed records contain: damage ends a zstd stream for good. `None`
/// where all can be copied. Reads all of the recording and returns to the first record, if it can; of a stream that is
/// too long for that, all is written without compression.
///
/// `perf` needs a table behind the records to read compressed ones, so where it is missing none are left.
pub(super) fn unpack_from(reader: &mut Reader, distinct_max: usize) -> Result<Option<u64>, Error> {
    if reader.layout().form == Form::Text {
        return Ok(None);
    }
    if !reader.can_read_twice()? {
        return Ok(Some(0));
    }
    let (mut from, mut has_table, mut table_bytes) = (None::<u64>, false, 0);
    // Compressed records that a record goes across stay together.
    let (mut around, mut chain, mut is_first) = (0, 0, false);
    let mut session = Session::new(distinct_max);
    walk(reader, &mut session, &mut Collect::default(), |session, place, record, entered, _| {
        match record {
            Record::Header(header) => {
                has_table = header.is_pipe() || header.data().bytes > 0 && session.features.contains(&COMPRESSED);
                table_bytes = if header.is_pipe() { 0 } else { session.features.len() * 16 };
            }
            Record::Features(bytes) => table_bytes = table_bytes.saturating_sub(bytes.len()),
            Record::Event(event) if event.inside().is_some() => {
                if std::mem::take(&mut is_first) && place.offset == around {
                    chain = around;
                }
                if matches!(entered.what, What::Bad(..)) {
                    from = Some(from.map_or(chain, |from| from.min(chain)));
                }
            }
            Record::Event(event) if event.is_compressed() => (around, is_first) = (place.offset, true),
            _ => {}
        }
        Ok(if has_table { Go::On } else { Go::Stop })
    })?;
    let damaged = reader.packed_damage();
    reader.rewind();
    if !has_table || table_bytes > 0 {
        return Ok(Some(0));
    }
    Ok(from.into_iter().chain(damaged).min())
}
