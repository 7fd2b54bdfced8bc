//! What is mapped into a program while it runs, and into the programs that it starts: `/proc/PID/maps` again and again.
//!
//! Nothing is done to the program. Ptrace could stop it at its end, but it takes the place of debuggers and leak
//! checkers, and delays every signal. So the maps are read often at first, and then whenever a twentieth of the time has
//! passed, up to 20 ms: a library that was open for longer than that is seen.

mod loaded;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anytrace_core::InputOptions;
use anytrace_symbols::{Maps, MapsLine};

/// How long the maps are left alone: between these, and a share of the time since the program began.
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(20);
const SHARE: u32 = 20;

/// After some seconds reading may take this part of the time: programs with many mappings are read more rarely.
const COST: u32 = 100;

/// Most processes at a time, most mappings of a program and most bytes of its maps that are kept.
const PROCESSES_MAX: usize = 1000;
/// Most processes that have been there, and most programs that one has been.
const PROCESSES_KEPT_MAX: usize = 10_000;
const PROGRAMS_MAX: usize = 100;
const LINES_MAX: usize = 20_000;
const MAPS_BYTES_MAX: u64 = 64 << 20;

/// Reads the maps of a process and of those that it starts until it is asked for them.
pub(crate) struct Watch {
    stop: Sender<()>,
    thread: Option<JoinHandle<Seen>>,
}

impl Watch {
    /// Begins with a process that is running.
    pub(crate) fn start(process: u32) -> Self {
        let (stop, stopped) = mpsc::channel();
        let began = Instant::now();
        let mut seen = Seen::default();
        seen.processes.insert(process, Vec::new());
        seen.live.push(process);
        // Before anything else: it may be over soon.
        seen.look();
        let thread = std::thread::Builder::new().name("maps".to_owned()).spawn(move || {
            let mut pause = PAUSE_MIN;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
                let before = Instant::now();
                seen.look();
                let (share, cost) = (began.elapsed() / SHARE, before.elapsed() * COST);
                pause = share.clamp(PAUSE_MIN, PAUSE_MAX.max(cost));
            }
            seen
        });
        Self { stop, thread: thread.ok() }
    }

    /// Ends, and gives what was seen.
    pub(crate) fn finish(mut self) -> Seen {
        // It may have ended by itself.
        let _ = self.stop.send(());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// By process: the programs that it has been, one after the other.
    processes: BTreeMap<u32, Vec<Program>>,
    /// Those that are still there. A number that another process gets later is not looked at again.
    live: Vec<u32>,
}

/// The mappings of a program.
#[derive(Debug, Default, Clone)]
pub(crate) struct Program {
    /// Its file, and where that begins: executing another program changes one of them.
    file: (PathBuf, u64),
    /// What it was called: the file's name, or that of a link to it.
    called: String,
    /// The kernel's lines about files with code, in the order in which they were first seen.
    lines: Vec<String>,
    known: BTreeSet<String>,
    /// Those files that the dynamic linker has listed, in its order; those that it unloaded stay.
    listed: Vec<PathBuf>,
    /// All of those files, in the order in which they were first seen; the lowest address last, as the kernel places
    /// them.
    seen: Vec<PathBuf>,
    /// Their build ids at that time: a file may be built anew while the program runs.
    build_ids: BTreeMap<PathBuf, Vec<u8>>,
}

impl Seen {
    /// Reads the maps of all processes that are there, and adds those that they have started.
    fn look(&mut self) {
        let mut next = std::mem::take(&mut self.live);
        while let Some(process) = next.pop() {
            // What has ended, and was waited for, is not there.
            if !Path::new(&format!("/proc/{process}")).exists() {
                continue;
            }
            if let Some(programs) = self.processes.get_mut(&process) {
                look_at(process, programs);
            }
            self.live.push(process);
            for child in children(process) {
                let has_room =
                    self.live.len() + next.len() < PROCESSES_MAX && self.processes.len() < PROCESSES_KEPT_MAX;
                if has_room && !self.processes.contains_key(&child) {
                    self.processes.insert(child, Vec::new());
                    next.push(child);
                }
            }
        }
    }

    /// The program that wrote a trace: the one of a process that has the name; of an unknown process, any with that
    /// name. None where it was over before it was seen.
    pub(crate) fn program(&self, process: Option<u32>, name: &str) -> Option<(u32, &Program)> {
        let named = |program: &&Program| {
            program.called == name || program.file.0.file_name().is_some_and(|file| file.to_string_lossy() == name)
        };
        let own = process.and_then(|process| Some((process, self.processes.get(&process)?)));
        if let Some((process, programs)) = own.filter(|(_, programs)| !programs.is_empty()) {
            return programs.iter().rev().find(named).map(|program| (process, program));
        }
        let mut all = self.processes.iter().flat_map(|(process, all)| all.iter().map(|one| (*process, one)));
        all.find(|(_, program)| named(program))
    }
}

impl Program {
    fn new(file: (PathBuf, u64), called: String) -> Self {
        let mut program = Self { called, ..Self::default() };
        program.see(&file.0);
        Self { file, ..program }
    }

    fn see(&mut self, path: &Path) {
        self.seen.push(path.to_owned());
        self.build_ids.insert(path.to_owned(), anytrace_symbols::build_id(path).unwrap_or_default());
    }

    /// Its objects, with the build ids that they had when they were first seen, and numbered by `number`; and their text.
    pub(crate) fn to_text(&self, process: u32, number: impl FnOnce(&mut Maps)) -> (Maps, String) {
        // What was mapped and is not in the linker's list was opened when the process ended: others before it may not have
        // been seen.
        let linked = linked(&self.file.0);
        let is_sure = |path: &&PathBuf| self.listed.is_empty() || **path == self.file.0 || linked.contains(path);
        let others = self.seen.iter().filter(|path| !self.listed.contains(path));
        let (others, unsure): (Vec<&PathBuf>, Vec<&PathBuf>) = others.partition(is_sure);
        let mut files: Vec<PathBuf> = self.listed.iter().chain(others).cloned().collect();
        // It may have been over before all that it was linked with was there.
        for library in linked {
            if !files.iter().any(|file| file.file_name() == library.file_name()) {
                files.push(library);
            }
        }
        let mut maps = Maps::of_files(files.into_iter());
        let mut unnumbered = Maps::of_files(unsure.into_iter().cloned()).objects;
        for object in maps.objects.iter_mut().chain(&mut unnumbered) {
            if let Some(id) = self.build_ids.get(&object.path) {
                object.build_id.clone_from(id);
            }
        }
        maps.is_ordered = !self.listed.is_empty() || maps.objects.len() < 2;
        number(&mut maps);
        maps.objects.append(&mut unnumbered);
        let text = maps.to_text(Some(process), &self.lines);
        (maps, text)
    }

    /// Adds mappings of files with code, in the order of the dynamic linker's list. False where that has an object that is
    /// not mapped: the mappings are older than it.
    fn add(&mut self, mapped: &[Mapped<'_>], list: impl FnOnce() -> Vec<u64>, is_mapped: impl Fn(u64) -> bool) -> bool {
        for (_, _, text) in mapped {
            if self.lines.len() < LINES_MAX && self.known.insert((*text).to_owned()) {
                self.lines.push((*text).to_owned());
            }
        }
        let is_new = |path: &PathBuf| !self.listed.contains(path);
        if !mapped.iter().any(|(_, path, _)| is_new(path)) {
            return true;
        }
        for (_, path, _) in mapped.iter().rev() {
            if self.seen.len() < LINES_MAX && !self.seen.contains(path) {
                self.see(path);
            }
        }
        for address in list() {
            let at = mapped.iter().find(|(line, _, _)| (line.start..line.end).contains(&address));
            match at {
                Some((_, path, _)) if self.listed.contains(path) => {}
                Some((_, path, _)) => self.listed.push(path.clone()),
                // The kernel's own object has no file.
                None if is_mapped(address) => {}
                None => return false,
            }
        }
        true
    }
}

/// The libraries that a program was linked with, as far as they are found.
pub(crate) fn linked(program: &Path) -> Vec<PathBuf> {
    let found = anytrace_symbols::libraries(program, InputOptions::default()).unwrap_or_default();
    found.into_iter().filter_map(|library| fs::canonicalize(library).ok()).collect()
}

/// A mapping of a file with code: where it is, the file, and the kernel's line.
type Mapped<'a> = (MapsLine<'a>, PathBuf, &'a str);

/// Times that the maps of a process are read in one look, at most: it may open libraries meanwhile.
const READS_MAX: usize = 4;

/// Reads the maps of a process.
fn look_at(process: u32, programs: &mut Vec<Program>) {
    let _ = (0..READS_MAX).any(|_| is_read(process, programs));
}

/// Reads them once; false where they were old already.
fn is_read(process: u32, programs: &mut Vec<Program>) -> bool {
    let Some(text) = read(&PathBuf::from(format!("/proc/{process}/maps"))) else { return true };
    let lines = text.lines().filter_map(|line| Some((MapsLine::parse(line.as_bytes())?, line)));
    let lines: Vec<(MapsLine<'_>, &str)> = lines.collect();
    let files = lines.iter().filter_map(|(line, text)| Some((*line, line.file()?, *text)));
    let mut mapped: Vec<Mapped<'_>> = files.collect();
    let code: BTreeSet<PathBuf> = mapped.iter().filter_map(|(line, _, _)| line.code()).collect();
    mapped.retain(|(_, path, _)| code.contains(path));
    let own = fs::read_link(format!("/proc/{process}/exe")).ok();
    let own = own.and_then(|own| mapped.iter().find(|(_, path, _)| *path == own)).or(mapped.first());
    // A process that ends has none.
    let Some(file) = own.map(|(line, path, _)| (path.clone(), line.start)) else { return true };
    if programs.last().is_none_or(|last| last.file != file) && programs.len() < PROGRAMS_MAX {
        programs.push(Program::new(file.clone(), called(process)));
    }
    let Some(program) = programs.last_mut().filter(|last| last.file == file) else { return true };
    let is_mapped = |address| lines.iter().any(|(line, _)| (line.start..line.end).contains(&address));
    program.add(&mapped, || loaded::list(process).unwrap_or_default(), is_mapped)
}

/// What a process was called when it began, without the folder: what the recorder names its file for.
fn called(process: u32) -> String {
    let line = read(&PathBuf::from(format!("/proc/{process}/cmdline"))).unwrap_or_default();
    let first = line.split('\0').next().unwrap_or_default();
    first.rsplit('/').next().unwrap_or_default().to_owned()
}

/// The processes that a process has started and that are there.
fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| read(&thread.path().join("children")));
    lists.flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
}

/// A file of the kernel's, as text.
fn read(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MAPS_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_was_opened_while_the_maps_were_read_gets_no_wrong_number() {
        let line = |start: u64, name: &str| format!("{start:x}-{:x} r-xp 00000000 fe:00 1 {name}", start + 0x1000);
        let lines = [line(0x1000, "/none/program"), line(0x2000, "/none/base.so"), line(0x9000, "/none/ant.so")];
        let mapped = |lines: &[String]| -> Vec<(PathBuf, String)> {
            lines.iter().map(|text| (PathBuf::from(text.rsplit(' ').next().unwrap()), text.clone())).collect()
        };
        let add = |program: &mut Program, lines: &[String], list: &[u64]| {
            let files = mapped(lines);
            let mapped: Vec<Mapped<'_>> = files
                .iter()
                .map(|(path, text)| (MapsLine::parse(text.as_bytes()).unwrap(), path.clone(), text.as_str()))
                .collect();
            program.add(&mapped, || list.to_vec(), |address| address == 0x7000)
        };
        let number = |maps: &mut Maps| {
            maps.objects.iter_mut().zip(0..).for_each(|(object, number)| object.number = Some(number));
        };
        let numbers = |program: &Program| -> Vec<(String, Option<u32>)> {
            let (maps, text) = program.to_text(1, number);
            assert_eq!(Maps::parse("m", text.as_bytes()), Some(maps.clone()));
            let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
            maps.objects.iter().map(|object| (name(&object.path), object.number)).collect()
        };
        let named = |all: &[(&str, Option<u32>)]| -> Vec<(String, Option<u32>)> {
            all.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
        };
        let mut program = Program::new((PathBuf::from("/none/program"), 0x1000), "program".to_owned());
        // The linker's list, read after the maps, has a library between the two; 0x7000 is the kernel's.
        assert!(!add(&mut program, &lines, &[0x1800, 0x7000, 0x2800, 0x5800, 0x9800]));
        assert_eq!(numbers(&program), named(&[("program", Some(0)), ("base", Some(1)), ("ant", None)]));
        // The same where the process had ended before its list was read.
        let mut program = Program::new((PathBuf::from("/none/program"), 0x1000), "program".to_owned());
        assert!(add(&mut program, &lines[..2], &[0x1800, 0x2800]) && add(&mut program, &lines, &[]));
        assert_eq!(numbers(&program), named(&[("program", Some(0)), ("base", Some(1)), ("ant", None)]));
        // Read once more, all is there.
        let all = [&lines[..], &[line(0x5000, "/none/zoo.so")]].concat();
        assert!(add(&mut program, &all, &[0x1800, 0x7000, 0x2800, 0x5800, 0x9800]));
        let wanted = [("program", Some(0)), ("base", Some(1)), ("zoo", Some(2)), ("ant", Some(3))];
        assert_eq!(numbers(&program), named(&wanted));
    }

    #[test]
    fn the_maps_of_a_program_and_of_what_it_starts_are_seen() {
        use std::io::{Read, Write};
        // The shell waits for what it starts, and then becomes another program.
        let script = "sleep 0.3; exec cat";
        let mut shell =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let id = shell.id();
        let watch = Watch::start(id);
        // When it comes back `cat` is running; then it has to be looked at.
        shell.stdin.as_ref().unwrap().write_all(b"x").unwrap();
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        drop(shell.stdin.take());
        shell.wait().unwrap();
        let seen = watch.finish();
        let names = |process: &u32| {
            let name = |program: &Program| program.file.0.file_name().unwrap().to_string_lossy().into_owned();
            seen.processes[process].iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(names(&id).last().unwrap(), "cat", "{seen:?}");
        assert!(names(&id).len() >= 2, "{seen:?}");
        assert!(seen.processes.keys().any(|process| names(process).contains(&"sleep".to_owned())), "{seen:?}");
        let (process, cat) = seen.program(Some(id), "cat").unwrap();
        let (maps, text) = cat.to_text(process, |_| ());
        assert!(process == id && Maps::parse("m", text.as_bytes()) == Some(maps.clone()), "{text}");
        assert!(maps.is_ordered && maps.objects.iter().any(|one| one.path.ends_with("libc.so.6")), "{text}");
        assert_eq!(seen.program(None, "sleep").unwrap().1.file.0.file_name().unwrap(), "sleep");
        assert!(seen.program(Some(id), "other").is_none() && seen.program(None, "other").is_none());
    }

    #[test]
    fn a_program_that_is_gone_has_no_maps() {
        let mut gone = Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let seen = Watch::start(gone.id()).finish();
        assert!(seen.program(Some(gone.id()), "true").is_none(), "{seen:?}");
    }
}
