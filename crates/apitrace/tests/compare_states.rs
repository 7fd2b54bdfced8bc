//! Differences of states and of images: against the values themselves, and files written by hand.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod random;

use std::io::{Cursor, Write};

use anytrace_apitrace::tools::diff_images::{ImageOptions, Picture, compare};
use anytrace_apitrace::tools::diff_state::{Node, StateOptions, diff_state, parse, write_json};
use random::Random;
use serde_json::{Map, Value, json};

/// A random state: names and values that are often the same.
fn state(random: &mut Random, depth: u32) -> Value {
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0 => Value::Null,
        1 => json!(random.below(2) == 0),
        // In Python false is 0 and true is 1, and so they are in a comparison.
        2 => json!(random.below(3) + 2),
        3 => json!(-(random.below(3) as i64) - 1),
        4 => json!(["a", "b\nc", "é", "~/"][random.below(4) as usize]),
        5 => json!(random.below(3) as f64 + 0.5),
        6 => (0..random.below(4)).map(|_| state(random, depth - 1)).collect(),
        _ => Value::Object(members(random, depth - 1)),
    }
}

fn members(random: &mut Random, depth: u32) -> Map<String, Value> {
    let count = random.below(5);
    (0..count)
        .map(|_| {
            let name = ["x", "y", "a/b", "m~n", ""][random.below(5) as usize].to_owned();
            (name, state(random, depth))
        })
        .collect()
}

/// Changes a few values, adds some and removes some.
fn edit(random: &mut Random, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for value in map.values_mut() {
                if random.below(3) == 0 {
                    edit(random, value);
                }
            }
            if random.below(4) == 0 {
                let name = map.keys().next().cloned();
                name.map(|name| map.remove(&name));
            }
            if random.below(4) == 0 {
                map.insert("new".to_owned(), state(random, 1));
            }
        }
        Value::Array(list) => {
            for value in list.iter_mut() {
                if random.below(3) == 0 {
                    edit(random, value);
                }
            }
            if random.below(4) == 0 {
                list.pop();
            } else if random.below(3) == 0 {
                list.push(state(random, 1));
            }
        }
        other => *other = state(random, 1),
    }
}

fn node(value: &Value) -> Node {
    parse(&value.to_string(), true).unwrap()
}

/// The differences as JSON.
fn differences(a: &Value, b: &Value, options: StateOptions) -> Value {
    let (a, b) = (node(a), node(b));
    let mut out = Vec::new();
    write_json(&diff_state(&a, &b, options), ["a", "b"], &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// Puts the new values into the first state: RFC 6901 says where. Removed elements of lists are the last ones.
fn apply(mut state: Value, changes: &Value) -> Value {
    let mut all: Vec<&Value> = changes["differences"].as_array().unwrap().iter().collect();
    // From the end, so that removing an element moves no other.
    let is_removal = |change: &&Value| change.get("new").is_none();
    all.sort_by_key(|change| is_removal(change));
    let removals = all.iter().filter(|change| is_removal(change)).count();
    let split = all.len() - removals;
    all[split..].reverse();
    for change in all {
        let path = change["path"].as_str().unwrap();
        let Some((parent, last)) = path.rsplit_once('/') else {
            state = change["new"].clone();
            continue;
        };
        let name = last.replace("~1", "/").replace("~0", "~");
        match (state.pointer_mut(parent).unwrap(), change.get("new")) {
            (Value::Object(map), Some(new)) => drop(map.insert(name, new.clone())),
            (Value::Object(map), None) => drop(map.remove(&name).unwrap()),
            (Value::Array(list), Some(new)) => match list.get_mut(name.parse::<usize>().unwrap()) {
                Some(place) => *place = new.clone(),
                None => list.push(new.clone()),
            },
            (Value::Array(list), None) => drop(list.remove(name.parse().unwrap())),
            (other, _) => panic!("{path}: {other}"),
        }
    }
    state
}

#[test]
fn the_differences_make_the_second_state_of_the_first() {
    let mut random = Random(41);
    let mut differed = 0;
    for round in 0..2_000 {
        let a = Value::Object(members(&mut random, 3));
        let mut b = a.clone();
        edit(&mut random, &mut b);
        let changes = differences(&a, &b, StateOptions::default());
        assert_eq!(apply(a.clone(), &changes), b, "round {round}: {a} {changes}");
        assert_eq!(changes["equal"], json!(a == b), "round {round}: {a} {b}");
        differed += u32::from(a != b);
        // Each old value is the first's, and the other way round the sides change places.
        let back = differences(&b, &a, StateOptions::default());
        let rows = changes["differences"].as_array().unwrap().iter().zip(back["differences"].as_array().unwrap());
        for (change, back) in rows {
            let path = change["path"].as_str().unwrap();
            assert_eq!(change.get("old"), a.pointer(path), "round {round}: {path}");
            assert_eq!((change.get("old"), change.get("new")), (back.get("new"), back.get("old")), "round {round}");
        }
    }
    assert!(differed > 1_000, "{differed}");
}

#[test]
fn a_value_that_is_null_differs_from_none() {
    let all = StateOptions::default();
    for (a, b, path) in [
        (json!({"x": null}), json!({}), "/x"),
        (json!({}), json!({"x": null}), "/x"),
        (json!([1, null]), json!([1]), "/1"),
        (json!({"a/b": [{"~": null}]}), json!({"a/b": [{}]}), "/a~1b/0/~0"),
    ] {
        let changes = differences(&a, &b, all);
        assert_eq!(changes["equal"], json!(false), "{a} {b}");
        assert_eq!(changes["differences"][0]["path"], json!(path), "{a} {b}");
    }
    let ignoring = StateOptions { ignores_added: true };
    assert_eq!(differences(&json!({}), &json!({"x": null}), ignoring)["equal"], json!(true));
    assert_eq!(differences(&json!({"x": null}), &json!({}), ignoring)["equal"], json!(false));
}

#[test]
fn members_that_only_the_second_has_can_be_ignored() {
    /// Removes what the first does not have, in objects only.
    fn common(a: &Value, b: &Value) -> Value {
        match (a, b) {
            (Value::Object(a), Value::Object(b)) => {
                let both = b.iter().filter_map(|(name, new)| Some((name.clone(), common(a.get(name)?, new))));
                Value::Object(both.collect())
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                a.iter().zip(b).map(|(a, b)| common(a, b)).collect()
            }
            _ => b.clone(),
        }
    }
    let mut random = Random(42);
    for round in 0..1_000 {
        let a = Value::Object(members(&mut random, 3));
        let mut b = a.clone();
        edit(&mut random, &mut b);
        let ignoring = differences(&a, &b, StateOptions { ignores_added: true });
        assert_eq!(ignoring["equal"], json!(a == common(&a, &b)), "round {round}: {a} {b}");
    }
}

#[test]
fn json_is_read_as_other_readers_read_it() {
    fn same(node: &Node, value: &Value) -> bool {
        match (node, value) {
            (Node::Null, Value::Null) => true,
            (Node::Bool(a), Value::Bool(b)) => a == b,
            (Node::Integer(digits), Value::Number(number)) => *digits == number.to_string(),
            (Node::Real(a), Value::Number(number)) => number.is_f64() && number.as_f64() == Some(*a),
            (Node::Text(a), Value::String(b)) => a == b,
            (Node::List(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
            (Node::Map(a), Value::Object(b)) => {
                a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
            }
            _ => false,
        }
    }
    let mut random = Random(43);
    for _ in 0..500 {
        let value = state(&mut random, 4);
        for text in [value.to_string(), format!("{value:#}"), format!("// one\n\t{value} // two")] {
            assert!(same(&parse(&text, true).unwrap(), &value), "{text}");
        }
    }
}

#[test]
fn text_that_is_no_json_is_refused_at_its_place() {
    for (text, place) in [
        ("", "line 1, column 1"),
        ("{", "line 1, column 2"),
        ("[1,]", "line 1, column 4"),
        ("{\"a\" 1}", "line 1, column 6"),
        ("{\"a\": 1,}", "line 1, column 9"),
        ("{a: 1}", "line 1, column 2"),
        ("[1\n 2]", "line 2, column 2"),
        ("01", "line 1, column 3"),
        ("-", "line 1, column 2"),
        ("1 2", "line 1, column 3"),
        ("[1.]", "line 1, column 3"),
        ("nul", "line 1, column 1"),
        ("\"a", "line 1, column 2"),
        ("\"\\x\"", "line 1, column 3"),
        ("\"\\u12g4\"", "line 1, column 4"),
    ] {
        let error = parse(text, true).unwrap_err().to_string();
        assert!(error.starts_with(place), "{text:?}: {error}");
    }
    assert!(parse(&"[".repeat(100_000), true).is_err());
    assert!(parse(&format!("{}{}", "[".repeat(200), "]".repeat(200)), true).is_ok());
}

#[test]
fn images_are_left_out_unless_they_are_kept() {
    let text =
        r#"{"t": {"__class__": "image", "__data__": "x"}, "__internal__": 1, "__half": 2, "l": [{"__class__": 1}]}"#;
    let expected = json!({"t": null, "__half": 2, "l": [null]});
    assert_eq!(parse(text, false).unwrap(), node(&expected));
    assert_eq!(parse(text, true).unwrap(), node(&serde_json::from_str(text).unwrap()));
}

/// A PNG without filters: type of color, bits of a channel, rows of bytes, and other chunks before the data.
fn png(width: u32, rows: &[Vec<u8>], color: u8, bits: u8, more: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    fn chunk(out: &mut Vec<u8>, name: &[u8; 4], bytes: &[u8]) {
        out.extend((bytes.len() as u32).to_be_bytes());
        let start = out.len();
        out.extend(name);
        out.extend(bytes);
        // CRC-32 of the specification's appendix D, bit by bit.
        let mut crc = u32::MAX;
        for byte in &out[start..] {
            crc ^= u32::from(*byte);
            (0..8).for_each(|_| crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 });
        }
        out.extend((!crc).to_be_bytes());
    }
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let size = [width.to_be_bytes(), (rows.len() as u32).to_be_bytes()].concat();
    chunk(&mut out, b"IHDR", &[size, vec![bits, color, 0, 0, 0]].concat());
    more.iter().for_each(|(name, bytes)| chunk(&mut out, name, bytes));
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    rows.iter().for_each(|row| encoder.write_all(&[&[0], &row[..]].concat()).unwrap());
    chunk(&mut out, b"IDAT", &encoder.finish().unwrap());
    chunk(&mut out, b"IEND", &[]);
    out
}

/// Packs samples of a few bits, the first in the highest bits.
fn packed(samples: &[u16], bits: u8) -> Vec<u8> {
    if bits == 16 {
        return samples.iter().flat_map(|sample| sample.to_be_bytes()).collect();
    }
    let each = usize::from(8 / bits);
    let byte = |group: &[u16]| {
        (0..each).fold(0_u8, |byte, at| {
            let sample = group.get(at).copied().unwrap_or(0) as u8;
            if bits == 8 { sample } else { byte << bits | sample }
        })
    };
    samples.chunks(each).map(byte).collect()
}

fn read(bytes: &[u8]) -> Result<Picture, String> {
    Picture::read(Cursor::new(bytes))
}

#[test]
fn every_kind_of_png_is_read_as_the_specification_says() {
    let mut random = Random(44);
    let (width, height) = (5, 3);
    for (color, bits, channels) in [
        (0, 1, 1),
        (0, 2, 1),
        (0, 4, 1),
        (0, 8, 1),
        (0, 16, 1),
        (2, 8, 3),
        (2, 16, 3),
        (4, 8, 2),
        (4, 16, 2),
        (6, 8, 4),
        (6, 16, 4),
    ] {
        let most = (1_u32 << bits) - 1;
        let rows: Vec<Vec<u16>> = (0..height)
            .map(|_| (0..width * channels).map(|_| random.below(u64::from(most) + 1) as u16).collect())
            .collect();
        let bytes = png(width as u32, &rows.iter().map(|row| packed(row, bits)).collect::<Vec<_>>(), color, bits, &[]);
        // Few bits are spread over the full range; of many the highest count.
        let level = |sample: u16| match bits {
            16 => (sample >> 8) as u8,
            _ => (u32::from(sample) * 255 / most) as u8,
        };
        let pixel = |samples: &[u16]| {
            let levels: Vec<u8> = samples.iter().map(|sample| level(*sample)).collect();
            match levels[..] {
                [gray] => [gray, gray, gray, 255],
                [gray, alpha] => [gray, gray, gray, alpha],
                [red, green, blue] => [red, green, blue, 255],
                [red, green, blue, alpha] => [red, green, blue, alpha],
                _ => unreachable!(),
            }
        };
        let expected: Vec<[u8; 4]> = rows.iter().flat_map(|row| row.chunks(channels).map(pixel)).collect();
        let found = read(&bytes).unwrap();
        assert_eq!(found.pixels().collect::<Vec<_>>(), expected, "color {color}, {bits} bits");
        assert_eq!(found.size(), (width as u32, height as u32));
    }
}

#[test]
fn palettes_have_colors_and_may_have_opacity() {
    let palette: Vec<u8> = vec![1, 2, 3, 40, 50, 60, 255, 254, 253];
    for bits in [2, 4, 8] {
        let rows = [packed(&[0, 1, 2, 1], bits)];
        let opaque = read(&png(4, &rows, 3, bits, &[(b"PLTE", palette.clone())])).unwrap();
        let expected = [[1, 2, 3, 255], [40, 50, 60, 255], [255, 254, 253, 255], [40, 50, 60, 255]];
        assert_eq!(opaque.pixels().collect::<Vec<_>>(), expected, "{bits} bits");
        // Colors without a value for it are opaque.
        let more = [(b"PLTE", palette.clone()), (b"tRNS", vec![0, 128])];
        let clear = read(&png(4, &rows, 3, bits, &more)).unwrap();
        assert_eq!(clear.pixels().map(|[.., alpha]| alpha).collect::<Vec<_>>(), [0, 128, 255, 128], "{bits} bits");
    }
    assert!(read(&png(4, &[packed(&[0, 1, 2, 1], 2)], 3, 2, &[])).is_err(), "no palette");
}

#[test]
fn a_color_that_is_transparent_is_known_by_its_value() {
    let more = [(b"tRNS", vec![0, 7])];
    let found = read(&png(3, &[vec![7, 8, 7]], 0, 8, &more)).unwrap();
    assert_eq!(found.pixels().collect::<Vec<_>>(), [[7, 7, 7, 0], [8, 8, 8, 255], [7, 7, 7, 0]]);
    let more = [(b"tRNS", vec![0, 1, 0, 2, 0, 3])];
    let found = read(&png(2, &[vec![1, 2, 3, 1, 2, 4]], 2, 8, &more)).unwrap();
    assert_eq!(found.pixels().collect::<Vec<_>>(), [[1, 2, 3, 0], [1, 2, 4, 255]]);
}

#[test]
fn images_that_are_cut_or_changed_are_refused_or_read_in_their_size() {
    let good = png(3, &[vec![1; 9], vec![2; 9]], 2, 8, &[]);
    for at in 0..good.len() {
        assert!(read(&good[..at]).is_err() || at + 12 >= good.len(), "cut at {at}");
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            if let Ok(picture) = read(&bad) {
                let (width, height) = picture.size();
                assert_eq!(picture.bytes().len() as u64, u64::from(width) * u64::from(height) * 4);
            }
        }
    }
}

#[test]
fn pixels_are_counted_as_a_plain_loop_counts_them() {
    let mut random = Random(45);
    for _ in 0..200 {
        let (width, height) = (1 + random.below(6) as u32, 1 + random.below(6) as u32);
        let mut bytes =
            |spread: u64| (0..width * height * 4).map(|_| (100 + random.below(spread)) as u8).collect::<Vec<_>>();
        let (a, b) = (bytes(40), bytes(40));
        let pictures = [&a, &b].map(|bytes| Picture::new(width, height, bytes.clone()).unwrap());
        for (fuzz, has_alpha) in [(0.0, false), (0.05, false), (0.05, true), (0.1, true), (1.0, true)] {
            let level = (255.0 * fuzz) as u8;
            let channels = if has_alpha { 4 } else { 3 };
            let differs = |(x, y): (&[u8], &[u8])| (0..channels).any(|at| x[at].abs_diff(y[at]) > level);
            let expected = a.chunks(4).zip(b.chunks(4)).filter(|pair| differs(*pair)).count() as u64;
            let found = compare(&pictures[0], &pictures[1], ImageOptions { fuzz, has_alpha, is_gray: false });
            assert_eq!(found.pixels, Some(expected));
            assert_eq!(found.is_match(), expected == 0);
        }
        let other = Picture::new(width + 1, 1, vec![0; (width as usize + 1) * 4]).unwrap();
        if other.size() != (width, height) {
            assert_eq!(compare(&pictures[0], &other, ImageOptions::default()).pixels, None);
        }
        assert!(Picture::new(width, height, vec![0; 3]).is_none());
    }
}
