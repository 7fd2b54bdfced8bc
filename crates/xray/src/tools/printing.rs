//! Pieces of JSON, and numbers as C prints them.

/// A string in quotes, escaped.
pub(crate) fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A number as `%e` prints it: six decimals and an exponent of at least two digits.
pub(crate) fn exponential(value: f64) -> String {
    let text = format!("{value:.6e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_c_does() {
        let shown: Vec<_> = [0.0, 1.016128e-2, 1e100, -2.5, 123456.789].into_iter().map(exponential).collect();
        assert_eq!(shown, ["0.000000e+00", "1.016128e-02", "1.000000e+100", "-2.500000e+00", "1.234568e+05"]);
    }

    #[test]
    fn strings_of_json_are_escaped() {
        assert_eq!(json_string("a\"\u{1}"), "\"a\\\"\\u0001\"");
    }
}
