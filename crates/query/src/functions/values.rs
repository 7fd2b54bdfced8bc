//! Functions of numbers: `bucket`, `hex`, `duration`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Int64Array, StringArray};
use datafusion::arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Signature, TypeSignature, Volatility};

use super::Function;

/// `bucket(time, width)`: the beginning of the interval of this width that a time is in.
pub(super) fn bucket() -> Function {
    Function {
        name: "bucket",
        files: Vec::new(),
        signature: Signature::exact(vec![DataType::Int64, DataType::Int64], Volatility::Immutable),
        returns: DataType::Int64,
        call: Arc::new(|arguments| {
            let (times, widths) = (arguments[0].as_primitive::<Int64Type>(), arguments[1].as_primitive::<Int64Type>());
            let rows = times.iter().zip(widths.iter()).map(|row| match row {
                (Some(_), Some(width)) if width <= 0 => {
                    Err(DataFusionError::Execution(format!("bucket: expected a width above 0, found {width}")))
                }
                (Some(time), Some(width)) => Ok(Some(time.div_euclid(width).saturating_mul(width))),
                _ => Ok(None),
            });
            Ok(Arc::new(rows.collect::<Result<Int64Array>>()?))
        }),
    }
}

/// `hex(number)`: `0x` and hexadecimal digits.
pub(super) fn hex() -> Function {
    let of = |kind| TypeSignature::Exact(vec![kind]);
    Function {
        name: "hex",
        files: Vec::new(),
        signature: Signature::one_of(vec![of(DataType::UInt64), of(DataType::Int64)], Volatility::Immutable),
        returns: DataType::Utf8,
        call: Arc::new(|arguments| {
            let made: StringArray = match arguments[0].data_type() {
                DataType::UInt64 => {
                    let numbers = arguments[0].as_primitive::<UInt64Type>();
                    numbers.iter().map(|number| number.map(|number| format!("{number:#x}"))).collect()
                }
                _ => {
                    let numbers = arguments[0].as_primitive::<Int64Type>();
                    numbers.iter().map(|number| number.map(|number| format!("{number:#x}"))).collect()
                }
            };
            Ok(Arc::new(made))
        }),
    }
}

/// `duration('3ms')`: nanoseconds.
pub(super) fn duration() -> Function {
    Function {
        name: "duration",
        files: Vec::new(),
        signature: Signature::exact(vec![DataType::Utf8], Volatility::Immutable),
        returns: DataType::Int64,
        call: Arc::new(|arguments| {
            let texts = arguments[0].as_string::<i32>();
            let rows = texts.iter().map(|text| text.map(nanoseconds).transpose());
            Ok(Arc::new(rows.collect::<Result<Int64Array>>()?))
        }),
    }
}

/// Units and their nanoseconds; longer names first where one ends in another.
const UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("min", 60e9), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

fn nanoseconds(text: &str) -> Result<i64> {
    let wrong = || {
        let units: Vec<_> = UNITS.iter().map(|(unit, _)| *unit).collect();
        DataFusionError::Execution(format!(
            "duration: expected a number with one of {}, found {text}",
            units.join(", ")
        ))
    };
    let trimmed = text.trim();
    let (number, factor) =
        UNITS.iter().find_map(|(unit, factor)| Some((trimmed.strip_suffix(unit)?, *factor))).ok_or_else(wrong)?;
    let number = number.trim();
    // Whole numbers are exact, however large.
    #[expect(clippy::cast_possible_truncation, reason = "the factor is a whole number below 2^42")]
    if let Ok(number) = number.parse::<i64>() {
        return number.checked_mul(factor as i64).ok_or_else(wrong);
    }
    let value = number.parse::<f64>().map_err(|_| wrong())? * factor;
    #[expect(clippy::cast_possible_truncation, reason = "checked here")]
    if value.is_finite() && value.abs() < 9.2e18 { Ok(value.round() as i64) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact_where_they_are_whole() {
        let cases = [
            ("3ms", 3_000_000),
            ("1.5us", 1500),
            (" 2 s ", 2_000_000_000),
            ("1min", 60_000_000_000),
            ("1m", 60_000_000_000),
            ("2h", 7_200_000_000_000),
            ("-5ns", -5),
            ("9007199254740993ns", 9_007_199_254_740_993),
            ("1µs", 1000),
        ];
        for (text, expected) in cases {
            assert_eq!(nanoseconds(text).ok(), Some(expected), "{text}");
        }
        for text in ["", "3", "ms", "x s", "9e30h", "NaNs", "9223372036854775807s"] {
            assert!(nanoseconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn buckets_begin_at_or_before_the_time() {
        let arguments: Vec<datafusion::arrow::array::ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(0), Some(9), Some(10), Some(-1), None])),
            Arc::new(Int64Array::from(vec![10; 5])),
        ];
        let made = (bucket().call)(&arguments).unwrap();
        let made: Vec<_> = made.as_primitive::<Int64Type>().iter().collect();
        assert_eq!(made, [Some(0), Some(0), Some(10), Some(-10), None]);
        let zero: Vec<datafusion::arrow::array::ArrayRef> =
            vec![Arc::new(Int64Array::from(vec![1])), Arc::new(Int64Array::from(vec![0]))];
        assert!((bucket().call)(&zero).is_err());
    }
}
