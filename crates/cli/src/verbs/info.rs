//! `anytrace info`: what a trace is and what is in it.

mod text;

use std::io::Write;
use std::path::Path;

use anytrace_core::{Collect, Format, Info, Input, Severity};
use anytrace_export::json;
use serde_json::Value;

use crate::arguments::{InfoArguments, ResultForm};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::{Verdict, for_each_file, open, terminal};

/// How much of a file `--quick` looks at: enough for the first block of any container.
const QUICK_BYTES: usize = 4 << 20;

pub(crate) fn run(options: &InfoArguments) -> Result<Verdict, Failure> {
    let mut objects = Vec::new();
    let verdict = for_each_file(&options.files, |path| one(path, options, &mut objects))?;
    if options.format == ResultForm::Json {
        print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
}

/// One object for one file, an array for several.
pub(crate) fn print_json(mut objects: Vec<Value>, is_array: bool) -> Result<(), Failure> {
    let value = match objects.pop() {
        Some(only) if !is_array => only,
        None if !is_array => return Ok(()),
        last => {
            objects.extend(last);
            Value::Array(objects)
        }
    };
    let mut out = terminal::stdout().json(true);
    serde_json::to_writer_pretty(&mut out, &value).map_err(|error| Failure::output(&error.into()))?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

fn one(path: &Path, options: &InfoArguments, objects: &mut Vec<Value>) -> Result<Verdict, Failure> {
    let name = path.display().to_string();
    let opened = open::open_trace(path, &options.input)?;
    let format = opened.as_ref().ok().map(|(format, _)| *format);
    let mut reporter = Reporter::new(&name, format, Way::Keep, options.input.limit);
    let info = match opened {
        Err(damage) => {
            reporter.take(damage)?;
            Info::new("unknown")
        }
        Ok((format, input)) if options.quick => quick(format, &input, options)?,
        Ok((format, input)) => {
            let _progress = Progress::watch(&input);
            let trace = open::enter(format, input, &options.input)?;
            trace.info(&mut reporter).map_err(|error| Failure::of(&name, &error))?
        }
    };
    let damage_count = reporter.count(Severity::Error);
    match options.format {
        ResultForm::Json => objects.push(json::info(&name, &info, reporter.kept(), damage_count)),
        ResultForm::Text => text::print(&name, &info, &reporter, format.map_or("record", |f| f.noun()), options.quick)?,
    }
    Ok(reporter.verdict())
}

/// What the first bytes alone tell: no counts, no damage.
fn quick(format: &'static dyn Format, input: &Input, options: &InfoArguments) -> Result<Info, Failure> {
    let head = input.as_slice().map_or(input.head().bytes, |all| &all[..all.len().min(QUICK_BYTES)]).to_vec();
    let trace = open::enter(format, Input::from_bytes(input.name(), head), &options.input)?;
    let seen = trace.info(&mut Collect::default()).map_err(|error| Failure::of(input.name(), &error))?;
    let mut info = Info::new(format.name());
    info.format_version = seen.format_version;
    info.byte_order = seen.byte_order;
    info.dialect = seen.dialect;
    info.set_container(input.layers(), seen.container.as_deref());
    let file_bytes = input.file_bytes().filter(|_| input.layers().is_empty());
    info.bytes = file_bytes.or(input.head().total_bytes).unwrap_or_default();
    Ok(info)
}
