//! What an earlier collection left in the folder. One that was killed left files that are not closed, or closed and not in
//! the index: they are completed, so that nothing is counted twice and nothing is left out.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use anytrace_core::{Diagnostic, Error, Input, InputOptions, OpenOptions, Place};
use anytrace_heph::tools::loss::{Offer, SessionKey, Sessions, StreamLoss};
use anytrace_heph::{Damage, Reader, Record, Visitor};
use serde_json::Value;

use crate::archivist::{INDEX, LOSSES};
use crate::index::IndexLine;
use crate::manifest::Manifest;
use crate::report::Drops;
use crate::retention::{Kept, Owner};

/// What is in a folder.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// True when there are files of a collection.
    pub(crate) is_used: bool,
    /// The greatest number of a source: numbers are never used twice.
    pub(crate) last_source: u32,
    closed: BTreeSet<String>,
    /// Without the ending of open files.
    open: BTreeSet<String>,
}

/// Looks what is in the folder.
pub(crate) fn names(folder: &Path) -> Result<Names, Error> {
    let failed = |error: io::Error| Error::io(folder.display(), error);
    let mut names = Names::default();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_string_lossy();
        names.is_used |= name == INDEX;
        let Some(number) = name.strip_prefix("source-").and_then(|rest| rest.split('-').next()) else { continue };
        names.is_used = true;
        names.last_source = names.last_source.max(number.parse().unwrap_or(0));
        if let Some(open) = name.strip_suffix(".part") {
            names.open.insert(open.to_owned());
        } else if name.ends_with(".heph") {
            names.closed.insert(name.into_owned());
        }
    }
    Ok(names)
}

/// Keeps other collectors out of the folder while the file is open: they would complete what this one is writing.
pub(crate) fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(INDEX);
    let file = File::options().create(true).append(true).open(&path);
    let file = file.map_err(|error| Error::io(path.display(), error))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(Error::usage(format!("{} is in use by another collector", folder.display())))
        }
        // Not every file system has locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// The sums of earlier collections that their files do not show.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EarlierReport {
    /// How many collections there were.
    pub(crate) collections: u64,
    /// Of sources without a session.
    pub(crate) totals: StreamLoss,
    pub(crate) dropped: Drops,
    pub(crate) over_rate: Drops,
    pub(crate) damaged_places: u64,
    pub(crate) skipped_bytes: u64,
    pub(crate) unfinished_bytes: u64,
    pub(crate) kernel_dropped: u64,
    pub(crate) refused: u64,
    pub(crate) unauthorized: u64,
    pub(crate) sources: u64,
}

/// What the files of earlier collections contain.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) events: u64,
    pub(crate) metadata: u64,
    pub(crate) bytes: u64,
    pub(crate) files: u64,
    /// Files that are still there, oldest first.
    pub(crate) kept: Vec<Kept>,
    pub(crate) report: EarlierReport,
    /// Events in files without a session.
    plain_events: u64,
}

/// Closes what is open, completes the index, and counts everything.
pub(crate) fn complete(folder: &Path, names: &Names, sessions: &mut Sessions) -> Result<Found, Error> {
    let mut found = Found::default();
    if !names.is_used {
        return Ok(found);
    }
    let path = folder.join(INDEX);
    let text = match fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Error::io(path.display(), error)),
    };
    let mut listed = BTreeSet::new();
    for line in text.lines().filter_map(IndexLine::from_text) {
        // A file is listed once; a killed collector may have been about to list it again.
        if listed.insert(line.file.clone()) {
            found.take(folder, &line, sessions)?;
        }
    }
    let mut more = if text.is_empty() || text.ends_with('\n') { String::new() } else { "\n".to_owned() };
    for name in names.open.union(&names.closed).filter(|name| !listed.contains(*name)) {
        let line = close(folder, name, sessions)?;
        more.push_str(&line.to_text());
        found.count(folder, &line);
    }
    // Listed already, but its other name is still there.
    for name in names.open.iter().filter(|name| listed.contains(*name)) {
        let part = folder.join(format!("{name}.part"));
        fs::remove_file(&part).map_err(|error| Error::io(part.display(), error))?;
    }
    if !more.is_empty() {
        let index = File::options().create(true).append(true).open(&path);
        index
            .and_then(|mut index| index.write_all(more.as_bytes()))
            .map_err(|error| Error::io(path.display(), error))?;
    }
    found.report = EarlierReport::read(&folder.join(LOSSES), found.plain_events);
    Ok(found)
}

impl Found {
    /// Takes a line of the index.
    fn take(&mut self, folder: &Path, line: &IndexLine, sessions: &mut Sessions) -> Result<(), Error> {
        self.count(folder, line);
        if let Some(session) = &line.session
            && !Manifest::restore(session, sessions)
        {
            let path = folder.join(&line.file);
            if path.exists() {
                Scan::read(&path, sessions)?;
            }
        }
        Ok(())
    }

    fn count(&mut self, folder: &Path, line: &IndexLine) {
        self.events += line.events;
        self.metadata += line.metadata;
        self.bytes += line.bytes;
        self.files += 1;
        if line.session.is_none() {
            self.plain_events += line.events;
        }
        let path = folder.join(&line.file);
        if let Ok(about) = fs::metadata(&path) {
            let session = line.session.as_ref().and_then(Manifest::session_of);
            let owner = session.map_or(Owner::Source(line.source), Owner::Session);
            let since = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            self.kept.push(Kept { path, bytes: about.len(), owner, since });
        }
    }
}

/// Gives a file that was left open its name, without a packet that was written in part; returns its line of the index.
fn close(folder: &Path, name: &str, sessions: &mut Sessions) -> Result<IndexLine, Error> {
    let (path, part) = (folder.join(name), folder.join(format!("{name}.part")));
    let is_open = part.exists();
    let scan = Scan::read(if is_open { &part } else { &path }, sessions)?;
    if is_open {
        let failed = |error| Error::io(part.display(), error);
        let file = File::options().write(true).open(&part).map_err(failed)?;
        file.set_len(scan.end).and_then(|()| file.sync_all()).map_err(failed)?;
        // It may have both names already.
        let is_same = |one: fs::Metadata| fs::metadata(&path).is_ok_and(|other| one.ino() == other.ino());
        if file.metadata().is_ok_and(is_same) { fs::remove_file(&part) } else { rename(&part, &path) }
            .map_err(failed)?;
    }
    Ok(IndexLine { file: name.to_owned(), source: source_of(name), is_recovered: true, ..scan.line })
}

/// Nothing is replaced.
fn rename(part: &Path, path: &Path) -> io::Result<()> {
    if path.exists() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(part, path)
}

fn source_of(name: &str) -> u32 {
    name.split('-').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// A file that is read again.
struct Scan<'s> {
    sessions: &'s mut Sessions,
    key: Option<SessionKey>,
    manifest: Manifest,
    line: IndexLine,
    end: u64,
}

/// What a file contains, and where its last packet ends.
struct Scanned {
    line: IndexLine,
    end: u64,
}

impl<'s> Scan<'s> {
    fn read(path: &Path, sessions: &'s mut Sessions) -> Result<Scanned, Error> {
        let input = Input::open(path, InputOptions::default())?;
        let line = IndexLine { kind: "file".to_owned(), ..IndexLine::default() };
        let mut scan = Self { sessions, key: None, manifest: Manifest::default(), line, end: 0 };
        Reader::new(input, &OpenOptions::default())?.read(&mut scan)?;
        let Self { manifest, mut line, end, .. } = scan;
        line.session = manifest.to_json();
        Ok(Scanned { line, end })
    }
}

impl Visitor for Scan<'_> {
    fn packet(&mut self, place: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        self.end = place.offset + bytes.len() as u64;
        self.line.bytes += bytes.len() as u64;
        match packet {
            Record::Event(event) => {
                self.line.events += 1;
                let (start, end) = (event.header.start_ns, event.header.end_ns.max(event.header.start_ns));
                self.line.range =
                    Some(self.line.range.map_or((start, end), |(from, to)| (from.min(start), to.max(end))));
                if let Some(key) = self.key
                    && let Offer::New(at) = self.sessions.event(key, &event.header, false)
                {
                    self.manifest.event(event.header.stream, at);
                }
            }
            Record::Metadata(metadata) => {
                self.line.metadata += 1;
                self.line.epoch_ns = metadata.epoch_ns().or(self.line.epoch_ns);
                if let Some(session) = metadata.session() {
                    self.key = self.sessions.begin(&session).or(self.key);
                    self.manifest.packet(bytes);
                } else if let Some(account) = metadata.account() {
                    self.sessions.account(&account);
                    self.manifest.packet(bytes);
                }
            }
        }
        Ok(())
    }

    fn report(&mut self, _: Diagnostic) -> Result<(), Error> {
        Ok(())
    }

    fn damage(&mut self, _: &Damage) -> Result<(), Error> {
        Ok(())
    }
}

impl EarlierReport {
    /// Reads the report of losses. Where the collection was killed it is some seconds old; `events` are those in files
    /// without a session.
    fn read(path: &Path, events: u64) -> Self {
        let value: Value =
            fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let number = |value: &Value, name: &str| value[name].as_u64().unwrap_or(0);
        let drops = |name: &str| {
            let drops = &value[name];
            Drops {
                datagrams: number(drops, "datagrams"),
                events: number(drops, "events"),
                bytes: number(drops, "bytes"),
            }
        };
        let plain = &value["without_session"];
        let duplicates = number(plain, "duplicates");
        let totals = StreamLoss {
            received: number(plain, "received").max(events + duplicates),
            duplicates,
            malformed: number(plain, "malformed"),
            out_of_order: number(plain, "out_of_order"),
            lost: number(plain, "lost"),
            lost_at_head: number(plain, "lost_at_head"),
            restarts: number(plain, "restarts"),
            doubtful: number(plain, "doubtful"),
            doubtful_events: number(plain, "doubtful_events"),
            ..StreamLoss::default()
        };
        let listed = value["sources"].as_array().map_or(0, Vec::len) as u64;
        Self {
            collections: number(&value, "collections").max(1),
            totals,
            dropped: drops("queue_dropped"),
            over_rate: drops("over_rate_dropped"),
            damaged_places: number(&value, "damaged_places"),
            skipped_bytes: number(&value, "skipped_bytes"),
            unfinished_bytes: number(&value, "unfinished_bytes"),
            kernel_dropped: number(&value, "kernel_dropped_datagrams"),
            refused: number(&value, "refused"),
            unauthorized: number(&value, "unauthorized"),
            sources: listed + number(&value, "other_sources"),
        }
    }
}
