//! `llvm-xray fdr-dump`: the records of an FDR trace in wire order, or grouped by thread and block.

use std::io::Write;

use anytrace_core::{Diagnostic, Error, Input, OpenOptions, Place, Sink, Summary};

use super::fdr_groups::{GroupFinder, Reading, print_groups};
use super::fdr_line::{FLUSH_BYTES, FUNCTION_LINE_BYTES, push_function, push_metadata};
use crate::wire::fdr::{FdrWalk, Run, Visitor};
use crate::wire::open::{Form, Opened, XrayTrace, end, read_to_end, starts_as_fdr};
use crate::wire::record::{FDR_VERSION_MAX, HEADER_BYTES, Metadata, Orders, TYPE_FDR};

/// What to print.
#[derive(Debug, Clone, Copy, Default)]
pub struct FdrDumpOptions {
    /// By thread and block, each block with its preamble set apart, as `--verify` prints them; violations of the order
    /// of records are reported. The input must be a file or in memory.
    pub verify: bool,
    /// Escape bytes in payloads that could control a terminal; the peer prints payloads unchanged.
    pub escapes: bool,
}

/// Prints an FDR trace in the peer's grammar.
///
/// Version 1 filler after a buffer's end, which the peer shows as records, is left out. Damage is reported, and every
/// readable record is printed.
///
/// # Errors
/// Unsupported for Basic and YAML traces; usage if [`FdrDumpOptions::verify`] is requested for a stream; I/O errors and
/// whatever the sink returns.
pub fn fdr_dump(
    input: Input,
    options: &OpenOptions,
    dump: FdrDumpOptions,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let Opened { cursor, form, limits } = XrayTrace::new(input, options).start(sink)?;
    let (records, cursor) = match readable(form, cursor.window()) {
        Form::Empty => (0, cursor),
        Form::Unreadable(_) => (0, read_to_end(cursor)?),
        Form::Yaml => return Err(not_fdr("a YAML trace")),
        Form::Binary(header, _) if header.type_code != TYPE_FDR => {
            return Err(not_fdr(&format!("a Basic trace of version {}", header.version)));
        }
        Form::Binary(header, layout) if dump.verify => {
            let mut finder = GroupFinder::new(sink);
            let (records, cursor) = FdrWalk::new(cursor, header, layout, &limits).walk(&mut finder)?;
            let groups = finder.finish()?;
            let mut cursor = cursor;
            cursor.bring_at_hand();
            let Some(bytes) = cursor.as_slice() else {
                return Err(Error::usage("grouping by thread needs the trace in a file"));
            };
            let read = Reading { layout, version: header.version, payload_max: limits.record_bytes_max };
            print_groups(bytes, &groups, read, dump.escapes, out)?;
            (records, cursor)
        }
        Form::Binary(header, layout) => {
            let buffer = Vec::with_capacity(2 * FLUSH_BYTES);
            let mut printer = Printer { out, sink, layout, escapes: dump.escapes, buffer };
            let walked = FdrWalk::new(cursor, header, layout, &limits).walk(&mut printer)?;
            printer.flush()?;
            walked
        }
    };
    let bytes = end(&cursor, sink)?;
    Ok(Summary { records, bytes })
}

/// A header with a wrong number before valid buffers must not hide them: the peer checks neither the type nor the
/// version.
fn readable(form: Form, window: &[u8]) -> Form {
    match form {
        Form::Unreadable(Some((mut header, layout)))
            if starts_as_fdr(window.get(HEADER_BYTES..).unwrap_or_default(), layout) =>
        {
            header.type_code = TYPE_FDR;
            if !header.is_known() {
                header.version = FDR_VERSION_MAX;
            }
            Form::Binary(header, layout)
        }
        form => form,
    }
}

fn not_fdr(what: &str) -> Error {
    Error::unsupported(format!("expected an FDR trace, found {what}; use `anytrace dump` to print its records"))
}

/// One record per line, in the order of the file.
struct Printer<'a> {
    out: &'a mut dyn Write,
    sink: &'a mut dyn Sink,
    layout: Orders,
    escapes: bool,
    buffer: Vec<u8>,
}

impl Printer<'_> {
    fn flush(&mut self) -> Result<(), Error> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Error> {
        if self.buffer.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }
}

impl Visitor for Printer<'_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        self.buffer.reserve(FLUSH_BYTES + FUNCTION_LINE_BYTES);
        for (_, function) in run.records() {
            push_function(&mut self.buffer, &function);
            self.buffer.push(b'\n');
            self.settle()?;
        }
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, _raw: &[u8], _at: Place) -> Result<(), Error> {
        push_metadata(&mut self.buffer, metadata, self.layout, self.escapes);
        self.buffer.push(b'\n');
        self.settle()
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        // What was read before the damage comes before it on a terminal too.
        self.flush()?;
        self.sink.report(diagnostic)
    }
}
