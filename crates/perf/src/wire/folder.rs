//! The folder that `perf record --threads` writes: the file `data` is a recording whose records are those of `perf`
//! itself; the records of each of the kernel's buffers are in `data.0`, `data.1` and so on, which have nothing else
//! (`perf.data-directory-format.txt` of Linux). They are read as one file: those of `data`, then the others, then the
//! tables.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anytrace_core::{Endian, Error, Input, Pieces};

use super::fault::Need;
use super::header::{DATA_SIZE_AT, Header, PREFIX_BYTES_MAX, endian, read};

/// The file with the header.
const MAIN: &str = "data";

/// Most other files.
const FILES_MAX: usize = 1 << 16;

/// The input with the records of the files beside it; with a line that says how many there are.
pub(crate) fn completed(path: &Path, input: Input) -> Result<(Input, Option<String>), Error> {
    let main = if path.is_dir() { path.join(MAIN) } else { path.to_owned() };
    let is_main = main.file_name().is_some_and(|name| name == MAIN) && input.layers().is_empty();
    if !is_main || endian(input.head().bytes).is_none() || !main.is_file() {
        return Ok((input, None));
    }
    let others = others(&main);
    if others.is_empty() {
        return Ok((input, None));
    }
    let failed = |error| Error::io(format_args!("cannot read {}", main.display()), error);
    let mut bytes = Vec::new();
    let mut file = File::open(&main).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    file.by_ref().take(PREFIX_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
    let Some(pieces) = joined(&main, &bytes, length, &others)? else { return Ok((input, None)) };
    let note = format!("the records of {} files beside it were added ({MAIN}.0 and so on)", others.len());
    Ok((Input::from_ranges(input.name(), Arc::new(pieces))?, Some(note)))
}

/// The other files and their lengths.
fn others(main: &Path) -> Vec<(PathBuf, u64)> {
    let folder = main.parent().unwrap_or(Path::new(""));
    let file = |number: usize| {
        let path = folder.join(format!("{MAIN}.{number}"));
        let meta = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some((path, meta.len()))
    };
    (0..FILES_MAX).map_while(file).collect()
}

/// One file of all; `None` if the header cannot be read.
fn joined(main: &Path, bytes: &[u8], length: u64, others: &[(PathBuf, u64)]) -> Result<Option<Pieces>, Error> {
    let Some(endian) = endian(bytes) else { return Ok(None) };
    let header = match read(bytes, endian) {
        Ok((header, _)) if !header.is_pipe() => header,
        Ok(_) | Err(Need::Bad(_) | Need::More(_)) => return Ok(None),
    };
    let added: u64 = others.iter().map(|(_, bytes)| *bytes).sum();
    let data = header.data();
    let is_whole = data.bytes > 0 && data.end() <= length;
    let end = if is_whole { data.end() } else { length };
    let mut pieces = Pieces::default();
    let mut start = header.bytes.to_vec();
    if is_whole && let Some(size) = start.get_mut(DATA_SIZE_AT..DATA_SIZE_AT + 8) {
        size.copy_from_slice(&endian.put_u64(data.bytes.saturating_add(added)));
    }
    pieces.push_bytes(start);
    pieces.push_file(main.to_owned(), data.offset..end);
    for (path, bytes) in others {
        pieces.push_file(path.clone(), 0..*bytes);
    }
    if is_whole {
        let table = moved_table(main, &header, endian, added)?;
        let table_end = data.end().saturating_add(table.len() as u64);
        pieces.push_bytes(table);
        pieces.push_file(main.to_owned(), table_end..length);
    }
    Ok(Some(pieces))
}

/// The places of the tables behind the records, moved by what is added before them.
fn moved_table(main: &Path, header: &Header<'_>, endian: Endian, added: u64) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::io(format_args!("cannot read {}", main.display()), error);
    let mut pieces = Pieces::default();
    let start = header.data().end();
    pieces.push_file(main.to_owned(), start..start.saturating_add(header.features().count() as u64 * 16));
    let mut table = Vec::new();
    let mut input = Input::from_ranges("table", Arc::new(pieces))?.into_read();
    input.read_to_end(&mut table).map_err(failed)?;
    for entry in table.chunks_exact_mut(16) {
        let Some(offset) = entry.first_chunk_mut::<8>() else { continue };
        let moved = endian.u64(*offset);
        if moved >= start {
            *offset = endian.put_u64(moved.saturating_add(added));
        }
    }
    Ok(table)
}
