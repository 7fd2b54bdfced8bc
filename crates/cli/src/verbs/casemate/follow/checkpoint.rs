//! `--checkpoint`: the state in a file, so that a later run continues.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anytrace_casemate::tools::{CheckOptions, Online};
use anytrace_core::OpenOptions;
use anytrace_live::{Arrivals, Place};
use tempfile::NamedTempFile;

use crate::durations::some_duration;
use crate::failure::Failure;

/// How often the state is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Every {
    Time(Duration),
    Records(u64),
}

/// Reads `10s` or `100000`.
pub(super) fn every(text: &str) -> Result<Every, String> {
    match text.parse() {
        Ok(0) => Err("expected a number of records above 0".to_owned()),
        Ok(records) => Ok(Every::Records(records)),
        Err(_) => some_duration(text).map(Every::Time).map_err(|error| format!("{error}; or a number of records")),
    }
}

/// The file, and when it was written.
pub(super) struct Checkpoint {
    path: PathBuf,
    every: Every,
    stored_at: Instant,
    /// Records of the state in the file.
    stored_records: u64,
}

impl Checkpoint {
    pub(super) fn new(path: &Path, every: Every) -> Self {
        Self { path: path.to_owned(), every, stored_at: Instant::now(), stored_records: 0 }
    }

    /// The state in the file, and the place in the traced file; `None` where there is no file yet.
    pub(super) fn load(
        &self,
        source: &Path,
        open: &OpenOptions,
        check: &CheckOptions,
    ) -> Result<Option<(Online, Option<Place>)>, Failure> {
        let path = self.path.display();
        let state = match fs::read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| Failure::usage(format!("cannot read {path}: {error}")))?,
        };
        let name = source.display().to_string();
        let (online, note) = Online::restore(&name, open, *check, &state).map_err(|error| {
            Failure::usage(format!("{path}: {}; use the options of the earlier run, or remove the file", error.words()))
        })?;
        let place = place(&note).ok_or_else(|| Failure::usage(format!("{path}: the place in the trace is damaged")))?;
        if place.is_none() && Arrivals::is_file_name(source) {
            return Err(Failure::usage(format!("{path}: the earlier run read a stream, and {name} is a file")));
        }
        Ok(Some((online, place)))
    }

    pub(super) fn is_due(&self, online: &Online) -> bool {
        let records = online.records().saturating_sub(self.stored_records);
        match self.every {
            Every::Records(every) => records >= every,
            Every::Time(every) => records > 0 && self.stored_at.elapsed() >= every,
        }
    }

    /// Stores the state, completely or not at all; false inside damage, which has no state.
    pub(super) fn store(&mut self, online: &Online, arrivals: &Arrivals) -> Result<bool, Failure> {
        let place = arrivals.place(online.pending_bytes() as u64);
        if arrivals.is_file() && place.is_none() {
            // A record began in a file that is gone.
            return Ok(false);
        }
        let Some(state) = online.save(note(place).as_bytes()) else { return Ok(false) };
        self.write(&state).map_err(|error| Failure::usage(format!("cannot write {}: {error}", self.path.display())))?;
        (self.stored_at, self.stored_records) = (Instant::now(), online.records());
        Ok(true)
    }

    fn write(&self, state: &[u8]) -> std::io::Result<()> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = NamedTempFile::with_prefix_in(".anytrace-", folder)?;
        file.write_all(state)?;
        // The name must not outlive the bytes when the machine stops.
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }
}

/// A place in a file as text: `file POSITION HEAD BEFORE`, the bytes in hexadecimal; `stream` for everything else.
fn note(place: Option<Place>) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    place.map_or("stream".to_owned(), |place| {
        format!("file {} {}. {}.", place.position, hex(&place.head), hex(&place.before))
    })
}

/// The place of a note; the outer `None` for text that is no note.
#[expect(clippy::option_option, reason = "no note, and a note without a place")]
fn place(note: &[u8]) -> Option<Option<Place>> {
    let text = std::str::from_utf8(note).ok()?;
    if text == "stream" {
        return Some(None);
    }
    let mut words = text.strip_prefix("file ")?.split(' ');
    let position = words.next()?.parse().ok()?;
    let (head, before) = (bytes(words.next()?)?, bytes(words.next()?)?);
    words.next().is_none().then_some(Some(Place { position, head, before }))
}

fn bytes(word: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = word.strip_suffix('.')?.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    rest.is_empty().then_some(())?;
    pairs.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        for one in [
            None,
            Some(Place::default()),
            Some(Place { position: 1 << 40, head: b"(lock".to_vec(), before: vec![0, 255, 10] }),
        ] {
            let text = note(one.clone());
            assert_eq!(place(text.as_bytes()), Some(one));
            for length in 0..text.len() {
                assert_eq!(place(&text.as_bytes()[..length]), None, "{text}: {length}");
            }
        }
    }

    #[test]
    fn how_often_is_a_time_or_a_number_of_records() {
        assert_eq!(every("1000"), Ok(Every::Records(1000)));
        assert_eq!(every("500ms"), Ok(Every::Time(Duration::from_millis(500))));
        for wrong in ["0", "0s", "-1", "", "s"] {
            assert!(every(wrong).is_err(), "{wrong}");
        }
    }
}
