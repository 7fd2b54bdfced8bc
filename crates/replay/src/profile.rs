//! Times, pixels and memory of calls and frames: in the lines of apitrace's players, or as spans.

use std::io::Write;

use anytrace_core::Error;

use crate::probe::{DeviceTime, Measured, Wants};
use crate::spans::{SpanOfCall, Spans};

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

/// Writes what was measured.
pub(crate) struct Profiler {
    what: Profile,
    frame_start_ns: u64,
    /// The number of the frame, counted from 0 in the trace.
    frame: u64,
    has_header: bool,
}

impl Profiler {
    pub(crate) fn new(what: Profile) -> Self {
        Self { what, frame_start_ns: 0, frame: 0, has_header: false }
    }

    /// What must be measured.
    pub(crate) fn wants(&self) -> Wants {
        Wants {
            device: if self.what.has_gpu { DeviceTime::Draws } else { DeviceTime::Never },
            has_pixels: self.what.has_pixels,
            has_memory: self.what.has_memory,
        }
    }

    /// Whether calls have lines.
    pub(crate) fn has_calls(&self) -> bool {
        self.what.has_calls()
    }

    /// Writes the lines of calls.
    pub(crate) fn calls(
        &mut self,
        calls: &[Measured],
        out: &mut dyn Write,
        mut spans: Option<&mut Spans<'_>>,
    ) -> Result<(), Error> {
        if spans.is_none() && !std::mem::replace(&mut self.has_header, true) {
            writeln!(out, "{HEADER}").map_err(failed)?;
        }
        let Profile { has_cpu, has_gpu, has_pixels, has_memory, cpu_min_ns, .. } = self.what;
        let is_cpu_alone = has_cpu && !(has_gpu || has_pixels || has_memory);
        for call in calls.iter().filter(|_| self.what.has_calls()) {
            let cpu = (call.cpu.0, call.cpu.1.saturating_sub(call.cpu.0));
            let of_device = call.gpu.filter(|_| has_gpu && call.is_draw);
            let gpu = of_device.map_or((0, 0), |(start, end)| (start, end.saturating_sub(start)));
            if is_cpu_alone && cpu.1 < cpu_min_ns && !call.is_draw {
                continue;
            }
            // -1: it draws nothing, or they could not be counted.
            let pixels = has_pixels.then(|| call.pixels.map_or(-1, |pixels| pixels as i64));
            let memory = if has_memory { call.memory } else { ((0, 0), (0, 0)) };
            let added = |after: u64, before: u64| after.wrapping_sub(before) as i64;
            let (size, resident) = (added(memory.1.0, memory.0.0), added(memory.1.1, memory.0.1));
            let &Measured { number, name, program, .. } = call;
            if let Some(spans) = &mut spans {
                let resident = has_memory.then_some(resident);
                let call = SpanOfCall { number, name, program, cpu, gpu, pixels, resident };
                spans.call(self.frame, self.frame_start_ns, &call)?;
                continue;
            }
            let (cpu_start, cpu_time) = if has_cpu { cpu } else { (0, 0) };
            let (gpu_start, gpu_time) = gpu;
            let pixels = pixels.unwrap_or(0);
            writeln!(
                out,
                "call {number} {gpu_start} {gpu_time} {cpu_start} {cpu_time} {} {size} {} {resident} {pixels} {program} {name}",
                memory.0.0, memory.0.1
            )
            .map_err(failed)?;
        }
        Ok(())
    }

    /// After the call that ends a frame; its lines were written.
    pub(crate) fn end_frame(
        &mut self,
        number: u64,
        now: u64,
        out: &mut dyn Write,
        spans: Option<&mut Spans<'_>>,
    ) -> Result<(), Error> {
        let start = std::mem::replace(&mut self.frame_start_ns, now);
        if let Some(spans) = spans {
            return spans.end_frame(number, self.frame, start, now);
        }
        let wrote = if self.what.has_frames {
            writeln!(out, "frame_end {start} {}", now - start)
        } else {
            writeln!(out, "frame_end")
        };
        wrote.map_err(failed)
    }

    /// The next calls are of this frame.
    pub(crate) fn set_frame(&mut self, frame: u64) {
        self.frame = frame;
    }

    /// After everything.
    pub(crate) fn finish(&mut self, now: u64, out: &mut dyn Write, spans: Option<&mut Spans<'_>>) -> Result<(), Error> {
        match spans {
            Some(spans) => spans.finish(now),
            None if self.what.has_frames => writeln!(out, "rendering_finished {now}").map_err(failed),
            None => Ok(()),
        }
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::io("standard output", error)
}
