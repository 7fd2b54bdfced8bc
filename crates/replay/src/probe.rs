//! Measures calls: once, whoever wants the figures. Two that count the samples of a draw would be in each other's way,
//! since only one query can.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use anytrace_apitrace::tools::program::GlCall;

use crate::gl::Gl;
use crate::queries::{Queries, SAMPLES_PASSED};

/// Calls that are kept until the device has done them.
const CALLS_MAX: usize = 4096;

/// Which calls the device's time is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum DeviceTime {
    #[default]
    Never,
    Draws,
    Calls,
}

/// What is measured besides the processor's time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wants {
    pub(crate) device: DeviceTime,
    /// The samples that draws pass.
    pub(crate) has_pixels: bool,
    pub(crate) has_memory: bool,
}

impl Wants {
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            device: self.device.max(other.device),
            has_pixels: self.has_pixels || other.has_pixels,
            has_memory: self.has_memory || other.has_memory,
        }
    }
}

/// What was measured before a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    number: u64,
    name: &'static str,
    program: u32,
    is_draw: bool,
    gpu: Option<u32>,
    pixels: Option<u32>,
    memory: (u64, u64),
    cpu_ns: u64,
}

/// A call whose queries were not read yet.
#[derive(Debug)]
struct Pending {
    before: Before,
    gpu: Option<(u32, u32)>,
    memory: (u64, u64),
    cpu_ns: u64,
}

/// A call. Pairs are before and after it; times are nanoseconds since the replay began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) number: u64,
    pub(crate) name: &'static str,
    /// The current program, as the trace calls it.
    pub(crate) program: u32,
    pub(crate) is_draw: bool,
    pub(crate) cpu: (u64, u64),
    /// As the device had it; `None` where it was not asked, or has no such queries.
    pub(crate) gpu: Option<(u64, u64)>,
    /// Samples that passed; `None` as above, and where the trace itself counts them.
    pub(crate) pixels: Option<u64>,
    /// Virtual and resident bytes.
    pub(crate) memory: ((u64, u64), (u64, u64)),
}

/// Measures calls.
pub(crate) struct Probe {
    wants: Wants,
    calls: Vec<Pending>,
    queries: Queries,
    base: Instant,
    /// The device's time at `base`, by context: it is the same clock for all of them, but each must be asked.
    device_base: HashMap<u32, u64>,
    status: Status,
    /// What was measured before `glBegin`; until `glEnd` nothing can be.
    begun: Option<Before>,
    /// A display list is compiled: its calls are not executed.
    is_in_list: bool,
    /// Time and memory before the first call of the frame.
    frame: Option<(u64, (u64, u64))>,
}

impl Probe {
    pub(crate) fn new(wants: Wants) -> Self {
        Self {
            wants,
            calls: Vec::new(),
            queries: Queries::default(),
            base: Instant::now(),
            device_base: HashMap::new(),
            status: Status::open(wants.has_memory),
            begun: None,
            is_in_list: false,
            frame: None,
        }
    }

    /// Nanoseconds since the replay began, and virtual and resident bytes.
    pub(crate) fn now(&self) -> (u64, (u64, u64)) {
        let nanoseconds = u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX);
        (nanoseconds, self.status.memory())
    }

    /// The same before the first call of the frame that ends; `None` where it has none.
    pub(crate) fn take_frame(&mut self) -> Option<(u64, (u64, u64))> {
        self.frame.take()
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
        let is_timed = match self.wants.device {
            DeviceTime::Never => false,
            DeviceTime::Draws => is_draw,
            DeviceTime::Calls => !self.is_in_list,
        };
        let gpu = is_timed.then(|| self.device_time(gl, context)).flatten();
        let is_counted = is_draw && self.wants.has_pixels;
        let pixels = is_counted.then(|| self.queries.begin(gl, context, SAMPLES_PASSED)).flatten();
        let (cpu_ns, memory) = self.now();
        self.frame.get_or_insert((cpu_ns, memory));
        Some(Before { number, name, program, is_draw, gpu, pixels, memory, cpu_ns })
    }

    fn device_time(&mut self, gl: &Gl, context: u32) -> Option<u32> {
        if !self.device_base.contains_key(&context) {
            let base = gl.timestamp().saturating_sub(self.now().0);
            self.device_base.insert(context, base);
        }
        self.queries.time(gl, context)
    }

    /// After it. `keeps`: it is one of those that are handed out.
    pub(crate) fn after(&mut self, gl: &Gl, context: u32, stem: &str, before: Before, keeps: bool) {
        let (cpu_ns, memory) = self.now();
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
        if keeps && !self.is_in_list {
            self.calls.push(Pending { before, gpu, memory, cpu_ns });
        }
    }

    /// True when the calls should be handed out.
    pub(crate) fn is_full(&self) -> bool {
        self.calls.len() >= CALLS_MAX
    }

    /// Hands out the calls so far, all of this context: queries belong to a context.
    pub(crate) fn drain(&mut self, gl: &Gl, context: u32) -> Vec<Measured> {
        let base = self.device_base.get(&context).copied().unwrap_or(0);
        let read = |Pending { before, gpu, memory, cpu_ns }| {
            let time = |query| gl.query_result(query).saturating_sub(base);
            let Before { number, name, program, is_draw, .. } = before;
            Measured {
                number,
                name,
                program,
                is_draw,
                cpu: (before.cpu_ns, cpu_ns),
                gpu: gpu.map(|(start, end)| (time(start), time(end))),
                pixels: before.pixels.map(|query| gl.query_result(query)),
                memory: (before.memory, memory),
            }
        };
        let calls = self.calls.drain(..).map(read).collect();
        self.queries.give_back(context);
        calls
    }
}

/// The memory of this process.
struct Status(Option<File>);

impl Status {
    /// Opened where it is wanted.
    fn open(is_wanted: bool) -> Self {
        Self(if is_wanted { File::open("/proc/self/status").ok() } else { None })
    }

    /// Virtual and resident bytes; 0 where they are not wanted.
    fn memory(&self) -> (u64, u64) {
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

/// Whether a function draws, clears or copies pixels, or ends what does.
fn is_draw(stem: &str) -> bool {
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

    #[test]
    fn two_that_measure_get_what_either_wants() {
        let draws = Wants { device: DeviceTime::Draws, has_pixels: true, has_memory: false };
        let calls = Wants { device: DeviceTime::Calls, ..Wants::default() };
        let both = draws.with(calls);
        assert_eq!((both.device, both.has_pixels, both.has_memory), (DeviceTime::Calls, true, false));
    }
}
