//! `anytrace xray stack`: where calls spend time, by call stack.

mod inputs;
mod printer;

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anytrace_core::Format as _;
use anytrace_symbols::{MappedObject, Maps};
use anytrace_xray::Xray;
use anytrace_xray::tools::stack::{Oddities, OrphanRule, StackOptions, StackProfile};
use anytrace_xray::tools::stack_files::StackFiles;
use clap::{Args, ValueEnum};

use super::reading::{Opened, say};
use crate::arguments::{CsvArguments, InputArguments, TOP, rows};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::symbols::SymbolArguments;
use crate::{Verdict, only_one_stdin, open, terminal};

/// `xray stack`.
#[derive(Debug, Args)]
pub(crate) struct StackArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Continue after an exit without an entry; always on except with --compat
    #[arg(short = 'k', long)]
    keep_going: bool,
    /// Print one list per thread
    #[arg(long, conflicts_with = "aggregate_threads")]
    per_thread_stacks: bool,
    /// Combine equal stacks of different threads
    #[arg(long)]
    aggregate_threads: bool,
    /// Print every stack, as folded lines (the same as --stack-format=flame)
    #[arg(long)]
    all_stacks: bool,
    /// Tables for people, or folded lines for flame graphs
    #[arg(long, value_enum, default_value_t = StackForm::Human)]
    stack_format: StackForm,
    /// Weight of folded lines
    #[arg(long, value_enum, default_value_t = Aggregation::Time)]
    aggregation_type: Aggregation,
    /// Unit of sums
    #[arg(long, value_enum, default_value_t = Unit::Ticks)]
    unit: Unit,
    /// Rows of each list of the tables
    #[arg(short = 'p', visible_short_alias = 'n', long, value_name = "N", value_parser = rows, default_value = "10",
          help = format!("{TOP} (text only)"))]
    top: usize,
    /// How to print: as --stack-format says, or every stack as JSON or CSV
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// Print one result per file instead of one for all
    #[arg(long)]
    per_file: bool,
    /// Reproduce llvm-xray's output, including nested time counted twice in flame graphs, and its errors
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
    let symbols = options.symbols.load(&Xray, common(options))?;
    let mut out = BufWriter::new(terminal::stdout().json(options.format == Form::Json));
    let stack = StackOptions { orphans: orphans(options), make_file: Some(tempfile::tempfile), tops: tops(options) };
    let mut verdict = Verdict::Fine;
    let mut together = StackFiles::new(stack);
    for (path, opened) in inputs::in_order(options)? {
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
        let is_own = options.files.len() > 1 && Xray.symbols_beside(path, options.symbols.sources()).is_some();
        let own = if is_own { options.symbols.load(&Xray, path)? } else { None };
        if options.files.len() > 1 && options.format == Form::Text {
            writeln!(out, "{name}:")?;
        }
        printer::print(&profile, options, own.as_deref().or(symbols.as_deref()), &mut out)?;
    }
    if options.files.len() > 1 && !options.per_file {
        let profile = together.finish();
        refuse(&profile)?;
        // The rest was reported by file.
        say("all files", &Oddities { unfinished: profile.oddities.unfinished, ..Oddities::default() }.lines());
        printer::print(&profile, options, symbols.as_deref(), &mut out)?;
    }
    out.flush()?;
    Ok(verdict)
}

/// The trace whose names those of all are: of several that are counted together, the one whose maps have most objects,
/// where no other has another object by the same number.
fn common(options: &StackArguments) -> &Path {
    let none = Path::new("");
    match options.files.as_slice() {
        [file] => file,
        _ if options.per_file => none,
        files => {
            let numbered: Option<Vec<_>> = files.iter().map(|file| Some((numbered(file)?, file))).collect();
            let mut numbered = numbered.unwrap_or_default();
            numbered.sort_by_key(|(objects, _)| objects.len());
            let Some((all, file)) = numbered.pop() else { return none };
            let has_same = |(number, object)| all.get(number).is_some_and(|own| own == object);
            if numbered.iter().all(|(objects, _)| objects.iter().all(has_same)) { file } else { none }
        }
    }
}

/// The objects of the maps beside a trace, with their build ids. A short run may have been over before all were seen; those
/// without a number have no functions in the trace.
fn numbered(trace: &Path) -> Option<BTreeMap<u32, MappedObject>> {
    let path = Xray.symbols_beside(trace, &[])?.path;
    let maps = Maps::parse("", &std::fs::read(path).ok()?)?;
    let is_numbered = maps.objects.iter().any(|object| object.number.is_some());
    let number =
        |(place, object): (u32, MappedObject)| Some((if is_numbered { object.number? } else { place }, object));
    Some((0..).zip(maps.objects).filter_map(number).collect())
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

/// How many rows, where top lists of one trace, of all its threads together, are all that will be printed.
fn tops(options: &StackArguments) -> Option<usize> {
    let is_one = options.files.len() == 1 || options.per_file;
    let is_table = options.format == Form::Text && options.stack_format == StackForm::Human && !options.all_stacks;
    let is_plain = !options.per_thread_stacks && !options.aggregate_threads && !options.compat;
    // All stacks are no top list.
    (is_one && is_table && is_plain && options.top != usize::MAX).then_some(options.top)
}
