//! Recording by XRay: runs a program with the recorder that its compiler has put into it, and keeps its maps.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anytrace_core::text::printable;
use anytrace_symbols::Maps;
use anytrace_xray::tools::map;

use super::super::recording::{Seen, Watch, code, leave_interrupts, linked, look_at_output, which};
use super::{Mode, RecordArguments};
use crate::failure::Failure;
use crate::output::Output;
use crate::shell::quoted;
use crate::units::grouped;
use crate::{Verdict, paint};

/// Runs a program with the recorder that its compiler has put into it. XRay names its file itself. Its basic mode alone
/// needs no help from the program.
pub(super) fn record(output: &Path, options: &RecordArguments) -> Result<Verdict, Failure> {
    let is_file = look_at_output(output, options.force)?;
    if !options.force && is_there(&maps_of(output)) {
        return Err(Failure::usage(format!("{} exists; use --force to replace it", maps_of(output).display())));
    }
    if !is_file {
        return Err(Failure::usage(format!("{}: XRay writes files only", output.display())));
    }
    let [program, arguments @ ..] = options.command.as_slice() else {
        return Err(Failure::usage("no program to record"));
    };
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |error: std::io::Error| Failure::usage(format!("cannot write to {}: {error}", folder.display()));
    let work = tempfile::Builder::new().prefix(".anytrace-xray-").tempdir_in(folder).map_err(failed)?;
    let base = std::path::absolute(work.path()).map_err(failed)?.join(LOG);
    let (mode, variable, words) = match options.mode {
        Mode::Basic => ("basic mode, which any program can be recorded with", "XRAY_BASIC_OPTIONS", BASIC),
        Mode::Fdr => ("flight recorder, where the program switches it on", "XRAY_FDR_OPTIONS", ""),
    };
    let own = settings(options);
    if !options.quiet {
        paint::complain("note", format!("by XRay's {mode}: {own}"));
    }
    let log = format!("{words}verbosity=0 xray_logfile_base={}", base.display());
    leave_interrupts();
    let mut command = Command::new(program);
    command.args(arguments).env("XRAY_OPTIONS", after(&log, "XRAY_OPTIONS", Order::OursLast));
    // What the user has set is meant.
    command.env(variable, after(&own, variable, Order::OursFirst));
    let cannot_run = |error: std::io::Error| {
        Failure::usage(format!("cannot run {}: {error}", printable(&program.display().to_string())))
    };
    let mut child = command.spawn().map_err(cannot_run)?;
    let watch = Watch::start(child.id());
    let status = child.wait().map_err(cannot_run)?;
    let seen = watch.finish();
    let logs = fs::read_dir(work.path()).map_err(failed)?.flatten().map(|entry| Log::new(entry.path()));
    let mut made: Vec<Log> = logs.collect();
    // One process, one file; the others are of processes that it started, or of what it became.
    let file = which(program);
    made.sort_by_cached_key(|log| (!log.is_of(&file), log.process != Some(child.id()), log.path.clone()));
    for (log, place) in made.iter().zip(places(output, options.force)) {
        if let Err(error) = fs::rename(&log.path, &place) {
            let kept = work.keep();
            let (place, kept) = (place.display(), kept.display());
            return Err(Failure::usage(format!("cannot write {place}: {error}; what was recorded is in {kept}")));
        }
        let maps = keep_maps(&place, log.maps(&seen, &file));
        if !options.quiet {
            explain(&place, maps.as_deref(), log.is_of(&file).then_some(program));
        }
    }
    if let Some(signal) = status.signal() {
        let missing = match options.mode {
            Mode::Basic => {
                "what its threads had not written, up to 1,024 records of each, is missing; if it switched the flight \
                 recorder on itself, all that this contained"
            }
            Mode::Fdr => "what the flight recorder contained is missing: it is written when the program flushes it",
        };
        paint::complain("note", format!("the program was ended by signal {signal}: {missing}"));
    }
    if made.is_empty() {
        return Err(nothing_recorded(output, options.mode));
    }
    Ok(Verdict::Program(code(status)))
}

/// Where traces go: to the output, and those that follow to the next free numbers. Another recording may have taken the
/// output meanwhile.
fn places(output: &Path, force: bool) -> impl Iterator<Item = PathBuf> {
    let numbered = |number: u32| {
        let mut name = output.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let is_free = |path: &PathBuf| !is_there(path) && !is_there(&maps_of(path));
    let first = Some(output.to_owned()).filter(|path| force || is_free(path));
    first.into_iter().chain((1..).map(numbered).filter(is_free))
}

fn nothing_recorded(output: &Path, mode: Mode) -> Failure {
    let why = match mode {
        Mode::Basic => "the program wrote no log: it was not compiled with -fxray-instrument, or no thread ended",
        Mode::Fdr => {
            "the program wrote no log: for --mode fdr it calls __xray_log_select_mode(\"xray-fdr\"), \
             __xray_log_init_mode and __xray_patch, and at its end __xray_log_finalize and __xray_log_flushLog"
        }
    };
    Failure::usage(format!("{}: nothing was recorded: {why}", output.display()))
}

/// Where the maps of a trace are kept: every verb looks for them there.
fn maps_of(trace: &Path) -> PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(".maps");
    PathBuf::from(name)
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// A file that the recorder has written.
struct Log {
    path: PathBuf,
    /// The program that wrote it: the recorder names its file for it, and adds letters.
    name: String,
    process: Option<u32>,
}

impl Log {
    fn new(path: PathBuf) -> Self {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = file.strip_prefix(LOG).and_then(|name| name.rsplit_once('.')).map_or("", |(name, _)| name);
        Self { name: name.to_owned(), process: map::recorded_process(&path), path }
    }

    /// Whether it is of a program, which may be called by a link.
    fn is_of(&self, program: &Path) -> bool {
        let is_name = |path: &Path| path.file_name().is_some_and(|file| *file == *self.name);
        is_name(program) || fs::canonicalize(program).is_ok_and(|file| is_name(&file))
    }

    /// The maps of the process that wrote it, and their text. What was over before it was seen has what it was linked
    /// with.
    fn maps(&self, seen: &Seen, program: &Path) -> Option<(Maps, String)> {
        if let Some((process, program)) = seen.program(self.process, &self.name) {
            return Some(program.to_text(process, map::number));
        }
        let file = fs::canonicalize(program).ok().filter(|_| self.is_of(program))?;
        let libraries = linked(&file);
        let mut maps = Maps::of_files(std::iter::once(file).chain(libraries));
        map::number(&mut maps);
        let text = maps.to_text(self.process, &[]);
        Some((maps, text))
    }
}

/// Keeps maps beside a trace, or not at all; returns what they say, in words. Those of an earlier trace go: they would
/// name the functions of another run.
fn keep_maps(trace: &Path, maps: Option<(Maps, String)>) -> Option<String> {
    let place = maps_of(trace);
    let Some((maps, text)) = maps else {
        // It need not be there.
        let _ = fs::remove_file(&place);
        return None;
    };
    let write = || -> Result<Verdict, Failure> {
        let mut out = Output::create(&place, true)?;
        out.write_all(text.as_bytes())?;
        out.commit(Verdict::Fine)
    };
    if write().is_err() {
        let _ = fs::remove_file(&place);
        paint::complain("note", format!("its maps cannot be kept in {}", place.display()));
        return None;
    }
    let libraries = maps.objects.iter().filter(|object| object.number.is_some_and(|number| number > 0)).count();
    let libraries = match libraries {
        0 => String::new(),
        1 => " and 1 instrumented library".to_owned(),
        many => format!(" and {many} instrumented libraries"),
    };
    Some(format!("{}: the program{libraries}", place.display()))
}

/// Says what was recorded, and what to do next.
fn explain(trace: &Path, maps: Option<&str>, program: Option<&OsString>) {
    let bytes = fs::metadata(trace).map_or(0, |metadata| metadata.len());
    paint::complain("note", format!("{}: {} bytes", trace.display(), grouped(bytes.into())));
    let named = match program.filter(|_| maps.is_none()) {
        Some(program) => format!("-m {} ", quoted(which(program))),
        None => String::new(),
    };
    if let Some(maps) = maps {
        paint::complain("note", format!("{maps}, for names"));
    }
    // A number is no extension: the next trace has another one.
    let is_number = trace.extension().is_some_and(|extension| extension.to_string_lossy().parse::<u32>().is_ok());
    let mut picture = trace.as_os_str().to_owned();
    picture.push(".svg");
    let picture = if is_number { PathBuf::from(picture) } else { trace.with_extension("svg") };
    paint::complain("note", format!("next: anytrace stats {named}{}", quoted(trace)));
    paint::complain("note", format!("next: anytrace flame {named}-o {} {}", quoted(picture), quoted(trace)));
}

/// What the recorder's files are called, before the name of the program.
const LOG: &str = "log.";

/// Calls in each other: each takes 24 bytes of address space in each thread.
const DEPTH_MAX: u32 = 1 << 16;

/// What makes XRay's basic mode begin with the program.
const BASIC: &str = "patch_premain=true xray_mode=xray-basic ";

/// How the recorder is to be. By its own settings it leaves out calls shorter than 5 us and, in basic mode, those with 64
/// around them; the flight recorder has room for 1.6 MB, and then for what is newest. Nothing in the trace says so.
fn settings(options: &RecordArguments) -> String {
    let shortest = options.min_duration.unwrap_or(0);
    match options.mode {
        Mode::Basic => {
            let deepest = options.max_depth.unwrap_or(DEPTH_MAX);
            format!("func_duration_threshold_us={shortest} max_stack_depth={deepest}")
        }
        // 512 MiB in all, of which a program touches what it fills.
        Mode::Fdr => format!("func_duration_threshold_us={shortest} buffer_size=65536 buffer_max=8192"),
    }
}

/// Which of two settings of the same option counts: the last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    OursFirst,
    OursLast,
}

/// Our settings beside those that a variable has already.
fn after(ours: &str, variable: &str, order: Order) -> OsString {
    let mut all = OsString::from(ours);
    if let Some(theirs) = std::env::var_os(variable).filter(|theirs| !theirs.is_empty()) {
        let (first, last) = match order {
            Order::OursFirst => (all, theirs),
            Order::OursLast => (theirs, all),
        };
        all = first;
        all.push(" ");
        all.push(last);
    }
    all
}
