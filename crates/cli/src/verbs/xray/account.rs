//! `anytrace xray account`.

mod arguments;

use std::io::Write;
use std::path::Path;

use anytrace_xray::Mismatch;
use anytrace_xray::tools::account::{Account, AccountForm, AccountOptions, account};
use anytrace_xray::tools::map::{self, Map};

use super::reading::{self, Opened};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::results::with_lost;
use crate::symbols::SymbolArguments;
use crate::{Verdict, open, paint};
pub(crate) use arguments::AccountArguments;
use arguments::{Form, Order};

pub(crate) fn run(options: &AccountArguments) -> Result<Verdict, Failure> {
    // Check that the output can be written before the trace is read, which may take long.
    let mut out = Output::create(&options.output, options.force)?;
    let map = map(&options.symbols, &options.file)?;
    let name = options.file.display().to_string();
    let Opened { input, mut reporter, has_evidence, .. } = reading::open(&options.file, &options.input)?;
    let progress = Progress::watch(&input);
    let is_skipping = options.keep_going && !options.deduce_sibling_calls;
    let mismatch = if is_skipping { Mismatch::Skip } else { Mismatch::Deduce };
    let wanted = AccountOptions { mismatch, recursive_only: options.recursive_calls_only };
    let open = open::open_options(&options.input);
    let mut found =
        account(input, &open, wanted, map.as_ref(), &mut reporter).map_err(|error| Failure::of(&name, &error))?;
    drop(progress);
    found.sort(options.sort.key(), options.sortorder == Order::Dsc);
    if let Some(rows) = usize::try_from(options.top).ok().filter(|rows| *rows > 0) {
        found.truncate(rows);
    }
    match options.format {
        Form::Json => with_lost(&mut out, |out| found.write(AccountForm::Json, options.csv.cells(), out))?,
        form => found.write(form.form(), options.csv.cells(), &mut out)?,
    }
    out.flush()?;
    let verdict = out.commit(reading::judge(&reporter, has_evidence, &options.output))?;
    reporter.print_rest()?;
    for note in notes(&found) {
        paint::complain("note", format!("{name}: {note}"));
    }
    Ok(verdict)
}

/// The map of the options, where they name one, or of what is beside the trace.
fn map(symbols: &SymbolArguments, trace: &Path) -> Result<Option<Map>, Failure> {
    let sources = symbols.with_beside(&anytrace_xray::Xray, trace);
    if sources.is_empty() {
        return Ok(None);
    }
    let map = map::load(&sources, symbols.mangling()).map_err(|error| symbols.failure(&error))?;
    for note in map.notes() {
        paint::complain("note", anytrace_core::text::printable(note));
    }
    Ok(Some(map))
}

/// What the account had to put up with.
fn notes(found: &Account) -> Vec<String> {
    let counts = &found.counts;
    let all = [
        (counts.orphans, "exits without a call in the trace were skipped"),
        (counts.skipped, "exits of calls other than the innermost were skipped (--keep-going)"),
        (counts.deduced, "calls without an exit end with the enclosing call"),
        (counts.unfinished, "calls do not end in the trace and are not counted"),
        (counts.too_deep, "records of calls nested too deeply, or of too many threads, were skipped"),
        (counts.backward, "times within a thread go backward"),
        (found.reordered_buffers, "buffers were sorted by time"),
    ];
    all.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
}
