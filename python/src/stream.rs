//! A table as a stream of Arrow's C interface.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anytrace_arrow::Converter;
use anytrace_core::Error;
use anytrace_core::table::Table;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::failure::Failure;
use crate::keep::{Conditions, Wanted};
use crate::opening::Opening;
use crate::producer::{Ended, Found, Producer};
use crate::work::{SIGNALS_EVERY, is_main_thread};

/// The schema of some columns of a table.
pub(crate) fn projected(table: &Table, columns: &[usize]) -> SchemaRef {
    let all = anytrace_arrow::schema(table);
    Arc::new(Schema::new(columns.iter().filter_map(|column| all.fields().get(*column).cloned()).collect::<Vec<_>>()))
}

/// The columns of a stream as a capsule of Arrow's C interface.
pub(crate) fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> Result<Bound<'py, PyCapsule>, Failure> {
    let schema = FFI_ArrowSchema::try_from(&**schema);
    let schema = schema.map_err(|error| Failure::Bare(Error::unsupported(error.to_string())))?;
    Ok(PyCapsule::new_with_value(py, schema, c"arrow_schema")?)
}

/// One reading of a table. It begins when the stream is taken.
#[pyclass(frozen, module = "anytrace._anytrace")]
pub(crate) struct Stream {
    schema: SchemaRef,
    /// `None` once the stream was taken.
    reader: Mutex<Option<Reader>>,
    failure: Arc<Kept>,
}

impl Stream {
    /// A reading of some columns of a table.
    pub(crate) fn new(opening: Opening, table: Table, wanted: &Wanted, threads: usize) -> Result<Self, Failure> {
        let (conditions, columns) = Conditions::new(&table, wanted).map_err(Failure::Bare)?;
        let schema = projected(&table, &columns);
        let failure = Arc::new(Kept::default());
        let file = opening.name.clone();
        let mut converter = Converter::new(Arc::clone(&schema));
        let convert = move |batch| converter.convert(batch).map_err(|error| Error::unsupported(error.to_string()));
        let start: Start = Box::new(move || Producer::start(opening, table, conditions, threads, convert));
        let state = State::Waiting(start);
        let reader = Reader { schema: Arc::clone(&schema), state, file, failure: Arc::clone(&failure), looked: None };
        Ok(Self { schema, reader: Mutex::new(Some(reader)), failure })
    }
}

#[pymethods]
impl Stream {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>, Failure> {
        schema_capsule(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyCapsule>, Failure> {
        // The protocol lets a producer ignore what is requested; consumers cast.
        let _ = requested_schema;
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reader = reader.ok_or_else(|| Failure::usage("this stream was read already; a table gives another"))?;
        Ok(PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")?)
    }

    /// What ended the stream early, as the exception it is; consumers only know its text.
    fn failure(&self) -> Option<PyErr> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The exception that ended a stream.
type Kept = Mutex<Option<PyErr>>;

type Start = Box<dyn FnOnce() -> Result<Producer<RecordBatch>, Failure> + Send>;

enum State {
    /// Nothing was asked for yet.
    Waiting(Start),
    Reading(Producer<RecordBatch>),
    Ended,
}

/// What a consumer pulls batches from, in whichever thread it likes, with or without the interpreter.
struct Reader {
    schema: SchemaRef,
    state: State,
    file: String,
    failure: Arc<Kept>,
    /// When signals were last looked for.
    looked: Option<Instant>,
}

impl Reader {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Failure> {
        loop {
            self.look_for_signals()?;
            let producer = match std::mem::replace(&mut self.state, State::Ended) {
                State::Waiting(start) => start()?,
                State::Reading(producer) => producer,
                State::Ended => return Ok(None),
            };
            match producer.wait(SIGNALS_EVERY) {
                Found::Batch(batch) => {
                    self.state = State::Reading(producer);
                    return Ok(Some(batch));
                }
                Found::Nothing => self.state = State::Reading(producer),
                Found::End(ended) => return self.end(*ended).map(|()| None),
            }
        }
    }

    /// Warns of damage; then the failure, if there is one.
    fn end(&self, ended: Ended) -> Result<(), Failure> {
        let Ended { damage, failure } = ended;
        // While the interpreter shuts down nobody can be warned.
        Python::try_attach(|py| damage.warn(py, &self.file)).unwrap_or(Ok(()))?;
        failure.map_or(Ok(()), Err)
    }

    /// Runs Python's signal handlers, now and then, where they may run.
    fn look_for_signals(&mut self) -> Result<(), Failure> {
        if !is_main_thread() || self.looked.is_some_and(|then| then.elapsed() < SIGNALS_EVERY) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        Ok(Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(()))?)
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose().map(|batch| {
            batch.map_err(|failure| {
                self.state = State::Ended;
                let message = failure.message();
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure.into());
                ArrowError::ExternalError(message.into())
            })
        })
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
