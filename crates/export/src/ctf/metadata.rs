//! The description of the stream, in TSDL.

use std::fmt::Write as _;

use crate::timeline::clock::Clock;

/// Types, and the layout of packets and events. Everything is aligned to bytes.
const TYPES: &str = r"
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
typealias integer { size = 64; align = 8; signed = false; base = hexadecimal; } := address_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.trace.value; } := timestamp_t;
typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := float64_t;

enum value_kind : uint8_t { u64 = 0, s64 = 1, f64 = 2, boolean = 3, address = 4, text = 5, bytes = 6, json = 7 };

struct byte_array { uint32_t length; uint8_t data[length]; };

variant any_value {
	uint64_t u64;
	int64_t s64;
	float64_t f64;
	uint8_t boolean;
	address_t address;
	string text;
	struct byte_array bytes;
	string json;
};

struct attribute { string key; enum value_kind kind; variant any_value <kind> value; };

stream {
	id = 0;
	packet.context := struct {
		timestamp_t timestamp_begin;
		timestamp_t timestamp_end;
		uint64_t content_size;
		uint64_t packet_size;
		uint64_t events_discarded;
	};
	event.header := struct { uint8_t id; timestamp_t timestamp; };
	event.context := struct { uint32_t track; uint64_t vpid; uint64_t vtid; string procname; int32_t cpu; };
};
";

/// The events by number: name, and the fields before `flags` and the attributes; none of these for a track.
const EVENTS: [(&str, &str, bool); 7] = [
    ("track", "string process_name; string name; uint32_t lane; uint8_t is_task;", false),
    ("span_begin", "string name; string src;", true),
    ("span_end", "string name;", true),
    ("instant", "string name;", true),
    ("counter", "string name; enum value_kind kind; variant any_value <kind> value;", true),
    ("flow_out", "string name; uint64_t id;", true),
    ("flow_in", "string name; uint64_t id;", true),
];

/// The file.
pub(super) fn text(clock: &Clock, lead_ns: i64) -> String {
    let mut out = String::from("/* CTF 1.8 */\n\n");
    let _ = write!(
        out,
        "trace {{\n\tmajor = 1;\n\tminor = 8;\n\tbyte_order = le;\n\tpacket.header := struct {{ integer {{ size = 32; \
         align = 8; signed = false; base = hexadecimal; }} magic; integer {{ size = 32; align = 8; signed = false; }} \
         stream_id; }};\n}};\n\nenv {{\n\ttracer_name = \"anytrace\";\n"
    );
    for (key, value) in clock.facts() {
        let _ = writeln!(out, "\t{} = {};", key.replace('-', "_"), quoted(&value));
    }
    // Without an epoch times mean nothing but their differences.
    let offset_ns = clock.origin_epoch_ns().map_or(0, |origin| origin - i128::from(lead_ns));
    let (seconds, rest) = (offset_ns.div_euclid(1_000_000_000), offset_ns.rem_euclid(1_000_000_000));
    let description = match clock.note() {
        Some(note) => note,
        None => "nanoseconds of the trace's own clock".to_owned(),
    };
    let _ = writeln!(
        out,
        "}};\n\nclock {{\n\tname = \"trace\";\n\tdescription = {};\n\tfreq = 1000000000;\n\toffset_s = {seconds};\n\t\
         offset = {rest};\n}};",
        quoted(&description)
    );
    out.push_str(TYPES);
    for (id, (name, fields, has_more)) in EVENTS.iter().enumerate() {
        let more = if *has_more {
            " string flags; uint16_t attribute_count; struct attribute attributes[attribute_count];"
        } else {
            ""
        };
        let _ = write!(
            out,
            "\nevent {{\n\tid = {id};\n\tname = \"{name}\";\n\tstream_id = 0;\n\tfields := struct {{ {fields}{more} }};\n}};\n"
        );
    }
    out
}

/// A string literal.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
