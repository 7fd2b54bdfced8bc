//! Records one by one: light objects that point into a batch of the table `events`.

use std::sync::{Arc, Mutex, PoisonError};

use anytrace_core::table::{Batch, BatchColumn, Table, Values};
use pyo3::prelude::*;

use crate::failure::Failure;
use crate::keep::{Conditions, Wanted};
use crate::opening::Opening;
use crate::producer::{Ended, Found, Producer};
use crate::work::SIGNALS_EVERY;

/// Columns of `events`, as they are numbered.
#[derive(Clone, Copy)]
enum Field {
    Seq,
    Offset,
    Thread,
    Time,
    Duration,
    Kind,
    Name,
    Attributes,
}

/// One record. Its fields are those of the table `events`; absent ones are `None`.
#[pyclass(frozen, module = "anytrace", name = "Record")]
pub(crate) struct Record {
    batch: Arc<Batch>,
    row: usize,
}

impl Record {
    fn column(&self, field: Field) -> Option<&BatchColumn> {
        self.batch.columns.get(field as usize).filter(|column| column.is_valid(self.row))
    }

    fn integer(&self, field: Field) -> Option<i64> {
        match &self.column(field)?.values {
            Values::Int64(values) => values.get(self.row).copied(),
            _ => None,
        }
    }

    fn text(&self, field: Field) -> Option<&str> {
        match &self.column(field)?.values {
            Values::Name { keys, names } => keys.get(self.row).map(|key| names.get(*key)),
            Values::Text(strings) => std::str::from_utf8(strings.get(self.row)).ok(),
            _ => None,
        }
    }
}

#[pymethods]
impl Record {
    /// Its number, from 0.
    #[getter]
    fn seq(&self) -> Option<i64> {
        self.integer(Field::Seq)
    }

    /// Its first byte, in the format's own bytes.
    #[getter]
    fn offset(&self) -> Option<i64> {
        self.integer(Field::Offset)
    }

    /// Thread id, or the number of what the format has instead.
    #[getter]
    fn thread(&self) -> Option<i64> {
        self.integer(Field::Thread)
    }

    /// Nanoseconds, as far as the format has a clock of known unit.
    #[getter]
    fn time_ns(&self) -> Option<i64> {
        self.integer(Field::Time)
    }

    /// Its own length in nanoseconds.
    #[getter]
    fn duration_ns(&self) -> Option<i64> {
        self.integer(Field::Duration)
    }

    /// What it is.
    #[getter]
    fn kind(&self) -> Option<&str> {
        self.text(Field::Kind)
    }

    /// Function, description, type.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.text(Field::Name)
    }

    /// Its other fields, as a new `dict`.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = self.text(Field::Attributes).unwrap_or("{}");
        py.import("json")?.getattr("loads")?.call1((text,))
    }

    fn __repr__(&self) -> String {
        let mut text = format!("Record(seq={}", self.seq().unwrap_or_default());
        let numbers = [("offset", self.offset()), ("thread", self.thread()), ("time_ns", self.time_ns())];
        numbers
            .iter()
            .filter_map(|(name, n)| Some((name, (*n)?)))
            .for_each(|(name, n)| text += &format!(", {name}={n}"));
        let texts = [("kind", self.kind()), ("name", self.name())];
        texts
            .iter()
            .filter_map(|(name, n)| Some((name, (*n)?)))
            .for_each(|(name, n)| text += &format!(", {name}={n:?}"));
        text + ")"
    }
}

/// An iterator of records.
#[pyclass(frozen, module = "anytrace._anytrace")]
pub(crate) struct Records {
    file: String,
    state: Mutex<State>,
}

struct State {
    /// `None` at the end.
    producer: Option<Producer<Batch>>,
    batch: Arc<Batch>,
    row: usize,
}

impl Records {
    /// The records of a trace; a file without a byte has no table.
    pub(crate) fn new(opening: Opening, table: Option<Table>) -> Result<Self, Failure> {
        let file = opening.name.clone();
        let producer = match table {
            None => None,
            Some(table) => {
                let (conditions, _) = Conditions::new(&table, &Wanted::default()).map_err(Failure::Bare)?;
                Some(Producer::start(opening, table, conditions, 0, Ok)?)
            }
        };
        let batch = Arc::new(Batch { rows: 0, columns: Vec::new() });
        Ok(Self { file, state: Mutex::new(State { producer, batch, row: 0 }) })
    }
}

impl State {
    /// The next record, waiting for its batch; `None` where neither it nor the end came in time.
    fn next(&mut self) -> Option<Result<Record, Option<Box<Ended>>>> {
        while self.row >= self.batch.rows {
            let Some(producer) = &self.producer else { return Some(Err(None)) };
            match producer.wait(SIGNALS_EVERY) {
                Found::Batch(batch) => (self.batch, self.row) = (Arc::new(batch), 0),
                Found::Nothing => return None,
                Found::End(ended) => {
                    self.producer = None;
                    return Some(Err(Some(ended)));
                }
            }
        }
        self.row += 1;
        Some(Ok(Record { batch: Arc::clone(&self.batch), row: self.row - 1 }))
    }
}

#[pymethods]
impl Records {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Result<Option<Record>, Failure> {
        loop {
            // The lock is only ever taken while the interpreter is released: threads that share the iterator cannot wait
            // for each other.
            let next = py.detach(|| self.state.lock().unwrap_or_else(PoisonError::into_inner).next());
            match next {
                Some(Ok(record)) => return Ok(Some(record)),
                Some(Err(None)) => return Ok(None),
                Some(Err(Some(ended))) => {
                    ended.damage.warn(py, &self.file)?;
                    return ended.failure.map_or(Ok(None), Err);
                }
                None => py.check_signals()?,
            }
        }
    }
}
