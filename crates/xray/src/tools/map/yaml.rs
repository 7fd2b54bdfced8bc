//! YAML maps: a list of entries, as `extract` writes it.

use std::io::Write;

use anytrace_core::Error;
use anytrace_core::text::push_dec;
use anytrace_symbols::Binary;

use super::sleds::{Sled, SledKind};
use crate::rules;
use crate::wire::yaml_scan::{Scanner, YamlFault};
use crate::wire::yaml_write::put_scalar;

/// The fields of an entry (page, section 1.7), in the order in which they are written.
const FIELDS: [&str; 7] = ["id", "address", "function", "kind", "always-instrument", "function-name", "version"];

/// An entry with the name of its function; the name may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) sled: Sled,
    pub(super) name: String,
}

/// Writes a map, byte for byte as the peer does.
pub(super) fn write(entries: &[Entry], out: &mut dyn Write) -> Result<(), Error> {
    let mut text = b"---\n".to_vec();
    if entries.is_empty() {
        text.extend_from_slice(b"[]\n");
    }
    for Entry { sled, name } in entries {
        text.extend_from_slice(b"- { id: ");
        push_dec(&mut text, sled.id);
        let (address, function) = (sled.address, sled.function);
        text.extend_from_slice(format!(", address: {address:#X}, function: {function:#X}, kind: ").as_bytes());
        match sled.kind.name() {
            Some(kind) => text.extend_from_slice(kind.as_bytes()),
            None => push_dec(&mut text, sled.kind.0),
        }
        text.extend_from_slice(format!(", always-instrument: {}, function-name: ", sled.always).as_bytes());
        put_scalar(&mut text, name.as_bytes());
        text.extend_from_slice(b", version: ");
        push_dec(&mut text, sled.version);
        text.extend_from_slice(b" }\n");
        out.write_all(&text)?;
        text.clear();
    }
    text.extend_from_slice(b"...\n");
    out.write_all(&text)?;
    Ok(())
}

/// Reads a map.
pub(super) fn read(binary: &Binary) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    let pieces = pieces(binary.bytes());
    let is_map = pieces
        .first()
        .map_or_else(|| is_empty_list(binary.bytes()), |first| first.text.trim_ascii_start().starts_with(b"-"));
    if !is_map {
        let name = binary.name();
        return Err(Error::unsupported(format!("{name}: neither an object file nor a YAML instrumentation map")));
    }
    for piece in pieces {
        let entry = entry(piece.text).map_err(|bad| wrong(&piece, entries.len(), &bad))?;
        entries.push(entry);
    }
    Ok(entries)
}

/// The text of an entry and its place.
struct Piece<'a> {
    text: &'a [u8],
    offset: usize,
    /// From 1.
    line: u64,
}

/// Cuts a document into entries: each begins on a line with a hyphen and extends to the next.
fn pieces(bytes: &[u8]) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let (mut offset, mut is_open) = (0, false);
    for (n, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let end = offset + line.len();
        let words = line.trim_ascii();
        let begins = matches!(words, [b'-'] | [b'-', b' ' | b'\t', ..]);
        if begins {
            pieces.push(Piece { text: line, offset, line: n as u64 + 1 });
            is_open = true;
        } else if line.starts_with(b"---") || line.starts_with(b"...") {
            is_open = false;
        } else if is_open && let Some(last) = pieces.last_mut() {
            last.text = bytes.get(last.offset..end).unwrap_or_default();
        } else if !words.is_empty() && !words.starts_with(b"#") && words != b"[]" {
            // Text before the first entry is not part of a map: an entry that cannot be read is reported with its
            // place.
            pieces.push(Piece { text: line, offset, line: n as u64 + 1 });
            return pieces;
        }
        offset = end;
    }
    pieces
}

fn is_empty_list(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii();
    let text = text.strip_prefix(b"---").unwrap_or(text);
    text.strip_suffix(b"...").unwrap_or(text).trim_ascii() == b"[]"
}

fn entry(text: &[u8]) -> Result<Entry, YamlFault> {
    let mut scanner = Scanner::with_fields(text, &FIELDS);
    scanner.item()?;
    let start = scanner.place();
    let is_flow = scanner.take(b'{');
    let (mut id, mut address, mut function, mut kind) = (None, None, None, SledKind(0));
    let (mut always, mut name, mut version) = (false, String::new(), 0);
    while !scanner.is_over(is_flow)? {
        let key = scanner.key()?;
        let value = scanner.value(is_flow)?;
        match key.as_slice() {
            b"id" => id = Some(value.number("id")?),
            b"address" => address = Some(value.number("address")?),
            b"function" => function = Some(value.number("function")?),
            b"kind" => kind = value.clone().text("kind").and_then(|word| kind_of(&word, start))?,
            b"always-instrument" => always = value.flag("always-instrument")?,
            b"function-name" => name = String::from_utf8_lossy(&value.text("function-name")?).into_owned(),
            b"version" => version = value.number("version")?,
            // An unknown field does not affect names.
            _ => {}
        }
        scanner.separator(is_flow)?;
    }
    let missing = |field: &'static str| YamlFault {
        at: start,
        field: Some(field.into()),
        expected: "a number".into(),
        found: "no such field".into(),
    };
    let id = id.ok_or_else(|| missing("id"))?;
    let function = function.ok_or_else(|| missing("function"))?;
    let sled = Sled { id, address: address.unwrap_or(function), function, kind, always, version };
    Ok(Entry { sled, name })
}

fn kind_of(word: &[u8], at: usize) -> Result<SledKind, YamlFault> {
    std::str::from_utf8(word).ok().and_then(SledKind::from_name).ok_or_else(|| YamlFault {
        at,
        field: Some("kind".into()),
        expected: "a kind of sled".into(),
        found: anytrace_core::text::escaped(word.get(..60).unwrap_or(word)),
    })
}

fn wrong(piece: &Piece<'_>, record: usize, bad: &YamlFault) -> Error {
    let rule = if bad.field.is_some() { &rules::YAML_FIELD } else { &rules::YAML_SYNTAX };
    let before = piece.text.get(..bad.at).unwrap_or_default();
    let lines = before.iter().filter(|&&byte| byte == b'\n').count() as u64;
    let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() as u64 + 1;
    let mut report = rule
        .at((piece.offset + before.len()) as u64)
        .line(piece.line + lines, column)
        .record(record as u64)
        .expected(bad.expected.clone())
        .found(bad.found.clone());
    if let Some(field) = &bad.field {
        report = report.field(field.clone());
    }
    Error::malformed(report)
}
