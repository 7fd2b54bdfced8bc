//! Spans and points for programs without `tracing`.

use std::fmt::Display;
use std::sync::Arc;

use heph_encoder::{Event, body, body_fmt};

use crate::body::Body;
use crate::core::Core;
use crate::lane::Lane;

/// A time of a [`Recorder`]'s clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64);

/// Records spans and points of any thread; cheap to clone.
///
/// ```
/// use tracing_heph::Recorder;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("trace.heph");
/// let (recorder, guard) = Recorder::builder().file(&path).build_recorder()?;
/// {
///     let mut span = recorder.span("load");
///     span.str("name", "big.map").u64("attempt", 1);
///     recorder.point("cache miss").f64("fill", 0.75);
///     span.i64("rows", 12_000);
/// } // The span ends here.
/// assert_eq!(guard.close().written, 2);
/// # Ok::<(), tracing_heph::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Recorder {
    core: Arc<Core>,
}

impl Recorder {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Starts a span, which ends when it is dropped. Its event belongs to the thread it ends on; on one thread, spans
    /// should end in the reverse order of their start, or be distinguished by [`Span::substream`].
    #[must_use = "a span ends when it is dropped"]
    pub fn span(&self, name: &str) -> Span<'_> {
        let mut span = Span::new(&self.core, name);
        span.start = self.core.now();
        span
    }

    /// Records a point in time: now. Its attributes are added before it is dropped.
    pub fn point(&self, name: &str) -> Span<'_> {
        let now = self.now();
        self.between(name, now, now)
    }

    /// Records what took place between two times of this recorder.
    pub fn between(&self, name: &str, start: Time, end: Time) -> Span<'_> {
        let mut span = Span::new(&self.core, name);
        span.start = start.0;
        span.end = Some(end.0);
        span
    }

    /// The time, for [`Self::between`].
    pub fn now(&self) -> Time {
        Time(self.core.now())
    }

    /// A number for [`Span::substream`] that nothing else in the trace has.
    pub fn new_substream(&self) -> u64 {
        Lane::with(&self.core, Lane::new_substream)
    }
}

/// A span or point on its way; it is recorded when it is dropped.
///
/// Strings past 65,535 bytes are cut and marked, arrays past as many elements too (see [`heph_encoder`]).
#[derive(Debug)]
pub struct Span<'r> {
    core: &'r Arc<Core>,
    body: Body,
    substream: u64,
    start: u64,
    end: Option<u64>,
}

impl<'r> Span<'r> {
    fn new(core: &'r Arc<Core>, name: &str) -> Self {
        let mut bytes = Body::default();
        // A body is never full, and its size is checked with that of the packet.
        let _ = body(&mut bytes, name).finish();
        Self { core, body: bytes, substream: 0, start: 0, end: None }
    }

    /// Puts it into a substream: a task among several on the thread.
    pub fn substream(&mut self, substream: u64) -> &mut Self {
        self.substream = substream;
        self
    }

    /// Gives it another name, formatted; drops the attributes so far.
    pub fn rename(&mut self, name: impl Display) -> &mut Self {
        self.body = Body::default();
        let _ = body_fmt(&mut self.body, format_args!("{name}")).finish();
        self
    }

    /// Adds an unsigned number.
    pub fn u64(&mut self, name: &str, value: u64) -> &mut Self {
        self.add(|event| event.u64(name, value).finish())
    }

    /// Adds a signed number.
    pub fn i64(&mut self, name: &str, value: i64) -> &mut Self {
        self.add(|event| event.i64(name, value).finish())
    }

    /// Adds a floating-point number.
    pub fn f64(&mut self, name: &str, value: f64) -> &mut Self {
        self.add(|event| event.f64(name, value).finish())
    }

    /// Adds a truth value, as the unsigned number 0 or 1.
    pub fn bool(&mut self, name: &str, value: bool) -> &mut Self {
        self.add(|event| event.bool(name, value).finish())
    }

    /// Adds a string.
    pub fn str(&mut self, name: &str, value: &str) -> &mut Self {
        self.add(|event| event.str(name, value).finish())
    }

    /// Adds what a value prints, as a string.
    pub fn display(&mut self, name: &str, value: impl Display) -> &mut Self {
        self.add(|event| event.display(name, value).finish())
    }

    /// Adds an array of unsigned numbers.
    pub fn u64s(&mut self, name: &str, values: &[u64]) -> &mut Self {
        self.add(|event| event.u64s(name, values).finish())
    }

    /// Adds an array of signed numbers.
    pub fn i64s(&mut self, name: &str, values: &[i64]) -> &mut Self {
        self.add(|event| event.i64s(name, values).finish())
    }

    /// Adds an array of floating-point numbers.
    pub fn f64s(&mut self, name: &str, values: &[f64]) -> &mut Self {
        self.add(|event| event.f64s(name, values).finish())
    }

    /// Adds an array of strings.
    pub fn strs<S: AsRef<str>>(&mut self, name: &str, values: &[S]) -> &mut Self {
        self.add(|event| event.strs(name, values).finish())
    }

    fn add(&mut self, add: impl FnOnce(&mut Event<'_, Body>) -> Result<(), heph_encoder::Error>) -> &mut Self {
        // As above.
        let _ = add(&mut Event::append(&mut self.body));
        self
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        let end = self.end.unwrap_or_else(|| self.core.now());
        Lane::with(self.core, |lane| lane.push(self.substream, self.start, end, &self.body));
    }
}
