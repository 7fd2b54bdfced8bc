//! pprof's `profile.proto`, compressed by gzip: calls and self time by stack, for `go tool pprof` and what reads its files.
//!
//! Counted as in [`crate::tally`]. A sample is a stack; its thread is the label `thread` (`-tagroot=thread` makes threads the
//! roots). Fields: `proto/profile.proto` of github.com/google/pprof.

use std::collections::BTreeMap;
use std::io::Write;

use anytrace_core::Error;
use anytrace_core::hash::Map;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::proto::{bytes, message, number};
use crate::tally::{Counted, Sample, Tally};
use crate::timeline::output::Timeline;

/// Fields of `Profile`.
mod profile {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING: u32 = 6;
    pub(super) const COMMENT: u32 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// Bytes that wait for the compressor.
const WAITING_BYTES: usize = 64 << 10;

/// Begins a profile; all is written in [`Timeline::finish`].
pub(crate) fn open<'a>(out: &'a mut (dyn Write + Send)) -> impl Timeline + 'a {
    Counted::with_places(move |tally| {
        // No time of its own: the same trace gives the same bytes.
        let mut gzip = GzEncoder::new(&mut *out, Compression::default());
        write(tally, &mut gzip).and_then(|()| gzip.finish().map(drop)).map_err(|error| Error::io("writing", error))
    })
}

/// Texts by number; the first is empty.
struct Strings {
    numbers: Map<Box<[u8]>, u64>,
    texts: Vec<Box<[u8]>>,
}

impl Strings {
    fn new() -> Self {
        let mut strings = Self { numbers: Map::default(), texts: Vec::new() };
        strings.number(b"");
        strings
    }

    fn number(&mut self, text: &[u8]) -> u64 {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let next = self.texts.len() as u64;
        self.numbers.insert(text.into(), next);
        self.texts.push(text.into());
        next
    }
}

fn write(tally: &Tally, out: &mut impl Write) -> std::io::Result<()> {
    let mut strings = Strings::new();
    let mut waiting = Vec::new();
    let types = [("calls", "count"), ("time", tally.unit())];
    for (kind, unit) in types {
        let (kind, unit) = (strings.number(kind.as_bytes()), strings.number(unit.as_bytes()));
        message(&mut waiting, profile::SAMPLE_TYPE, |out| {
            number(out, 1, kind);
            number(out, 2, unit);
        });
    }
    let thread = strings.number(b"thread");
    // A name's place in the file, from 1 on, in the order of first use.
    let mut places: BTreeMap<u32, u64> = BTreeMap::new();
    let mut sample = |sample: &Sample<'_>, waiting: &mut Vec<u8>, strings: &mut Strings| {
        let label = strings.number(tally.label(sample.track));
        message(waiting, profile::SAMPLE, |out| {
            for name in sample.names.iter().rev() {
                let next = places.len() as u64 + 1;
                number(out, 1, *places.entry(*name).or_insert(next));
            }
            number(out, 2, sample.calls);
            number(out, 2, sample.time);
            message(out, 3, |out| {
                number(out, 1, thread);
                number(out, 2, label);
            });
        });
    };
    let mut failed = None;
    // Writing may fail while the stacks are visited, which knows errors of its own kind only.
    let visited = tally.each_sample(|one| {
        sample(one, &mut waiting, &mut strings);
        if waiting.len() < WAITING_BYTES {
            return Ok(());
        }
        let written = out.write_all(&waiting);
        waiting.clear();
        written.map_err(|error| {
            failed = Some(error);
            Error::usage("writing failed")
        })
    });
    if let (Err(_), Some(error)) = (visited, failed) {
        return Err(error);
    }
    functions(tally, &places, &mut strings, &mut waiting);
    if let Some(note) = tally.note() {
        number(&mut waiting, profile::COMMENT, strings.number(note.as_bytes()));
    }
    let default = strings.number(b"time");
    number(&mut waiting, profile::DEFAULT_SAMPLE_TYPE, default);
    for text in &strings.texts {
        bytes(&mut waiting, profile::STRING, text);
    }
    out.write_all(&waiting)
}

/// A location and a function for each name.
fn functions(tally: &Tally, places: &BTreeMap<u32, u64>, strings: &mut Strings, out: &mut Vec<u8>) {
    for (&name, &id) in places {
        let (text, location) = tally.named(name);
        let text = strings.number(text);
        let file = location.map_or(0, |location| strings.number(location.file.as_bytes()));
        let line = location.map_or(0, |location| u64::from(location.line));
        message(out, profile::LOCATION, |out| {
            number(out, 1, id);
            message(out, 4, |out| {
                number(out, 1, id);
                number(out, 2, line);
            });
        });
        message(out, profile::FUNCTION, |out| {
            number(out, 1, id);
            number(out, 2, text);
            number(out, 3, text);
            number(out, 4, file);
            number(out, 5, line);
        });
    }
}
