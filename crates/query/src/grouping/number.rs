//! Adds the numbers of names to batches.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
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

use super::names::Names;

/// Adds a column for each of some columns of names: the numbers of these names in their partition.
#[derive(Debug)]
pub(super) struct NumberExec {
    input: Arc<dyn ExecutionPlan>,
    columns: Vec<usize>,
    names: Arc<Names>,
    properties: Arc<PlanProperties>,
}

impl NumberExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, columns: Vec<usize>, names: Arc<Names>) -> Self {
        let own = input.schema();
        let number = |column: &usize| {
            let of = own.field(*column);
            Arc::new(Field::new(format!("number of {}", of.name()), DataType::Int32, of.is_nullable()))
        };
        let fields: Vec<_> = own.fields().iter().cloned().chain(columns.iter().map(number)).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, own.metadata().clone()));
        let properties = Arc::new(like(&input, schema));
        Self { input, columns, names, properties }
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
        let names: Vec<&str> = self.columns.iter().map(|column| schema.field(*column).name().as_str()).collect();
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
        Ok(Arc::new(Self::new(only(children)?, self.columns.clone(), Arc::clone(&self.names))))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(only(children)?, self.columns.clone(), Arc::clone(&self.names))))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (columns, names, schema) = (self.columns.clone(), Arc::clone(&self.names), self.schema());
        let own = Arc::clone(&schema);
        let add = move |batch: RecordBatch| -> Result<RecordBatch> {
            let mut all: Vec<ArrayRef> = batch.columns().to_vec();
            for (nth, column) in columns.iter().enumerate() {
                let numbers = names.of(partition, nth)?.numbers(batch.column(*column))?;
                all.push(Arc::new(numbers));
            }
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&own), all, &options)?)
        };
        let batches = self.input.execute(partition, context)?.map(move |batch| batch.and_then(&add));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
