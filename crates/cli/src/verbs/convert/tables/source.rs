//! The tables of one trace as files that have no names yet: one pass over the trace for each.

use std::collections::BTreeSet;

use anytrace_core::table::Table;
use anytrace_core::{Diagnostic, Error, Sink};
use anytrace_export::tables::TableOutput;

use super::{Names, emit, output_for, refuse, table_named, tables_of};
use crate::Verdict;
use crate::arguments::ConvertArguments;
use crate::failure::Failure;
use crate::open;
use crate::output::{Aside, Output, commit_all};
use crate::report::Reporter;
use crate::verbs::convert::forms::known_target;
use crate::verbs::convert::reporter;

/// A trace and the tables of it that were asked for.
pub(super) struct Source<'a> {
    pub(super) output: &'static TableOutput,
    pub(super) tables: Vec<Table>,
    opened: open::Opened,
    options: &'a ConvertArguments,
}

/// Files that are complete but have no names yet, and whether the trace was damaged.
pub(super) struct Done {
    pub(super) files: Vec<Aside>,
    pub(super) verdict: Verdict,
}

impl<'a> Source<'a> {
    /// Opens the first input of the options; refuses what cannot be done before anything is written.
    pub(super) fn open(wanted: &'static TableOutput, options: &'a ConvertArguments) -> Result<Self, Failure> {
        let opened = open::open(&options.file, &options.input)?;
        let target = options.target.target(options.to.as_deref());
        let Some(output) = output_for(&opened, Some(wanted.name)) else {
            if let open::Opened::Trace(format, _) | open::Opened::Jsonl(format, _) = &opened {
                known_target(*format, &target)?;
            }
            let folder = options.output.output.display();
            return Err(Failure::usage(format!("cannot write {folder}: {} is not a form of tables here", wanted.name)));
        };
        refuse(&opened, output, &target, options)?;
        let tables = Self::tables(&opened, options)?;
        Ok(Self { output, tables, opened, options })
    }

    /// Writes each table to the file that `file` makes for it. Damage is reported once.
    pub(super) fn write(self, file: &mut dyn FnMut(&Table) -> Result<Output, Failure>) -> Result<Done, Failure> {
        let Self { output, tables, opened, options } = self;
        let mut reporter = reporter(&opened, options)?;
        let mut symbols = Names::default();
        let (mut input, mut files, mut records) = (Some(opened), Vec::new(), 0);
        for table in &tables {
            let opened = match input.take() {
                Some(opened) => opened,
                None => open::open(&options.file, &options.input)?,
            };
            let mut file = file(table)?;
            let mut sink = Later { known: reporter.codes(), reporter: &mut reporter };
            records += emit(output, table, opened, options, &mut symbols, &mut file, &mut sink)?;
            files.push(file.set_aside()?);
        }
        symbols.complain(options);
        reporter.print_rest()?;
        let verdict = reporter.verdict();
        if records == 0 && verdict == Verdict::Breach {
            let name = options.file.display();
            return Err(Failure::breach(format!("{name}: nothing could be read; nothing was written")));
        }
        Ok(Done { files, verdict })
    }

    /// The table that is named, or all.
    fn tables(opened: &open::Opened, options: &ConvertArguments) -> Result<Vec<Table>, Failure> {
        let tables = tables_of(opened, options);
        let file = options.file.display();
        if let Some(name) = &options.table_output.table {
            return Ok(vec![table_named(&tables, name, options)?]);
        }
        match opened {
            open::Opened::Empty(_) if options.input.input_format.is_none() => Err(Failure::usage(format!(
                "{file}: no bytes, so that its tables are not known; choose one with --table, or the format with \
                 --input-format"
            ))),
            _ if tables.len() > 1 && open::is_read_once(&options.file) => Err(Failure::usage(format!(
                "{file} can be read only once, which gives one table: choose with --table {}",
                super::names(&tables)
            ))),
            _ => Ok(tables),
        }
    }
}

/// Gives all files their names, unless an input was cut short while it was read.
pub(super) fn commit(files: Vec<Aside>) -> Result<(), Failure> {
    if let Some((name, error)) = anytrace_core::cut_short() {
        return Err(Failure::of(&name, &error));
    }
    commit_all(files)
}

/// The usual extension of an output's files.
pub(super) fn extension(output: &TableOutput) -> &'static str {
    output.extensions.first().copied().unwrap_or(output.name)
}

/// Damage that a pass over the same trace before has reported is not reported again.
struct Later<'a> {
    known: BTreeSet<&'static str>,
    reporter: &'a mut Reporter,
}

impl Sink for Later<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        if self.known.contains(diagnostic.code()) { Ok(()) } else { self.reporter.report(diagnostic) }
    }
}
