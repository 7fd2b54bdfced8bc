//! Encoded packets are read back by anytrace's reader, which shares no code with the encoder.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use anytrace_heph::{Array, Attributes, Layout, Record, parse};
use heph_encoder::{Error, Event, Header, Slice, body, epoch, event, event_fmt, head, option};
use proptest::prelude::*;

const LAYOUT: Layout = Layout { packet_bytes_max: u64::MAX };

/// An attribute to be encoded.
#[derive(Debug, Clone)]
enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    Shown(i128),
    Unsigneds(Vec<u64>),
    Signeds(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<String>),
}

fn value() -> impl Strategy<Value = Value> {
    let floats = || any::<u64>().prop_map(f64::from_bits);
    prop_oneof![
        any::<u64>().prop_map(Value::Unsigned),
        any::<i64>().prop_map(Value::Signed),
        floats().prop_map(Value::Float),
        any::<bool>().prop_map(Value::Bool),
        ".{0,40}".prop_map(Value::Text),
        any::<i128>().prop_map(Value::Shown),
        prop::collection::vec(any::<u64>(), 0..5).prop_map(Value::Unsigneds),
        prop::collection::vec(any::<i64>(), 0..5).prop_map(Value::Signeds),
        prop::collection::vec(floats(), 0..5).prop_map(Value::Floats),
        prop::collection::vec(".{0,9}", 0..5).prop_map(Value::Texts),
    ]
}

#[derive(Debug, Clone)]
struct Sample {
    header: Header,
    description: String,
    attributes: Vec<(String, Value)>,
}

fn sample() -> impl Strategy<Value = Sample> {
    let header = any::<(u32, u32, u64, u64, u64)>().prop_map(|(stream, counter, substream, start_ns, end_ns)| Header {
        stream,
        counter,
        substream,
        start_ns,
        end_ns,
    });
    let attributes = prop::collection::vec((".{0,12}", value()), 0..8);
    (header, ".{0,40}", attributes).prop_map(|(header, description, attributes)| Sample {
        header,
        description,
        attributes,
    })
}

fn add<B: heph_encoder::Buffer>(event: &mut Event<'_, B>, attributes: &[(String, Value)]) {
    for (name, value) in attributes {
        match value {
            Value::Unsigned(value) => event.u64(name, *value),
            Value::Signed(value) => event.i64(name, *value),
            Value::Float(value) => event.f64(name, *value),
            Value::Bool(value) => event.bool(name, *value),
            Value::Text(value) => event.str(name, value),
            Value::Shown(value) => event.display(name, value),
            Value::Unsigneds(values) => event.u64s(name, values),
            Value::Signeds(values) => event.i64s(name, values),
            Value::Floats(values) => event.f64s(name, values),
            Value::Texts(values) => event.strs(name, values),
        };
    }
}

fn encode<B: heph_encoder::Buffer>(buffer: &mut B, sample: &Sample) -> Result<(), Error> {
    let mut event = event(buffer, &sample.header, &sample.description);
    add(&mut event, &sample.attributes);
    event.finish()
}

/// The reader's expected value of an attribute, as text.
fn expected(value: &Value) -> String {
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    match value {
        Value::Unsigned(value) => format!("u64 {value}"),
        Value::Bool(value) => format!("u64 {}", u64::from(*value)),
        Value::Signed(value) => format!("i64 {value}"),
        Value::Float(value) => format!("f64 {}", value.to_bits()),
        Value::Text(value) => format!("str {value:?}"),
        Value::Shown(value) => format!("str {:?}", value.to_string()),
        Value::Unsigneds(values) => format!("u64[] {values:?}"),
        Value::Signeds(values) => format!("i64[] {values:?}"),
        Value::Floats(values) => format!("f64[] {:?}", bits(values)),
        Value::Texts(values) => format!("str[] {values:?}"),
    }
}

fn read(attributes: Attributes<'_>) -> Vec<(String, String)> {
    let array = |array: Array<'_>| {
        let values: Vec<String> = array
            .values()
            .map(|value| match value {
                anytrace_heph::Value::Unsigned(value) => value.to_string(),
                anytrace_heph::Value::Signed(value) => value.to_string(),
                anytrace_heph::Value::Float(value) => value.to_bits().to_string(),
                anytrace_heph::Value::Text(value) => format!("{value:?}"),
                anytrace_heph::Value::Array(_) => "array".to_owned(),
            })
            .collect();
        format!("{}[] [{}]", array.scalar().name(), values.join(", "))
    };
    attributes
        .map(|attribute| {
            let value = match attribute.value {
                anytrace_heph::Value::Unsigned(value) => format!("u64 {value}"),
                anytrace_heph::Value::Signed(value) => format!("i64 {value}"),
                anytrace_heph::Value::Float(value) => format!("f64 {}", value.to_bits()),
                anytrace_heph::Value::Text(value) => format!("str {value:?}"),
                anytrace_heph::Value::Array(values) => array(values),
            };
            (attribute.name.to_owned(), value)
        })
        .collect()
}

/// The only packet of the bytes, an event.
fn one(bytes: &[u8]) -> anytrace_heph::Event<'_> {
    let Ok((Record::Event(event), used)) = parse(bytes, &LAYOUT) else { panic!("no event: {bytes:?}") };
    assert_eq!(used, bytes.len());
    event
}

fn same(event: &anytrace_heph::Event<'_>, sample: &Sample) {
    let header = Header {
        stream: event.header.stream,
        counter: event.header.counter,
        substream: event.header.substream,
        start_ns: event.header.start_ns,
        end_ns: event.header.end_ns,
    };
    assert_eq!((header, event.description()), (sample.header, sample.description.as_str()));
    let wanted: Vec<_> = sample.attributes.iter().map(|(name, value)| (name.clone(), expected(value))).collect();
    assert_eq!(read(event.attributes()), wanted);
}

proptest! {
    #[test]
    fn encoded_events_are_read_back(events in prop::collection::vec(sample(), 1..6)) {
        let mut bytes = Vec::new();
        for sample in &events {
            encode(&mut bytes, sample).unwrap();
        }
        let mut rest = bytes.as_slice();
        for sample in &events {
            let Ok((Record::Event(event), used)) = parse(rest, &LAYOUT) else { panic!("no event") };
            same(&event, sample);
            rest = &rest[used..];
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn a_slice_contains_a_complete_packet_or_nothing_of_it(first in sample(), second in sample(), room in 0_usize..400) {
        let (mut one, mut two) = (Vec::new(), Vec::new());
        encode(&mut one, &first).unwrap();
        encode(&mut two, &second).unwrap();
        let mut bytes = vec![0xAA; room];
        let mut slice = Slice::new(&mut bytes);
        let mut wanted = Vec::new();
        for (sample, packet) in [(&first, &one), (&second, &two)] {
            let fits = wanted.len() + packet.len() <= room;
            prop_assert_eq!(encode(&mut slice, sample).is_ok(), fits);
            if fits {
                wanted.extend_from_slice(packet);
            }
        }
        prop_assert_eq!(slice.as_bytes(), wanted);
    }

    #[test]
    fn a_body_under_many_heads_is_as_many_events(sample in sample(), counters in prop::collection::vec(any::<u32>(), 1..4)) {
        let mut kept = Vec::new();
        let mut event = body(&mut kept, &sample.description);
        add(&mut event, &sample.attributes);
        event.finish().unwrap();
        drop(event);
        for counter in counters {
            let sample = Sample { header: Header { counter, ..sample.header }, ..sample.clone() };
            let mut packet = Vec::new();
            encode(&mut packet, &sample).unwrap();
            prop_assert_eq!([&head(&sample.header, kept.len()).unwrap()[..], &kept].concat(), packet);
        }
    }

    #[test]
    fn long_texts_are_cut_at_a_character(unit in "[a-zé漢🦀]{1,7}", bytes in 65_500_usize..66_000) {
        let text = unit.repeat(bytes / unit.len() + 1);
        let mut packet = Vec::new();
        event(&mut packet, &Header::default(), &text).str(&text, &text).strs("s", &[&text]).finish().unwrap();
        let event = one(&packet);
        let check = |read: &str| {
            if text.len() <= 65_535 {
                assert_eq!(read, text);
            } else {
                let kept = read.strip_suffix('…').unwrap();
                assert!(text.starts_with(kept) && read.len() <= 65_535 && read.len() > 65_535 - 4);
            }
        };
        check(event.description());
        let attributes: Vec<_> = event.attributes().collect();
        check(attributes[0].name);
        let anytrace_heph::Value::Text(text) = attributes[0].value else { panic!("no text") };
        check(text);
        let anytrace_heph::Value::Array(texts) = attributes[1].value else { panic!("no array") };
        let Some(anytrace_heph::Value::Text(text)) = texts.values().next() else { panic!("no text") };
        check(text);
        let mut formatted = Vec::new();
        event_fmt(&mut formatted, &Header::default(), format_args!("{text}")).display(attributes[0].name, text).finish().unwrap();
        check(one(&formatted).description());
    }
}

#[test]
fn options_are_read_back() {
    let mut bytes = Vec::new();
    epoch(&mut bytes, 7).unwrap();
    option(&mut bytes, "host", b"\0\x03box").unwrap();
    let Ok((Record::Metadata(first), used)) = parse(&bytes, &LAYOUT) else { panic!("no option") };
    assert_eq!((first.epoch_ns(), used), (Some(7), 23));
    let Ok((Record::Metadata(second), _)) = parse(&bytes[used..], &LAYOUT) else { panic!("no option") };
    assert_eq!((second.option(), second.value()), ("host", &b"\0\x03box"[..]));
    let mut short = [0; 22];
    let mut slice = Slice::new(&mut short);
    assert_eq!(epoch(&mut slice, 7), Err(Error::Full));
    assert!(slice.as_bytes().is_empty());
}

#[test]
fn an_array_past_its_count_is_cut_and_its_length_added() {
    for (length, attributes) in [(65_535_usize, 1), (65_536, 2), (70_000, 2)] {
        let values: Vec<u64> = (0..length as u64).collect();
        let mut packet = Vec::new();
        event(&mut packet, &Header::default(), "long").u64s("n", &values).finish().unwrap();
        let read: Vec<_> = one(&packet).attributes().collect();
        assert_eq!(read.len(), attributes);
        let anytrace_heph::Value::Array(array) = read[0].value else { panic!("no array") };
        assert_eq!(array.len(), length.min(65_535));
        assert!(array.values().zip(0..).all(|(value, n)| value == anytrace_heph::Value::Unsigned(n)));
        if let Some(added) = read.get(1) {
            assert_eq!((added.name, added.value), ("n.length", anytrace_heph::Value::Unsigned(length as u64)));
        }
    }
}

#[test]
fn extremes_keep_their_bits() {
    let mut packet = Vec::new();
    let mut event = event(&mut packet, &Header::default(), "");
    event.u64("", u64::MAX).i64("", i64::MIN).f64("", -0.0).f64("", f64::from_bits(0x7ff4_dead_beef_0001));
    event.display("wide", u128::MAX).u64s("none", &[]).strs::<&str>("none", &[]);
    event.finish().unwrap();
    drop(event);
    let event = one(&packet);
    let values: Vec<String> = read(event.attributes()).into_iter().map(|(_, value)| value).collect();
    let float = |bits: u64| format!("f64 {bits}");
    assert_eq!(values[..2], ["u64 18446744073709551615", "i64 -9223372036854775808"]);
    assert_eq!(values[2..4], [float(1 << 63), float(0x7ff4_dead_beef_0001)]);
    assert_eq!(values[4..], ["str \"340282366920938463463374607431768211455\"", "u64[] []", "str[] []"]);
}
