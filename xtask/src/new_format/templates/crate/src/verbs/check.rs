//! Rules beyond grammar.

use anytrace_core::{Error, Sink, Step, Summary};

use crate::rules;
use crate::wire::reader::Reader;

/// Reports every violation of a rule.
pub(crate) fn check(mut reader: Reader, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let mut before = 0;
    loop {
        let (place, number) = match reader.next()? {
            None => break,
            Some(Step::Damage(diagnostic)) => {
                sink.report(diagnostic)?;
                continue;
            }
            Some(Step::Record(place, record)) => (place, record.number),
        };
        if number < before {
            let damage = rules::ORDER.at(place.offset).line(reader.record_line(), 1).record(place.seq).field("number");
            sink.report(damage.expected(format!("at least {before}")).found(number.to_string()))?;
        }
        before = number;
    }
    let passed = reader.passed();
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}
