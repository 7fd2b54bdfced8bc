//! JSON lines: what is read, and that every wrong line and field is named with its place.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use anytrace_core::jsonl::{Lines, Object, has_more_values, header_format, push_header_start, value_bytes};
use anytrace_core::text::push_json_bytes;
use anytrace_core::{Error, Input, Kind, Limits};
use common::Random;
use serde_json::{Value, json};

fn lines(text: impl Into<Vec<u8>>) -> Lines {
    Lines::new(Input::from_bytes("x.jsonl", text.into()), Limits::default())
}

/// The first object of a text.
fn object(text: &str) -> Object {
    lines(text).next().unwrap().unwrap()
}

/// Line and offset of an error.
fn place(error: &Error) -> (u64, u64) {
    let diagnostic = error.diagnostic().unwrap_or_else(|| panic!("no diagnostic: {error}"));
    (diagnostic.line.unwrap().0, diagnostic.offset)
}

fn code(error: &Error) -> &'static str {
    error.diagnostic().map_or("", |diagnostic| diagnostic.code())
}

#[test]
fn objects_have_the_numbers_of_their_lines_however_lines_end() {
    for (end, blank) in [("\n", "\n"), ("\r\n", "\r\n"), ("\n", " \t\n")] {
        let text = format!("{blank}{{\"a\":0}}{end}{blank}{blank}{{\"a\":1}}{end}{{\"a\":2}}");
        let mut lines = lines(text);
        for (value, number) in [(0, 2), (1, 5), (2, 6)] {
            let object = lines.next().unwrap().unwrap();
            assert_eq!((object.u64("a").unwrap(), object.line()), (value, number));
        }
        assert!(lines.next().unwrap().is_none() && lines.next().unwrap().is_none());
    }
    for nothing in ["", "\n", " \n\n\t"] {
        assert!(lines(nothing).next().unwrap().is_none());
    }
}

#[test]
fn an_error_names_the_line_and_its_offset_and_reading_can_go_on() {
    let text = "{\"a\":1}\n[1]\n\n{oops\n\"text\"\n{\"a\":2}\n{\"a\":";
    let mut lines = lines(text);
    assert!(lines.next().is_ok());
    for (line, offset) in [(2, 8), (4, 13), (5, 19)] {
        let error = lines.next().unwrap_err();
        assert_eq!((place(&error), code(&error), error.kind()), ((line, offset), "jsonl/bad-line", Kind::Malformed));
    }
    assert_eq!(lines.next().unwrap().unwrap().u64("a").unwrap(), 2);
    assert_eq!(place(&lines.next().unwrap_err()), (7, 34));
    assert!(lines.next().unwrap().is_none());
}

#[test]
fn bytes_that_are_no_text_are_an_error_of_their_line() {
    let mut lines = lines(b"{\"a\":\"\xff\"}\n{\"a\":\"b\"}\n".to_vec());
    assert_eq!(place(&lines.next().unwrap_err()), (1, 0));
    assert_eq!(lines.next().unwrap().unwrap().str("a").unwrap(), "b");
}

/// A getter and the values it takes, of these.
#[test]
fn each_getter_takes_its_type_and_range_and_names_the_field_otherwise() {
    let values = [
        "null",
        "true",
        "0",
        "1",
        "-1",
        "127",
        "128",
        "255",
        "256",
        "-128",
        "-129",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "1.0",
        "1e3",
        "\"\"",
        "\"0a\"",
        "\"0\"",
        "\"zz\"",
        "[]",
        "[1]",
        "{}",
        "{\"hex\":\"0aff\"}",
        "{\"hex\":\"0\"}",
        "{\"hex\":\"00\",\"more\":1}",
        "{\"hex\":1}",
    ];
    type Getter = fn(&Object) -> Result<String, Error>;
    let getters: [(&str, Getter, &[&str]); 9] = [
        ("a string", |o| o.str("a").map(str::to_owned), &["\"\"", "\"0a\"", "\"0\"", "\"zz\""]),
        (
            "an unsigned 64-bit number",
            |o| o.u64("a").map(|n| n.to_string()),
            &[
                "0",
                "1",
                "127",
                "128",
                "255",
                "256",
                "9223372036854775807",
                "9223372036854775808",
                "18446744073709551615",
            ],
        ),
        (
            "a signed 64-bit number",
            |o| o.i64("a").map(|n| n.to_string()),
            &[
                "0",
                "1",
                "-1",
                "127",
                "128",
                "255",
                "256",
                "-128",
                "-129",
                "9223372036854775807",
                "-9223372036854775808",
            ],
        ),
        (
            "an unsigned number of 8 bits",
            |o| o.uint::<u8>("a").map(|n| n.to_string()),
            &["0", "1", "127", "128", "255"],
        ),
        ("a signed number of 8 bits", |o| o.int::<i8>("a").map(|n| n.to_string()), &["0", "1", "-1", "127", "-128"]),
        ("true or false", |o| o.bool("a").map(|b| b.to_string()), &["true"]),
        ("an array", |o| o.array("a").map(|a| json!(a).to_string()), &["[]", "[1]"]),
        (
            "a string or {\"hex\":…}",
            |o| o.bytes("a").map(|b| format!("{b:?}")),
            &["\"\"", "\"0a\"", "\"0\"", "\"zz\"", "{\"hex\":\"0aff\"}"],
        ),
        ("hex digits", |o| o.hex("a").map(|b| format!("{b:?}")), &["\"\"", "\"0a\""]),
    ];
    for (expected, get, takes) in getters {
        for value in values {
            let made = object(&format!("{{\"b\":0,\"a\":{value}}}"));
            match get(&made) {
                Ok(_) => assert!(takes.contains(&value), "{expected} took {value}"),
                Err(error) => {
                    assert!(!takes.contains(&value), "{expected} refused {value}: {error}");
                    let diagnostic = error.diagnostic().unwrap();
                    assert_eq!((code(&error), place(&error)), ("jsonl/bad-field", (1, 0)));
                    assert_eq!(diagnostic.field.as_deref(), Some("a"));
                    assert_eq!(diagnostic.expected.as_deref(), Some(expected));
                }
            }
        }
        let error = get(&object("{\"b\":1}")).unwrap_err();
        assert!(error.to_string().contains("found nothing"), "{error}");
    }
}

#[test]
fn numbers_come_back_exactly() {
    let mut random = Random(1);
    for _ in 0..500 {
        let shift = random.below(64);
        let number = random.next() >> shift;
        let made = object(&format!("{{\"a\":{number},\"b\":{}}}", number.cast_signed()));
        assert_eq!((made.u64("a").unwrap(), made.i64("b").unwrap()), (number, number.cast_signed()));
        assert_eq!(made.uint::<u16>("a").ok(), u16::try_from(number).ok());
        assert_eq!(made.int::<i32>("b").ok(), i32::try_from(number.cast_signed()).ok());
        assert_eq!(made.uint::<usize>("a").ok(), usize::try_from(number).ok());
    }
}

#[test]
fn any_bytes_come_back() {
    let mut random = Random(2);
    for _ in 0..300 {
        let bytes: Vec<u8> = (0..random.below(12)).map(|_| random.below(256) as u8).collect();
        let mut out = b"{\"a\":".to_vec();
        push_json_bytes(&mut out, &bytes);
        out.extend(b"}\n");
        let made = lines(out.clone()).next().unwrap().unwrap();
        assert_eq!(made.bytes("a").unwrap(), bytes, "{}", String::from_utf8_lossy(&out));
    }
}

#[test]
fn fields_are_listed_by_name_and_long_values_are_cut_in_messages() {
    let made = object("{\"b\":1,\"a\":\"x\",\"c\":null}");
    let all: Vec<(&str, &Value)> = made.fields().collect();
    assert_eq!(all, [("a", &json!("x")), ("b", &json!(1)), ("c", &Value::Null)]);
    assert!(made.has("c") && !made.has("d") && made.get("d").is_none());
    let long = object(&format!("{{\"a\":\"{}\"}}", "é".repeat(1000)));
    let error = long.u64("a").unwrap_err();
    assert!(error.to_string().chars().count() < 250, "{error}");
}

#[test]
fn a_header_is_of_its_format_and_version_and_comes_first() {
    let mut made = Vec::new();
    push_header_start(&mut made, "a\"b");
    made.extend(b",\"x\":1}\n{\"r\":1}\n");
    assert_eq!(header_format(&made).as_deref(), Some("a\"b"));
    let mut read = lines(made);
    assert_eq!(read.header("a\"b").unwrap().u64("x").unwrap(), 1);
    assert_eq!(read.next().unwrap().unwrap().line(), 2);
    for (text, field) in [
        ("{\"anytrace\":\"jsonl\",\"version\":1,\"format\":\"y\"}", Some("format")),
        ("{\"anytrace\":\"other\",\"version\":1,\"format\":\"x\"}", Some("format")),
        ("{\"anytrace\":\"jsonl\",\"version\":2,\"format\":\"x\"}", Some("version")),
        ("{\"anytrace\":\"jsonl\",\"version\":-1,\"format\":\"x\"}", Some("version")),
        ("{\"anytrace\":\"jsonl\",\"format\":\"x\"}", Some("version")),
        ("{\"version\":1,\"format\":\"x\"}", Some("anytrace")),
        ("{\"anytrace\":\"jsonl\",\"version\":1}", Some("format")),
        ("[]", None),
        ("", None),
    ] {
        let error = lines(text).header("x").unwrap_err();
        assert_eq!(error.kind(), Kind::Malformed, "{text}");
        assert_eq!(error.diagnostic().unwrap().field.as_deref(), field, "{text}");
    }
}

#[test]
fn only_a_header_line_names_a_format() {
    let header = "{\"anytrace\":\"jsonl\",\"version\":1,\"format\":\"x\"}";
    for (text, is_header) in [
        (header.to_owned(), true),
        (format!("\r\n \t{header}\r\n{{}}"), true),
        (header.replace(',', " , "), true),
        (header.replace("\"x\"", "1"), false),
        (header.replace("jsonl", "json"), false),
        (format!("[{header}]"), false),
        (format!("x{header}"), false),
        (header[..header.len() - 1].to_owned(), false),
        (format!("{{\n{}", &header[1..]), false),
        (String::new(), false),
    ] {
        assert_eq!(header_format(text.as_bytes()).as_deref(), is_header.then_some("x"), "{text:?}");
    }
}

/// Values as serde counts them: each scalar, array and object, and each key.
fn values(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(self::values).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(|value| 1 + values(value)).sum::<usize>(),
        _ => 1,
    }
}

fn any_value(random: &mut Random, depth: u32) -> Value {
    match random.below(if depth == 0 { 4 } else { 6 }) {
        0 => json!(random.next()),
        1 => Value::Null,
        2 => json!(["", ",", "[{:", "a\"b", "\\", "\\\","][random.below(6) as usize]),
        3 => json!(-1.5),
        4 => (0..random.below(5)).map(|_| any_value(random, depth - 1)).collect(),
        _ => {
            let fields = (0..random.below(4)).map(|n| (format!("{n}:\",[\\"), any_value(random, depth - 1)));
            Value::Object(fields.collect())
        }
    }
}

/// The count is not exact, because the text is not parsed; it is never far below, so that the limit holds.
#[test]
fn values_are_counted_without_parsing_well_enough_to_limit_them() {
    let mut random = Random(3);
    for _ in 0..500 {
        let value = any_value(&mut random, 4);
        let (text, count) = (value.to_string(), values(&value));
        let counted = (0..=text.len()).find(|most| !has_more_values(text.as_bytes(), *most)).unwrap();
        // Empty arrays and objects count double; a short text may be below its count only by its length.
        assert!(counted >= count.min(text.len()) / 2, "{text}: {counted} of {count}");
        assert!(counted <= count * 2, "{text}: {counted} of {count}");
    }
}

#[test]
fn a_line_as_long_as_the_limit_is_read_and_a_longer_one_refused() {
    let limits = Limits::default().with_record_bytes_max(1 << 18);
    for (extra, is_fine) in [(0, true), (1, false), (1000, false)] {
        // Four times the longest record, with the line end.
        let text = format!("{{\"a\":\"{}\"}}\n{{}}\n", "x".repeat((1 << 20) - 9 + extra));
        let mut lines = Lines::new(Input::from_bytes("x", text.into_bytes()), limits);
        match lines.next() {
            Ok(object) => assert!(is_fine && object.is_some(), "{extra}"),
            Err(error) => {
                assert!(!is_fine, "{extra}: {error}");
                assert_eq!(error.kind(), Kind::Limit);
            }
        }
    }
}

#[test]
fn only_strings_and_hexadecimal_objects_are_bytes() {
    for (value, expected) in [
        (json!("é"), Some("é".as_bytes().to_vec())),
        (json!({"hex": "00Ff"}), Some(vec![0, 255])),
        (json!({"hex": ""}), Some(Vec::new())),
        (json!({"hex": "0"}), None),
        (json!({"hex": "00", "x": 1}), None),
        (json!({"x": "00"}), None),
        (json!({}), None),
        (json!(["00"]), None),
        (json!(1), None),
        (Value::Null, None),
    ] {
        assert_eq!(value_bytes(&value), expected, "{value}");
    }
}
