//! Times, pixels and memory of calls and frames: in the lines of apitrace's players, or as spans.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use anytrace_apitrace::tools::program::GlCall;
use anytrace_core::Error;

use crate::gl::Gl;
use crate::queries::{Queries, SAMPLES_PASSED};
use crate::spans::{Measured, Spans};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Profile {
    /// The time that each call takes on the processor.
    pub has_cpu: bool,
    /// The time that each draw takes on the device, where the driver has timer queries.
    pub has_gpu: bool,
    /// How many samples each draw passes, where the trace itself does not count them at that time.
    pub has_pixels: bool,
    /// Memory of the process before and after each call.
    pub has_memory: bool,
    /// The time of each frame.
    pub has_frames: bool,
    /// Calls that take less than so many nanoseconds are omitted, where only `has_cpu` is set.
    pub cpu_min_ns: u64,
}

impl Profile {
    /// Whether anything is measured.
    pub fn is_any(&self) -> bool {
        self.has_cpu || self.has_gpu || self.has_pixels || self.has_memory || self.has_frames
    }

    /// Whether calls have lines; of frames alone only frames have.
    fn has_calls(&self) -> bool {
        self.has_cpu || self.has_gpu || self.has_pixels || self.has_memory
    }
}

/// The names of the fields of a line, as apitrace's programs expect them.
const HEADER: &str =
    "# call no gpu_start gpu_dura cpu_start cpu_dura vsize_start vsize_dura rss_start rss_dura pixels program name";

/// Lines that are kept until the device has done their draws.
const ROWS_MAX: usize = 4096;

/// A call.
#[derive(Debug, Clone, Copy)]
struct Row {
    number: u64,
    name: &'static str,
    program: u32,
    /// Queries of the time before and after it.
    gpu: Option<(u32, u32)>,
    /// Start and duration in nanoseconds.
    cpu: (u64, u64),
    /// Virtual and resident bytes before it, and how many it added.
    virtual_bytes: (u64, i64),
    resident_bytes: (u64, i64),
    /// A query of the samples that passed.
    pixels: Option<u32>,
    is_draw: bool,
}

/// What was measured before a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    number: u64,
    name: &'static str,
    program: u32,
    gpu: Option<u32>,
    pixels: Option<u32>,
    memory: (u64, u64),
    cpu_ns: u64,
    is_draw: bool,
}

/// Measures calls.
pub(crate) struct Profiler {
    what: Profile,
    rows: Vec<Row>,
    queries: Queries,
    base: Instant,
    /// The device's time at `base`, by context: it is the same clock for all of them, but each must be asked.
    device_base: HashMap<u32, u64>,
    frame_start_ns: u64,
    /// The number of the frame, counted from 0 in the trace.
    frame: u64,
    status: Status,
    has_header: bool,
    /// What was measured before `glBegin`; until `glEnd` nothing can be.
    begun: Option<Before>,
    /// A display list is compiled: its calls are not executed.
    is_in_list: bool,
}

impl Profiler {
    pub(crate) fn new(what: Profile) -> Self {
        Self {
            what,
            rows: Vec::new(),
            queries: Queries::default(),
            base: Instant::now(),
            device_base: HashMap::new(),
            frame_start_ns: 0,
            frame: 0,
            status: Status::open(what.has_memory),
            has_header: false,
            begun: None,
            is_in_list: false,
        }
    }

    /// Before a call of the trace; `None` for calls that cannot be measured: those between `glBegin` and `glEnd`.
    pub(crate) fn before(&mut self, gl: &Gl, context: u32, call: &GlCall<'_>, program: u32) -> Option<Before> {
        let (number, name) = (call.number, call.name);
        if let Some(begun) = self.begun.take() {
            if call.stem == "glEnd" {
                return Some(Before { number, name, ..begun });
            }
            self.begun = Some(begun);
            return None;
        }
        let is_draw = is_draw(call.stem) && !self.is_in_list;
        let (mut gpu, mut pixels) = (None, None);
        if is_draw && self.what.has_gpu {
            let base = &self.base;
            let started = || gl.timestamp().saturating_sub(nanoseconds(base));
            self.device_base.entry(context).or_insert_with(started);
            gpu = self.queries.time(gl, context);
        }
        if is_draw && self.what.has_pixels {
            pixels = self.queries.begin(gl, context, SAMPLES_PASSED);
        }
        let memory = self.status.memory();
        Some(Before { number, name, program, gpu, pixels, memory, cpu_ns: nanoseconds(&self.base), is_draw })
    }

    /// After it.
    pub(crate) fn after(&mut self, gl: &Gl, context: u32, stem: &str, before: Before) {
        let end = nanoseconds(&self.base);
        match stem {
            "glBegin" => {
                self.begun = Some(before);
                return;
            }
            "glNewList" => self.is_in_list = true,
            "glEndList" => self.is_in_list = false,
            _ => {}
        }
        let gpu = before.gpu.and_then(|start| Some((start, self.queries.time(gl, context)?)));
        if before.pixels.is_some() {
            self.queries.end(gl, SAMPLES_PASSED);
        }
        if !self.what.has_calls() || self.is_in_list {
            return;
        }
        let (virtual_after, resident_after) = self.status.memory();
        let added = |after: u64, before: u64| (before, after.wrapping_sub(before) as i64);
        self.rows.push(Row {
            number: before.number,
            name: before.name,
            program: before.program,
            gpu,
            cpu: (before.cpu_ns, end.saturating_sub(before.cpu_ns)),
            virtual_bytes: added(virtual_after, before.memory.0),
            resident_bytes: added(resident_after, before.memory.1),
            pixels: before.pixels,
            is_draw: before.is_draw,
        });
    }

    /// True when the lines should be written.
    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() >= ROWS_MAX
    }

    /// Writes the lines so far, of this context: queries belong to a context.
    pub(crate) fn flush(
        &mut self,
        gl: &Gl,
        context: u32,
        out: &mut dyn Write,
        mut spans: Option<&mut Spans<'_>>,
    ) -> Result<(), Error> {
        let failed = |error| Error::io("standard output", error);
        if spans.is_none() && !std::mem::replace(&mut self.has_header, true) {
            writeln!(out, "{HEADER}").map_err(failed)?;
        }
        let device_base = self.device_base.get(&context).copied().unwrap_or(0);
        let is_cpu_alone = self.what.has_cpu && !(self.what.has_gpu || self.what.has_pixels || self.what.has_memory);
        for row in self.rows.drain(..) {
            let (gpu_start, gpu_time) = row.gpu.map_or((0, 0), |(start, end)| {
                let (start, end) = (gl.query_result(start), gl.query_result(end));
                (start.saturating_sub(device_base), end.saturating_sub(start))
            });
            let pixels = match (row.pixels, self.what.has_pixels) {
                (Some(query), _) => gl.query_result(query) as i64,
                (None, true) => -1,
                (None, false) => 0,
            };
            if is_cpu_alone && row.cpu.1 < self.what.cpu_min_ns && !row.is_draw {
                continue;
            }
            let (cpu_start, cpu_time) = if self.what.has_cpu { row.cpu } else { (0, 0) };
            let Row { number, name, program, virtual_bytes: size, resident_bytes: resident, .. } = row;
            if let Some(spans) = &mut spans {
                let pixels = self.what.has_pixels.then_some(pixels);
                let resident = self.what.has_memory.then_some(resident.1);
                let (cpu, gpu) = (row.cpu, (gpu_start, gpu_time));
                spans.call(
                    self.frame,
                    self.frame_start_ns,
                    &Measured { number, name, program, cpu, gpu, pixels, resident },
                )?;
                continue;
            }
            writeln!(
                out,
                "call {number} {gpu_start} {gpu_time} {cpu_start} {cpu_time} {} {} {} {} {pixels} {program} {name}",
                size.0, size.1, resident.0, resident.1
            )
            .map_err(failed)?;
        }
        self.queries.give_back(context);
        Ok(())
    }

    /// After the call that ends a frame; its lines were written.
    pub(crate) fn end_frame(
        &mut self,
        number: u64,
        out: &mut dyn Write,
        spans: Option<&mut Spans<'_>>,
    ) -> Result<(), Error> {
        let now = nanoseconds(&self.base);
        let start = std::mem::replace(&mut self.frame_start_ns, now);
        if let Some(spans) = spans {
            return spans.end_frame(number, self.frame, start, now);
        }
        let wrote = if self.what.has_frames {
            writeln!(out, "frame_end {start} {}", now - start)
        } else {
            writeln!(out, "frame_end")
        };
        wrote.map_err(|error| Error::io("standard output", error))
    }

    /// The next calls are of this frame.
    pub(crate) fn set_frame(&mut self, frame: u64) {
        self.frame = frame;
    }

    /// After everything.
    pub(crate) fn finish(&mut self, out: &mut dyn Write, spans: Option<&mut Spans<'_>>) -> Result<(), Error> {
        let now = nanoseconds(&self.base);
        match spans {
            Some(spans) => spans.finish(now),
            None if self.what.has_frames => {
                writeln!(out, "rendering_finished {now}").map_err(|error| Error::io("standard output", error))
            }
            None => Ok(()),
        }
    }
}

/// The memory of this process.
pub(crate) struct Status(Option<File>);

impl Status {
    /// Opened where it is wanted.
    pub(crate) fn open(is_wanted: bool) -> Self {
        Self(if is_wanted { File::open("/proc/self/status").ok() } else { None })
    }

    /// Virtual and resident bytes; 0 where they are not wanted.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let Some(file) = &self.0 else { return (0, 0) };
        let mut text = [0; 2048];
        let read = file.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(text.get(..read).unwrap_or_default());
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
        };
        (of("VmSize:"), of("VmRSS:"))
    }
}

/// Nanoseconds since then.
pub(crate) fn nanoseconds(since: &Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Whether a function draws, clears or copies pixels, or ends what does.
pub(crate) fn is_draw(stem: &str) -> bool {
    const EXACT: [&str; 12] = [
        "glClear",
        "glCallList",
        "glCallLists",
        "glBitmap",
        "glCopyPixels",
        "glDispatchCompute",
        "glDispatchComputeIndirect",
        "glDispatchComputeGroupSize",
        "glBlitFramebuffer",
        "glBlitNamedFramebuffer",
        "glEvalMesh1",
        "glEvalMesh2",
    ];
    const BEGINNINGS: [&str; 5] = ["glDrawArrays", "glDrawElements", "glDrawRangeElements", "glMultiDraw", "glRect"];
    EXACT.contains(&stem)
        || BEGINNINGS.iter().any(|beginning| stem.starts_with(beginning))
        || matches!(
            stem,
            "glBegin" | "glEnd" | "glDrawPixels" | "glDrawTransformFeedback" | "glDrawTexf" | "glDrawTexi"
        )
        || stem.starts_with("glClearBuffer") && !stem.ends_with("Data") && !stem.ends_with("SubData")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_draws_is_known() {
        for stem in ["glDrawArrays", "glDrawElementsInstancedBaseVertex", "glClear", "glClearBufferfv", "glRectf"] {
            assert!(is_draw(stem), "{stem}");
        }
        for stem in ["glDrawBuffer", "glDrawBuffers", "glClearColor", "glClearBufferSubData", "glViewport"] {
            assert!(!is_draw(stem), "{stem}");
        }
    }
}
