//! The threads that read the traces.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use anytrace_core::index::{self, Choice, Lookup};
use anytrace_core::{Collect, Error, Format, Input, InputOptions, SpanOptions};
use anytrace_formats::{Recognized, by_name, recognize};

use crate::Source;
use crate::gather::gather;
use crate::live_bytes::LiveBytes;
use crate::outline;
use crate::places;
use crate::shelf::Shelf;
use crate::view::{Damage, File, Found, View};

/// How often a file that is followed is looked at.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_MAX: Duration = Duration::from_secs(10);

/// Starts a thread for each file. It ends with the view.
pub(crate) fn start(view: &Arc<View>) {
    (0..view.files.len()).for_each(|number| start_file(view, number));
    if let Some(folder) = view.options.collection.clone() {
        let view = Arc::clone(view);
        std::thread::spawn(move || watch(&view, &folder));
    }
}

fn start_file(view: &Arc<View>, number: usize) {
    let view = Arc::clone(view);
    std::thread::spawn(move || read_file(&view, number));
}

/// Adds the files of a collector as they appear, by their names: those it still writes to, and those that were there.
fn watch(view: &Arc<View>, folder: &Path) {
    let mut known = BTreeSet::new();
    while !view.stop_flag().load(Ordering::Relaxed) {
        for (name, path) in traces_of(folder) {
            if known.insert(name) {
                let source = Source { path, ..Source::default() };
                if let Some(number) = view.files.push(File::collected(source)) {
                    start_file(view, number);
                    view.changed();
                }
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// The traces in the folder of a collector: the name that a file has or will have, and where it is.
fn traces_of(folder: &Path) -> BTreeMap<PathBuf, PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let ends = |path: &Path, with: &str| path.extension().is_some_and(|extension| extension == with);
    let of = |path: PathBuf| {
        let name = if ends(&path, "part") { path.with_extension("") } else { path.clone() };
        ends(&name, "heph").then_some((name, path))
    };
    entries.filter_map(of).collect()
}

/// Reads a file, and again when it changes if it is followed.
fn read_file(view: &View, number: usize) {
    let Some(file) = view.files.get(number) else { return };
    let mut stamp = stamp(&file.path());
    let mut began = Instant::now();
    let mut is_closed = file.is_closed();
    read(view, file, &file.shelf());
    while !is_closed && view.options.follow && !view.stop_flag().load(Ordering::Relaxed) {
        // A trace that takes long to read is read more rarely: whoever writes it needs the processors too.
        std::thread::sleep(LOOK.max(began.elapsed() * 4).min(LOOK_MAX));
        let now = self::stamp(&file.path());
        if now == stamp && file.is_closed() {
            return;
        }
        if now == stamp || now.is_none() {
            continue;
        }
        stamp = now;
        // What was read before stays visible until all of it is read again.
        let shelf = Arc::new(Shelf::default());
        began = Instant::now();
        is_closed = file.is_closed();
        read(view, file, &shelf);
        file.set_shelf(shelf);
        view.changed();
    }
}

/// What changes with the content of a file.
fn stamp(path: &Path) -> Option<(u64, Option<SystemTime>)> {
    let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some((meta.len(), meta.modified().ok()))
}

/// Reads a file once and notes how that ended.
fn read(view: &View, file: &File, shelf: &Shelf) {
    let mut found = Found::default();
    let result = read_into(view, file, shelf, &mut found);
    // A file that is followed is read so often that reading twice would show.
    if !found.damage.is_empty() && file.can_be_read_again() && !view.options.follow {
        // What has no place is listed nevertheless.
        let _ = place(view, file, shelf, &mut found.damage);
    }
    let mut state = file.state();
    state.damage = found.damage;
    state.damage_count = found.count;
    state.error = result.err().map(|error| error.to_string());
    state.is_complete = true;
    drop(state);
    file.set_preview(None);
    view.changed();
}

/// Finds the times of damage.
fn place(view: &View, file: &File, shelf: &Shelf, damage: &mut [Damage]) -> Result<(), Error> {
    let unit = shelf.read().unit();
    let Some(opened) = open(&file.current())? else { return Ok(()) };
    places::find(damage, opened, &file.source.open, unit, view.stop_flag())
}

fn read_into(view: &View, file: &File, shelf: &Shelf, found: &mut Found) -> Result<(), Error> {
    let Some((format, input)) = open(&file.current())? else { return Ok(()) };
    let mut state = file.state();
    state.format = Some(format);
    state.bytes = input.file_bytes();
    state.progress = Some(input.progress());
    drop(state);
    view.changed();
    preview(view, file, format);
    let options = if format.has_spans() { span_options(view, file, format)? } else { SpanOptions::default() };
    let end = gather(format, input, &file.source.open, options, (shelf, &view.names, view.stop_flag()), found);
    shelf.write(|store| store.arrows.join());
    end?;
    if format.has_accesses() && file.can_be_read_again() {
        live_bytes(view, file, shelf)?;
    }
    Ok(())
}

/// Adds the line of the bytes in live regions. What is wrong with the trace was found before.
fn live_bytes(view: &View, file: &File, shelf: &Shelf) -> Result<(), Error> {
    let Some((format, input)) = open(&file.current())? else { return Ok(()) };
    let mut live = LiveBytes::new(view.stop_flag());
    // Where there is no room for more regions, the line ends.
    let _ = format.open(input, &file.source.open)?.accesses(&mut live, &mut Collect::default());
    if let Some(series) = live.finish() {
        shelf.write(|store| store.counters.push(series));
    }
    Ok(())
}

/// Shows what the index has of a trace until it is read. An index that does not fit is not used.
fn preview(view: &View, file: &File, format: &'static dyn Format) {
    let choice = &view.options.index;
    let place = match choice {
        Choice::None => return,
        Choice::Auto(folder) => index::path_of(&file.path(), folder.as_deref()),
        Choice::File(path) => path.clone(),
    };
    let is_read_again = file.state().is_complete;
    let is_whole = || matches!(index::is_whole(format, &file.path()), Ok(true));
    if is_read_again || !is_whole() || !matches!(index::find(&file.path(), format.name(), choice), Ok(Lookup::Found(_)))
    {
        return;
    }
    let Ok(bytes) = std::fs::read(place) else { return };
    let pyramid = index::pyramid(&bytes).ok().flatten();
    let Some(store) = pyramid.and_then(|pyramid| outline::decode(pyramid, format.name(), &view.names)) else { return };
    let shelf = Shelf::default();
    shelf.write(|empty| *empty = store);
    file.set_preview(Some(Arc::new(shelf)));
    view.changed();
}

/// The options for spans, with names from other files where some are given.
pub(crate) fn span_options(view: &View, file: &File, format: &dyn Format) -> Result<SpanOptions, Error> {
    let (sources, mangling) = (&view.options.symbols, view.options.mangling);
    let symbols = if format.has_accesses() { None } else { format.symbols_of(&file.path(), sources, mangling)? };
    Ok(SpanOptions { tail_chains: false, symbols, ..SpanOptions::default() })
}

/// Opens a trace; `None` where the file is empty.
///
/// # Errors
/// Where the file cannot be opened, or is no trace.
pub(crate) fn open(source: &Source) -> Result<Option<(&'static dyn Format, Input)>, Error> {
    let name = source.path.display();
    let input = Input::open(&source.path, InputOptions { no_map: source.no_map })?;
    if input.head().bytes.is_empty() {
        return Ok(None);
    }
    if let Some(wanted) = &source.format {
        let format = by_name(wanted).ok_or_else(|| Error::usage(format!("unknown format {wanted}")))?;
        return Ok(Some((format, format.completed(&source.path, input)?.0)));
    }
    match recognize(&input.head()) {
        Recognized::Empty => Ok(None),
        Recognized::Trace(format) => Ok(Some((format, format.completed(&source.path, input)?.0))),
        Recognized::Jsonl(format) => Err(Error::usage(format!(
            "{name}: these are {} records as JSON lines; `anytrace convert --to {}` makes a trace of them",
            format.title(),
            format.name()
        ))),
        Recognized::Ambiguous(names) => {
            Err(Error::usage(format!("{name}: could be {}; choose with --input-format", names.join(" or "))))
        }
        Recognized::Unknown => Err(Error::usage(format!("{name}: unknown format; --input-format overrides"))),
    }
}
