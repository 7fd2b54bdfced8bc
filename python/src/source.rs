//! A trace file, as the Python class `Trace` uses it.

use std::path::PathBuf;

use anytrace_core::Info;
use anytrace_core::span::{Mangling, SymbolSource};
use anytrace_core::table::Table;
use anytrace_core::{Severity, tables};
use anytrace_export::json;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::Value;

use crate::failure::{Damage, Failure};
use crate::keep::{Conditions, Wanted};
use crate::opening::Opening;
use crate::records::Records;
use crate::stream::{Stream, projected, schema_capsule};
use crate::work::{self, Stop, StoppableFindings};
use crate::{convert, simulate, stats};

/// Name, type, whether it may be absent, and meaning.
type AboutColumn = (&'static str, String, bool, &'static str);

/// A trace file. Methods that read it return JSON, or streams.
#[pyclass(frozen, module = "anytrace._anytrace")]
pub(crate) struct Source {
    opening: Opening,
}

/// A result as JSON, and the damage on the way.
pub(crate) type Answer = (Value, Damage);

impl Source {
    /// Runs a reading that gives JSON; warns of damage.
    fn read(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Opening, &Stop) -> Result<Answer, Failure> + Send + 'static,
    ) -> Result<String, Failure> {
        let opening = self.opening.clone();
        let (value, damage) = work::run(py, move |stop| work(&opening, &stop))?;
        damage.warn(py, &self.opening.name)?;
        Ok(value.to_string())
    }

    fn table(&self, name: &str) -> Result<Table, Failure> {
        let tables = self.opening.format.map(tables::all).unwrap_or_default();
        let names = || tables.iter().map(|table| table.name).collect::<Vec<_>>().join(", ");
        let unknown = || Failure::usage(format!("{}: no table {name}; there are: {}", self.opening.name, names()));
        tables.iter().find(|table| table.name == name).copied().ok_or_else(unknown)
    }
}

#[pymethods]
impl Source {
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        symbols: Vec<(Option<u32>, PathBuf)>,
        format: Option<String>,
        demangle: bool,
    ) -> Result<Self, Failure> {
        let sources: Vec<_> = symbols.into_iter().map(|(object, path)| SymbolSource { object, path }).collect();
        let mangling = if demangle { Mangling::Demangled } else { Mangling::AsIs };
        let opening = work::run(py, move |_| Opening::new(path, &sources, format.as_deref(), mangling))?;
        Ok(Self { opening })
    }

    /// The format's name; `unknown` for an empty file.
    #[getter]
    fn format(&self) -> &'static str {
        self.opening.format_name()
    }

    /// Of each table its name, what a row is, and of each column name, type, whether it may be absent, and meaning.
    fn tables(&self) -> Vec<(&'static str, &'static str, Vec<AboutColumn>)> {
        let tables = self.opening.format.map(tables::all).unwrap_or_default();
        let columns = |table: &Table| {
            let about = |column: &anytrace_core::table::Column| {
                (column.name, format!("{:?}", column.kind), column.is_nullable, column.help)
            };
            table.columns.iter().map(about).collect()
        };
        tables.iter().map(|table| (table.name, table.help, columns(table))).collect()
    }

    /// `info --format json`.
    fn info(&self, py: Python<'_>, limit: u64) -> Result<String, Failure> {
        self.read(py, move |opening, stop| {
            let mut sink = StoppableFindings::new(limit, stop);
            let info = opening.trace(0, &mut sink).and_then(|trace| match trace {
                Some(trace) => trace.info(&mut sink),
                None => Ok(Info::new("unknown")),
            });
            let (info, findings) = (opening.checked(info)?, &sink.findings);
            let (errors, lost) = (findings.of(Severity::Error), findings.lost());
            let object = json::info(&opening.name, &info, findings.kept(), errors, lost);
            Ok((object, Damage::of(findings, opening.noun())))
        })
    }

    /// `check --format json`, each diagnostic with its text. Finding faults is what it is for: it warns of nothing.
    fn check(&self, py: Python<'_>, limit: u64) -> Result<(String, Vec<String>), Failure> {
        let opening = self.opening.clone();
        let (report, shown) = work::run(py, move |stop| {
            let mut sink = StoppableFindings::new(limit, &stop);
            let summary = opening.trace(0, &mut sink).and_then(|trace| match trace {
                Some(trace) => trace.check(&mut sink).map(|summary| summary.records),
                None => Ok(0),
            });
            let records = opening.checked(summary)?;
            let noun = opening.noun();
            let shown = sink.findings.kept().iter().map(|one| crate::failure::shown(one, noun)).collect();
            let format = opening.format.map(|format| format as &dyn anytrace_core::Format);
            Ok((json::report(&sink.findings.into_report(&opening.name, format, records)), shown))
        })?;
        Ok((report.to_string(), shown))
    }

    /// The columns of a table as a capsule of Arrow's C interface.
    fn schema<'py>(
        &self,
        py: Python<'py>,
        table: &str,
        columns: Option<Vec<String>>,
    ) -> Result<Bound<'py, PyCapsule>, Failure> {
        let table = self.table(table)?;
        let wanted = Wanted { columns, ..Wanted::default() };
        let (_, columns) = Conditions::new(&table, &wanted).map_err(Failure::Bare)?;
        schema_capsule(py, &projected(&table, &columns))
    }

    /// One reading of a table.
    fn stream(
        &self,
        table: &str,
        columns: Option<Vec<String>>,
        start: Option<i64>,
        end: Option<i64>,
        thread: Option<Vec<i64>>,
        threads: usize,
    ) -> Result<Stream, Failure> {
        let wanted = Wanted { columns, start, end, thread };
        Stream::new(self.opening.clone(), self.table(table)?, &wanted, threads)
    }

    /// The records, one after the other.
    fn records(&self) -> Result<Records, Failure> {
        Records::new(self.opening.clone(), self.opening.format.map(|_| self.table("events")).transpose()?)
    }

    /// `stats --format json`.
    fn stats(&self, py: Python<'_>, by: &str, sort: &str, top: Option<usize>) -> Result<String, Failure> {
        let shape = stats::Shape::new(by, sort, top)?;
        self.read(py, move |opening, stop| stats::stats(opening, stop, &shape))
    }

    /// `memory sim --format json`.
    fn simulate(&self, py: Python<'_>, request: simulate::Request) -> Result<String, Failure> {
        self.read(py, move |opening, stop| simulate::simulate(opening, stop, &request))
    }

    /// `convert`; returns notes about what the form has no room for.
    fn convert(&self, py: Python<'_>, request: convert::Request) -> Result<Vec<String>, Failure> {
        let opening = self.opening.clone();
        let (notes, damage) = work::run(py, move |stop| convert::convert(&opening, &stop, &request))?;
        damage.warn(py, &self.opening.name)?;
        Ok(notes)
    }
}
