//! apitrace's own `glretrace` on a separate display.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::flags::{CallFlags, call_flags};
use anytrace_core::testing::{has_program, skip};
use anytrace_core::{Collect, Input, OpenOptions};

/// A display that ends with the test.
pub struct Display {
    server: Child,
    name: String,
}

impl Display {
    /// `None`, with a note, if the programs are missing.
    #[allow(clippy::zombie_processes, reason = "dropping waits")]
    pub fn open() -> Option<Self> {
        for program in ["Xvfb", "glretrace"] {
            if !has_program(program) {
                return None;
            }
        }
        let mut command = Command::new("Xvfb");
        // The server chooses a free number and prints it.
        command.args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"]);
        let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        let _ = server.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        let name = format!(":{}", line.trim());
        if name.len() == 1 {
            let _ = server.kill();
            let _ = server.wait();
            skip("Xvfb does not start");
            return None;
        }
        Some(Self { server, name })
    }

    /// The name for programs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Pictures of the frames of a trace, in the order the frames end.
    pub fn replay(&self, trace: &Path, folder: &Path) -> Vec<Vec<u8>> {
        let is_egl = trace.file_name().unwrap().to_string_lossy().contains("egl");
        let mut pictures = self.pictures(trace, is_egl, None, folder).unwrap();
        frame_ends(&std::fs::read(trace).unwrap()).iter().filter_map(|call| pictures.remove(call)).collect()
    }

    /// Pictures of a trace by the number of the call that ends the frame: of these calls, or of all frames. An error if
    /// the player fails or takes more than three minutes.
    pub fn pictures(
        &self,
        trace: &Path,
        is_egl: bool,
        calls: Option<&[u64]>,
        folder: &Path,
    ) -> Result<Pictures, String> {
        let prefix = folder.join("frame.");
        let mut command = Command::new("timeout");
        command.args(["-k", "5", "180", if is_egl { "eglretrace" } else { "glretrace" }, "-b", "--headless", "-s"]);
        command.arg(&prefix);
        if let Some(calls) = calls {
            let calls: Vec<String> = calls.iter().map(u64::to_string).collect();
            command.args(["-S", &calls.join(",")]);
        }
        command.arg(trace).env("DISPLAY", &self.name).env("LIBGL_ALWAYS_SOFTWARE", "1");
        let played = command.stdout(Stdio::null()).output().unwrap();
        let mut pictures = BTreeMap::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let number = name.strip_prefix("frame.").and_then(|rest| rest.strip_suffix(".png")?.parse().ok());
            if let Some(number) = number {
                pictures.insert(number, std::fs::read(&path).unwrap());
                std::fs::remove_file(path).unwrap();
            }
        }
        if !played.status.success() {
            let said = String::from_utf8_lossy(&played.stderr);
            let last: Vec<&str> = said.lines().rev().take(5).collect();
            return Err(format!("{}: {}: {last:?}", trace.display(), played.status));
        }
        Ok(pictures)
    }
}

/// Pictures by the number of the call that ends their frame.
pub type Pictures = BTreeMap<u64, Vec<u8>>;

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Numbers of the calls that end frames, in the order they are left.
pub fn frame_ends(bytes: &[u8]) -> Vec<u64> {
    use anytrace_apitrace::tools::calls::{Call, CallOptions, CallVisitor, read_calls};
    use anytrace_apitrace::tools::dictionary::{Definition, Dictionary};
    #[derive(Default)]
    struct Ends(Dictionary, Vec<u64>);
    impl CallVisitor for Ends {
        fn define(&mut self, definition: &Definition<'_>) {
            self.0.define(definition);
        }
        fn call(&mut self, call: &Call<'_>, _: &mut dyn anytrace_core::Sink) -> Result<(), anytrace_core::Error> {
            let name = self.0.function(call.function).map_or(&b""[..], |function| function.name());
            if call_flags(name).has(CallFlags::END_FRAME) {
                self.1.push(call.number);
            }
            Ok(())
        }
    }
    let mut ends = Ends::default();
    let mut reader = Reader::new(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
    read_calls(&mut reader, CallOptions::default(), &mut ends, &mut Collect::default()).unwrap();
    ends.1
}
