//! Files that can be read independently: the packets of each source, unchanged, after that source's metadata.
//!
//! While it is written a file is called `source-0001-000001.heph.part`, and it contains everything received: after a
//! collector is killed it is readable. When it is closed, the `.part` is removed.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use anytrace_core::Error;
use anytrace_heph::tools::loss::{Part, Sessions};
use anytrace_heph::{ACCOUNT_OPTION, Header, Metadata, SESSION_OPTION};

use crate::archivist::{Archivist, Closing};
use crate::disk::is_full;
use crate::index::IndexLine;
use crate::manifest::Manifest;
use crate::options::{Earlier, Fsync, StoreOptions};
use crate::retention::{Kept, Owner, Retention};
use crate::takeover::{self, EarlierReport};
use crate::tally::Tally;

/// Bytes gathered for a source before they are written.
const OUT_BYTES: usize = 1 << 15;

/// Metadata packets of a source that are repeated in each file: this many options and bytes. Others are written where
/// they arrived and not repeated.
const OPTIONS_MAX: usize = 1024;
const OPTIONS_BYTES: usize = 1 << 16;

/// The folder and the thread that closes files.
pub(crate) struct Store {
    options: StoreOptions,
    archivist: Archivist,
    /// Keeps others out of the folder.
    _lock: File,
    /// Number of the next source's files.
    next: u32,
    synced: Instant,
    pub(crate) files: u64,
    pub(crate) retention: Retention,
    /// Bytes in files that are being written.
    open_bytes: u64,
    /// What earlier collections in this folder reported.
    pub(crate) earlier: EarlierReport,
    /// True when the disk is full: nothing more is taken until there is room.
    pub(crate) is_full: bool,
    /// Events that were received and found no room before the end.
    pub(crate) unwritten_events: u64,
}

impl Store {
    /// Goes on without room on the disk: what was not written is kept.
    fn tolerate(&mut self, written: Result<(), Error>) -> Result<(), Error> {
        match written {
            Err(error) if is_full(&error) => {
                self.is_full = true;
                Ok(())
            }
            other => other,
        }
    }

    /// Creates the folder or examines its contents: what an earlier collection left there is completed and counted.
    pub(crate) fn open(options: &StoreOptions, sessions: &mut Sessions, tally: &mut Tally) -> Result<Self, Error> {
        let folder = &options.folder;
        let failed = |error: io::Error| Error::io(folder.display(), error);
        fs::create_dir_all(folder).map_err(failed)?;
        let names = takeover::names(folder)?;
        if names.is_used && options.earlier == Earlier::Refuses {
            return Err(Error::usage(format!("{} holds an earlier collection", folder.display())));
        }
        let lock = takeover::lock(folder)?;
        let found = takeover::complete(folder, &names, sessions)?;
        tally.events = found.events;
        tally.metadata = found.metadata;
        tally.bytes = found.bytes;
        let archivist = Archivist::start(folder, options.fsync != Fsync::Never)?;
        let mut options = options.clone();
        // Only closed files can be removed, so none may take all the room.
        if let Some(eighth) = options.bytes_max.map(|most| (most / 8).max(1)) {
            options.rotate_bytes = Some(options.rotate_bytes.map_or(eighth, |bytes| bytes.min(eighth)));
        }
        Ok(Self {
            retention: Retention::new(&options, found.kept),
            options,
            archivist,
            _lock: lock,
            next: names.last_source + 1,
            synced: Instant::now(),
            files: found.files,
            open_bytes: 0,
            earlier: found.report,
            is_full: false,
            unwritten_events: 0,
        })
    }

    /// Removes files that are too old or too many.
    pub(crate) fn expire(&mut self) {
        let gone = self.retention.expired(self.open_bytes, SystemTime::now());
        if !gone.is_empty() {
            let line = format!("{}\n", serde_json::json!({ "version": 1, "removed": names_of(&gone) }));
            self.archivist.remove(gone, line);
        }
    }

    /// The files of a new source; none is created before there is something to write.
    pub(crate) fn series(&self, kind: &'static str, peer: &str) -> Series {
        Series {
            source: 0,
            kind,
            peer: peer.to_owned(),
            files: 0,
            open: None,
            repeated: Vec::new(),
            epoch: None,
            session: None,
        }
    }

    /// True when it is time to force bytes to the disk.
    pub(crate) fn is_sync_due(&self, now: Instant) -> bool {
        match self.options.fsync {
            Fsync::Never | Fsync::Batch => false,
            Fsync::Every(time) => now.duration_since(self.synced) >= time && !self.archivist.is_syncing(),
        }
    }

    /// Forces the open files to the disk that were written to.
    pub(crate) fn sync<'s>(&mut self, now: Instant, series: impl Iterator<Item = &'s mut Series>) {
        // Before the work: a slow disk must not make the next one due at once.
        self.synced = now;
        let open = series.filter_map(|series| series.open.as_mut());
        let dirty = open.filter_map(|open| open.file.as_ref().filter(|_| std::mem::take(&mut open.is_dirty)));
        let files: Vec<File> = dirty.filter_map(|file| file.try_clone().ok()).collect();
        if !files.is_empty() {
            self.archivist.sync(files);
        }
    }

    /// Writes the losses beside the files.
    pub(crate) fn write_losses(&self, json: Vec<u8>) {
        self.archivist.write_losses(json);
    }

    /// The failure of the thread that waits for the disk.
    pub(crate) fn failure(&self) -> Result<(), Error> {
        self.archivist.failure()
    }

    /// Waits until all is closed.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.archivist.finish()
    }
}

/// The files of one source.
pub(crate) struct Series {
    /// Number of the source in the names of its files; 0 while there is none.
    pub(crate) source: u32,
    kind: &'static str,
    peer: String,
    pub(crate) files: u32,
    open: Option<Open>,
    /// Metadata packets, the last of each option.
    repeated: Vec<(String, Vec<u8>)>,
    epoch: Option<u64>,
    session: Option<u128>,
}

/// The file being written.
struct Open {
    /// None before the first byte is written.
    file: Option<File>,
    name: String,
    part: PathBuf,
    out: Vec<u8>,
    /// Events in them.
    out_events: u64,
    /// Bytes written and gathered.
    bytes: u64,
    written: u64,
    events: u64,
    metadata: u64,
    since: Instant,
    range: Option<(u64, u64)>,
    manifest: Manifest,
    is_dirty: bool,
}

impl Series {
    /// Takes an event packet; `at` is its counter in its session, in 64 bits.
    #[inline]
    pub(crate) fn event(
        &mut self,
        store: &mut Store,
        packet: &[u8],
        header: &Header,
        at: Option<u64>,
        now: Instant,
    ) -> Result<(), Error> {
        if self.is_full(&store.options, packet.len()) {
            self.close(store)?;
        }
        let open = self.opened(store, now);
        open.events += 1;
        open.out_events += 1;
        if let Some(at) = at {
            open.manifest.event(header.stream, at);
        }
        let (start, end) = (header.start_ns.min(header.end_ns), header.end_ns.max(header.start_ns));
        open.range = Some(open.range.map_or((start, end), |(from, to)| (from.min(start), to.max(end))));
        let pushed = open.push(packet);
        store.open_bytes += packet.len() as u64;
        store.tolerate(pushed)
    }

    /// Takes what arrived before the session was known.
    pub(crate) fn adopt(&mut self, stream: u32, part: &Part) {
        if let Some(open) = &mut self.open {
            open.manifest.adopt(stream, part);
        }
    }

    /// Takes a metadata packet. Another epoch or session begins another file: times of one file have one base.
    pub(crate) fn metadata(
        &mut self,
        store: &mut Store,
        packet: &[u8],
        metadata: &Metadata<'_>,
        now: Instant,
    ) -> Result<(), Error> {
        let epoch = metadata.epoch_ns();
        let session = metadata.session().map(|session| session.id);
        // The first of a source is no change.
        let is_other = epoch.is_some() && self.epoch.is_some() && epoch != self.epoch
            || session.is_some() && self.session.is_some() && session != self.session;
        if is_other && self.open.as_ref().is_some_and(|open| open.events > 0) {
            self.close(store)?;
        }
        self.epoch = epoch.or(self.epoch);
        self.session = session.or(self.session);
        let is_account = metadata.option() == ACCOUNT_OPTION;
        // A later file begins with the remembered metadata; what was counted by then is in an earlier one.
        // There is a name for each thread.
        let option = match metadata.thread() {
            Some((stream, _)) => format!("{} {stream}", metadata.option()),
            None => metadata.option().to_owned(),
        };
        if self.open.is_none() && self.files > 0 && !is_account && self.remember(&option, packet) {
            self.opened(store, now);
            return Ok(());
        }
        let open = self.opened(store, now);
        open.metadata += 1;
        if is_account || session.is_some() {
            open.manifest.packet(packet);
        }
        let pushed = open.push(packet);
        store.open_bytes += packet.len() as u64;
        store.tolerate(pushed)?;
        if !is_account {
            self.remember(&option, packet);
        }
        Ok(())
    }

    /// Remembers a packet for later files; false where there is no room.
    fn remember(&mut self, option: &str, packet: &[u8]) -> bool {
        let others: usize = self.repeated.iter().filter(|(name, _)| name != option).map(|(_, bytes)| bytes.len()).sum();
        if others + packet.len() > OPTIONS_BYTES {
            return false;
        }
        // The last packet of an option replaces the one before: a later file needs only what is valid then.
        if let Some((_, bytes)) = self.repeated.iter_mut().find(|(name, _)| name == option) {
            packet.clone_into(bytes);
            return true;
        }
        let has_room = self.repeated.len() < OPTIONS_MAX;
        if has_room {
            self.repeated.push((option.to_owned(), packet.to_vec()));
        }
        has_room
    }

    /// Begins the next file when this one is old enough.
    pub(crate) fn tick(&mut self, store: &mut Store, now: Instant) -> Result<(), Error> {
        let is_old = |open: &Open| store.options.rotate_after.is_some_and(|t| now.duration_since(open.since) >= t);
        match self.open.as_ref() {
            Some(open) if open.events > 0 && is_old(open) => self.close(store),
            _ => Ok(()),
        }
    }

    /// Writes the buffered packets.
    pub(crate) fn flush(&mut self, store: &mut Store) -> Result<(), Error> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let flushed = open.flush();
        store.tolerate(flushed)?;
        if store.options.fsync == Fsync::Batch
            && std::mem::take(&mut open.is_dirty)
            && let Some(file) = &open.file
        {
            file.sync_data().map_err(|error| Error::io(open.part.display(), error))?;
        }
        Ok(())
    }

    /// Closes the file being written, if there is one and the disk has room.
    pub(crate) fn close(&mut self, store: &mut Store) -> Result<(), Error> {
        let Some(open) = &mut self.open else { return Ok(()) };
        match open.flush() {
            Err(error) if is_full(&error) => {
                // It grows beyond its size instead.
                store.is_full = true;
                Ok(())
            }
            flushed => flushed.and_then(|()| self.close_written(store)),
        }
    }

    /// The same at the end of its source: what has no room then is lost.
    pub(crate) fn end(&mut self, store: &mut Store) -> Result<(), Error> {
        self.close(store)?;
        let Some(open) = &mut self.open else { return Ok(()) };
        store.unwritten_events += open.out_events;
        open.events -= open.out_events;
        open.bytes = open.written;
        // The index must not say that these arrived.
        open.manifest.is_cut |= open.out_events > 0;
        open.out.clear();
        self.close_written(store)
    }

    fn close_written(&mut self, store: &mut Store) -> Result<(), Error> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let Some(file) = open.file.take() else { return Ok(()) };
        let path = store.options.folder.join(&open.name);
        store.open_bytes = store.open_bytes.saturating_sub(open.bytes);
        let owner = self.session.map_or(Owner::Source(self.source), Owner::Session);
        let kept = Kept { path: path.clone(), bytes: open.written, owner, since: SystemTime::now() };
        let remove = store.retention.close(kept, store.open_bytes);
        let line = self.index_line(&open, &remove);
        store.archivist.close(Closing { file, part: open.part, path, line, remove });
        Ok(())
    }

    fn is_full(&self, options: &StoreOptions, more: usize) -> bool {
        let Some(open) = &self.open else { return false };
        let above = |limit: Option<u64>, reached: u64| limit.is_some_and(|limit| reached > limit);
        // A file without an event is never full: otherwise a packet longer than the limit would begin files for ever.
        open.events > 0
            && (above(options.rotate_bytes, open.bytes + more as u64) || above(options.rotate_events, open.events + 1))
    }

    /// The file being written; a new one if there is none.
    fn opened(&mut self, store: &mut Store, now: Instant) -> &mut Open {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                if self.source == 0 {
                    self.source = store.next;
                    store.next = store.next.saturating_add(1);
                }
                self.files += 1;
                store.files += 1;
                let name = format!("source-{:04}-{:06}.heph", self.source, self.files);
                let mut open = Open::new(&store.options.folder, name, now);
                for (option, packet) in &self.repeated {
                    if option == SESSION_OPTION {
                        open.manifest.packet(packet);
                    }
                    open.metadata += 1;
                    store.open_bytes += packet.len() as u64;
                    open.gather(packet);
                }
                open
            }
        };
        self.open.insert(open)
    }

    fn index_line(&self, open: &Open, removed: &[PathBuf]) -> String {
        let line = IndexLine {
            file: open.name.clone(),
            source: self.source,
            kind: self.kind.to_owned(),
            peer: self.peer.clone(),
            events: open.events,
            metadata: open.metadata,
            bytes: open.bytes,
            epoch_ns: self.epoch,
            range: open.range,
            session: open.manifest.to_json(),
            removed: names_of(removed),
            is_recovered: false,
        };
        line.to_text()
    }
}

/// The names of files without their folder.
fn names_of(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned()).collect()
}

impl Open {
    fn new(folder: &Path, name: String, now: Instant) -> Self {
        Self {
            file: None,
            part: folder.join(format!("{name}.part")),
            name,
            out: Vec::new(),
            out_events: 0,
            bytes: 0,
            written: 0,
            events: 0,
            metadata: 0,
            since: now,
            range: None,
            manifest: Manifest::default(),
            is_dirty: false,
        }
    }

    #[inline]
    fn gather(&mut self, packet: &[u8]) {
        self.bytes += packet.len() as u64;
        self.out.extend_from_slice(packet);
    }

    #[inline]
    fn push(&mut self, packet: &[u8]) -> Result<(), Error> {
        self.gather(packet);
        if self.out.len() >= OUT_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.out.is_empty() {
            return Ok(());
        }
        let failed = |error| Error::io(self.part.display(), error);
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let made = File::options().write(true).create_new(true).open(&self.part);
                self.file.insert(made.map_err(failed)?)
            }
        };
        if let Err(error) = file.write_all(&self.out) {
            // The file must end with a complete packet.
            let _ = file.set_len(self.written).and_then(|()| file.seek(SeekFrom::Start(self.written)));
            return Err(failed(error));
        }
        self.is_dirty = true;
        // `written` is always the end of a complete packet: where the next write fails, the file is cut there.
        self.written += self.out.len() as u64;
        self.out.clear();
        self.out_events = 0;
        // One packet may be as long as all other buffers together.
        self.out.shrink_to(OUT_BYTES);
        Ok(())
    }
}
