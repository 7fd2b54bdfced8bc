//! One table of all traces of a query, as DataFusion sees it.

use std::collections::BTreeSet;
use std::sync::Arc;

use anytrace_core::index;
use anytrace_core::table::{Filter, Table};
use anytrace_core::tables::{self, origin_column};
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::scalar::ScalarValue;

use crate::input::{Range, TraceFile};
use crate::pushdown;
use crate::source::{Part, TraceSource};

/// A table of one or more traces.
#[derive(Debug)]
pub(crate) struct TraceTable {
    /// Its name, and what a row is.
    pub(crate) table: Table,
    parts: Vec<Part>,
    schema: TableSchema,
    /// Bytes of a part, where parts are read by other processes.
    part_bytes: Option<u64>,
}

/// Most parts of a table: a plan names each of them.
const PARTS_MAX: u64 = 8192;

/// The tables of some files: each is the union over those that have it. With more than one file each table has a column
/// `file`, or `trace` where it has a `file` of its own.
pub(crate) fn tables_of(files: &[Arc<TraceFile>], has_file_column: bool, part_bytes: Option<u64>) -> Vec<TraceTable> {
    let mut tables: Vec<TraceTable> = Vec::new();
    for file in files {
        for table in file.format.map(tables::all).unwrap_or_default() {
            let part = Part { file: Arc::clone(file), table, range: Range::Part(index::Part::default()) };
            match tables.iter_mut().find(|known| known.table.name == table.name) {
                Some(known) => known.parts.push(part),
                None => {
                    let schema = TableSchema::builder(Arc::new(Schema::empty())).build();
                    tables.push(TraceTable { table, parts: vec![part], schema, part_bytes });
                }
            }
        }
    }
    for table in &mut tables {
        table.schema = joint_schema(&table.parts, has_file_column);
    }
    tables
}

/// All columns of all formats that have a table of this name. A column that one of them does not have is null there.
fn joint_schema(parts: &[Part], has_file_column: bool) -> TableSchema {
    let own: Vec<Schema> = parts.iter().map(|part| anytrace_arrow::schema(&part.table)).collect();
    let mut fields: Vec<Field> = Vec::new();
    for field in own.iter().flat_map(|schema| schema.fields()) {
        if fields.iter().any(|known| known.name() == field.name()) {
            continue;
        }
        let of_all: Vec<_> = own.iter().map(|schema| schema.field_with_name(field.name()).ok()).collect();
        let is_nullable = of_all.iter().any(|one| one.is_none_or(Field::is_nullable));
        let kind = of_all.iter().flatten().map(|one| one.data_type()).reduce(wider).unwrap_or(field.data_type());
        fields.push(Field::new(field.name(), kind.clone(), is_nullable));
    }
    let schema = TableSchema::builder(Arc::new(Schema::new(fields)));
    if !has_file_column {
        return schema.build();
    }
    // A table of one of the formats may have a column of the usual name.
    let names: BTreeSet<&str> = parts.iter().map(|part| origin_column(&part.table)).collect();
    let name = names.last().copied().unwrap_or("file");
    schema.with_table_partition_cols(vec![Arc::new(Field::new(name, DataType::Utf8, false))]).build()
}

/// The type that holds the values of both.
fn wider<'a>(one: &'a DataType, other: &'a DataType) -> &'a DataType {
    match (one, other) {
        (DataType::Int32, DataType::Int64) | (DataType::UInt32, DataType::UInt64 | DataType::Int64) => other,
        _ => one,
    }
}

impl TraceTable {
    /// True when each row says of which file it is.
    pub(crate) fn has_file_column(&self) -> bool {
        !self.schema.table_partition_cols().is_empty()
    }

    /// The files that have it, in order.
    #[cfg(feature = "codec")]
    pub(crate) fn files(&self) -> impl Iterator<Item = &TraceFile> {
        self.parts.iter().map(|part| part.file.as_ref())
    }

    /// Bytes of a part, where parts are read by other processes.
    #[cfg(feature = "codec")]
    pub(crate) fn part_bytes(&self) -> Option<u64> {
        self.part_bytes
    }

    /// Groups of parts, which are read side by side.
    fn groups(&self, threads: usize) -> usize {
        let bytes: u64 = self.parts.iter().map(|part| part.file.bytes).sum();
        self.part_bytes.map_or(threads, |most| times(bytes, most).max(threads))
    }

    /// The parts of all files in order: about so many of each.
    fn pieces(&self, filter: &Filter, threads: usize) -> Vec<PartitionedFile> {
        let mut pieces = Vec::new();
        for part in &self.parts {
            let ranges = match self.part_bytes {
                None => part.file.parts(&part.table, filter, threads.max(times(part.file.bytes, MAPPED_BYTES))),
                Some(most) => part.file.shares(&part.table, filter, threads, times(part.file.bytes, most)),
            };
            // Parts of a file are about the same length.
            let bytes = part.file.bytes / (ranges.len() as u64).max(1);
            for range in ranges {
                let mut piece = PartitionedFile::new(part.file.path().display().to_string(), bytes);
                if self.has_file_column() {
                    piece.partition_values = vec![ScalarValue::Utf8(Some(part.file.name.clone()))];
                }
                pieces.push(piece.with_extension(Part { range, ..part.clone() }));
            }
        }
        pieces
    }
}

#[async_trait]
impl TableProvider for TraceTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.schema.table_schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let filter = pushdown::filter_of(filters);
        let threads = state.config().target_partitions();
        // The first rows are those of the first part, whichever thread is first.
        let threads = if limit.is_some() { 1 } else { threads };
        let parts = self.pieces(&filter, threads);
        let groups = if limit.is_some() { 1 } else { self.groups(threads) };
        let source = Arc::new(TraceSource::new(self.table.name, self.schema.clone(), filter));
        let groups = spread(parts, groups);
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
            .with_file_groups(groups)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            // Otherwise a group that is done takes parts of others.
            .with_preserve_order(true)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // Whatever a scan leaves out, the engine looks at what is left once more.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}

/// Bytes of a part in one process. A reader has a part mapped into memory until it has read it, and the next one too.
const MAPPED_BYTES: u64 = 16 << 20;

/// How many parts of so many bytes there are, within what a plan may name.
fn times(bytes: u64, most: u64) -> usize {
    usize::try_from(bytes.div_ceil(most.max(1)).clamp(1, PARTS_MAX)).unwrap_or(1)
}

/// Parts in groups, which are read side by side: as even in bytes as the parts allow, and in their order, so that the
/// groups one after the other are the table in order.
fn spread(parts: Vec<PartitionedFile>, groups: usize) -> Vec<FileGroup> {
    let groups = groups.clamp(1, parts.len().max(1));
    let mut left: u64 = parts.iter().map(|part| part.object_meta.size).sum();
    let mut parts = parts.into_iter().peekable();
    let mut made = Vec::new();
    for group in 0..groups {
        let mean = left / u64::try_from(groups - group).unwrap_or(1);
        let (mut own, mut bytes) = (Vec::new(), 0);
        // Each group has a part, and leaves one to each after it.
        while let Some(size) = parts.peek().map(|next| next.object_meta.size) {
            let is_enough = !own.is_empty() && bytes + size / 2 >= mean;
            if is_enough && group + 1 < groups || !own.is_empty() && parts.len() < groups - group {
                break;
            }
            bytes += size;
            own.extend(parts.next());
        }
        left -= bytes;
        made.push(FileGroup::new(own));
    }
    made
}
