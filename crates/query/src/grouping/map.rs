//! Changes each batch of a partition on its own.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
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

/// The columns of a batch of a partition, changed.
pub(super) type Change = Arc<dyn Fn(usize, &RecordBatch) -> Result<Vec<ArrayRef>> + Send + Sync>;

/// Batches with other columns and the same rows.
#[derive(Clone)]
pub(super) struct MapExec {
    input: Arc<dyn ExecutionPlan>,
    change: Change,
    /// Its name, and what a plan shows of it.
    name: &'static str,
    shown: String,
    properties: Arc<PlanProperties>,
}

impl MapExec {
    /// Rows in no order that is known; `schema` is that of the changed columns.
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        schema: SchemaRef,
        (name, shown): (&'static str, String),
        change: Change,
    ) -> Self {
        let partitions = input.output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input, change, name, shown, properties: Arc::new(properties) }
    }

    fn with_child(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => {
                let (shown, change) = (self.shown.clone(), Arc::clone(&self.change));
                Ok(Arc::new(Self::new(input, self.schema(), (self.name, shown), change)))
            }
            _ => Err(DataFusionError::Internal(format!("{} has one child", self.name))),
        }
    }
}

impl fmt::Debug for MapExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.name).field("input", &self.input).field("columns", &self.shown).finish_non_exhaustive()
    }
}

impl DisplayAs for MapExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.shown)
    }
}

impl ExecutionPlan for MapExec {
    fn name(&self) -> &str {
        self.name
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
        self.with_child(children)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.with_child(children)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (change, schema) = (Arc::clone(&self.change), self.schema());
        let own = Arc::clone(&schema);
        let map = move |batch: RecordBatch| {
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let columns = change(partition, &batch)?;
            Ok(RecordBatch::try_new_with_options(Arc::clone(&own), columns, &options)?)
        };
        let batches = self.input.execute(partition, context)?.map(move |batch| batch.and_then(&map));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
