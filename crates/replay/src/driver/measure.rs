//! What is measured of the calls that the machine repeats, and who gets it.

use anytrace_apitrace::tools::program::GlCall;
use anytrace_core::{Error, SpanSink};

use super::Driver;
use crate::Options;
use crate::metrics::Meter;
use crate::probe::{Before, Probe};
use crate::profile::Profiler;
use crate::spans::Spans;

/// The probe, and those who write what it measures.
pub(super) struct Measures<'o> {
    probe: Probe,
    profiler: Option<Profiler>,
    meter: Option<Meter>,
    /// They take the place of the profiler's lines.
    spans: Option<Spans<'o>>,
}

impl<'o> Measures<'o> {
    /// `None` where nothing is measured.
    pub(super) fn new(options: &Options, spans: Option<&'o mut dyn SpanSink>) -> Result<Option<Self>, Error> {
        let profiler = options.profile.is_any().then(|| Profiler::new(options.profile));
        let meter = options.metrics.is_any().then(|| Meter::new(options.metrics)).transpose()?;
        if profiler.is_none() && meter.is_none() {
            return Ok(None);
        }
        let wants = profiler.as_ref().map(Profiler::wants).unwrap_or_default();
        let wants = meter.as_ref().map_or(wants, |meter| wants.with(meter.wants()));
        let spans = spans.map(Spans::begin).transpose()?;
        Ok(Some(Self { probe: Probe::new(wants), profiler, meter, spans }))
    }

    /// The next calls are of this frame.
    pub(super) fn set_frame(&mut self, frame: u64) {
        if let Some(profiler) = &mut self.profiler {
            profiler.set_frame(frame);
        }
    }
}

impl Driver<'_> {
    /// Before a call in a context.
    #[inline]
    pub(super) fn measure_before(&mut self, context: u32, call: &GlCall<'_>) -> Option<Before> {
        let measures = self.measures.as_mut()?;
        let program = self.contexts.get(context as usize).map_or(0, |context| context.program);
        measures.probe.before(self.gl.as_ref()?, context, call, program)
    }

    /// After it.
    #[inline]
    pub(super) fn measure_after(&mut self, context: u32, stem: &str, before: Option<Before>) -> Result<(), Error> {
        let (Some(before), Some(gl), Some(measures)) = (before, &self.gl, &mut self.measures) else { return Ok(()) };
        let keeps = measures.meter.is_some() || measures.profiler.as_ref().is_some_and(Profiler::has_calls);
        measures.probe.after(gl, context, stem, before, keeps);
        if measures.probe.is_full() { self.write_measures() } else { Ok(()) }
    }

    /// Writes what was measured in the current context.
    pub(super) fn write_measures(&mut self) -> Result<(), Error> {
        let (Some(gl), Some((context, _)), Some(measures)) = (&self.gl, self.current, &mut self.measures) else {
            return Ok(());
        };
        let calls = measures.probe.drain(gl, context);
        if let Some(meter) = &mut measures.meter {
            meter.calls(&calls)?;
        }
        match &mut measures.profiler {
            Some(profiler) => profiler.calls(&calls, &mut *self.out, measures.spans.as_mut()),
            None => Ok(()),
        }
    }

    /// After the call that ends a frame.
    pub(super) fn measure_frame(&mut self, number: u64) -> Result<(), Error> {
        self.write_measures()?;
        let Some(measures) = &mut self.measures else { return Ok(()) };
        let (start, now) = (measures.probe.take_frame(), measures.probe.now());
        if let Some(meter) = &mut measures.meter {
            meter.end_frame(start, now)?;
        }
        match &mut measures.profiler {
            Some(profiler) => profiler.end_frame(number, now.0, &mut *self.out, measures.spans.as_mut()),
            None => Ok(()),
        }
    }

    /// After everything.
    pub(super) fn finish_measures(&mut self) -> Result<(), Error> {
        let Some(mut measures) = self.measures.take() else { return Ok(()) };
        let (start, now) = (measures.probe.take_frame(), measures.probe.now());
        if let Some(profiler) = &mut measures.profiler {
            profiler.finish(now.0, &mut *self.out, measures.spans.as_mut())?;
        }
        match measures.meter.take() {
            Some(meter) => meter.finish(start, now, &mut *self.out),
            None => Ok(()),
        }
    }
}
