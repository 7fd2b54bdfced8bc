//! Puts names where their numbers are.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties, ReplaceChildrenOptions,
    SendableRecordBatchStream,
};
use futures::StreamExt;

use super::keys::Keys;
use super::names::Names;
use super::number::{like, only};

/// Replaces columns of numbers by the names that a [`super::NumberExec`] below numbered.
#[derive(Debug)]
pub(super) struct NameExec {
    input: Arc<dyn ExecutionPlan>,
    keys: Keys,
    /// Where names are among the groups.
    places: Vec<usize>,
    names: Arc<Names>,
    properties: Arc<PlanProperties>,
}

impl NameExec {
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        schema: SchemaRef,
        (keys, places): (Keys, Vec<usize>),
        names: Arc<Names>,
    ) -> Self {
        let properties = Arc::new(like(&input, schema));
        Self { input, keys, places, names, properties }
    }
}

impl DisplayAs for NameExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        let names: Vec<&str> = self.places.iter().map(|place| schema.field(*place).name().as_str()).collect();
        write!(f, "NameExec: {}", names.join(", "))
    }
}

impl ExecutionPlan for NameExec {
    fn name(&self) -> &'static str {
        "NameExec"
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
        let keys = (self.keys.clone(), self.places.clone());
        Ok(Arc::new(Self::new(only(children)?, self.schema(), keys, Arc::clone(&self.names))))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let keys = (self.keys.clone(), self.places.clone());
        Ok(Arc::new(Self::new(only(children)?, self.schema(), keys, Arc::clone(&self.names))))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (keys, places, names) = (self.keys.clone(), self.places.clone(), Arc::clone(&self.names));
        let schema = self.schema();
        let own = Arc::clone(&schema);
        let name = move |batch: RecordBatch| -> Result<RecordBatch> {
            let all = keys.named(batch.columns(), &places, &names, partition)?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&own), all, &options)?)
        };
        let batches = self.input.execute(partition, context)?.map(move |batch| batch.and_then(&name));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
