//! The scan of a table as a `FileSource`: the one shape of a leaf whose parts Ballista can hand out to several machines.

use std::fmt;
use std::sync::Arc;

use anytrace_arrow::Converter;
use anytrace_core::table::{self, BATCH_ROWS, Batch, Scan, Table};
use anytrace_core::{Error, Format, tables};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array,
};
use datafusion::arrow::compute::{cast, take_record_batch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::object_store::ObjectStore;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, PhysicalExpr};
use futures::{FutureExt, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::input::{DamageSink, Range, TraceFile};
use crate::reports;

/// Batches that wait for the engine; reading stops while there are so many.
const WAITING_MAX: usize = 8;

/// What one part of a scan reads; attached to each `PartitionedFile`.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// The file.
    pub(crate) file: Arc<TraceFile>,
    /// The table as its format has it.
    pub(crate) table: Table,
    /// What is read of the file.
    pub(crate) range: Range,
}

/// One table of all files that have it.
#[derive(Clone)]
pub(crate) struct TraceSource {
    /// The table's name.
    pub(crate) name: &'static str,
    table_schema: TableSchema,
    /// What all rows that are needed have in common.
    pub(crate) filter: table::Filter,
    projection: SplitProjection,
    /// Most rows of a batch.
    batch_rows: usize,
    metrics: ExecutionPlanMetricsSet,
}

impl TraceSource {
    /// A source of all columns.
    pub(crate) fn new(name: &'static str, table_schema: TableSchema, filter: table::Filter) -> Self {
        let projection = SplitProjection::unprojected(&table_schema);
        let metrics = ExecutionPlanMetricsSet::new();
        Self { name, table_schema, filter, projection, batch_rows: BATCH_ROWS, metrics }
    }
}

impl FileSource for TraceSource {
    fn create_file_opener(
        &self,
        _store: Arc<dyn ObjectStore>,
        _config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let schema = self.table_schema.file_schema();
        let wanted = Arc::new(schema.project(&self.projection.file_indices)?);
        let opener: Arc<dyn FileOpener> = Arc::new(TraceOpener {
            wanted,
            filter: self.filter.clone(),
            batch_rows: self.batch_rows,
            metrics: self.metrics.clone(),
            partition,
        });
        ProjectionOpener::try_new(self.projection.clone(), opener, schema)
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table_schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_rows: batch_size.max(1), ..self.clone() })
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.table_schema.file_schema(), &merged);
        Ok(Some(Arc::new(Self { projection, ..self.clone() })))
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &'static str {
        "trace"
    }

    fn fmt_extra(&self, _form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ", table={}", self.name)?;
        if self.filter != table::Filter::default() {
            write!(f, ", filter={:?}", self.filter)?;
        }
        Ok(())
    }

    /// Cutting at any byte would cut records: parts are those that were planned.
    fn supports_repartitioning(&self) -> bool {
        false
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        datafusion::physical_plan::apply_expression_roots(self.projection.source.iter(), visit)
    }
}

/// Opens parts: each is read by a thread of its own, because decoding waits for the disk and keeps a processor busy.
struct TraceOpener {
    /// The columns that are read, with the types of the joint table.
    wanted: SchemaRef,
    filter: table::Filter,
    batch_rows: usize,
    metrics: ExecutionPlanMetricsSet,
    partition: usize,
}

impl FileOpener for TraceOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let part = file.extensions.get::<Part>().cloned();
        let part = part.ok_or_else(|| DataFusionError::Internal("a part of a scan without its trace".to_owned()))?;
        let (wanted, filter, batch_rows) = (Arc::clone(&self.wanted), self.filter.clone(), self.batch_rows);
        let (metrics, partition) = (self.metrics.clone(), self.partition);
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        Ok(async move {
            let Some(format) = part.file.format else { return Ok(futures::stream::empty().boxed()) };
            let out = Sender { sender, batch_rows };
            let thread = tokio::task::spawn_blocking(move || {
                let mut damage = DamageSink::new(&part.file);
                let result = read(&part, format, wanted, filter, &out, &mut damage);
                reports::send(&part.file, damage, &metrics, partition);
                result
            });
            Ok(futures::stream::unfold((receiver, Some(thread)), next).boxed())
        }
        .boxed())
    }
}

type Reading = (mpsc::Receiver<RecordBatch>, Option<JoinHandle<Result<()>>>);

/// The next batch; after the last, how reading ended.
async fn next((mut receiver, thread): Reading) -> Option<(Result<RecordBatch>, Reading)> {
    if let Some(batch) = receiver.recv().await {
        return Some((Ok(batch), (receiver, thread)));
    }
    let ended = match thread?.await {
        Ok(ended) => ended,
        Err(error) => Err(DataFusionError::External(Box::new(error))),
    };
    ended.err().map(|error| (Err(error), (receiver, None)))
}

/// Why reading stops although nothing is wrong: nobody wants more rows.
const ENOUGH: &str = "no more rows are wanted";

fn read(
    part: &Part,
    format: &'static dyn Format,
    wanted: SchemaRef,
    filter: table::Filter,
    out: &Sender,
    damage: &mut DamageSink<'_>,
) -> Result<()> {
    let own = anytrace_arrow::schema(&part.table);
    let indices: Vec<Option<usize>> = wanted.fields().iter().map(|field| own.index_of(field.name()).ok()).collect();
    let scanned: Vec<usize> = indices.iter().copied().flatten().collect();
    let mut converter = Converter::new(Arc::new(own.project(&scanned)?));
    let scan = Scan { columns: Some(scanned), filter };
    let mut take = |batch: Batch| -> std::result::Result<(), Error> {
        part.file.add_rows(batch.rows);
        let rows = converter.convert(batch).and_then(|batch| widened(&batch, &indices, &wanted));
        out.send(&rows.map_err(|error| Error::unsupported(error.to_string()))?)
    };
    let mut read = || -> std::result::Result<(), Error> {
        let options = part.file.span_options(format)?;
        for piece in part.file.parts_of(&part.range, &part.table, &scan.filter)? {
            let trace = part.file.trace(format, piece)?;
            tables::read(format, trace, part.table.name, &scan, &options, &mut take, damage)?;
        }
        Ok(())
    };
    match read() {
        Err(error) if !(out.sender.is_closed() && error.to_string() == ENOUGH) => {
            Err(DataFusionError::Execution(format!("{}: {error}", part.file.name)))
        }
        _ => Ok(()),
    }
}

/// Hands batches to the engine.
struct Sender {
    sender: mpsc::Sender<RecordBatch>,
    batch_rows: usize,
}

impl Sender {
    /// Sends rows, in batches that are small enough. Each has memory of its own, because that of all of its columns is
    /// counted where memory is limited.
    fn send(&self, rows: &RecordBatch) -> std::result::Result<(), Error> {
        let send = |batch| self.sender.blocking_send(batch).map_err(|_| Error::usage(ENOUGH));
        if rows.num_rows() <= self.batch_rows {
            return send(rows.clone());
        }
        for start in (0..rows.num_rows()).step_by(self.batch_rows) {
            let length = self.batch_rows.min(rows.num_rows() - start);
            let batch = copied(rows, start, length).map_err(|error| Error::unsupported(error.to_string()))?;
            send(batch)?;
        }
        Ok(())
    }
}

/// Some rows, without memory of the others.
fn copied(rows: &RecordBatch, start: usize, length: usize) -> std::result::Result<RecordBatch, ArrowError> {
    let (first, after) = (start as u64, (start + length) as u64);
    let piece = take_record_batch(rows, &UInt64Array::from_iter_values(first..after))?;
    let columns = piece.columns().iter().map(|column| match column.as_any_dictionary_opt() {
        // Names of other rows would be most of it.
        Some(names) if names.values().len() > length => {
            cast(&cast(column, names.values().data_type())?, column.data_type())
        }
        _ => Ok(Arc::clone(column)),
    });
    let columns = columns.collect::<std::result::Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(length));
    RecordBatch::try_new_with_options(rows.schema(), columns, &options)
}

/// The columns of the joint table: those that this format does not have are null.
fn widened(
    batch: &RecordBatch,
    indices: &[Option<usize>],
    wanted: &SchemaRef,
) -> std::result::Result<RecordBatch, ArrowError> {
    let mut own = batch.columns().iter();
    let columns = indices.iter().zip(wanted.fields()).map(|(index, field)| match index.and_then(|_| own.next()) {
        Some(column) if column.data_type() == field.data_type() => Ok(Arc::clone(column)),
        Some(column) => cast(column, field.data_type()),
        None => Ok(new_null_array(field.data_type(), batch.num_rows())),
    });
    let columns: Vec<ArrayRef> = columns.collect::<std::result::Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(wanted), columns, &options)
}
