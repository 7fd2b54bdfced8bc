//! Converts JSON lines of calls, as written by [`super::jsonl`] and possibly edited, back to a trace.
//!
//! Calls are entered in the order of their numbers and left in the order of their lines, so that calls of several
//! threads keep their order. Then they are renumbered. A call without a number, or with that of the line before, is
//! entered at its line.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use anytrace_core::{Error, Input, InputOptions, Limits, Outcome, Target, TargetOptions, jsonl};
use serde_json::Value;

use crate::options::OPTIONS;
use crate::tools::from_jsonl_values::{Writer, wrong};
use crate::tools::jsonl::{KIND, VERSION};
use crate::verbs::rewrite::{SHARED, container, level};
use crate::wire::container::Container;
use crate::wire::container_writer::ContainerWriter;
use crate::wire::encode::encode_header;
use crate::wire::record::{Header, VERSION_MAX};
use crate::wire::scan::push_uint;

/// Longest line, in bytes; a quarter of it is the limit of a record.
const LINE_BYTES_MAX: u64 = 1 << 29;

/// Longest line whose number is searched beyond its front, in bytes.
const SEARCHED_BYTES_MAX: u64 = 1 << 26;

/// Most values of a line: they take a hundred times the memory of their digits.
const VALUES_MAX: usize = 1 << 20;

/// Most calls that may be left later than calls of higher numbers.
const LATE_MAX: usize = 1 << 22;

/// Writes a trace of version 6 from JSON lines of calls. The file is read twice, so it must be a regular file, not
/// compressed.
///
/// Enumerations, flags and structures get signatures that contain the names and values that occur. Ids and the order of
/// definitions are new.
///
/// # Errors
/// Malformed, with line and field, if a line is not a call; blobs whose content was omitted; limits; I/O.
pub fn from_jsonl(path: &Path, limits: Limits, target: &TargetOptions, out: &mut dyn Target) -> Result<Outcome, Error> {
    target.only("apitrace", &SHARED, OPTIONS)?;
    if target.version.is_some_and(|version| u64::from(version) != VERSION_MAX) {
        return Err(Error::usage("--version: JSON lines of calls become version 6; convert the trace afterwards"));
    }
    let container = container(target, Container::Snappy)?;
    let mut late = Late::find(path)?;
    let limits = limits.with_record_bytes_max(limits.record_bytes_max.max(LINE_BYTES_MAX / 4));
    let mut lines = jsonl::Lines::new(Input::open(path, InputOptions::default())?, limits).with_values_max(VALUES_MAX);
    let Some(first) = lines.next()? else { return Err(Error::usage("it has no lines")) };
    let header = header(&first)?;
    let mut output = ContainerWriter::new(out, container, level(target)?)?;
    output.write(&header.raw)?;
    let mut writer = Writer::default();
    let (mut records, mut highest, mut event) = (0, None, Vec::new());
    while let Some(line) = lines.next()? {
        event.clear();
        let number = number(&line)?;
        if number.is_some() && number < highest {
            // It was entered before the first of a higher number.
            let Some(call) = late.entered.remove(&line.line()) else {
                return Err(line.wrong("no", "the same number as when the file was read first", "another"));
            };
            writer.leave(&line, call, &mut event)?;
            output.write(&event)?;
            records += 1;
            continue;
        }
        if let Some(number) = number {
            while let Some(early) = late.next_below(number)? {
                let call = writer.enter(&early, &mut event)?;
                late.entered.insert(late.line, call);
            }
            highest = Some(number);
        }
        let call = writer.enter(&line, &mut event)?;
        writer.leave(&line, call, &mut event)?;
        output.write(&event)?;
        records += 1;
    }
    output.finish(container == Container::ZstdSeekable)?;
    Ok(Outcome { records_read: records, records_written: records, ..Outcome::default() })
}

fn number(line: &jsonl::Object) -> Result<Option<u64>, Error> {
    if line.has("no") { line.u64("no").map(Some) } else { Ok(None) }
}

fn header(line: &jsonl::Object) -> Result<Header, Error> {
    if !line.has("anytrace") {
        return Err(line.wrong("anytrace", KIND, "nothing: the first line is that of `anytrace apitrace jsonl`"));
    }
    match line.str("anytrace")? {
        KIND => {}
        "jsonl" => {
            let found = "jsonl, the events of a trace, which `anytrace convert` reads";
            return Err(line.wrong("anytrace", KIND, found));
        }
        other => return Err(line.wrong("anytrace", KIND, other)),
    }
    if line.u64("version")? != VERSION {
        return Err(line.wrong("version", VERSION.to_string(), line.u64("version")?.to_string()));
    }
    let semantic_version = if line.has("semantic_version") { line.u64("semantic_version")? } else { VERSION_MAX };
    if semantic_version > VERSION_MAX {
        return Err(line.wrong("semantic_version", format!("at most {VERSION_MAX}"), semantic_version.to_string()));
    }
    let mut header = Header { version: VERSION_MAX, semantic_version, ..Header::default() };
    let properties = if line.has("properties") { line.array("properties")? } else { &[] };
    for pair in properties {
        let bytes = |at: usize| pair.get(at).and_then(jsonl::value_bytes);
        match (bytes(0), bytes(1)) {
            (Some(name), Some(value)) if !name.is_empty() => header.properties.push((name, value)),
            _ => return Err(wrong(line, "properties", "pairs of name and value", pair)),
        }
    }
    header.raw = encode_header(&header);
    Ok(header)
}

/// Calls whose lines follow those of calls with higher numbers.
struct Late {
    file: File,
    /// Number, line, offset and length of each, by number; the next one last.
    rows: Vec<(u64, u64, u64, u64)>,
    /// Calls that were entered, by their lines.
    entered: HashMap<u64, u64>,
    /// The line of the call returned last.
    line: u64,
}

impl Late {
    /// Reads the numbers of all lines.
    fn find(path: &Path) -> Result<Self, Error> {
        let file =
            File::open(path).map_err(|error| Error::io(format_args!("cannot open {}", path.display()), error))?;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut rows = Vec::new();
        let (mut highest, mut offset, mut line) = (0, 0, 0);
        let mut head = Vec::new();
        loop {
            head.clear();
            // A line may be long; its number is at the front.
            let mut length = (&mut reader).take(HEAD_BYTES).read_until(b'\n', &mut head)? as u64;
            if length == 0 {
                break;
            }
            line += 1;
            let number = match number_in_front(&head) {
                Some(number) => Some(number),
                None => {
                    if head.last() != Some(&b'\n') {
                        length += (&mut reader).take(SEARCHED_BYTES_MAX).read_until(b'\n', &mut head)? as u64;
                    }
                    // A line that has too many is reported when it is read.
                    let is_fine = !jsonl::has_more_values(&head, VALUES_MAX);
                    let value = is_fine.then(|| serde_json::from_slice::<Value>(&head).ok()).flatten();
                    value.and_then(|value| value.get("no")?.as_u64())
                }
            };
            if head.last() != Some(&b'\n') {
                length += reader.skip_until(b'\n')? as u64;
            }
            if let Some(number) = number {
                if number < highest {
                    rows.push((number, line, offset, length));
                }
                highest = highest.max(number);
            }
            if rows.len() > LATE_MAX {
                return Err(Error::limit(format!("more than {LATE_MAX} calls come after calls with higher numbers")));
            }
            offset += length;
        }
        rows.sort_unstable_by(|a, b| b.cmp(a));
        Ok(Self { file: reader.into_inner(), rows, entered: HashMap::new(), line: 0 })
    }

    /// The next one with a number below this.
    fn next_below(&mut self, number: u64) -> Result<Option<jsonl::Object>, Error> {
        let Some(&(_, line, offset, length)) = self.rows.last().filter(|row| row.0 < number) else { return Ok(None) };
        self.rows.pop();
        if length > LINE_BYTES_MAX {
            return Err(Error::limit(format!("line {line} is longer than {LINE_BYTES_MAX} bytes")));
        }
        self.line = line;
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(offset))?;
        (&mut self.file).take(length).read_to_end(&mut bytes)?;
        let limits = Limits::default().with_record_bytes_max(LINE_BYTES_MAX / 4);
        let mut lines = jsonl::Lines::new(Input::from_bytes("line", bytes), limits).with_values_max(VALUES_MAX);
        match lines.next() {
            Ok(Some(object)) => Ok(Some(object)),
            _ => Err(Error::usage(format!("line {line} is not a JSON object"))),
        }
    }
}

/// Bytes of a line that are searched for its number.
const HEAD_BYTES: u64 = 4096;

/// The number of a call, if it is where [`super::jsonl`] writes it.
fn number_in_front(head: &[u8]) -> Option<u64> {
    let digits = head.strip_prefix(b"{\"no\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    matches!(digits.get(end), Some(b',' | b'}')).then_some(())?;
    std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
}

impl Writer {
    /// Writes the enter of a call and returns its number.
    fn enter(&mut self, line: &jsonl::Object, out: &mut Vec<u8>) -> Result<u64, Error> {
        out.push(0);
        push_uint(out, if line.has("thread") { line.u64("thread")? } else { 0 });
        let name = match line.get("name") {
            None => return Err(line.wrong("name", "the name of a function", "nothing")),
            // Its definition was lost.
            Some(Value::Null) => b"?".to_vec(),
            Some(_) => line.bytes("name")?,
        };
        let arguments = if line.has("args") { line.array("args")? } else { &[] };
        self.function(line, &name, arguments, out)?;
        let flags = if line.has("flags") { line.u64("flags")? } else { 0 };
        let flags = if line.has("wire_flags") { line.u64("wire_flags")? & !1 } else { 0 } | flags & 1;
        if flags != 0 {
            out.push(5);
            push_uint(out, flags);
        }
        if line.has("backtrace") {
            self.backtrace(line, line.array("backtrace")?, out)?;
        }
        for (index, pair) in arguments.iter().enumerate() {
            let Some(value) = pair.get(1) else { return Err(wrong(line, "args", "pairs of name and value", pair)) };
            if value.get("missing").is_none() {
                out.push(1);
                push_uint(out, index as u64);
                self.value(line, "args", value, out)?;
            }
        }
        out.push(0);
        let call = self.next_call;
        self.next_call += 1;
        Ok(call)
    }

    /// Writes the leave of a call, unless it never returned.
    fn leave(&mut self, line: &jsonl::Object, call: u64, out: &mut Vec<u8>) -> Result<(), Error> {
        if line.has("incomplete") && line.bool("incomplete")? {
            return Ok(());
        }
        out.push(1);
        push_uint(out, call);
        if let Some(value) = line.get("ret") {
            out.push(2);
            self.value(line, "ret", value, out)?;
        }
        out.push(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_front_are_read_without_the_rest() {
        assert_eq!(number_in_front(b"{\"no\":17,\"thread\":0"), Some(17));
        assert_eq!(number_in_front(b"{\"no\":17"), None);
        assert_eq!(number_in_front(b"{\"no\":1.5}"), None);
        assert_eq!(number_in_front(b"{ \"no\": 3}"), None);
    }
}
