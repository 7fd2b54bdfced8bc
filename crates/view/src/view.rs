//! All that is shown: files, names, and how far reading is.

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use anytrace_core::{Diagnostic, Error, Format, Sink};

use crate::axis::Axis;
use crate::names::Names;
use crate::shelf::Shelf;
use crate::strip::Strip;
use crate::{Options, Source};

/// Diagnostics of a file that are shown; the others are counted.
const DAMAGE_MAX: usize = 1000;

/// What the server shows.
pub(crate) struct View {
    /// What was asked for.
    pub(crate) options: Options,
    /// The traces.
    pub(crate) files: Files,
    /// The names of all of them.
    pub(crate) names: Names,
    /// Grows with each change.
    version: AtomicU64,
    stop: Arc<AtomicBool>,
    /// Whoever computes an answer that needs much memory.
    pub(crate) turn: Mutex<()>,
}

/// Most files that are shown of a collection that goes on.
pub(crate) const FILES_MAX: usize = 1024;

/// The traces; more may come while they are shown.
pub(crate) struct Files(Box<[OnceLock<File>]>);

impl Files {
    fn new(files: Vec<File>, may_grow: bool) -> Self {
        let mut places: Vec<_> = files.into_iter().map(OnceLock::from).collect();
        if may_grow {
            places.resize_with(FILES_MAX, OnceLock::new);
        }
        Self(places.into())
    }

    /// Adds a trace; returns its number, where there is room.
    pub(crate) fn push(&self, mut file: File) -> Option<usize> {
        for (number, place) in self.0.iter().enumerate() {
            match place.set(file) {
                Ok(()) => return Some(number),
                Err(taken) => file = taken,
            }
        }
        None
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &File> {
        self.0.iter().map_while(OnceLock::get)
    }

    pub(crate) fn get(&self, number: usize) -> Option<&File> {
        self.0.get(number)?.get()
    }

    pub(crate) fn first(&self) -> Option<&File> {
        self.get(0)
    }

    pub(crate) fn len(&self) -> usize {
        self.iter().count()
    }
}

/// One trace.
pub(crate) struct File {
    /// What was asked for.
    pub(crate) source: Source,
    /// It is of a collection that goes on, which may remove it.
    is_collected: bool,
    /// Its rows. A file that is read again gets others when they are complete.
    shelf: RwLock<Arc<Shelf>>,
    /// What its index has of it, until all is read.
    preview: RwLock<Option<Arc<Shelf>>>,
    state: Mutex<State>,
    /// Its frames as pictures.
    pub(crate) strip: Arc<Strip>,
}

/// How far reading is, and what was found.
#[derive(Clone, Default)]
pub(crate) struct State {
    /// The format, once it is recognized.
    pub(crate) format: Option<&'static dyn Format>,
    /// Length of the file.
    pub(crate) bytes: Option<u64>,
    /// Bytes read so far.
    pub(crate) progress: Option<Arc<AtomicU64>>,
    /// All was read once.
    pub(crate) is_complete: bool,
    /// What ended the reading.
    pub(crate) error: Option<String>,
    /// The first diagnostics.
    pub(crate) damage: Vec<Damage>,
    /// How many there are.
    pub(crate) damage_count: u64,
}

/// A diagnostic.
#[derive(Clone)]
pub(crate) struct Damage {
    /// Its text.
    pub(crate) text: String,
    /// Number of the record.
    pub(crate) record: Option<u64>,
    /// Number of the record at which reading resumed.
    pub(crate) resumed_at: Option<u64>,
    /// The trace's own times before and behind it, once they are known.
    pub(crate) start: Option<u64>,
    pub(crate) end: Option<u64>,
}

impl View {
    pub(crate) fn new(options: Options) -> Self {
        let files = Files::new(options.files.iter().cloned().map(File::new).collect(), options.collection.is_some());
        Self {
            options,
            files,
            names: Names::default(),
            version: AtomicU64::new(1),
            stop: Arc::default(),
            turn: Mutex::new(()),
        }
    }

    /// Ends all reading.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// True when all reading is to end.
    pub(crate) fn stop_flag(&self) -> &AtomicBool {
        &self.stop
    }

    /// The same flag, for threads that may outlive the view.
    pub(crate) fn stopper(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// Grows with each change of what is shown.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// Something changed.
    pub(crate) fn changed(&self) {
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    /// True when all files were read, or failed.
    pub(crate) fn is_complete(&self) -> bool {
        self.files.iter().all(|file| file.state().is_complete)
    }

    /// How the times of each file lie on the common axis.
    pub(crate) fn axes(&self) -> Vec<Axis> {
        let sources: Vec<_> = self.files.iter().map(|file| file.drawn().read().source).collect();
        crate::axis::axes(&sources)
    }

    /// How many files have room in the numbers of tracks.
    fn stride(&self) -> usize {
        if self.options.collection.is_some() { FILES_MAX } else { self.options.files.len().max(1) }
    }

    /// The number of a track among those of all files.
    pub(crate) fn track_id(&self, file: usize, track: usize) -> u64 {
        (track * self.stride() + file) as u64
    }

    /// The file and the track of a number.
    pub(crate) fn track_of(&self, id: u64) -> Option<(usize, usize)> {
        let count = self.stride() as u64;
        Some((usize::try_from(id % count).ok()?, usize::try_from(id / count).ok()?))
    }
}

/// What the name of a file ends with while the collector still writes to it.
const UNFINISHED: &str = "part";

impl File {
    /// A trace that is not read yet.
    pub(crate) fn new(source: Source) -> Self {
        let (shelf, preview, state) = (RwLock::default(), RwLock::default(), Mutex::new(State::default()));
        Self { source, is_collected: false, shelf, preview, state, strip: Arc::default() }
    }

    /// A trace of a collection that goes on.
    pub(crate) fn collected(source: Source) -> Self {
        Self { is_collected: true, ..Self::new(source) }
    }

    /// True for a file that nobody writes to any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_collected && self.path().extension().is_none_or(|extension| extension != UNFINISHED)
    }

    /// Where it is now: the collector gives a file its name when it is complete.
    pub(crate) fn path(&self) -> Cow<'_, Path> {
        let asked = &self.source.path;
        if self.is_collected && asked.extension().is_some_and(|extension| extension == UNFINISHED) {
            let complete = asked.with_extension("");
            if complete.is_file() {
                return Cow::Owned(complete);
            }
        }
        Cow::Borrowed(asked)
    }

    /// What was asked for, where it is now.
    pub(crate) fn current(&self) -> Source {
        Source { path: self.path().into_owned(), ..self.source.clone() }
    }

    /// Pages, exports and SQL read a file again; a pipe has nothing more, and opening one may wait forever.
    pub(crate) fn can_be_read_again(&self) -> bool {
        // What a collector has removed is no pipe: pages say that it is gone.
        self.is_collected || self.path().is_file()
    }

    /// How far reading is.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its rows.
    pub(crate) fn shelf(&self) -> Arc<Shelf> {
        Arc::clone(&self.shelf.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The rows to draw: until all of it is read, those of its index.
    pub(crate) fn drawn(&self) -> Arc<Shelf> {
        let preview = self.preview.read().unwrap_or_else(PoisonError::into_inner).clone();
        preview.unwrap_or_else(|| self.shelf())
    }

    /// Shows what the index has, or no longer.
    pub(crate) fn set_preview(&self, preview: Option<Arc<Shelf>>) {
        *self.preview.write().unwrap_or_else(PoisonError::into_inner) = preview;
    }

    /// Replaces its rows.
    pub(crate) fn set_shelf(&self, shelf: Arc<Shelf>) {
        *self.shelf.write().unwrap_or_else(PoisonError::into_inner) = shelf;
    }

    /// The last part of its path, for people.
    pub(crate) fn title(&self) -> String {
        let path = self.path();
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    }
}

/// Takes the diagnostics of one reading.
#[derive(Default)]
pub(crate) struct Found {
    /// The first of them.
    pub(crate) damage: Vec<Damage>,
    /// How many.
    pub(crate) count: u64,
}

impl Sink for Found {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.count += 1;
        if self.damage.len() < DAMAGE_MAX {
            let (record, resumed_at) = (diagnostic.record, diagnostic.resumed_at);
            self.damage.push(Damage { text: diagnostic.to_string(), record, resumed_at, start: None, end: None });
        }
        Ok(())
    }
}
