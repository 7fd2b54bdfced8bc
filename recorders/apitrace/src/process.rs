//! The process around the recorder: when the trace begins, and that it is whole whenever the process ends.
//!
//! The stream is flushed at frames, by a timer, at exit, and when a signal ends the process: what `SIGKILL` takes is less
//! than [`INTERVAL`] of it.

use std::ffi::{OsString, c_int};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Once, OnceLock};
use std::time::Duration;

use crate::lock::{self, Guard, Shared, lock, try_lock};
use crate::stream::Stream;
use crate::text::Text;
use crate::{thread, unknown};

/// Names the trace: the first for this recorder alone, where another one is loaded, too, and the second as for apitrace's.
const FILE: [&str; 2] = ["ANYTRACE_APITRACE_FILE", "TRACE_FILE"];

/// Names a file to which is appended what was recorded and what was not.
const REPORT: &str = "ANYTRACE_APITRACE_REPORT";

/// Nothing stays unwritten for longer.
const INTERVAL: Duration = Duration::from_millis(250);

/// A frame's end is written if nothing was for so long.
const FRAME: Duration = Duration::from_millis(50);

/// The report's path, read while the process is well.
static REPORT_PATH: OnceLock<Option<PathBuf>> = OnceLock::new();

static IS_OFF: AtomicBool = AtomicBool::new(false);

/// The process ends: each call is written at once.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// The process that has the trace.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Nothing is recorded any more, or not yet again.
pub(crate) fn is_off() -> bool {
    IS_OFF.load(Relaxed)
}

/// Begins the trace of this process.
pub(crate) fn open(shared: &mut Shared) {
    if shared.is_off {
        return;
    }
    REPORT_PATH.get_or_init(|| std::env::var_os(REPORT).map(PathBuf::from));
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_else(|_| PathBuf::from("program"));
    let named = FILE.into_iter().filter_map(std::env::var_os).find(|name| !name.is_empty());
    let wanted = named.unwrap_or_else(|| {
        let mut name = program.file_name().unwrap_or_default().to_owned();
        name.push(".trace");
        name
    });
    match create(wanted) {
        Ok((file, path)) => {
            use std::os::unix::ffi::OsStrExt;
            let recorder = concat!("anytrace ", env!("CARGO_PKG_VERSION"));
            let properties = [("process.name", program.as_os_str().as_bytes()), ("recorder", recorder.as_bytes())];
            shared.stream = Some(Stream::new(file, &properties));
            shared.path = Some(path);
            OWNER.store(std::process::id(), Relaxed);
            watch();
        }
        Err(error) => {
            complain(&format!("cannot write a trace: {error}; nothing is recorded"));
            if let Some(Some(place)) = REPORT_PATH.get() {
                let file = OpenOptions::new().append(true).open(place);
                let _ = file.and_then(|mut file| file.write_all(format!("failed\t{error}\n").as_bytes()));
            }
            stop(shared);
        }
    }
}

/// Creates the trace; another process may have the name already, and then this one's number is added.
fn create(wanted: OsString) -> std::io::Result<(std::fs::File, PathBuf)> {
    let open = |path: &PathBuf| OpenOptions::new().write(true).create_new(true).open(path);
    let mut path = PathBuf::from(&wanted);
    // A pipe or a device is written to as it is.
    if std::fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
        return Ok((OpenOptions::new().write(true).open(&path)?, path));
    }
    let mut tried = open(&path);
    for number in 0..1000 {
        if !tried.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists) {
            break;
        }
        let more = if number == 0 { String::new() } else { format!(".{number}") };
        let mut name = wanted.clone();
        name.push(format!(".{}{more}", std::process::id()));
        path = PathBuf::from(name);
        tried = open(&path);
    }
    let file = tried.map_err(|error| std::io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    // The program may change its folder.
    Ok((file, std::fs::canonicalize(&path).unwrap_or(path)))
}

/// Ends recording.
fn stop(shared: &mut Shared) {
    shared.stream = None;
    shared.is_off = true;
    IS_OFF.store(true, Relaxed);
}

/// A call is recorded.
pub(crate) fn after_call(shared: &mut Guard) {
    if IS_ENDING.load(Relaxed) {
        flush(shared);
    } else if shared.stream.as_ref().is_some_and(|stream| stream.failure.is_some()) {
        fail(shared);
    }
}

/// A frame is recorded.
pub(crate) fn after_frame(shared: &mut Guard) {
    let Some(stream) = &mut shared.stream else { return };
    stream.frames += 1;
    if stream.is_due(FRAME) {
        flush(shared);
    }
}

fn flush(shared: &mut Shared) {
    let Some(stream) = &mut shared.stream else { return };
    stream.flush();
    if stream.failure.is_some() {
        fail(shared);
    }
}

/// The trace cannot be written any more.
fn fail(shared: &mut Shared) {
    let failure = shared.stream.as_mut().and_then(|stream| stream.failure.take());
    let path = shared.path.clone().unwrap_or_default();
    if let Some(failure) = failure {
        complain(&format!("{}: {failure}; the trace ends here", path.display()));
        report(shared, Some(&failure));
    }
    stop(shared);
}

/// What goes to the program's standard error.
fn complain(text: &str) {
    // Who has closed it does not want to read.
    let _ = writeln!(std::io::stderr(), "anytrace: {text}");
}

/// Appends to the report, for the command that started the program, or to standard error. Nothing is allocated: the
/// process may be in any state.
fn report(shared: &mut Shared, failure: Option<&std::io::Error>) {
    let Shared { stream: Some(stream), path: Some(path), losses, text, .. } = shared else { return };
    let place = REPORT_PATH.get().and_then(Option::as_ref);
    text.clear();
    let unknown = |to: &mut Text, write: fn(&mut Text, &str, &str, u64)| {
        unknown::each_called(|name, count| write(to, name, "this version does not know the function", count));
    };
    let Some(place) = place else {
        let write = |text: &mut Text, function: &str, why: &str, count: u64| {
            let _ = writeln!(text, "anytrace: not recorded: {function} ({count} times): {why}");
        };
        losses.each(|function, why, count| write(text, function, why, count));
        unknown(text, write);
        let _ = std::io::stderr().write_all(text.bytes());
        return;
    };
    let write = |text: &mut Text, function: &str, why: &str, count: u64| {
        let _ = writeln!(text, "lost\t{count}\t{function}\t{why}");
    };
    let _ = writeln!(text, "trace\t{}\t{}\t{}", stream.calls, stream.frames, path.display());
    if let Some(failure) = failure {
        let _ = writeln!(text, "failed\t{failure}");
    }
    losses.each(|function, why, count| write(text, function, why, count));
    unknown(text, write);
    let file = OpenOptions::new().append(true).open(place);
    // One write: several processes may end at once.
    let _ = file.and_then(|mut file| file.write_all(text.bytes()));
}

/// Sees to it that the trace is whole whenever the process ends. Once a process.
fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the functions have the types that are asked for, and stay.
        unsafe {
            libc::atexit(at_exit);
            libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
        }
        catch_signals();
    });
    start_timer();
}

/// A thread that writes what is due. It takes no signals: they are the program's.
fn start_timer() {
    // SAFETY: the sets are initialised before they are used.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let timer = std::thread::Builder::new().name("apitrace-flush".to_owned()).stack_size(128 << 10).spawn(|| {
            loop {
                std::thread::sleep(INTERVAL);
                let mut shared = lock();
                match &shared.stream {
                    Some(stream) if stream.is_due(INTERVAL) => flush(&mut shared),
                    Some(_) => {}
                    None => return,
                }
            }
        });
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        if let Err(error) = timer {
            complain(&format!("no thread for the timer: {error}; the trace is written at frames and at exit only"));
        }
    }
}

/// Writes what there is, as the last of this process.
fn end() {
    IS_ENDING.store(true, Relaxed);
    if OWNER.load(Relaxed) != std::process::id() {
        // A forked child that recorded nothing: the trace is its parent's.
        return;
    }
    write_last();
}

/// Writes what there is, in a process that may be in any state: the thread may have crashed with the lock, and called this
/// from a handler of its own.
fn write_last() {
    let shared = if lock::is_own() {
        // SAFETY: the process is about to end, and this thread does not go on where it was.
        Some(unsafe { lock::seize() })
    } else {
        // Another thread may be writing, which does not take long.
        (0..50).find_map(|_| {
            try_lock().or_else(|| {
                std::thread::sleep(Duration::from_millis(2));
                None
            })
        })
    };
    let Some(mut shared) = shared else { return };
    if let Some(stream) = &mut shared.stream {
        stream.close_event();
    }
    flush(&mut shared);
    report(&mut shared, None);
    // They are reported once, if the process goes on after all.
    shared.losses.clear();
}

/// Another program is about to take the process's place; if it does not, recording goes on.
pub(crate) fn before_exec() {
    // A child of `vfork` shares the parent's memory.
    if OWNER.load(Relaxed) == std::process::id() {
        write_last();
    }
}

extern "C" fn at_exit() {
    end();
}

extern "C" fn before_fork() {
    lock::acquire();
}

extern "C" fn after_fork() {
    lock::release();
}

/// The child begins a trace of its own if it calls OpenGL.
extern "C" fn in_child() {
    lock::release();
    let mut shared = lock();
    // What is in the buffer is the parent's, and so is the file.
    std::mem::forget(shared.stream.take());
    shared.losses.clear();
    thread::forget_number();
}

/// Signals whose default action ends the process and which can be caught.
const FATAL: [c_int; 15] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGUSR1,
    libc::SIGSEGV,
    libc::SIGUSR2,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGXCPU,
];

/// Takes the signals that the program has left at their default.
fn catch_signals() {
    for signal in FATAL {
        // SAFETY: both structures live during the calls; the handler has the type that is asked for.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut now) != 0 || now.sa_sigaction != libc::SIG_DFL {
                continue;
            }
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = on_fatal as extern "C" fn(c_int) as usize;
            ours.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigaction(signal, &ours, std::ptr::null_mut());
        }
    }
}

/// Writes the buffer, and lets the signal do what it does.
extern "C" fn on_fatal(signal: c_int) {
    if OWNER.load(Relaxed) == std::process::id() {
        write_last();
    }
    // SAFETY: resets this signal and sends it to this thread, where it is delivered when the handler returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Ends the process without the C library's own ending, which a program may ask for: `atexit` is not called then.
///
/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn _exit(status: c_int) -> ! {
    // A child of `vfork` shares the parent's memory.
    if OWNER.load(Relaxed) == std::process::id() && !IS_ENDING.load(Relaxed) {
        end();
    }
    // SAFETY: takes a number and does not return.
    unsafe {
        libc::syscall(libc::SYS_exit_group, status);
    }
    unreachable!("the kernel ends the process")
}

/// The same by another name.
///
/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the caller's promise.
    unsafe { _exit(status) }
}
