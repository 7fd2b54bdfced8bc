//! Shapes of Chrome's trace events.

use super::Row;
use super::jobs::Family::Chrome;

pub(super) const SHAPES: &[Row] = &[
    ("js-deep", Chrome, |n| array(n, |n, i| event(if i < n / 2 { 'B' } else { 'E' }, i, "")), 20_000),
    ("js-begins", Chrome, |n| array(n, |_, i| event('B', i, "")), 20_000),
    ("js-ends", Chrome, |n| array(n, |_, i| event('E', i, "")), 20_000),
    ("js-back", Chrome, |n| array(n, |n, i| event('X', n - i, r#","dur":1"#)), 20_000),
    ("js-nested", Chrome, |n| array(n, |n, i| event('X', i, &format!(r#","dur":{}"#, 2 * (n - i)))), 20_000),
    ("js-overlap", Chrome, |n| array(n, |n, i| event('X', i, &format!(r#","dur":{n}"#))), 5_000),
    ("js-equal", Chrome, |n| array(n, |_, _| event('X', 7, r#","dur":7"#)), 20_000),
    ("js-threads", Chrome, |n| array(n, |_, i| event('i', i, &format!(r#","tid":{i}"#))), 20_000),
    ("js-named-threads", Chrome, |n| array(n, |_, i| event('i', i, &format!(r#","pid":"p{i}""#))), 10_000),
    ("js-async", Chrome, |n| array(n, |n, i| event(half('b', 'e', n, i), i, &id(i % (n / 2).max(1)))), 10_000),
    ("js-one-id", Chrome, |n| array(n, |n, i| event(half('b', 'e', n, i), i, &id(1))), 20_000),
    ("js-arrows", Chrome, |n| array(n, |n, i| event(half('s', 'f', n, i), i, &id(i % (n / 2).max(1)))), 20_000),
    ("js-names", Chrome, |n| array(n, |_, i| event('B', i, &format!(r#","name":"name {i}""#))), 20_000),
    ("js-series", Chrome, |n| array(n, |_, i| event('C', i, &format!(r#","args":{{"s{i}":{i}}}"#))), 10_000),
    ("js-metadata", Chrome, |n| array(n, |_, i| thread_name(i)), 20_000),
    ("js-keys", Chrome, |n| array(1, |_, _| event('B', 1, &format!(r#","args":{{{}}}"#, keys(n)))), 20_000),
    ("js-args", Chrome, |n| array(1, |_, _| event('B', 1, &format!(r#","args":{}"#, nested(n, '{')))), 20_000),
    ("js-object", Chrome, |n| format!("{{{},\"traceEvents\":[{}]}}", keys(n), event('B', 1, "")).into_bytes(), 20_000),
    ("js-lines", Chrome, |n| (0..n).map(|i| event('B', i, "") + "\n").collect::<String>().into_bytes(), 20_000),
    ("js-arrays", Chrome, |n| format!("[{},{}", event('B', 1, ""), nested(n, '[')).into_bytes(), 100_000),
    ("js-quotes", Chrome, |n| array(n, |_, i| event('B', i, r#","name":"x\"#)), 20_000),
    ("js-opens", Chrome, |n| array(n, |_, i| format!("{{{}", event('B', i, ""))), 20_000),
    ("js-commas", Chrome, |n| format!("[{}{}", event('B', 1, ""), ",".repeat(n as usize)).into_bytes(), 100_000),
];

/// Shapes that are hardly a trace, or none: verbs may refuse them.
pub(super) const BROKEN: &[&str] = &["js-arrays", "js-quotes", "js-opens", "js-commas", "js-object"];

fn array(n: u64, make: impl Fn(u64, u64) -> String) -> Vec<u8> {
    let events: Vec<_> = (0..n).map(|i| make(n, i)).collect();
    format!("[{}]", events.join(",\n")).into_bytes()
}

/// An event of this phase and time; what `more` says comes after the usual keys, and wins over them.
fn event(phase: char, time: u64, more: &str) -> String {
    let usual = [("name", r#""f""#), ("pid", "1"), ("tid", "1")];
    let is_given = |key: &str| more.contains(&format!(r#""{key}":"#));
    let usual: String =
        usual.iter().filter(|(key, _)| !is_given(key)).map(|(key, value)| format!(r#","{key}":{value}"#)).collect();
    format!(r#"{{"ph":"{phase}","ts":{time}{usual}{more}}}"#)
}

fn half(first: char, second: char, n: u64, i: u64) -> char {
    if i < n / 2 { first } else { second }
}

fn id(id: u64) -> String {
    format!(r#","cat":"c","id":"0x{id:x}""#)
}

fn thread_name(i: u64) -> String {
    event('M', 0, &format!(r#","tid":{i},"name":"thread_name","args":{{"name":"thread {i}"}}"#))
}

fn keys(n: u64) -> String {
    (0..n).map(|i| format!(r#""k{i}":{i}"#)).collect::<Vec<_>>().join(",")
}

/// Brackets in brackets; those that are never closed are damage.
fn nested(n: u64, open: char) -> String {
    let depth = n as usize;
    match open {
        '{' => r#"{"a":"#.repeat(depth) + "1" + &"}".repeat(depth),
        _ => "[".repeat(depth),
    }
}
