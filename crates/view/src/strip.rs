//! Small pictures of the frames of a trace of graphics. A program replays the trace for them, the first time that
//! somebody wants to see them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

/// Pixels of the longer side, and pictures: of more frames every second has one, or every fourth, and so on.
const SIDE: u32 = 200;
const PICTURES_MAX: u32 = 240;

/// How often the program is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Bytes of a picture.
const PICTURE_BYTES_MAX: u64 = 4 << 20;

/// Bytes of complaints that are read.
const COMPLAINT_BYTES_MAX: usize = 4000;

/// The pictures of a file.
#[derive(Debug, Default)]
pub(crate) struct Strip(Mutex<State>);

/// How far they are.
#[derive(Debug, Default)]
enum State {
    /// Nobody wanted them.
    #[default]
    Unasked,
    Made(Shown),
    Done {
        folder: TempDir,
        frames: BTreeSet<u64>,
    },
}

/// What there is to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The trace is being replayed.
    Making,
    /// The frames that have a picture.
    Frames(BTreeSet<u64>),
    /// Why there are none.
    Failed(String),
}

impl Strip {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What there is; the first call has the pictures made.
    pub(crate) fn shown(self: &Arc<Self>, program: &Path, trace: &Path, stop: &Arc<AtomicBool>) -> Shown {
        let mut state = self.state();
        match &*state {
            State::Done { frames, .. } => return Shown::Frames(frames.clone()),
            State::Made(shown) => return shown.clone(),
            State::Unasked => *state = State::Made(Shown::Making),
        }
        drop(state);
        let (strip, stop) = (Arc::clone(self), Arc::clone(stop));
        let (program, trace) = (program.to_owned(), trace.to_owned());
        std::thread::spawn(move || {
            let made = make(&program, &trace, &stop);
            *strip.state() = made.unwrap_or_else(|problem| State::Made(Shown::Failed(problem)));
        });
        Shown::Making
    }

    /// The picture of a frame, as a PNG file.
    pub(crate) fn picture(&self, frame: u64) -> Option<Vec<u8>> {
        let path = match &*self.state() {
            State::Done { folder, frames } if frames.contains(&frame) => folder.path().join(file_name(frame)),
            _ => return None,
        };
        let is_small = std::fs::metadata(&path).is_ok_and(|meta| meta.len() <= PICTURE_BYTES_MAX);
        if is_small { std::fs::read(path).ok() } else { None }
    }
}

/// What `apitrace frames` calls a picture.
fn file_name(frame: u64) -> String {
    format!("frame-{frame:010}.png")
}

fn frame_of(name: &str) -> Option<u64> {
    name.strip_prefix("frame-")?.strip_suffix(".png")?.parse().ok()
}

/// Replays a trace. What the program says is the reason where it fails.
fn make(program: &Path, trace: &Path, stop: &AtomicBool) -> Result<State, String> {
    let folder = tempfile::Builder::new().prefix("anytrace-frames-").tempdir().map_err(|error| error.to_string())?;
    let said = folder.path().join("said");
    let complaints = std::fs::File::create(&said).map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["apitrace", "frames", "--force", "--side", &SIDE.to_string()]);
    command.args(["--pictures", &PICTURES_MAX.to_string(), "-o"]).arg(folder.path()).arg("--").arg(trace);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints);
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    loop {
        if child.try_wait().map_err(|error| error.to_string())?.is_some() {
            break;
        }
        if stop.load(Ordering::Relaxed) {
            // It may have ended in between.
            let _ = child.kill();
            let _ = child.wait();
            return Err("the server ends".to_owned());
        }
        std::thread::sleep(LOOK);
    }
    let entries = std::fs::read_dir(folder.path()).into_iter().flatten().flatten();
    let frames: BTreeSet<u64> = entries.filter_map(|entry| frame_of(&entry.file_name().to_string_lossy())).collect();
    // Exit code 1 is damage, or an error of the driver: the pictures are there all the same.
    if frames.is_empty() { Err(reason(&said)) } else { Ok(State::Done { folder, frames }) }
}

fn reason(said: &PathBuf) -> String {
    let bytes = std::fs::read(said).unwrap_or_default();
    let text = String::from_utf8_lossy(bytes.get(..COMPLAINT_BYTES_MAX).unwrap_or(&bytes)).into_owned();
    let text = text.trim().trim_start_matches("anytrace: error: ").to_owned();
    if text.is_empty() { "no frame of the trace could be replayed".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(strip: &Arc<Strip>, program: &Path, stop: &Arc<AtomicBool>) -> Shown {
        for _ in 0..400 {
            match strip.shown(program, Path::new("x.trace"), stop) {
                Shown::Making => std::thread::sleep(LOOK / 2),
                shown => return shown,
            }
        }
        Shown::Making
    }

    #[cfg(unix)]
    fn script(folder: &TempDir, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;

        let path = folder.path().join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    #[cfg(unix)]
    #[test]
    fn pictures_are_made_once_and_a_failure_is_told_in_the_words_of_the_program() {
        let (folder, stop) = (TempDir::new().unwrap(), Arc::new(AtomicBool::new(false)));
        let program = script(&folder, "shift 7; printf png > \"$2/frame-0000000007.png\"; echo again >> \"$0.runs\"");
        let strip = Arc::new(Strip::default());
        assert_eq!(settled(&strip, &program, &stop), Shown::Frames(BTreeSet::from([7])), "{:?}", strip.state());
        assert_eq!((strip.picture(7), strip.picture(8)), (Some(b"png".to_vec()), None));
        strip.shown(&program, Path::new("x.trace"), &stop);
        assert_eq!(std::fs::read_to_string(folder.path().join("program.runs")).unwrap(), "again\n");
        let program = script(&folder, "echo 'anytrace: error: no libEGL' >&2; exit 2");
        let failed = settled(&Arc::new(Strip::default()), &program, &stop);
        assert_eq!(failed, Shown::Failed("no libEGL".to_owned()));
        let missing = settled(&Arc::new(Strip::default()), Path::new("/nonexistent/program"), &stop);
        assert!(matches!(&missing, Shown::Failed(text) if text.contains("/nonexistent/program")), "{missing:?}");
    }

    #[cfg(unix)]
    #[test]
    fn the_program_ends_with_the_server() {
        let (folder, stop) = (TempDir::new().unwrap(), Arc::new(AtomicBool::new(false)));
        let program = script(&folder, "exec sleep 600");
        let strip = Arc::new(Strip::default());
        assert_eq!(strip.shown(&program, Path::new("x.trace"), &stop), Shown::Making);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(settled(&strip, &program, &stop), Shown::Failed("the server ends".to_owned()));
    }
}
