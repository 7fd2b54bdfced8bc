//! `anytrace convert --to arrow|parquet`: a trace's tables for data frames and SQL.

mod folder;
mod partitions;
mod source;

use anytrace_core::table::{Scan, Table};
use anytrace_core::tables::{all, read};
use anytrace_core::{Format, Sink, SpanOptions, TargetOptions};
use anytrace_export::tables::{TableOutput, by_name};

use super::forms::{may_mean, refuse_others};
use super::{put_in_place, reporter};
use crate::Verdict;
use crate::arguments::ConvertArguments;
use crate::failure::Failure;
use crate::open::{self, Opened};
use crate::output::Output;
use crate::progress::Progress;
pub(super) use folder::IntoFolder;

/// An output of tables that was asked for, and the table.
pub(super) struct Chosen {
    output: &'static TableOutput,
    table: Table,
}

/// The output of tables that `--to` names, where the format has no form of that name and has tables; `None` leaves the
/// answer to the format.
pub(super) fn chosen(
    opened: &Opened,
    target: &TargetOptions,
    options: &ConvertArguments,
) -> Result<Option<Chosen>, Failure> {
    let Some(output) = output_for(opened, target.to.as_deref()) else {
        return match &options.table_output.table {
            Some(_) => Err(Failure::usage("--table applies only to tables: --to arrow, parquet")),
            None => Ok(None),
        };
    };
    refuse(opened, output, target, options)?;
    let tables = tables_of(opened, options);
    let Some(name) = &options.table_output.table else {
        let name = output.name;
        return Err(Failure::usage(format!(
            "a file of {name} has one table: choose with --table {}, or write all into a folder: --all-tables -o DIR",
            names(&tables)
        )));
    };
    let table = table_named(&tables, name, options)?;
    Ok(Some(Chosen { output, table }))
}

impl Chosen {
    /// Writes it.
    pub(super) fn write(
        self,
        opened: Opened,
        options: &ConvertArguments,
        mut output: Output,
    ) -> Result<Verdict, Failure> {
        let mut reporter = reporter(&opened, options)?;
        let mut symbols = Names::default();
        let records = emit(self.output, &self.table, opened, options, &mut symbols, &mut output, &mut reporter)?;
        symbols.complain(options);
        let is_nothing = records == 0 && reporter.verdict() == Verdict::Breach;
        put_in_place(output, is_nothing, &reporter, options)
    }
}

/// The output of that name, where it may be meant.
fn output_for(opened: &Opened, to: Option<&str>) -> Option<&'static TableOutput> {
    let output = to.and_then(by_name)?;
    may_mean(opened, output.name, |format| !all(format).is_empty()).then_some(output)
}

/// Refuses what goes with no table: JSON lines, options for other forms.
fn refuse(
    opened: &Opened,
    output: &TableOutput,
    target: &TargetOptions,
    options: &ConvertArguments,
) -> Result<(), Failure> {
    refuse_others(opened, output.name, target, options)?;
    let timeline = &options.timeline_output;
    if !timeline.conditions().is_empty() || timeline.csv.is_given() {
        return Err(Failure::usage(
            "conditions on spans (--thread, --time, --name, --depth, --duration) and --csv-raw apply only to timelines: \
             --to chrome, perfetto and the like; a table has every span",
        ));
    }
    Ok(())
}

/// The tables of an input. What is empty could be of any format, unless one is named.
fn tables_of(opened: &Opened, options: &ConvertArguments) -> Vec<Table> {
    match opened {
        Opened::Trace(format, _) | Opened::Jsonl(format, _) => all(*format),
        Opened::Empty(_) => {
            let is_wanted = |format: &&&dyn Format| {
                options.input.input_format.as_deref().is_none_or(|wanted| wanted == format.name())
            };
            let mut tables: Vec<Table> = Vec::new();
            for table in anytrace_formats::all().iter().filter(is_wanted).flat_map(|format| all(*format)) {
                if !tables.iter().any(|known| known.name == table.name) {
                    tables.push(table);
                }
            }
            tables
        }
    }
}

fn table_named(tables: &[Table], name: &str, options: &ConvertArguments) -> Result<Table, Failure> {
    let file = options.file.display();
    let unknown = || Failure::usage(format!("{file}: no table {name}; there are {}", names(tables)));
    tables.iter().find(|table| table.name == name).copied().ok_or_else(unknown)
}

fn names(tables: &[Table]) -> String {
    tables.iter().map(|table| table.name).collect::<Vec<_>>().join(", ")
}

/// Names of functions, loaded once however many tables there are.
#[derive(Default)]
struct Names {
    loaded: Option<(SpanOptions, Option<crate::symbols::Named>)>,
}

impl Names {
    fn options(&mut self, format: &dyn Format, options: &ConvertArguments) -> Result<&SpanOptions, Failure> {
        let (span_options, _) = match self.loaded.take() {
            Some(loaded) => self.loaded.insert(loaded),
            None => {
                let (symbols, named) =
                    options.timeline_output.spans.symbols.load_counted(format, &options.file)?.unzip();
                let tail_chains = options.timeline_output.spans.tail_chains;
                self.loaded.insert((SpanOptions { tail_chains, symbols, ..SpanOptions::default() }, named))
            }
        };
        Ok(span_options)
    }

    /// Says which functions have no name.
    fn complain(&self, options: &ConvertArguments) {
        if let Some((_, Some(named))) = &self.loaded {
            named.complain(&options.file.display().to_string());
        }
    }
}

/// Writes a table of an input; returns the number of records read.
fn emit(
    output: &TableOutput,
    table: &Table,
    opened: Opened,
    options: &ConvertArguments,
    symbols: &mut Names,
    out: &mut Output,
    sink: &mut dyn Sink,
) -> Result<u64, Failure> {
    let name = options.file.display().to_string();
    let failed = |error| Failure::of(&name, &error);
    let mut writer = (output.open)(out, table).map_err(failed)?;
    let records = match opened {
        Opened::Trace(format, input) => {
            let span_options = symbols.options(format, options)?;
            let _progress = Progress::watch(&input);
            let trace = open::enter(format, input, &options.input)?;
            let scan = Scan::default();
            let summary = read(format, trace, table.name, &scan, span_options, &mut *writer, sink).map_err(failed)?;
            summary.records
        }
        // JSON lines were refused.
        Opened::Empty(_) | Opened::Jsonl(..) => 0,
    };
    writer.finish().map_err(failed)?;
    Ok(records)
}
