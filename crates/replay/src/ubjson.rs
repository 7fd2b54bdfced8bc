//! Universal Binary JSON (ubjson.org, draft 12), the smaller form of a state: pictures are bytes in it, not base 64.

use serde_json::{Map, Value};

/// Writes a state. What `__data__` names is base 64 in JSON, and bytes here, as in apitrace's dumps.
pub fn ubjson(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, value);
    bytes
}

fn write(to: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => to.push(b'Z'),
        Value::Bool(value) => to.push(if *value { b'T' } else { b'F' }),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => integer(to, number),
            // Beyond 64 bits with a sign there are only decimals.
            (None, number) => decimal(to, number.unwrap_or_default()),
        },
        Value::String(text) => {
            to.push(b'S');
            string(to, text);
        }
        Value::Array(values) => {
            to.push(b'[');
            values.iter().for_each(|value| write(to, value));
            to.push(b']');
        }
        Value::Object(members) => object(to, members),
    }
}

fn object(to: &mut Vec<u8>, members: &Map<String, Value>) {
    to.push(b'{');
    for (name, value) in members {
        string(to, name);
        let data = value.as_str().filter(|_| name == "__data__");
        match data.and_then(|text| base64_simd::STANDARD.decode_to_vec(text).ok()) {
            Some(data) => {
                // An array of unsigned bytes, counted.
                to.extend_from_slice(b"[$U#");
                length(to, data.len());
                to.extend_from_slice(&data);
            }
            None => write(to, value),
        }
    }
    to.push(b'}');
}

fn string(to: &mut Vec<u8>, text: &str) {
    length(to, text.len());
    to.extend_from_slice(text.as_bytes());
}

fn length(to: &mut Vec<u8>, length: usize) {
    integer(to, i64::try_from(length).unwrap_or(i64::MAX));
}

/// The shortest form that there is.
fn integer(to: &mut Vec<u8>, number: i64) {
    if let Ok(number) = u8::try_from(number) {
        to.extend_from_slice(&[b'U', number]);
    } else if let Ok(number) = i8::try_from(number) {
        to.push(b'i');
        to.extend_from_slice(&number.to_be_bytes());
    } else if let Ok(number) = i16::try_from(number) {
        to.push(b'I');
        to.extend_from_slice(&number.to_be_bytes());
    } else if let Ok(number) = i32::try_from(number) {
        to.push(b'l');
        to.extend_from_slice(&number.to_be_bytes());
    } else {
        to.push(b'L');
        to.extend_from_slice(&number.to_be_bytes());
    }
}

/// In 32 bits what has no more than those say.
fn decimal(to: &mut Vec<u8>, number: f64) {
    let short = number as f32;
    if format!("{short}").parse() == Ok(number) {
        to.push(b'd');
        to.extend_from_slice(&short.to_be_bytes());
    } else {
        to.push(b'D');
        to.extend_from_slice(&number.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_value_has_its_form() {
        for (value, bytes) in [
            (json!(null), b"Z".to_vec()),
            (json!([true, false]), b"[TF]".to_vec()),
            (json!([7, 200, -1, 300, -70_000]), b"[U\x07U\xc8i\xffI\x01\x2cl\xff\xfe\xee\x90]".to_vec()),
            (json!(1_u64 << 40), b"L\0\0\x01\0\0\0\0\0".to_vec()),
            (json!(0.5), b"d\x3f\0\0\0".to_vec()),
            (json!(0.1), b"d\x3d\xcc\xcc\xcd".to_vec()),
            (json!(0.123_456_789_012), [b"D".as_slice(), &0.123_456_789_012_f64.to_be_bytes()].concat()),
            (json!({"a": "b"}), b"{U\x01aSU\x01b}".to_vec()),
            (json!({"__data__": "AQID"}), b"{U\x08__data__[$U#U\x03\x01\x02\x03}".to_vec()),
        ] {
            assert_eq!(ubjson(&value), bytes, "{value}");
        }
    }
}
