//! Conditions of a query that a scan can make use of.

use std::ops::RangeInclusive;

use anytrace_core::table::Filter;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::scalar::ScalarValue;

/// What all rows that meet the conditions have in common, as far as a scan understands it.
pub(crate) fn filter_of(conditions: &[Expr]) -> Filter {
    let mut filter = Filter::default();
    conditions.iter().for_each(|condition| narrow(&mut filter, condition));
    filter
}

fn narrow(filter: &mut Filter, condition: &Expr) {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            narrow(filter, left);
            narrow(filter, right);
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            if let Some((column, value)) = column_and_value(left, right) {
                compare(filter, column, *op, value);
            } else if let (Some((column, value)), Some(op)) = (column_and_value(right, left), op.swap()) {
                compare(filter, column, op, value);
            }
        }
        Expr::Between(between) if !between.negated => {
            if let Some((column, value)) = column_and_value(&between.expr, &between.low) {
                compare(filter, column, Operator::GtEq, value);
            }
            if let Some((column, value)) = column_and_value(&between.expr, &between.high) {
                compare(filter, column, Operator::LtEq, value);
            }
        }
        Expr::InList(list) if !list.negated => {
            let Expr::Column(column) = list.expr.as_ref() else { return };
            let values: Option<Vec<_>> = list.list.iter().map(literal).collect();
            if let Some(values) = values {
                one_of(filter, &column.name, &values);
            }
        }
        _ => {}
    }
}

fn column_and_value<'a>(left: &'a Expr, right: &'a Expr) -> Option<(&'a str, &'a ScalarValue)> {
    match left {
        Expr::Column(column) => Some((&column.name, literal(right)?)),
        _ => None,
    }
}

fn literal(of: &Expr) -> Option<&ScalarValue> {
    match of {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

fn compare(filter: &mut Filter, column: &str, op: Operator, value: &ScalarValue) {
    if op == Operator::Eq && matches!(column, "thread" | "kind") {
        one_of(filter, column, &[value]);
        return;
    }
    let Some(number) = number(value) else { return };
    let range = match op {
        Operator::Eq => number..=number,
        Operator::Lt => i64::MIN..=number.saturating_sub(1),
        Operator::LtEq => i64::MIN..=number,
        Operator::Gt => number.saturating_add(1)..=i64::MAX,
        Operator::GtEq => number..=i64::MAX,
        _ => return,
    };
    match column {
        "seq" => intersect(&mut filter.seq, range),
        "time_ns" | "start" | "start_ns" => intersect(&mut filter.time, range),
        _ => {}
    }
}

fn intersect(known: &mut Option<RangeInclusive<i64>>, range: RangeInclusive<i64>) {
    *known = Some(match known {
        Some(known) => *known.start().max(range.start())..=*known.end().min(range.end()),
        None => range,
    });
}

fn one_of(filter: &mut Filter, column: &str, values: &[&ScalarValue]) {
    match column {
        "thread" => {
            if let Some(threads) = values.iter().map(|value| number(value)).collect() {
                filter.threads.get_or_insert(threads);
            }
        }
        "kind" => {
            let kinds: Option<Vec<String>> = values.iter().map(|value| text(value)).collect();
            if let Some(kinds) = kinds {
                filter.kinds.get_or_insert(kinds);
            }
        }
        _ => {}
    }
}

fn number(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int64(value) => *value,
        ScalarValue::Int32(value) => value.map(i64::from),
        ScalarValue::UInt32(value) => value.map(i64::from),
        ScalarValue::UInt64(value) => value.and_then(|value| i64::try_from(value).ok()),
        _ => None,
    }
}

fn text(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Utf8(value) | ScalarValue::LargeUtf8(value) | ScalarValue::Utf8View(value) => value.clone(),
        ScalarValue::Dictionary(_, value) => text(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};

    use super::*;

    #[test]
    fn ranges_meet_and_what_is_not_understood_is_left_to_the_engine() {
        let conditions = [
            col("seq").gt(lit(5_i64)).and(col("seq").lt_eq(lit(9_i64))),
            lit(7_i64).gt_eq(col("seq")),
            col("start").between(lit(1_i64), lit(2_i64)),
            col("name").eq(lit("x")),
            col("kind").in_list(vec![lit("read"), lit("write")], false),
            col("thread").eq(lit(3_i64)),
            col("seq").gt(lit(8_i64)).or(col("depth").eq(lit(1))),
            col("thread").in_list(vec![lit(8_i64)], true),
        ];
        let filter = filter_of(&conditions);
        assert_eq!(filter.seq, Some(6..=7));
        assert_eq!(filter.time, Some(1..=2));
        assert_eq!(filter.kinds, Some(vec!["read".to_owned(), "write".to_owned()]));
        assert_eq!(filter.threads, Some(vec![3]));
        assert_eq!(filter_of(&[col("seq").gt(lit(1_i64)).or(col("seq").lt(lit(0_i64)))]), Filter::default());
    }
}
