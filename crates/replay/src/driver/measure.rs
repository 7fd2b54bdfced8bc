//! What is measured of the calls that the machine repeats.

use anytrace_apitrace::tools::program::GlCall;
use anytrace_core::Error;

use super::Driver;
use crate::{metrics, profile};

/// What was measured before a call.
pub(super) struct Measured {
    line: Option<profile::Before>,
    metrics: Option<metrics::Before>,
}

impl Driver<'_> {
    /// Before a call in a context.
    #[inline]
    pub(super) fn measure_before(&mut self, context: u32, call: &GlCall<'_>) -> Measured {
        let mut measured = Measured { line: None, metrics: None };
        if self.profiler.is_none() && self.meter.is_none() {
            return measured;
        }
        let program = self.contexts.get(context as usize).map_or(0, |context| context.program);
        let Some(gl) = &self.gl else { return measured };
        if let Some(meter) = &mut self.meter {
            measured.metrics = meter.before(gl, context, call, program);
        }
        if let Some(profiler) = &mut self.profiler {
            measured.line = profiler.before(gl, context, call, program);
        }
        measured
    }

    /// After it.
    #[inline]
    pub(super) fn measure_after(&mut self, context: u32, stem: &str, measured: Measured) -> Result<(), Error> {
        let Some(gl) = &self.gl else { return Ok(()) };
        let mut is_full = false;
        if let (Some(profiler), Some(line)) = (&mut self.profiler, measured.line) {
            profiler.after(gl, context, stem, line);
            is_full |= profiler.is_full();
        }
        if let (Some(meter), Some(metrics)) = (&mut self.meter, measured.metrics) {
            meter.after(gl, context, stem, metrics);
            is_full |= meter.is_full();
        }
        if is_full { self.write_profile() } else { Ok(()) }
    }

    /// Writes what was measured in the current context.
    pub(super) fn write_profile(&mut self) -> Result<(), Error> {
        let (Some(gl), Some((context, _))) = (&self.gl, self.current) else { return Ok(()) };
        if let Some(meter) = &mut self.meter {
            meter.flush(gl, context)?;
        }
        match &mut self.profiler {
            Some(profiler) => profiler.flush(gl, context, &mut *self.out, self.spans.as_mut()),
            None => Ok(()),
        }
    }

    /// After the call that ends a frame.
    pub(super) fn measure_frame(&mut self, number: u64) -> Result<(), Error> {
        self.write_profile()?;
        if let Some(meter) = &mut self.meter {
            meter.end_frame()?;
        }
        match &mut self.profiler {
            Some(profiler) => profiler.end_frame(number, &mut *self.out, self.spans.as_mut()),
            None => Ok(()),
        }
    }
}
