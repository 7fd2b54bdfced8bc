//! Shapes of files that some verbs read and that are not traces: pictures, dumps of the state of GL, object files.

use std::io::Write;

use flate2::{Compression, Crc, write::ZlibEncoder};

use super::Row;
use super::jobs::Family::{Object, Pictures, State};

pub(super) const SHAPES: &[Row] = &[
    ("im-rows", Pictures, |n| picture(64, n as u32, n as u8), 4_000),
    ("im-columns", Pictures, |n| picture(n as u32, 64, n as u8), 4_000),
    ("im-many", Pictures, |n| (0..n).flat_map(|i| picture(2, 2, (i * n) as u8)).collect(), 200),
    ("st-wide", State, |n| object(n, |i, n| format!("\"p{i}\": {}", i * n)), 50_000),
    ("st-names", State, |n| object(n, |i, n| format!("\"{}p{i}\": 1", n % 7)), 50_000),
    ("st-deep", State, |n| ["{\"a\": ".repeat(n as usize), format!("{n}"), "}".repeat(n as usize)].concat().into(), 50),
    ("st-array", State, |n| array(n, |i, n| (i % 251 * (n % 13)).to_string()), 50_000),
    ("st-array-shifted", State, |n| array(n, |i, n| (i + n).to_string()), 50_000),
    ("st-text", State, |n| format!("{{\"a\": \"{}{n}\"}}", "x\\n".repeat(n as usize)).into(), 200_000),
    (
        "ob-functions",
        Object,
        |n| elf(n, |i| format!("_ZN4name1f{}{}Ev", 1 + i.to_string().len(), format_args!("n{i}"))),
        20_000,
    ),
    ("ob-functions-nameless", Object, |n| elf(n, |_| String::new()), 20_000),
    ("ob-one-name", Object, |n| elf(n, |_| "_ZN4same4nameEv".to_owned()), 20_000),
    (
        "ob-name-nested",
        Object,
        |n| named(&format!("_Z1fI{}i{}Evv", "1aI".repeat(n as usize), "E".repeat(n as usize))),
        2_000,
    ),
    ("ob-name-pointers", Object, |n| named(&format!("_Z1f{}i", "P".repeat(n as usize))), 2_000),
    ("ob-name-substitutions", Object, |n| named(&doubling(n)), 2_000),
    (
        "ob-name-rust",
        Object,
        |n| named(&format!("_RINvC1a1b{}i{}E", "TB4_".repeat(n as usize), "E".repeat(n as usize))),
        2_000,
    ),
    ("ob-map", Object, map, 20_000),
    ("ob-map-damaged", Object, |n| ["---\n", &"- { id: \n".repeat(n as usize), "...\n"].concat().into(), 20_000),
];

/// Shapes that are none of what the verbs read: they may be refused.
pub(super) const BROKEN: &[&str] = &["ob-map-damaged"];

/// How a PNG begins.
pub(super) const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A picture of gray pixels.
fn picture(width: u32, height: u32, value: u8) -> Vec<u8> {
    let mut pixels = ZlibEncoder::new(Vec::new(), Compression::fast());
    for row in 0..height {
        // The first byte is the filter.
        let line: Vec<u8> = std::iter::once(0).chain((0..width).map(|at| (at ^ row) as u8 ^ value)).collect();
        let _never_fails = pixels.write_all(&line);
    }
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 0, 0, 0, 0]].concat();
    let mut bytes = PNG.to_vec();
    for (name, body) in [(b"IHDR", header), (b"IDAT", pixels.finish().unwrap_or_default()), (b"IEND", Vec::new())] {
        let mut sum = Crc::new();
        let named = [&name[..], &body].concat();
        sum.update(&named);
        bytes.extend((body.len() as u32).to_be_bytes());
        bytes.extend(named);
        bytes.extend(sum.sum().to_be_bytes());
    }
    bytes
}

fn object(count: u64, member: fn(u64, u64) -> String) -> Vec<u8> {
    let members: Vec<_> = (0..count).map(|i| member(i, count)).collect();
    format!("{{\"parameters\": {{{}}}}}", members.join(",\n")).into()
}

fn array(count: u64, item: fn(u64, u64) -> String) -> Vec<u8> {
    let items: Vec<_> = (0..count).map(|i| item(i, count)).collect();
    format!("{{\"a\": [{}]}}", items.join(",")).into()
}

/// A name whose parts each say the one before twice: written out it would be longer than any memory.
fn doubling(count: u64) -> String {
    let digits = |mut number: u64| {
        let mut text = Vec::new();
        while number > 0 {
            text.insert(0, b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(number % 36) as usize]);
            number /= 36;
        }
        String::from_utf8_lossy(&text).into_owned()
    };
    // Each argument is a candidate of its own: S_ is `a`, S0_ the first template.
    let parts = (0..count).map(|i| match i {
        0 => "1aIiiE".to_owned(),
        1 => "S_IS0_S0_E".to_owned(),
        _ => format!("S_IS{0}_S{0}_E", digits(i - 1)),
    });
    format!("_Z1f{}", parts.collect::<String>())
}

/// One function of a name.
fn named(name: &str) -> Vec<u8> {
    build(&[name.to_owned()])
}

/// This many functions with an entry and an exit each.
fn elf(count: u64, name: fn(u64) -> String) -> Vec<u8> {
    build(&(0..count).map(name).collect::<Vec<_>>())
}

/// A program for x86-64 with an instrumentation map and a symbol for each function that has a name.
fn build(names: &[String]) -> Vec<u8> {
    const CODE: u64 = 0x1_0000;
    let (mut map, mut symbols, mut strings) = (Vec::new(), vec![0; 24], vec![0]);
    for (name, i) in names.iter().zip(0_u64..) {
        let function = CODE + 64 * i;
        for kind in 0..2_u8 {
            map.extend([function + 32 * u64::from(kind), function].map(u64::to_le_bytes).concat());
            // Of version 0: addresses are absolute.
            map.extend([kind, 0, 0]);
            map.resize(map.len().next_multiple_of(32), 0);
        }
        if !name.is_empty() {
            symbols.extend((strings.len() as u32).to_le_bytes());
            symbols.extend([0x12, 0, 1, 0]);
            symbols.extend([function, 64].map(u64::to_le_bytes).concat());
            strings.extend(name.bytes().chain([0]));
        }
    }
    let section_names = b"\0.text\0xray_instr_map\0.symtab\0.strtab\0.shstrtab\0".to_vec();
    let name_at = |name: &str| section_names.windows(name.len()).position(|at| at == name.as_bytes()).unwrap_or(0);
    // Name, kind, flags, address, bytes, link, info, size of an entry.
    type Section<'a> = (&'a str, u32, u64, u64, Vec<u8>, [u32; 2], u64);
    let sections: [Section<'_>; 6] = [
        ("\0", 0, 0, 0, Vec::new(), [0, 0], 0),
        (".text", 8, 6, CODE, Vec::new(), [0, 0], 0),
        ("xray_instr_map", 1, 2, 0x1000_0000, map, [0, 0], 0),
        (".symtab", 2, 0, 0, symbols, [4, 1], 24),
        (".strtab", 3, 0, 0, strings, [0, 0], 0),
        (".shstrtab", 3, 0, 0, section_names.clone(), [0, 0], 0),
    ];
    let (mut table, mut contents) = (Vec::new(), Vec::new());
    for (name, kind, flags, address, bytes, link, entry) in &sections {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        table.extend([name_at(name) as u32, *kind].map(u32::to_le_bytes).concat());
        let length = if *kind == 8 { 64 * names.len() as u64 } else { bytes.len() as u64 };
        table.extend(words(&[*flags, *address, 64 + contents.len() as u64, length]));
        table.extend(link.map(u32::to_le_bytes).concat());
        table.extend(words(&[8, *entry]));
        contents.extend(bytes);
        contents.resize(contents.len().next_multiple_of(8), 0);
    }
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    file.extend([0, 0, 64 + contents.len() as u64].map(u64::to_le_bytes).concat());
    file.extend(0_u32.to_le_bytes());
    file.extend([64_u16, 0, 0, 64, sections.len() as u16, 5].map(u16::to_le_bytes).concat());
    file.extend(contents);
    file.extend(table);
    file
}

/// A map as YAML.
fn map(count: u64) -> Vec<u8> {
    let mut text = "---\n".to_owned();
    for i in 0..count {
        for (kind, at) in [("function-enter", 0), ("function-exit", 32)] {
            text += &format!(
                "- {{ id: {}, address: {:#x}, function: {:#x}, kind: {kind}, always-instrument: false, \
                 function-name: '_Z5name{i}v', version: 2 }}\n",
                i + 1,
                0x1000 + 64 * i + at,
                0x1000 + 64 * i
            );
        }
    }
    text += "...\n";
    text.into()
}
