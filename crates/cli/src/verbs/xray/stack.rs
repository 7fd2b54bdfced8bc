//! `anytrace xray stack`: where calls spend time, by call stack.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anytrace_core::span::Symbols;
use anytrace_export::cells::Cells;
use anytrace_xray::tools::stack::{Oddities, OrphanRule, StackOptions, StackProfile};
use anytrace_xray::tools::stack_files::{Beginning, StackFiles, begin, order};
use anytrace_xray::tools::{StackGrouping, StackReport, StackUnit, StackView, Weight};
use clap::{Args, ValueEnum};

use super::reading::{self, Opened, say};
use crate::arguments::{CsvArguments, InputArguments};
use crate::failure::Failure;
use crate::paint;
use crate::progress::Progress;
use crate::results::with_lost;
use crate::symbols::SymbolArguments;
use crate::{Verdict, only_one_stdin, open, terminal};

/// `xray stack`.
#[derive(Debug, Args)]
pub(crate) struct StackArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Go on after an exit without an entry. Always done but with --compat
    #[arg(short = 'k', long)]
    keep_going: bool,
    /// One list for each thread
    #[arg(long, conflicts_with = "aggregate_threads")]
    per_thread_stacks: bool,
    /// Add up equal stacks of different threads
    #[arg(long)]
    aggregate_threads: bool,
    /// Print every stack, as folded lines (the same as --stack-format=flame)
    #[arg(long)]
    all_stacks: bool,
    /// Tables for people, or folded lines for flame graphs
    #[arg(long, value_enum, default_value_t = StackForm::Human)]
    stack_format: StackForm,
    /// What folded lines weigh
    #[arg(long, value_enum, default_value_t = Aggregation::Time)]
    aggregation_type: Aggregation,
    /// What sums are told in
    #[arg(long, value_enum, default_value_t = Unit::Ticks)]
    unit: Unit,
    /// Rows of each list of the tables
    #[arg(short = 'p', long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// How to print: as --stack-format says, or every stack as JSON or CSV
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// One result for each file instead of one for all
    #[arg(long)]
    per_file: bool,
    /// Output of llvm-xray as it is: time of inner calls counted twice in flame graphs, errors where it stops
    #[arg(long)]
    compat: bool,
    #[command(flatten)]
    symbols: SymbolArguments,
    #[command(flatten)]
    csv: CsvArguments,
    #[command(flatten)]
    input: InputArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StackForm {
    Human,
    Flame,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Aggregation {
    Time,
    Count,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Unit {
    Ticks,
    Seconds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Json,
    Csv,
}

pub(crate) fn run(options: &StackArguments) -> Result<Verdict, Failure> {
    only_one_stdin(options.files.iter().map(PathBuf::as_path))?;
    let symbols = options.symbols.load(&anytrace_xray::Xray)?;
    let mut out = BufWriter::new(terminal::stdout().json(options.format == Form::Json));
    let stack = StackOptions { orphans: orphans(options), make_file: Some(tempfile::tempfile), tops: tops(options) };
    let mut verdict = Verdict::Fine;
    let mut together = StackFiles::new(stack);
    for (path, opened) in in_order(options)? {
        let Opened { input, reporter: mut damage, .. } = opened;
        let name = path.display().to_string();
        let (files, open) = (&mut together, open::open_options(&options.input));
        let _progress = Progress::watch(&input);
        let oddities = files.add(input, &open, &mut damage).map_err(|error| Failure::of(&name, &error))?;
        damage.print_rest()?;
        verdict = verdict.max(damage.verdict());
        if options.files.len() > 1 && !options.per_file {
            say(&name, &oddities.lines());
            continue;
        }
        let profile = std::mem::replace(files, StackFiles::new(stack)).finish();
        refuse(&profile)?;
        say(&name, &profile.oddities.lines());
        if options.files.len() > 1 && options.format == Form::Text {
            writeln!(out, "{name}:")?;
        }
        print(&profile, options, symbols.as_deref(), &mut out)?;
    }
    if options.files.len() > 1 && !options.per_file {
        let profile = together.finish();
        refuse(&profile)?;
        // The rest was told by file.
        say("all files", &Oddities { unfinished: profile.oddities.unfinished, ..Oddities::default() }.lines());
        print(&profile, options, symbols.as_deref(), &mut out)?;
    }
    out.flush()?;
    Ok(verdict)
}

fn orphans(options: &StackArguments) -> OrphanRule {
    match (options.compat, options.keep_going) {
        (false, _) => OrphanRule::Pass,
        (true, true) => OrphanRule::EndAll,
        (true, false) => OrphanRule::Fail,
    }
}

/// What llvm-xray stops at.
fn refuse(profile: &StackProfile) -> Result<(), Failure> {
    profile.failure.as_ref().map_or(Ok(()), |failure| Err(Failure::breach(failure.clone())))
}

/// The traces, in the order in which they were recorded unless they are counted one by one or as llvm-xray does.
fn in_order(options: &StackArguments) -> Result<Vec<(&Path, Opened)>, Failure> {
    let paths = options.files.iter().map(PathBuf::as_path);
    let inputs = paths.map(|path| Ok((path, reading::open(path, &options.input)?)));
    let mut inputs = inputs.collect::<Result<Vec<_>, Failure>>()?;
    if inputs.len() > 1 && !options.per_file && !options.compat {
        let open = open::open_options(&options.input);
        let beginnings: Vec<Beginning> =
            inputs.iter().map(|(_, opened)| begin(opened.input.head().bytes, &open)).collect();
        let mut places = vec![0; inputs.len()];
        for (place, number) in order(&beginnings).into_iter().enumerate() {
            if let Some(own) = places.get_mut(number) {
                *own = place;
            }
        }
        let mut placed: Vec<_> = places.into_iter().zip(inputs).collect();
        placed.sort_by_key(|(place, _)| *place);
        inputs = placed.into_iter().map(|(_, input)| input).collect();
    }
    Ok(inputs)
}

/// How many rows, where top lists of one trace, of all its threads together, are all that will be printed.
fn tops(options: &StackArguments) -> Option<usize> {
    let is_one = options.files.len() == 1 || options.per_file;
    let is_table = options.format == Form::Text && options.stack_format == StackForm::Human && !options.all_stacks;
    let is_plain = !options.per_thread_stacks && !options.aggregate_threads && !options.compat;
    (is_one && is_table && is_plain).then_some(if options.top == 0 { 10 } else { options.top })
}

fn print(
    profile: &StackProfile,
    options: &StackArguments,
    symbols: Option<&dyn Symbols>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if profile.is_empty() && options.compat {
        return Err(Failure::breach("No instrumented calls were accounted in the input file."));
    }
    let view = StackView {
        grouping: match (options.per_thread_stacks, options.aggregate_threads) {
            (true, _) => StackGrouping::PerThread,
            (_, true) => StackGrouping::Aggregate,
            _ => StackGrouping::Separate,
        },
        unit: if options.unit == Unit::Seconds { StackUnit::Seconds } else { StackUnit::Ticks },
        top: options.top,
        threads: open::open_options(&options.input).threads,
        is_compat: options.compat,
    };
    let report = StackReport::new(profile, view, symbols).map_err(|error| Failure::bare(&error))?;
    let weight = if options.aggregation_type == Aggregation::Count { Weight::Count } else { Weight::Time };
    match options.format {
        Form::Json => with_lost(out, |out| report.json(out))?,
        Form::Csv => report.csv(if options.compat { Cells::Raw } else { options.csv.cells() }, out)?,
        Form::Text if options.all_stacks || options.stack_format == StackForm::Flame => report.flame(weight, out)?,
        Form::Text => report.tables(out)?,
    }
    if report.shortened() > 0 {
        let line = format!("{} stacks have more than 512 frames: those in the middle are left out", report.shortened());
        paint::complain("note", line);
    }
    Ok(())
}
