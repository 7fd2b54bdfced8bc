//! What names are numbered for a grouping, and how the numbers become columns.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema};
use datafusion::error::Result;

use super::names::Names;

/// The number of a name that is null, in a pair.
const NO_NAME: i32 = -1;

/// What is numbered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Keys {
    /// These columns of names, each as a column of 32 bits.
    Each(Vec<usize>),
    /// Two columns, as one of 64 bits.
    Pair([Half; 2]),
}

/// 32 of the 64 bits of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    /// A column of names.
    Name(usize),
    /// A column of numbers of 32 bits, none of them null.
    Number(usize),
}

impl Half {
    const fn column(self) -> usize {
        match self {
            Self::Name(column) | Self::Number(column) => column,
        }
    }
}

impl Keys {
    /// How many columns may have names.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Each(columns) => columns.len(),
            Self::Pair(halves) => halves.len(),
        }
    }

    /// The columns of the input that are read.
    pub(super) fn columns(&self) -> Vec<usize> {
        match self {
            Self::Each(columns) => columns.clone(),
            Self::Pair(halves) => halves.iter().map(|half| half.column()).collect(),
        }
    }

    /// The columns that are added.
    pub(super) fn fields(&self, input: &Schema) -> Vec<Arc<Field>> {
        match self {
            Self::Each(columns) => {
                let number = |column: &usize| {
                    let of = input.field(*column);
                    Arc::new(Field::new(format!("number of {}", of.name()), DataType::Int32, of.is_nullable()))
                };
                columns.iter().map(number).collect()
            }
            Self::Pair(_) => vec![Arc::new(Field::new("pair", DataType::Int64, false))],
        }
    }

    /// The values of these columns.
    pub(super) fn numbers(&self, batch: &RecordBatch, names: &Names, partition: usize) -> Result<Vec<ArrayRef>> {
        let number = |nth: usize, column: usize| names.of(partition, nth)?.numbers(batch.column(column));
        match self {
            Self::Each(columns) => {
                let made =
                    columns.iter().enumerate().map(|(nth, column)| Ok(Arc::new(number(nth, *column)?) as ArrayRef));
                made.collect()
            }
            Self::Pair(halves) => {
                let half = |nth: usize| match halves[nth] {
                    Half::Name(column) => number(nth, column),
                    Half::Number(column) => Ok(batch.column(column).as_primitive::<Int32Type>().clone()),
                };
                Ok(vec![Arc::new(paired(&half(0)?, &half(1)?))])
            }
        }
    }

    /// The columns of a grouping with names where their numbers are: `named` are the places of names among the groups.
    pub(super) fn named(
        &self,
        columns: &[ArrayRef],
        named: &[usize],
        names: &Names,
        partition: usize,
    ) -> Result<Vec<ArrayRef>> {
        let Self::Pair(halves) = self else {
            let mut all = columns.to_vec();
            for (nth, place) in named.iter().enumerate() {
                if let Some(column) = all.get_mut(*place) {
                    *column = names.of(partition, nth)?.names(column)?;
                }
            }
            return Ok(all);
        };
        let [pair, rest @ ..] = columns else { return Ok(Vec::new()) };
        let mut all = Vec::with_capacity(columns.len() + 1);
        for (nth, half) in halves.iter().enumerate() {
            let numbers = half_of(pair.as_primitive::<Int64Type>(), nth);
            all.push(match half {
                Half::Number(_) => Arc::new(numbers) as ArrayRef,
                Half::Name(_) => {
                    let known: Int32Array = numbers.iter().map(|number| number.filter(|one| *one != NO_NAME)).collect();
                    names.of(partition, nth)?.names(&known)?
                }
            });
        }
        all.extend_from_slice(rest);
        Ok(all)
    }
}

/// Two columns as one; what is null is [`NO_NAME`].
fn paired(one: &Int32Array, other: &Int32Array) -> Int64Array {
    let pair = |one: i32, other: i32| i64::from(one) << 32 | i64::from(other.cast_unsigned());
    if one.null_count() == 0 && other.null_count() == 0 {
        return Int64Array::from_iter_values(
            one.values().iter().zip(other.values()).map(|(one, other)| pair(*one, *other)),
        );
    }
    let rows = one.iter().zip(other.iter());
    Int64Array::from_iter_values(rows.map(|(one, other)| pair(one.unwrap_or(NO_NAME), other.unwrap_or(NO_NAME))))
}

/// The first or the second column of pairs.
fn half_of(pairs: &Int64Array, nth: usize) -> Int32Array {
    #[expect(clippy::cast_possible_truncation, reason = "32 of 64 bits")]
    let half = |pair: i64| if nth == 0 { (pair >> 32) as i32 } else { pair as i32 };
    pairs.unary(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_both_halves_of_any_sign() {
        let one = Int32Array::from(vec![0, -1, i32::MIN, i32::MAX, 7]);
        let other = Int32Array::from(vec![-1, 0, i32::MAX, i32::MIN, 9]);
        let pairs = paired(&one, &other);
        assert_eq!((half_of(&pairs, 0), half_of(&pairs, 1)), (one, other));
        let with_null = paired(&Int32Array::from(vec![None, Some(3)]), &Int32Array::from(vec![5, 6]));
        assert_eq!(half_of(&with_null, 0), Int32Array::from(vec![NO_NAME, 3]));
    }
}
