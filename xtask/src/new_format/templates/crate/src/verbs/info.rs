//! `info`: counts everything in one pass.

use anytrace_core::{Error, Info, Sink, Step};

use crate::wire::reader::Reader;
use crate::wire::record::{NAME, VERSION};

/// Reads the entire trace.
pub(crate) fn info(mut reader: Reader, sink: &mut dyn Sink) -> Result<Info, Error> {
    let mut info = Info::new(NAME);
    info.format_version = Some(VERSION.to_string());
    info.set_container(reader.layers(), None);
    let (mut text_bytes, mut numbers) = (0, None);
    let passed = reader.for_each(|step| match step {
        Step::Record(_, record) => {
            text_bytes += record.text.len() as u64;
            let (min, max) = numbers.unwrap_or((record.number, record.number));
            numbers = Some((min.min(record.number), max.max(record.number)));
            Ok(())
        }
        Step::Damage(diagnostic) => sink.report(diagnostic),
    })?;
    info.bytes = passed.bytes;
    info.records = passed.records;
    info.set_kinds([("line", passed.records)]);
    info.details.push(("text_bytes", text_bytes.into()));
    if let Some((min, max)) = numbers {
        info.details.extend([("number_min", min.into()), ("number_max", max.into())]);
    }
    if passed.bytes_lost > 0 {
        info.details.push(("lost_bytes", passed.bytes_lost.into()));
    }
    Ok(info)
}
