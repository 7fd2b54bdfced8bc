//! `attr(attributes, 'key')`: one member of a JSON object.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Signature, Volatility};
use serde_json::Value;

use super::Function;

pub(super) fn attr() -> Function {
    Function {
        name: "attr",
        files: Vec::new(),
        signature: Signature::exact(vec![DataType::Utf8, DataType::Utf8], Volatility::Immutable),
        returns: DataType::Utf8,
        call: Arc::new(|arguments| {
            let (texts, keys) = (arguments[0].as_string::<i32>(), arguments[1].as_string::<i32>());
            let made: StringArray = texts.iter().zip(keys.iter()).map(|(text, key)| member(text?, key?)).collect();
            Ok(Arc::new(made))
        }),
    }
}

/// A text without its quotes, any other value as JSON; none where the object does not have it.
fn member(text: &str, key: &str) -> Option<String> {
    match serde_json::from_str::<Value>(text).ok()?.get(key)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_texts_or_json() {
        let text = r#"{"a":"x","n":7,"list":[1,"b"],"none":null,"key#2":true}"#;
        let found = ["a", "n", "list", "none", "key#2", "other"].map(|key| member(text, key));
        let expected = [Some("x"), Some("7"), Some(r#"[1,"b"]"#), None, Some("true"), None];
        assert_eq!(found, expected.map(|one| one.map(str::to_owned)));
        assert_eq!(member("no JSON", "a"), None);
    }
}
