//! Attributes of OTLP as attributes of Heph.
//!
//! Truth values are numbers 0 and 1, bytes are text in base64, both as OpenTelemetry's specification asks of formats
//! without such a type; a list of pairs is an attribute each, `NAME.KEY`; an array of values of several types is an
//! array of texts.

use base64_simd::STANDARD;
use heph_encoder::Event;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};

/// Deeper lists of pairs are text.
const DEPTH_MAX: usize = 8;

/// Adds all.
pub(crate) fn push_all(event: &mut Event<'_, Vec<u8>>, prefix: &str, all: &[KeyValue]) {
    for pair in all {
        let name = format!("{prefix}{}", pair.key);
        push(event, &name, pair.value.as_ref().and_then(|value| value.value.as_ref()), 0);
    }
}

fn push(event: &mut Event<'_, Vec<u8>>, name: &str, value: Option<&Value>, depth: usize) {
    match value {
        Some(Value::KvlistValue(pairs)) if depth < DEPTH_MAX && !pairs.values.is_empty() => {
            for pair in &pairs.values {
                let inner = pair.value.as_ref().and_then(|value| value.value.as_ref());
                push(event, &format!("{name}.{}", pair.key), inner, depth + 1);
            }
        }
        Some(Value::ArrayValue(array)) => push_array(event, name, &array.values),
        None => drop(event.str(name, "")),
        Some(Value::StringValue(text)) => drop(event.str(name, text)),
        Some(Value::BoolValue(truth)) => drop(event.bool(name, *truth)),
        Some(Value::IntValue(number)) => drop(event.i64(name, *number)),
        Some(Value::DoubleValue(number)) => drop(event.f64(name, *number)),
        Some(Value::BytesValue(bytes)) => drop(event.str(name, &STANDARD.encode_to_string(bytes))),
        Some(other) => drop(event.str(name, &text(other))),
    }
}

fn push_array(event: &mut Event<'_, Vec<u8>>, name: &str, values: &[AnyValue]) {
    let all = || values.iter().map(|value| value.value.as_ref());
    let ints: Option<Vec<i64>> =
        all().map(|value| if let Some(Value::IntValue(n)) = value { Some(*n) } else { None }).collect();
    let floats: Option<Vec<f64>> =
        all().map(|value| if let Some(Value::DoubleValue(n)) = value { Some(*n) } else { None }).collect();
    let truths: Option<Vec<u64>> =
        all().map(|value| if let Some(Value::BoolValue(t)) = value { Some(u64::from(*t)) } else { None }).collect();
    match (ints, floats, truths) {
        (Some(ints), ..) if !values.is_empty() => event.i64s(name, &ints),
        (_, Some(floats), _) if !values.is_empty() => event.f64s(name, &floats),
        (.., Some(truths)) if !values.is_empty() => event.u64s(name, &truths),
        _ => event.strs(name, &all().map(|value| value.map_or_else(String::new, text)).collect::<Vec<_>>()),
    };
}

/// A value as text: text as it is, everything else as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::StringValue(text) => text.clone(),
        other => json(Some(other)).to_string(),
    }
}

fn json(value: Option<&Value>) -> serde_json::Value {
    let inner = |value: &AnyValue| json(value.value.as_ref());
    match value {
        None => serde_json::Value::Null,
        Some(Value::StringValue(text)) => text.as_str().into(),
        Some(Value::BoolValue(truth)) => (*truth).into(),
        Some(Value::IntValue(number)) => (*number).into(),
        Some(Value::DoubleValue(number)) => (*number).into(),
        Some(Value::BytesValue(bytes)) => STANDARD.encode_to_string(bytes).into(),
        Some(Value::ArrayValue(array)) => array.values.iter().map(inner).collect(),
        Some(Value::KvlistValue(pairs)) => {
            let pair = |pair: &KeyValue| (pair.key.clone(), pair.value.as_ref().map_or(serde_json::Value::Null, inner));
            serde_json::Value::Object(pairs.values.iter().map(pair).collect())
        }
        Some(other) => format!("{other:?}").into(),
    }
}
