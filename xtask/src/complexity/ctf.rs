//! Shapes of the Common Trace Format: descriptions, packets, events.

use super::Row;
use super::jobs::Family::Ctf;
use crate::tar::archive;

pub(super) const SHAPES: &[Row] = &[
    ("ctf-deep", Ctf, |n| events(n, |n, i| event(u8::from(i >= n / 2), i, 1, b""), 1 << 14), 20_000),
    ("ctf-begins", Ctf, |n| events(n, |_, i| event(0, i, 1, b""), 1 << 14), 20_000),
    ("ctf-ends", Ctf, |n| events(n, |_, i| event(1, i, 1, b""), 1 << 14), 20_000),
    ("ctf-threads", Ctf, |n| events(n, |_, i| event(2, i, i as u32, b""), 1 << 14), 20_000),
    ("ctf-packets", Ctf, |n| events(n, |_, i| event(2, i, 1, b""), 1), 20_000),
    ("ctf-one-packet", Ctf, |n| events(n, |_, i| event(2, i, 1, b""), usize::MAX), 20_000),
    ("ctf-long", Ctf, |n| events(1, |_, _| event(3, 1, 1, &vec![b'x'; n as usize * 10]), usize::MAX), 20_000),
    ("ctf-back", Ctf, |n| events(n, |n, i| event(2, n - i, 1, b""), 1 << 14), 20_000),
    ("ctf-classes", Ctf, |n| classes(n, "fields := struct { uint8_t a; };"), 1_000),
    ("ctf-aliases", Ctf, |n| described(&each(n, |i| format!("typedef uint8_t t{i};\n"))), 1_000),
    ("ctf-faults", Ctf, |n| described(&each(n, |i| format!("typedef none t{i};\n"))), 1_000),
    ("ctf-files", Ctf, files, 500),
    ("ctf-braces", Ctf, |n| described(&"struct { ".repeat(n as usize)), 5_000),
    ("ctf-comment", Ctf, |n| described(&"/* ".repeat(n as usize)), 5_000),
    (
        "ctf-magic",
        Ctf,
        |n| archive(&[("metadata", META.as_bytes()), ("s", &MAGIC.to_le_bytes().repeat(n as usize))]),
        20_000,
    ),
    ("ctf-zeros", Ctf, |n| archive(&[("metadata", META.as_bytes()), ("s", &vec![0; n as usize * 16])]), 20_000),
    ("ctf-headers", Ctf, |n| crate::tar::header("x", 0).repeat(n as usize), 2_000),
];

/// Shapes that are hardly a trace, or none: verbs may refuse them.
pub(super) const BROKEN: &[&str] =
    &["ctf-faults", "ctf-braces", "ctf-comment", "ctf-magic", "ctf-zeros", "ctf-headers", "ctf-classes", "ctf-aliases"];

const MAGIC: u32 = 0xC1FC_1FC1;

const META: &str = "/* CTF 1.8 */
typealias integer { size = 8; } := uint8_t;
typealias integer { size = 32; } := uint32_t;
typealias integer { size = 64; } := uint64_t;
clock { name = c; };
typealias integer { size = 64; map = clock.c.value; } := time;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { uint32_t magic; }; };
stream {
	packet.context := struct { uint64_t content_size; uint64_t packet_size; };
	event.header := struct { uint8_t id; time timestamp; };
	event.context := struct { uint32_t vtid; };
};
event { id = 0; name = \"f_begin\"; };
event { id = 1; name = \"f_end\"; };
event { id = 2; name = \"i\"; };
event { id = 3; name = \"s\"; fields := struct { string s; }; };
";

fn each(n: u64, make: impl Fn(u64) -> String) -> String {
    (0..n).map(make).collect()
}

/// A trace of one event, with more in its description.
fn described(more: &str) -> Vec<u8> {
    let text = format!("{META}{more}");
    archive(&[("metadata", text.as_bytes()), ("s", &packet(&event(2, 1, 1, b"")))])
}

fn classes(n: u64, fields: &str) -> Vec<u8> {
    described(&each(n, |i| format!("event {{ id = {}; name = \"e{i}\"; {fields} }};\n", i + 10)))
}

fn files(n: u64) -> Vec<u8> {
    let packet = packet(&event(2, 1, 1, b""));
    let names: Vec<String> = (0..n).map(|i| format!("s{i}")).collect();
    let streams = names.iter().map(|name| (name.as_str(), packet.as_slice()));
    archive(&std::iter::once(("metadata", META.as_bytes())).chain(streams).collect::<Vec<_>>())
}

/// Events in packets of so many bytes.
fn events(n: u64, make: impl Fn(u64, u64) -> Vec<u8>, packet_bytes: usize) -> Vec<u8> {
    let (mut stream, mut own) = (Vec::new(), Vec::new());
    for i in 0..n {
        own.extend(make(n, i));
        if own.len() >= packet_bytes || i + 1 == n {
            stream.extend(packet(&own));
            own.clear();
        }
    }
    archive(&[("metadata", META.as_bytes()), ("s", &stream)])
}

fn packet(events: &[u8]) -> Vec<u8> {
    let bits = (events.len() as u64 + 20) * 8;
    [&MAGIC.to_le_bytes()[..], &bits.to_le_bytes(), &bits.to_le_bytes(), events].concat()
}

fn event(id: u8, time: u64, thread: u32, text: &[u8]) -> Vec<u8> {
    let zero: &[u8] = if id == 3 { b"\0" } else { b"" };
    [&[id][..], &time.to_le_bytes(), &thread.to_le_bytes(), text, zero].concat()
}
