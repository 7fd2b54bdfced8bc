//! JSON lines back to a recording.

use anytrace_core::jsonl::{Lines, Object};
use anytrace_core::{Endian, Error, ImportOptions, Input, Outcome, Target};

use crate::verbs::rewrite::Output;
use crate::wire::parse::parse;
use crate::wire::record::{Form, Layout, NAME, Record};
use crate::wire::{header, text};

/// Most values on a line: a sample has an address for each function.
const VALUES_MAX: usize = 1 << 14;

/// Writes a recording from the output of `dump --format jsonl`. Of each line, `text` or `data` is written.
pub(crate) fn import(input: Input, options: &ImportOptions<'_>, mut out: &mut dyn Target) -> Result<Outcome, Error> {
    let mut lines = Lines::new(input, options.limits).with_values_max(VALUES_MAX);
    let head = lines.header(NAME)?;
    let form = match head.str("form")? {
        "text" => Form::Text,
        "data" => Form::Data(Endian::Little),
        other => return Err(head.wrong("form", "text or data", other)),
    };
    let mut layout = Layout { form };
    let mut output = Output::new(&mut out, options.target, &layout, options.limits.distinct_max)?;
    let mut outcome = Outcome::default();
    while let Some(object) = lines.next()? {
        outcome.records_read += 1;
        if object.has("inside") {
            continue;
        }
        if form == Form::Text {
            let line = object.bytes("text")?;
            let record = text::read(&line).filter(|_| !line.contains(&b'\n'));
            let record = record.ok_or_else(|| object.wrong("text", "a line of perf script", "another text"))?;
            output.write(&Record::Line(record))?;
        } else {
            let data = object.hex("data")?;
            if outcome.records_read == 1 {
                let endian = header::endian(&data);
                let endian = endian.ok_or_else(|| object.wrong("data", "the header of perf.data", "another record"))?;
                layout.form = Form::Data(endian);
            }
            output.write(&binary(&object, &data, &layout)?)?;
        }
    }
    output.finish()?;
    outcome.records_written = outcome.records_read;
    Ok(outcome)
}

fn binary<'a>(object: &Object, data: &'a [u8], layout: &Layout) -> Result<Record<'a>, Error> {
    if object.has("kind") && object.str("kind")? == "features" {
        return Ok(Record::Features(data));
    }
    match parse(data, layout) {
        Ok((record, used)) if used == data.len() => Ok(record),
        _ => Err(object.wrong("data", "one record of perf.data", format!("{} bytes", data.len()))),
    }
}
