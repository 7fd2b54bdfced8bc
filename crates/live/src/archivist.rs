//! The thread that waits for the disk: forces bytes out, renames closed files, writes index and losses.
//!
//! Waiting for a disk may take longer than a socket's buffer lasts, so the receiving thread never does it. The jobs are
//! few and done in order: a file is synced, then renamed, and only then listed in the index.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anytrace_core::Error;

use crate::disk::is_full;

/// The list of closed files.
pub(crate) const INDEX: &str = "index.jsonl";

/// The report of losses, from counters and sockets.
pub(crate) const LOSSES: &str = "loss.json";

/// Jobs that may wait. A full queue holds up the thread that receives, so memory stays bounded.
const WAITING_MAX: usize = 64;

enum Job {
    Sync(Vec<File>),
    Close(Box<Closing>),
    /// Files, and the line of the index that says so.
    Remove(Vec<PathBuf>, String),
    Losses(Vec<u8>),
}

/// A file whose last byte is written.
pub(crate) struct Closing {
    pub(crate) file: File,
    pub(crate) part: PathBuf,
    pub(crate) path: PathBuf,
    /// Its line of the index, with the line's end.
    pub(crate) line: String,
    /// Files to be removed.
    pub(crate) remove: Vec<PathBuf>,
}

/// The thread and the way to it.
pub(crate) struct Archivist {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<Error>>>,
    is_syncing: Arc<AtomicBool>,
}

struct Worker {
    folder: PathBuf,
    index: File,
    index_bytes: u64,
    /// Lines that found no room on the disk.
    unlisted: String,
    forces: bool,
    failure: Arc<Mutex<Option<Error>>>,
    is_syncing: Arc<AtomicBool>,
}

impl Archivist {
    /// Starts the thread. `forces`: files are synced before they get their names.
    pub(crate) fn start(folder: &Path, forces: bool) -> Result<Self, Error> {
        let path = folder.join(INDEX);
        let index = File::options().create(true).append(true).open(&path);
        let index = index.map_err(|error| Error::io(path.display(), error))?;
        let failure = Arc::new(Mutex::new(None));
        let is_syncing = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            folder: folder.to_owned(),
            index_bytes: index.metadata().map_err(|error| Error::io(path.display(), error))?.len(),
            index,
            unlisted: String::new(),
            forces,
            failure: Arc::clone(&failure),
            is_syncing: Arc::clone(&is_syncing),
        };
        let (jobs, received) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("archivist".to_owned()).spawn(move || worker.run(&received));
        let thread = thread.map_err(|error| Error::io("cannot start a thread", error))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), failure, is_syncing })
    }

    /// True while files of the last round are still being forced to the disk.
    pub(crate) fn is_syncing(&self) -> bool {
        self.is_syncing.load(Ordering::Acquire)
    }

    /// Has these files forced to the disk.
    pub(crate) fn sync(&self, files: Vec<File>) {
        self.is_syncing.store(true, Ordering::Release);
        self.send(Job::Sync(files));
    }

    /// Has a file closed.
    pub(crate) fn close(&self, closing: Closing) {
        self.send(Job::Close(Box::new(closing)));
    }

    /// Has files removed.
    pub(crate) fn remove(&self, files: Vec<PathBuf>, line: String) {
        self.send(Job::Remove(files, line));
    }

    /// Has the losses written, in place of those written before.
    pub(crate) fn write_losses(&self, json: Vec<u8>) {
        self.send(Job::Losses(json));
    }

    /// Returns the failure since the last call, if any.
    pub(crate) fn failure(&self) -> Result<(), Error> {
        match self.failure.lock() {
            Ok(mut failure) => failure.take().map_or(Ok(()), Err),
            Err(_) => Err(Error::io("the archivist", io::ErrorKind::Other.into())),
        }
    }

    /// Ends the thread when all jobs are done.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            return Err(Error::io("the archivist", io::ErrorKind::Other.into()));
        }
        self.failure()
    }

    fn send(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // The thread ends before its queue only by a panic, which `finish` reports.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Archivist {
    fn drop(&mut self) {
        // There is nowhere to report an error here; the files are closed nevertheless.
        let _ = self.finish();
    }
}

impl Worker {
    fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            let is_sync = matches!(job, Job::Sync(_));
            let worked = self.work(job);
            self.note(worked);
            if is_sync {
                self.is_syncing.store(false, Ordering::Release);
            }
        }
        let listed = self.list("");
        self.note(listed);
    }

    /// Without room on the disk this is done later: a full disk ends nothing.
    fn or_later(done: Result<(), Error>) -> Result<(), Error> {
        done.or_else(|error| if is_full(&error) { Ok(()) } else { Err(error) })
    }

    fn note(&self, done: Result<(), Error>) {
        if let Err(error) = done
            && let Ok(mut failure) = self.failure.lock()
        {
            failure.get_or_insert(error);
        }
    }

    /// Appends a line to the index, and those that wait: all of them or none.
    fn list(&mut self, line: &str) -> Result<(), Error> {
        self.unlisted.push_str(line);
        if let Err(error) = self.index.write_all(self.unlisted.as_bytes()) {
            let _ = self.index.set_len(self.index_bytes);
            return Err(Error::io(INDEX, error));
        }
        self.index_bytes += self.unlisted.len() as u64;
        self.unlisted.clear();
        Ok(())
    }

    fn work(&mut self, job: Job) -> Result<(), Error> {
        match job {
            Job::Sync(files) => {
                for file in files {
                    file.sync_data().map_err(|error| Error::io("cannot sync files to disk", error))?;
                }
                Ok(())
            }
            Job::Close(closing) => self.close(*closing),
            Job::Remove(files, line) => {
                remove_all(&files)?;
                Self::or_later(self.list(&line))
            }
            Job::Losses(json) => {
                let path = self.folder.join(LOSSES);
                // They are written again soon.
                Self::or_later(replace(&path, &json).map_err(|error| Error::io(path.display(), error)))
            }
        }
    }

    fn close(&mut self, closing: Closing) -> Result<(), Error> {
        let Closing { file, part, path, line, remove } = closing;
        let failed = |error| Error::io(path.display(), error);
        if self.forces {
            file.sync_all().map_err(failed)?;
        }
        drop(file);
        // A link fails where the name is taken, so that nothing is replaced; not every file system has links.
        match fs::hard_link(&part, &path) {
            Ok(()) => fs::remove_file(&part),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            Err(_) => fs::rename(&part, &path),
        }
        .map_err(failed)?;
        Self::or_later(self.list(&line))?;
        remove_all(&remove)?;
        if self.forces {
            // The new name is part of the folder.
            File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        }
        Ok(())
    }
}

fn remove_all(files: &[PathBuf]) -> Result<(), Error> {
    for old in files {
        match fs::remove_file(old) {
            // Somebody took it away already.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => done.map_err(|error| Error::io(old.display(), error))?,
        }
    }
    Ok(())
}

/// Writes a file that appears complete or not at all.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = path.with_extension("json.part");
    fs::write(&part, bytes)?;
    fs::rename(&part, path)
}
