//! `types --layouts`: what debug data say, without a trace.

use std::io::Write;

use anytrace_core::layout::Layout;
use anytrace_symbols::layouts::write_layouts;

use super::text::declaration;
use super::{Form, TypesArguments, is_called};
use crate::Verdict;
use crate::failure::Failure;
use crate::terminal;

/// Bytes of a line where no trace is simulated.
const LINE_BYTES: u64 = 64;

pub(super) fn run(options: &TypesArguments) -> Result<Verdict, Failure> {
    options.type_data.with_data(|data| {
        let mut all = data.records();
        all.retain(|one| options.types.is_empty() || options.types.iter().any(|name| is_called(&one.name, name)));
        if all.is_empty() {
            let what = if options.types.is_empty() { "a record".to_owned() } else { options.types.join(" or ") };
            return Err(Failure::usage(format!("no types {what}")));
        }
        let mut out = terminal::stdout().json(options.format == Form::Json);
        match options.format {
            Form::Json => write_layouts(&all, &mut out)?,
            Form::Csv => return Err(Failure::usage("--layouts supports only text and json")),
            Form::Text => {
                let texts: Vec<String> = all.iter().map(|layout| declared(layout)).collect();
                out.write_all(texts.join("\n").as_bytes())?;
            }
        }
        out.flush()?;
        Ok(Verdict::Fine)
    })
}

fn declared(layout: &Layout) -> String {
    declaration(layout, LINE_BYTES)
}
