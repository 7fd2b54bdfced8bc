//! Parquet and Arrow files.

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::ipc::writer::FileWriter;
use datafusion::error::Result;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

use super::Results;

/// As those of `anytrace convert`: readers skip row groups that a condition excludes.
const GROUP_ROWS: usize = 1 << 17;

struct Parquet<'a>(ArrowWriter<&'a mut (dyn Write + Send)>);

pub(super) fn parquet<'a>(schema: &SchemaRef, out: &'a mut (dyn Write + Send)) -> Result<Box<dyn Results + 'a>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build();
    Ok(Box::new(Parquet(ArrowWriter::try_new(out, Arc::clone(schema), Some(properties))?)))
}

impl Results for Parquet<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        Ok(self.0.write(batch)?)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.0.close()?;
        Ok(())
    }
}

struct Arrow<'a> {
    writer: FileWriter<&'a mut (dyn Write + Send)>,
    schema: SchemaRef,
}

/// A file has one dictionary per column, and results have many: names become plain texts.
pub(super) fn arrow<'a>(schema: &SchemaRef, out: &'a mut (dyn Write + Send)) -> Result<Box<dyn Results + 'a>> {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Dictionary(_, value) => Field::new(field.name(), value.as_ref().clone(), field.is_nullable()),
        _ => field.as_ref().clone(),
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    Ok(Box::new(Arrow { writer: FileWriter::try_new(out, &schema)?, schema }))
}

impl Results for Arrow<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let plain = |(column, field): (&ArrayRef, &Arc<Field>)| cast(column, field.data_type());
        let columns = batch.columns().iter().zip(self.schema.fields()).map(plain);
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(self.writer.write(&RecordBatch::try_new(Arc::clone(&self.schema), columns)?)?)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        Ok(self.writer.finish()?)
    }
}
