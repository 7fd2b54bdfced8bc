//! One pass over a trace: damage to the sink, records to a visitor.

use anytrace_core::{Error, Outcome, Passed, Place, Sink};

use crate::wire::reader::Reader;

/// What a visitor wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Stop,
}

/// Visits every record; the reader has it.
pub(crate) fn walk(
    reader: &mut Reader,
    sink: &mut dyn Sink,
    mut visit: impl FnMut(&mut Reader, Place, &mut dyn Sink) -> Result<Go, Error>,
) -> Result<Passed, Error> {
    while let Some(step) = reader.advance()? {
        match step {
            Ok(place) => {
                if visit(reader, place, sink)? == Go::Stop {
                    break;
                }
            }
            Err(damage) => sink.report(damage)?,
        }
    }
    Ok(reader.passed())
}

/// What became of the records.
pub(super) fn outcome(records_read: u64, records_written: u64, bytes_lost: u64) -> Outcome {
    let notes = match bytes_lost {
        0 => Vec::new(),
        bytes => vec![format!("Bytes that are not in readable records were left out: {bytes}.")],
    };
    Outcome { records_read, records_written, bytes_lost, notes }
}
