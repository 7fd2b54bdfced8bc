//! The calls that `apitrace gltrim` keeps replay like the entire trace, as shown by apitrace's own `glretrace` on a
//! separate display.
//!
//! `cargo xtask test` installs apitrace and Xvfb from Debian; if they are missing the test reports that it is skipped.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod display;

use std::path::{Path, PathBuf};

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::gltrim::{GltrimOptions, plan};
use anytrace_core::testing::shared_corpus;
use anytrace_core::{Collect, Input, MemoryTarget, OpenOptions};

use display::Display;

fn trimmed(bytes: &[u8], frame: usize) -> Vec<u8> {
    let open = |bytes: &[u8]| Reader::new(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
    let frames = CallSet::parse([frame.to_string().as_str()], &mut |_| Err(std::io::Error::other("no files"))).unwrap();
    let options = GltrimOptions { frames: Some(frames), ..GltrimOptions::default() };
    let plan = plan(&mut open(bytes), &options, &mut Collect::default()).unwrap();
    let mut out = MemoryTarget::default();
    plan.write(open(bytes), None, None, &mut out).unwrap();
    out.0
}

/// Traces with several frames that replay.
fn traces() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![
        root.join("../../examples/traces/imm.trace"),
        root.join("corpus/threads.trace"),
        root.join("corpus/replay/mixed.trace"),
    ];
    if let Some(shared) = shared_corpus("apitrace") {
        for name in ["backtrace", "egl_gles2", "fbo", "map", "query", "tex", "upstream_glxsimple", "varray", "vbo"] {
            found.push(shared.join(name).join(format!("{name}.trace")));
        }
    }
    found
}

#[test]
fn every_frame_looks_the_same_after_trimming() {
    let Some(display) = Display::open() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for trace in traces() {
        let bytes = std::fs::read(&trace).unwrap();
        let entire = display.replay(&trace, folder.path());
        // The first pictures of glretrace are not those of the program: its window gets its size too late.
        let windows = if trace.ends_with("threads.trace") { 2 } else { 1 };
        for (frame, picture) in entire.iter().enumerate().skip(windows) {
            let part = folder.path().join(trace.file_name().unwrap());
            std::fs::write(&part, trimmed(&bytes, frame)).unwrap();
            let pictures = display.replay(&part, folder.path());
            assert!(pictures.last() == Some(picture), "{}, frame {frame}", trace.display());
            compared += 1;
        }
    }
    // The project's own traces have this many.
    assert!(compared >= 17, "{compared}");
}
