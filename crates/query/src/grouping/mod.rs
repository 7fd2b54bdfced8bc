//! Grouping by names: by the numbers of names instead of their texts.
//!
//! Columns of names are dictionaries. DataFusion groups them by their texts, which costs several times what reading the
//! trace does. Below the first grouping of a plan, `NumberExec` adds a column with the number of each name, the same in all
//! batches of a partition; the grouping is by that, and above it `NameExec` puts the names back. What is above sees no
//! difference. Two columns of 32 bits, of which one has names, become one of 64 bits: grouping by one number is much
//! faster than by two.
//!
//! The names are kept besides the groups, in memory that no limit counts: with `--memory` groupings are by texts.

mod keys;
mod map;
mod names;

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
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

use keys::{Half, Keys};
use map::MapExec;
use names::Names;

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
    let Some((keys, named)) = keys_of(group.expr(), &input) else { return Ok(None) };
    let partitions = grouping.input().output_partitioning().partition_count();
    let names = Arc::new(Names::new(partitions, keys.len()));
    let numbers = numbered(Arc::clone(grouping.input()), keys.clone(), Arc::clone(&names));
    let schema = numbers.schema();
    let groups = groups_by(group.expr(), &schema, input.fields().len(), (&keys, &named));
    let by_number = AggregateExec::try_new(
        *grouping.mode(),
        PhysicalGroupBy::new_single(groups),
        grouping.aggr_expr().to_vec(),
        grouping.filter_expr().to_vec(),
        numbers,
        schema,
    )?;
    Ok(Some(with_names(Arc::new(by_number), grouping.schema(), (keys, named), names)))
}

fn shown(schema: &Schema, columns: &[usize]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| schema.field(*column).name().as_str()).collect();
    names.join(", ")
}

/// The input with the numbers of names.
fn numbered(input: Arc<dyn ExecutionPlan>, keys: Keys, names: Arc<Names>) -> Arc<dyn ExecutionPlan> {
    let own = input.schema();
    let fields: Vec<_> = own.fields().iter().cloned().chain(keys.fields(&own)).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, own.metadata().clone()));
    let shown = shown(&own, &keys.columns());
    let add = move |partition, batch: &RecordBatch| {
        let mut all = batch.columns().to_vec();
        all.extend(keys.numbers(batch, &names, partition)?);
        Ok(all)
    };
    Arc::new(MapExec::new(input, schema, ("NumberExec", shown), Arc::new(add)))
}

/// A grouping with names, which have these places among the groups.
fn with_names(
    grouping: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    (keys, places): (Keys, Vec<usize>),
    names: Arc<Names>,
) -> Arc<dyn ExecutionPlan> {
    let shown = shown(&schema, &places);
    let name = move |partition, batch: &RecordBatch| keys.named(batch.columns(), &places, &names, partition);
    Arc::new(MapExec::new(grouping, schema, ("NameExec", shown), Arc::new(name)))
}

type Group = (Arc<dyn PhysicalExpr>, String);

/// What is numbered for a grouping, and where its names are among the groups; `None` where there are none.
fn keys_of(groups: &[Group], input: &Schema) -> Option<(Keys, Vec<usize>)> {
    let column = |expression: &Arc<dyn PhysicalExpr>| Some(expression.downcast_ref::<Column>()?.index());
    let columns: Vec<Option<usize>> = groups.iter().map(|(expression, _)| column(expression)).collect();
    let named =
        columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.filter(|one| is_name(input, *one))?)));
    let (places, named): (Vec<usize>, Vec<usize>) = named.unzip();
    if named.is_empty() {
        return None;
    }
    let half = |column: &Option<usize>| {
        let column = (*column)?;
        let is_number = *input.field(column).data_type() == DataType::Int32 && !input.field(column).is_nullable();
        if is_name(input, column) { Some(Half::Name(column)) } else { is_number.then_some(Half::Number(column)) }
    };
    let halves: Option<Vec<Half>> = columns.iter().map(half).collect();
    match halves.as_deref() {
        Some([one, other]) => Some((Keys::Pair([*one, *other]), places)),
        _ => Some((Keys::Each(named), places)),
    }
}

/// The groups with numbers, which begin at the column `first`, in the place of names.
fn groups_by(groups: &[Group], schema: &Schema, first: usize, (keys, named): (&Keys, &[usize])) -> Vec<Group> {
    let number = |at: usize| -> Arc<dyn PhysicalExpr> { Arc::new(Column::new(schema.field(at).name(), at)) };
    match keys {
        Keys::Pair(_) => vec![(number(first), "pair".to_owned())],
        Keys::Each(_) => {
            let mut groups = groups.to_vec();
            for (nth, at) in named.iter().enumerate() {
                if let Some((expression, _)) = groups.get_mut(*at) {
                    *expression = number(first + nth);
                }
            }
            groups
        }
    }
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
