//! Adds the numbers of names to batches.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PhysicalExpr, PlanProperties,
    ReplaceChildrenOptions, SendableRecordBatchStream,
};
use futures::StreamExt;

use super::keys::Keys;
use super::names::Names;

/// Adds the numbers that names have in their partition.
#[derive(Debug)]
pub(super) struct NumberExec {
    input: Arc<dyn ExecutionPlan>,
    keys: Keys,
    names: Arc<Names>,
    properties: Arc<PlanProperties>,
}

impl NumberExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, keys: Keys, names: Arc<Names>) -> Self {
        let own = input.schema();
        let fields: Vec<_> = own.fields().iter().cloned().chain(keys.fields(&own)).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, own.metadata().clone()));
        let properties = Arc::new(like(&input, schema));
        Self { input, keys, names, properties }
    }
}

/// Properties of what has as many partitions as its input, in no order that is known.
pub(super) fn like(input: &Arc<dyn ExecutionPlan>, schema: SchemaRef) -> PlanProperties {
    PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
        input.pipeline_behavior(),
        input.boundedness(),
    )
}

/// The only child of what has one.
pub(super) fn only(mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
    match (children.pop(), children.is_empty()) {
        (Some(child), true) => Ok(child),
        _ => Err(DataFusionError::Internal("expected one child".to_owned())),
    }
}

impl DisplayAs for NumberExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.input.schema();
        let columns = self.keys.columns();
        let names: Vec<&str> = columns.iter().map(|column| schema.field(*column).name().as_str()).collect();
        write!(f, "NumberExec: {}", names.join(", "))
    }
}

impl ExecutionPlan for NumberExec {
    fn name(&self) -> &'static str {
        "NumberExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(only(children)?, self.keys.clone(), Arc::clone(&self.names))))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(only(children)?, self.keys.clone(), Arc::clone(&self.names))))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (keys, names, schema) = (self.keys.clone(), Arc::clone(&self.names), self.schema());
        let own = Arc::clone(&schema);
        let add = move |batch: RecordBatch| -> Result<RecordBatch> {
            let mut all: Vec<ArrayRef> = batch.columns().to_vec();
            all.extend(keys.numbers(&batch, &names, partition)?);
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&own), all, &options)?)
        };
        let batches = self.input.execute(partition, context)?.map(move |batch| batch.and_then(&add));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
