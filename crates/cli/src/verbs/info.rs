//! `anytrace info`: what a trace is and what is in it.

mod next;
mod text;

use std::io::Read;
use std::path::Path;

use anytrace_core::index::Index;
use anytrace_core::{Collect, Format, Info, Input, Severity};
use anytrace_export::json;
use serde_json::{Value, json};

use crate::arguments::{InfoArguments, ResultForm};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::results::print_json;
use crate::{Verdict, for_each_file, indexed, open};

/// How much of a file `--quick` looks at: enough for the first block of any container.
const QUICK_BYTES: u64 = 4 << 20;

pub(crate) fn run(options: &InfoArguments) -> Result<Verdict, Failure> {
    if options.index.index.is_some() && (options.files.len() > 1 || !options.quick) {
        return Err(Failure::usage("--index is for --quick of a single trace"));
    }
    let mut objects = Vec::new();
    let verdict = for_each_file(&options.files, |path| one(path, options, &mut objects))?;
    if options.format == ResultForm::Json {
        print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
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
        Ok((format, input)) if options.quick => {
            let index = indexed::find(path, format, &options.input, &options.index)?;
            let mut info = quick(format, input, options)?;
            if let Some(index) = index {
                add_indexed(&mut info, &index);
            }
            info
        }
        Ok((format, input)) => {
            let _progress = Progress::watch(&input);
            let trace = open::enter(format, input, &options.input)?;
            trace.info(&mut reporter).map_err(|error| Failure::of(&name, &error))?
        }
    };
    let damage_count = reporter.count(Severity::Error);
    match options.format {
        ResultForm::Json => objects.push(json::info(&name, &info, reporter.kept(), damage_count, reporter.lost())),
        ResultForm::Text => {
            let steps = format.filter(|_| !options.quick).map(|f| next::steps(path, f, damage_count > 0));
            let page = text::Page { info: &info, noun: format.map_or("record", |f| f.noun()), is_quick: options.quick };
            text::print(&name, &page, &reporter, &steps.unwrap_or_default())?;
        }
    }
    Ok(reporter.verdict())
}

/// What an index of all of the trace contains.
fn add_indexed(info: &mut Info, index: &Index) {
    let damaged = index.chunks.iter().filter(|chunk| chunk.is_damaged).count();
    info.records = index.rows();
    info.details.extend([
        ("indexed", json!(true)),
        ("indexed_kinds", json!(index.kinds)),
        ("indexed_threads", json!(index.threads)),
        ("indexed_time_ns", json!(index.time_range().map(|time| json!({"first": time.start(), "last": time.end()})))),
        ("indexed_chunks", json!(index.chunks.len())),
        ("indexed_chunks_with_diagnostics", json!(damaged)),
    ]);
}

/// What the first bytes alone show: no counts, no damage.
fn quick(format: &'static dyn Format, input: Input, options: &InfoArguments) -> Result<Info, Failure> {
    let (name, layers) = (input.name().to_owned(), input.layers().to_vec());
    let file_bytes = input.file_bytes().filter(|_| layers.is_empty()).or(input.head().total_bytes);
    let mut head = input.head().bytes.to_vec();
    if input.is_file_or_memory() {
        head.clear();
        let read = input.into_read().take(QUICK_BYTES).read_to_end(&mut head);
        read.map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    }
    let trace = open::enter(format, Input::from_bytes(&name, head), &options.input)?;
    let seen = trace.info(&mut Collect::default()).map_err(|error| Failure::of(&name, &error))?;
    let mut info = Info::new(format.name());
    info.format_version = seen.format_version;
    info.byte_order = seen.byte_order;
    info.dialect = seen.dialect;
    info.set_container(&layers, seen.container.as_deref());
    info.bytes = file_bytes.unwrap_or_default();
    Ok(info)
}
