//! `casemate rewrite`: canonical, positional or pretty records, renumbered or not.

use std::io::Write;

use anytrace_core::{Error, Input, OpenOptions, Sink};

use crate::wire::record::{Record, Source};
use crate::wire::style::{Radix, Style};
use crate::wire::walk::{Item, Walk};
use crate::wire::writer::Layout;

/// How to write.
#[derive(Debug, Clone, Copy)]
pub struct RewriteOptions {
    /// Layout.
    pub style: Style,
    /// Hexadecimal numbers without `0x`, as today's tracer writes them.
    pub is_bare: bool,
    /// Number records from this on.
    pub renumber: Option<u64>,
    /// Leave source places out.
    pub drops_sources: bool,
}

/// Rewrites every record; comments and other text between records are removed, claimed verdicts are kept. Returns how
/// many records were written.
///
/// # Errors
/// I/O errors, whatever the sink returns, and records that the form cannot represent.
pub fn rewrite(
    input: Input,
    open: &OpenOptions,
    options: RewriteOptions,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<u64, Error> {
    let form = Layout { is_bare: options.is_bare, ..Layout::new(options.style, Radix::Hex) };
    let mut line = Vec::new();
    let mut written = 0;
    let failed = |error| Error::io("cannot write", error);
    Walk::new(input, open)?.for_each(sink, |item, place| {
        line.clear();
        match item {
            Item::Record(record) => {
                form.holds(record, place.seq)?;
                let id = options.renumber.map_or(record.id, |first| first.wrapping_add(written));
                let source = if options.drops_sources { Source::Absent } else { record.source };
                form.push(&mut line, &Record { id, source, ..*record });
                written += 1;
            }
            Item::Claim(text) => line.extend_from_slice(text.trim_ascii_end()),
            _ => return Ok(()),
        }
        line.push(b'\n');
        out.write_all(&line).map_err(failed)
    })?;
    out.flush().map_err(failed)?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use anytrace_core::Collect;

    use super::*;

    #[test]
    fn records_are_renumbered_and_restyled() {
        let log = b"(LOCK (id 9) (tid 1) (src \"a.c:1\") (address 0x42)) ; noise\n(unlock 12 1 42)\n! bad\n";
        let run = |options| {
            let mut out = Vec::new();
            let input = Input::from_bytes("t", log.to_vec());
            rewrite(input, &OpenOptions::default(), options, &mut out, &mut Collect::default()).unwrap();
            String::from_utf8(out).unwrap()
        };
        let options =
            RewriteOptions { style: Style::Canonical, is_bare: false, renumber: Some(5), drops_sources: false };
        assert_eq!(
            run(options),
            "(lock (id 5) (tid 1) (address 0x42) (src \"a.c:1\"))\n(unlock (id 6) (tid 1) (address 0x42))\n! bad\n"
        );
        let options = RewriteOptions { style: Style::Positional, is_bare: true, renumber: None, drops_sources: true };
        assert_eq!(run(options), "(lock 9 1 42)\n(unlock 12 1 42)\n! bad\n");
    }
}
