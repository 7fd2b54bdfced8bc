//! What the first of the JSON lines says: the container and the header.

use anytrace_core::{Error, ImportOptions, jsonl};

use crate::wire::container::{Container, parse_header};
use crate::wire::encode::encode_header;
use crate::wire::record::{Header, VERSION_MAX, VERSION_PROPERTIES};

/// The container that the trace was in.
pub(super) fn container(line: &jsonl::Object) -> Result<Container, Error> {
    match line.has("container") {
        true => Container::from_name(line.str("container")?)
            .ok_or_else(|| line.wrong("container", "a container", line.str("container").unwrap_or("?"))),
        false => Ok(Container::Snappy),
    }
}

/// The header of the stream.
pub(super) fn header(line: &jsonl::Object, options: &ImportOptions<'_>) -> Result<Header, Error> {
    let version = line.u64("format_version")?;
    if version > VERSION_MAX {
        return Err(line.wrong("format_version", format!("at most {VERSION_MAX}"), version.to_string()));
    }
    let semantic_version = line.u64("semantic_version")?;
    let mut header = Header { version, semantic_version, ..Header::default() };
    for pair in line.array("properties")? {
        let bytes = |at: usize| pair.get(at).and_then(jsonl::value_bytes);
        let (Some(name), Some(value)) = (bytes(0), bytes(1)) else {
            return Err(line.wrong("properties", "pairs of name and value", pair.to_string()));
        };
        if name.is_empty() || version < VERSION_PROPERTIES {
            return Err(line.wrong("properties", "names, in version 6", pair.to_string()));
        }
        header.properties.push((name, value));
    }
    header.raw = encode_header(&header);
    if line.has("raw") {
        let raw = line.hex("raw")?;
        match parse_header(&raw, &options.limits) {
            Ok(parsed) if parsed.raw.len() == raw.len() && parsed.version == version => header = parsed,
            _ => return Err(line.wrong("raw", "the bytes of a header", "others")),
        }
    }
    Ok(header)
}
