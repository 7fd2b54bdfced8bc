//! Exports a trace as a C program that replays its calls without a window (`apitrace to-c`).
//!
//! The calls are written to C files as they are read, long data to `data.bin`; only tables are kept in memory. The
//! program finds EGL and OpenGL at run time, makes a context for each of the trace's, and maps the trace's object names
//! to those it gets.

mod data;
mod source;
mod statement;
mod text;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use anytrace_core::{Error, Limits, Outcome, Sink};

use crate::tools::program::{GlCall, Machine, MemoryChange, NewContext, Unfit, Wanted, play};
use crate::wire::reader::Reader;

use data::Data;
use source::Source;
use text::Expressions;

/// Writes the calls that are wanted to an existing folder. `records_written` of the outcome is the number of calls that
/// the program makes; its notes list the OpenGL calls that it does not make, and why.
///
/// # Errors
/// I/O, limits, and what the sink returns.
pub fn to_c(
    reader: &mut Reader,
    wanted: &Wanted,
    folder: &Path,
    limits: &Limits,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let path = folder.join("data.bin");
    let data = Data::create(&path).map_err(|error| Error::io(path.display(), error))?;
    let mut exporter =
        Exporter { expressions: Expressions { data, names: BTreeMap::new() }, source: Source::new(folder) };
    let played = play(reader, wanted, limits, &mut exporter, sink)?;
    let Exporter { source, expressions } = exporter;
    let Expressions { data, names } = expressions;
    let sizes: Vec<(u32, u32)> = played.sizes.iter().map(crate::tools::program::DrawableSize::size).collect();
    let wrote = data.finish().and_then(|length| source.finish(&names, &sizes, length));
    wrote.map_err(|error| Error::io(folder.display(), error))?;
    let totals = played.totals;
    Ok(Outcome {
        records_read: totals.calls,
        records_written: played.repeated,
        bytes_lost: totals.lost_bytes,
        notes: played.notes,
    })
}

/// Writes what a machine would do.
struct Exporter {
    expressions: Expressions,
    source: Source,
}

impl Exporter {
    fn write(&mut self, text: &str) -> Result<(), Error> {
        self.source.statement(text).map_err(failed)
    }
}

fn failed(error: io::Error) -> Error {
    Error::io("the source", error)
}

impl Machine for Exporter {
    fn new_context(&mut self, new: &NewContext) -> Result<(), Error> {
        let (context, asked) = (new.context, new.asked);
        let share = new.share.map_or(-1, i64::from);
        let (major, minor) = asked.version;
        let (api, profile) = (if asked.is_es { "API_ES" } else { "API_GL" }, asked.profile);
        self.write(&format!("    new_context({context}, {share}, {api}, {major}, {minor}, {profile});\n"))
    }

    fn share_contexts(&mut self, first: u32, second: u32) -> Result<(), Error> {
        self.write(&format!("    share_contexts({first}, {second});\n"))
    }

    fn end_context(&mut self, context: u32) -> Result<(), Error> {
        self.write(&format!("    end_context({context});\n"))
    }

    fn make_current(&mut self, context: u32, drawable: usize) -> Result<(), Error> {
        self.write(&format!("    make_current({context}, {drawable});\n"))
    }

    fn end_frame(&mut self, number: u64) -> Result<(), Error> {
        self.write(&format!("    frame_end({number});\n"))
    }

    fn call(&mut self, call: &GlCall<'_>) -> Result<(), Unfit> {
        let text = statement::of_call(call, &mut self.expressions)?;
        self.source.called.insert(call.name, call.types);
        // A separate block lets compilers reuse the arrays' memory for the next call.
        let needs_block = text.contains("[]){") && !text.starts_with('{');
        let (open, close) = if needs_block { ("{ ", " }") } else { ("", "") };
        Ok(self.write(&format!("    /* {} */ {open}{text}{close}\n", call.number))?)
    }

    fn memory(&mut self, number: u64, change: &MemoryChange<'_>) -> Result<(), Unfit> {
        let text = match *change {
            MemoryChange::Allocated(address, length) => format!("allocated({address:#x}, {length:#x});"),
            MemoryChange::Released(address) => format!("released({address:#x});"),
            MemoryChange::Moved(from, to, length) => {
                format!("released({from:#x}); allocated({to:#x}, {length:#x});")
            }
            MemoryChange::Copied(to, bytes) => {
                let offset = self.expressions.data.add(bytes).map_err(failed)?;
                format!("copied({to:#x}, blob({offset}), {});", bytes.len())
            }
        };
        Ok(self.write(&format!("    /* {number} */ {text}\n"))?)
    }

    fn left_out(&mut self, number: u64, name: &str, why: &'static str) -> Result<(), Error> {
        self.write(&format!("    /* {number}: {name} is left out: {why} */\n"))
    }
}
