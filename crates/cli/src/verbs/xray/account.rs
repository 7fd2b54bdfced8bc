//! `anytrace xray account`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_xray::Mismatch;
use anytrace_xray::tools::account::{Account, AccountForm, AccountOptions, SortKey, account};
use anytrace_xray::tools::map::{self, Map};
use clap::{Args, ValueEnum};

use super::reading::{self, Opened};
use crate::arguments::{CsvArguments, InputArguments};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::results::with_lost;
use crate::symbols::SymbolArguments;
use crate::{Verdict, open, paint};

/// `xray account`.
#[derive(Debug, Args)]
pub(crate) struct AccountArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Pass over exits of other calls than the innermost, as llvm-xray does, instead of ending those inside; nothing
    /// but that: no trace makes this verb fail
    #[arg(short, long)]
    keep_going: bool,
    /// End calls whose exits are missing with the call around them; this is the default
    #[arg(short, long)]
    deduce_sibling_calls: bool,
    /// Count recursive calls only
    #[arg(long)]
    recursive_calls_only: bool,
    /// File to write; - is standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Form of the result
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// Column to sort by
    #[arg(short, long, value_enum, default_value_t = Sort::Funcid)]
    sort: Sort,
    /// Smallest first, or largest
    #[arg(short = 'r', long, value_enum, default_value_t = Order::Asc)]
    sortorder: Order,
    /// Print so many functions only; 0 and less is all
    #[arg(short = 'p', long, value_name = "N", default_value_t = -1, allow_negative_numbers = true)]
    top: i64,
    #[command(flatten)]
    symbols: SymbolArguments,
    #[command(flatten)]
    csv: CsvArguments,
    #[command(flatten)]
    input: InputArguments,
}

/// Forms of the result.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Form {
    /// A table
    Text,
    /// One line a function
    Csv,
    /// With ticks beside seconds, and what was missing
    Json,
}

/// Columns.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Sort {
    Funcid,
    Count,
    Min,
    Med,
    #[value(name = "90p")]
    P90,
    #[value(name = "99p")]
    P99,
    Max,
    Sum,
    /// Name
    Func,
}

/// Orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    Asc,
    Dsc,
}

pub(crate) fn run(options: &AccountArguments) -> Result<Verdict, Failure> {
    let map = map(&options.symbols)?;
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
    let mut out = Output::create(&options.output, options.force)?;
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

/// The map of the options, where they name one.
fn map(symbols: &SymbolArguments) -> Result<Option<Map>, Failure> {
    if symbols.sources().is_empty() {
        return Ok(None);
    }
    let map = map::load(symbols.sources(), symbols.mangling()).map_err(|error| Failure::bare(&error))?;
    for note in map.notes() {
        paint::complain("note", anytrace_core::text::printable(note));
    }
    Ok(Some(map))
}

/// What the account had to put up with.
fn notes(found: &Account) -> Vec<String> {
    let counts = &found.counts;
    let all = [
        (counts.orphans, "exits without a call in the trace were passed over"),
        (counts.skipped, "exits of other calls than the innermost were passed over (--keep-going)"),
        (counts.deduced, "calls without an exit end with the call around them"),
        (counts.unfinished, "calls do not end in the trace and are not counted"),
        (counts.too_deep, "records of calls nested too deep, or of too many threads, were passed over"),
        (counts.backward, "times within a thread are before those in front of them"),
        (found.reordered_buffers, "buffers were put in order of time"),
    ];
    all.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
}

impl Form {
    fn form(self) -> AccountForm {
        match self {
            Self::Text => AccountForm::Text,
            Self::Csv => AccountForm::Csv,
            Self::Json => AccountForm::Json,
        }
    }
}

impl Sort {
    fn key(self) -> SortKey {
        match self {
            Self::Funcid => SortKey::Id,
            Self::Count => SortKey::Count,
            Self::Min => SortKey::Min,
            Self::Med => SortKey::Median,
            Self::P90 => SortKey::P90,
            Self::P99 => SortKey::P99,
            Self::Max => SortKey::Max,
            Self::Sum => SortKey::Sum,
            Self::Func => SortKey::Function,
        }
    }
}
