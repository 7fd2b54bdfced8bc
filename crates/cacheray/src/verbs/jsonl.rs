//! JSON lines back to a trace.

use anytrace_core::jsonl::{Lines, Object};
use anytrace_core::{Endian, Error, ImportOptions, Input, Outcome, Place, Target};

use crate::verbs::output::{Form, Output};
use crate::wire::record::{Body, Kind, Layout, Record, Tag, Width};

/// Writes a trace from the output of `dump --format jsonl`.
pub(crate) fn import(input: Input, options: &ImportOptions<'_>, out: &mut dyn Target) -> Result<Outcome, Error> {
    let mut lines = Lines::new(input, options.limits);
    let layout = header_layout(&lines.header(crate::NAME)?)?;
    let form = Form::new(options.target, layout)?;
    let mut out = out;
    let mut output = Output::new(&mut out, layout, form);
    let mut seq = 0;
    while let Some(line) = lines.next()? {
        let name = if line.has("type") { line.bytes("type")? } else { Vec::new() };
        let record = record(&line, &name)?;
        if record.address > layout.width.address_max() {
            let expected = format!("an address of {} bytes, as the first line says", layout.width.bytes());
            return Err(line.wrong("address", expected, record.address.to_string()));
        }
        output.record(&record, Place { seq, offset: 0 })?;
        seq += 1;
    }
    let records_written = output.finish()?;
    Ok(Outcome { records_read: seq, records_written, ..Outcome::default() })
}

fn header_layout(header: &Object) -> Result<Layout, Error> {
    let order = header.str("byte_order")?;
    let endian = Endian::from_name(order).ok_or_else(|| header.wrong("byte_order", "little or big", order))?;
    let bytes: u8 = header.uint("pointer_width")?;
    let width = Width::from_bytes(bytes).ok_or_else(|| header.wrong("pointer_width", "4 or 8", bytes.to_string()))?;
    Ok(Layout { endian, width })
}

fn record<'a>(line: &Object, name: &'a [u8]) -> Result<Record<'a>, Error> {
    let word = line.str("kind")?;
    let kind = Kind::from_name(word).ok_or_else(|| {
        line.wrong("kind", "read, write, rtta_add or rtta_remove", word.chars().take(40).collect::<String>())
    })?;
    let body = match kind {
        Kind::Read | Kind::Write => Body::Access { size: line.uint("size")? },
        Kind::RttaAdd => {
            // Its absence is an error, not an empty name.
            line.bytes("type")?;
            Body::Add { elemsize: line.uint("elemsize")?, elemcount: line.uint("elemcount")?, name }
        }
        Kind::RttaRemove => Body::Remove,
    };
    let flag = |field: &str| if line.has(field) { line.bool(field) } else { Ok(false) };
    let tag = Tag::new(kind, flag("atomic")?, flag("unaligned")?);
    Ok(Record { tag, address: line.u64("address")?, thread: line.u64("thread")?, body })
}
