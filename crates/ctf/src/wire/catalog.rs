//! The descriptions of an archive: which file is described by which.

use std::sync::Arc;

use anytrace_core::archive::{BLOCK_BYTES, Header, Kind, padding, path_of_facts};
use anytrace_core::bytes::array_at;
use anytrace_core::{Cursor, Diagnostic, Endian, Error};

use crate::model::{Trace, build};
use crate::rules;
use crate::tsdl::{self, text};

/// The file that describes the others beside it.
pub(crate) const DESCRIPTION: &str = "metadata";

/// Longest description, and longest name.
pub(crate) const DESCRIPTION_BYTES_MAX: u64 = 64 << 20;
const NAME_BYTES_MAX: u64 = 1 << 16;

/// Most descriptions, and most files.
const TRACES_MAX: usize = 1024;
const FILES_MAX: usize = 1 << 20;

/// The descriptions that were found.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// Each with its folder.
    pub(crate) traces: Vec<(String, Trace)>,
    /// Descriptions with faults, as a repair writes them: without the declarations that cannot be read. An empty one is
    /// of
    /// a trace that cannot be repaired.
    mended: Vec<(String, Vec<u8>)>,
}

/// Passes over a description until it has no fault: what one declaration lacks may make another useless.
const MENDS_MAX: usize = 8;

impl Catalog {
    /// The description of a file.
    pub(crate) fn of(&self, file: &str) -> Option<usize> {
        let folder = folder(file);
        self.traces.iter().position(|(own, _)| own == folder)
    }

    /// True for a file of a trace that cannot be repaired.
    pub(crate) fn is_broken(&self, file: &str) -> bool {
        self.mended(file).is_some_and(<[u8]>::is_empty)
    }

    /// The description that a repair writes beside a file, where it is not the one that is there.
    pub(crate) fn mended(&self, file: &str) -> Option<&[u8]> {
        let folder = folder(file);
        self.mended.iter().find(|(own, _)| own == folder).map(|(_, text)| text.as_slice())
    }

    pub(crate) fn trace(&self, at: usize) -> Option<&Trace> {
        self.traces.get(at).map(|(_, trace)| trace)
    }

    /// Adds a description; what is wrong with it goes to `faults`.
    pub(crate) fn add(&mut self, file: &str, bytes: &[u8], faults: &mut Vec<Diagnostic>) {
        if self.traces.len() >= TRACES_MAX || self.of(file).is_some() {
            return;
        }
        let text = text::read(bytes);
        let within = |diagnostic: Diagnostic| match file.is_empty() {
            true => diagnostic,
            false => diagnostic.within(format!("file {file}")),
        };
        if let Some(at) = text.damaged_at {
            let damage = rules::BAD_METADATA.at(at as u64).field("packet").expected("a packet of a description");
            faults.push(within(damage.found("another header, or the end of the file")));
        }
        let mut declared = tsdl::parse(&text.bytes);
        if declared.order.is_none() {
            declared.order = text.order;
        }
        let (trace, wrong) = build(declared);
        let is_faulty = text.damaged_at.is_some() || !wrong.is_empty() || trace.version != Some((1, 8));
        if is_faulty {
            self.mended.push((folder(file).to_owned(), mend(text.bytes.clone(), &wrong, text.order)));
        }
        for fault in wrong {
            let (line, column) = text.line(fault.at);
            let damage = rules::BAD_METADATA.at(text.in_file(fault.at)).line(line, column).field(fault.field);
            faults.push(within(damage.expected(fault.expected).found(fault.found)));
        }
        match trace.version {
            Some((1, 8)) => {}
            Some((major, minor)) => {
                let damage = rules::UNSUPPORTED_VERSION.at(text.in_file(0)).field("version").expected("1.8");
                faults.push(within(damage.found(format!("{major}.{minor}"))));
            }
            None => {
                let damage = rules::BAD_METADATA.at(text.in_file(0)).field("trace").expected("a block `trace`");
                faults.push(within(damage.found("none")));
            }
        }
        self.traces.push((folder(file).to_owned(), trace));
    }

    /// Reads the descriptions of an archive, wherever they are in it, as far as it can be read twice; the cursor is at
    /// the first byte before and after.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn find(cursor: &mut Cursor, faults: &mut Vec<Diagnostic>) -> Result<Arc<Self>, Error> {
        let mut catalog = Self::default();
        let mut long = None;
        let mut at = 0_u64;
        for _ in 0..FILES_MAX {
            let Some(block) = bytes_at(cursor, at, BLOCK_BYTES as u64)? else { break };
            let Some(header) = array_at(block, 0).and_then(|block| Header::read(&block)) else {
                // Damaged ones are looked for again when they are read.
                if block.iter().all(|byte| *byte == 0) {
                    break;
                }
                at += BLOCK_BYTES as u64;
                continue;
            };
            at += BLOCK_BYTES as u64;
            match header.kind {
                Kind::LongName | Kind::Facts if header.size <= NAME_BYTES_MAX => {
                    long = bytes_at(cursor, at, header.size)?.and_then(|bytes| long_name(&header, bytes));
                }
                Kind::File => {
                    let name = long.take().unwrap_or(header.name);
                    if is_description(&name) && header.size <= DESCRIPTION_BYTES_MAX {
                        let bytes = bytes_up_to(cursor, at, header.size)?;
                        catalog.add(&name, bytes, faults);
                    }
                }
                _ => {}
            }
            at = at.saturating_add(header.size).saturating_add(padding(header.size) as u64);
        }
        cursor.rewind();
        Ok(Arc::new(catalog))
    }
}

/// A description without its faulty declarations, which become blanks; empty where no trace is left.
fn mend(mut text: Vec<u8>, wrong: &[tsdl::Fault], order: Option<Endian>) -> Vec<u8> {
    let mut faults = wrong.to_vec();
    for _ in 0..MENDS_MAX {
        for fault in &faults {
            for byte in text.get_mut(fault.from..fault.to).unwrap_or_default() {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
        let mut declared = tsdl::parse(&text);
        // What is in packets has the byte order of their numbers, if nothing says another.
        if declared.order.is_none() && order == Some(Endian::Big) {
            return Vec::new();
        }
        declared.order = declared.order.or(order);
        let (trace, wrong) = build(declared);
        if wrong.is_empty() {
            return if trace.version == Some((1, 8)) { text } else { Vec::new() };
        }
        faults = wrong;
    }
    Vec::new()
}

/// The name that a header gives to the next one.
pub(crate) fn long_name(header: &Header, bytes: &[u8]) -> Option<String> {
    match header.kind {
        Kind::Facts => path_of_facts(bytes),
        _ => Some(String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()),
    }
}

pub(crate) fn is_description(file: &str) -> bool {
    file.rsplit('/').next() == Some(DESCRIPTION)
}

fn folder(file: &str) -> &str {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    folder.strip_prefix("./").unwrap_or(if folder == "." { "" } else { folder })
}

/// Bytes at an offset of a cursor that can be moved, or that has all its bytes in the window.
fn bytes_at(cursor: &mut Cursor, at: u64, count: u64) -> Result<Option<&[u8]>, Error> {
    Ok(Some(bytes_up_to(cursor, at, count)?).filter(|bytes| bytes.len() as u64 == count))
}

fn bytes_up_to(cursor: &mut Cursor, at: u64, count: u64) -> Result<&[u8], Error> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if cursor.can_rewind() {
        if !cursor.seek(at) {
            return Ok(&[]);
        }
        cursor.fill(count)?;
        let window = cursor.window();
        return Ok(window.get(..count).unwrap_or(window));
    }
    let rest = usize::try_from(at).ok().and_then(|at| cursor.window().get(at..)).unwrap_or_default();
    Ok(rest.get(..count).unwrap_or(rest))
}
