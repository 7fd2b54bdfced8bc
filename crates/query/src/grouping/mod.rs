//! Grouping by names: by the numbers of names instead of their texts.
//!
//! Columns of names are dictionaries. DataFusion groups them by their texts, which costs several times what reading the
//! trace does. Below the first grouping of a plan, [`number::NumberExec`] adds a column with the number of each name, the
//! same in all batches of a partition; the grouping is by that, and above it [`name::NameExec`] puts the names back. What
//! is above sees no difference.

mod name;
mod names;
mod number;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, InputOrderMode, PhysicalExpr};

use name::NameExec;
use names::Names;
use number::NumberExec;

/// Groups by the numbers of names where a grouping reads a scan.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GroupByNumber;

impl PhysicalOptimizerRule for GroupByNumber {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let replaced = plan.transform_up(|node| match node.downcast_ref::<AggregateExec>() {
            Some(grouping) => Ok(by_number(grouping)?.map_or_else(|| Transformed::no(node), Transformed::yes)),
            None => Ok(Transformed::no(node)),
        });
        replaced.data()
    }

    fn name(&self) -> &'static str {
        "group_by_number"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The same grouping by numbers, if it is by names of a scan.
fn by_number(grouping: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let group = grouping.group_expr();
    let is_first =
        matches!(grouping.mode(), AggregateMode::Partial | AggregateMode::Single | AggregateMode::SinglePartitioned);
    let is_plain = group.is_single()
        && !group.has_grouping_set()
        && grouping.limit_options().is_none()
        && *grouping.input_order_mode() == InputOrderMode::Linear;
    if !is_first || !is_plain || !reads_scan(grouping.input()) {
        return Ok(None);
    }
    let input = grouping.input().schema();
    // Which columns of the input are names that are grouped by, and where they are among the groups.
    let named = group.expr().iter().enumerate().filter_map(|(at, (expression, _))| {
        let column = expression.downcast_ref::<Column>()?.index();
        is_name(&input, column).then_some((at, column))
    });
    let named: Vec<(usize, usize)> = named.collect();
    if named.is_empty() {
        return Ok(None);
    }
    let columns: Vec<usize> = named.iter().map(|(_, column)| *column).collect();
    let partitions = grouping.input().output_partitioning().partition_count();
    let names = Arc::new(Names::new(partitions, columns.len()));
    let numbers: Arc<dyn ExecutionPlan> =
        Arc::new(NumberExec::new(Arc::clone(grouping.input()), columns, Arc::clone(&names)));
    let schema = numbers.schema();
    let mut groups: Vec<(Arc<dyn PhysicalExpr>, String)> = group.expr().to_vec();
    for (nth, (at, _)) in named.iter().enumerate() {
        let number = input.fields().len() + nth;
        if let Some((expression, _)) = groups.get_mut(*at) {
            *expression = Arc::new(Column::new(schema.field(number).name(), number));
        }
    }
    let by_number = AggregateExec::try_new(
        *grouping.mode(),
        PhysicalGroupBy::new_single(groups),
        grouping.aggr_expr().to_vec(),
        grouping.filter_expr().to_vec(),
        numbers,
        schema,
    )?;
    let places = named.into_iter().map(|(at, _)| at).collect();
    Ok(Some(Arc::new(NameExec::new(Arc::new(by_number), grouping.schema(), places, names))))
}

fn is_name(schema: &Schema, column: usize) -> bool {
    let DataType::Dictionary(key, value) = schema.field(column).data_type() else { return false };
    **key == DataType::Int32 && **value == DataType::Utf8
}

/// True where batches are those of a scan, whose dictionaries only grow.
fn reads_scan(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if plan.is::<DataSourceExec>() {
        return true;
    }
    let passes_on = plan.is::<FilterExec>() || plan.is::<ProjectionExec>() || plan.is::<CooperativeExec>();
    passes_on && plan.children().into_iter().all(reads_scan)
}
