//! One pass over a trace: damage to the sink, records to a visitor.

use anytrace_core::{Error, Passed, Place, Sink};

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
