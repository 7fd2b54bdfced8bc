//! Turns what `tracing` reports into Heph events.

use std::sync::Arc;

use tracing_core::{Event, Subscriber, span};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::body::{self, Body};
use crate::core::Core;
use crate::lane::Lane;
use crate::recorder::Recorder;
use crate::spans::{FoundSpan, Known, Spans, State};

/// Set in the substreams of lives ([`crate::Builder::lives`]): a life's substream is that of the runs with this bit set.
pub const LIFE: u64 = 1 << 52;

/// Set in the substreams of tasks, so that no root span has the same number.
#[cfg(feature = "tokio")]
const TASK: u64 = 1 << 48;

/// Distinguishes the events of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Substream {
    /// Each root span, that is one without a parent, has a number; the spans and events below it have it too.
    #[default]
    RootSpan,
    /// Each task of tokio has a number (that of `tokio::task::Id` with bit 48 set); outside of tasks as
    /// [`Self::RootSpan`].
    #[cfg(feature = "tokio")]
    TokioTask,
    /// None: all events have substream 0. For programs with very many short root spans, where a substream for each
    /// would not be useful.
    Zero,
}

/// What of a span is recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded {
    pub(crate) runs: bool,
    pub(crate) lives: bool,
}

/// A layer that records spans and events as a Heph trace.
///
/// ```
/// use tracing_heph::HephLayer;
/// use tracing_subscriber::layer::SubscriberExt;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("trace.heph");
/// let (layer, guard) = HephLayer::builder().file(&path).build()?;
/// let subscriber = tracing_subscriber::registry().with(layer);
/// tracing::subscriber::with_default(subscriber, || {
///     let _span = tracing::info_span!("request", id = 7).entered();
///     tracing::info!(bytes = 512, "answered");
/// });
/// assert_eq!(guard.close().written, 2);
/// # Ok::<(), tracing_heph::Error>(())
/// ```
#[derive(Debug)]
pub struct HephLayer {
    recorder: Recorder,
    recorded: Recorded,
    substream: Substream,
    spans: Arc<Spans>,
}

impl HephLayer {
    pub(crate) fn new(recorder: Recorder, recorded: Recorded, substream: Substream) -> Self {
        let spans = Arc::new(Spans::new(recorder.core().memory.as_ref()));
        if recorded.lives {
            recorder.core().set_spans(spans.clone());
        }
        Self { recorder, recorded, substream, spans }
    }

    /// Records into the same trace without `tracing`.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Lane) -> R) -> R {
        Lane::with(self.recorder.core(), f)
    }

    /// What identifies the span that the thread is in, if it is in one.
    #[inline]
    fn current(&self) -> Option<Known> {
        match self.with(|lane| lane.current())? {
            (_, Some(known)) => Some(known),
            (id, None) => {
                let known = self.spans.known(id)?;
                self.with(|lane| lane.set_current(known));
                Some(known)
            }
        }
    }

    /// The span around a new one or an event.
    #[inline]
    fn around(&self, parent: Option<&span::Id>, is_contextual: bool) -> Option<Known> {
        match parent {
            Some(parent) => self.spans.known(parent.into_u64()),
            None if is_contextual => self.current(),
            None => None,
        }
    }

    /// The task that runs on this thread, if substreams are tasks.
    #[inline]
    fn task(&self) -> Option<u64> {
        match self.substream {
            #[cfg(feature = "tokio")]
            Substream::TokioTask => tokio::task::try_id().map(|id| crate::task::number(id) | TASK),
            _ => None,
        }
    }

    /// Records a run of a span, which the thread leaves.
    #[inline]
    fn run(&self, id: u64, substream: u64, end: u64, body: &[u8]) -> Option<u64> {
        let task = self.task();
        self.with(|lane| {
            let start = lane.exit(id)?;
            if self.recorded.runs {
                lane.push(task.unwrap_or(substream), start, end, body);
            }
            Some(end.saturating_sub(start))
        })
    }

    /// The same of a span without a place. The maps are not locked meanwhile: a run may wait for memory.
    #[cold]
    fn run_other(&self, id: u64, found: Option<FoundSpan<'_>>, end: u64) -> Option<u64> {
        let state = self.spans.with_other(id, |state| {
            state.polls += 1;
            state.clone()
        });
        // Made before the layer was there: its entry is forgotten.
        let Some(mut state) = state else { return self.with(|lane| lane.exit(id)).and(None) };
        let poll = found.map_or(state.polls - 1, FoundSpan::count_poll);
        if poll > 0 {
            state.body.set_poll(poll);
        }
        let busy = self.run(id, state.known.substream, end, &state.body)?;
        if self.recorded.lives && found.is_none() {
            self.spans.with_other(id, |state| state.busy = state.busy.saturating_add(busy));
        }
        Some(busy)
    }

    /// Notes in the table that outlives the program who is in a span.
    #[cold]
    fn note_entered(&self, id: u64, count: u64) {
        if let Some(found) = self.spans.find(id).filter(|_| !self.recorder.core().is_foreign()) {
            found.set_entered(count, self.with(|lane| lane.thread()));
        }
    }

    /// Adds to the wake-up of a task which span that is, and whether the task woke itself.
    #[cold]
    fn add_woken(&self, event: &Event<'_>, body: &mut Body) {
        let Some(id) = body::woken(event) else { return };
        let Some(known) = self.spans.known(id) else { return };
        let is_own = self.with(|lane| lane.is_in(id));
        body.woken(known.number, is_own);
    }
}

impl<S> Layer<S> for HephLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, _: Context<'_, S>) {
        let core = self.recorder.core();
        if core.is_foreign() {
            return;
        }
        let parent = self.around(attributes.parent(), attributes.is_contextual());
        let number = id.into_u64();
        let is_zero = self.substream == Substream::Zero;
        let substream = if is_zero { Some(0) } else { parent.map(|parent| parent.substream) };
        let known = self.with(|lane| lane.made(number, substream));
        let numbers = (known.number, parent.map_or(0, |parent| parent.number));
        let body = Body::of_span(attributes, core.shown, numbers);
        let made = if self.recorded.lives || core.memory.is_some() { core.now() } else { 0 };
        self.spans.insert(number, known, made, body);
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, _: Context<'_, S>) {
        if self.recorder.core().is_foreign() {
            return;
        }
        // Before the span is looked for: a value's `Debug` may use the span itself.
        let news = Body::of_record(values);
        self.spans.change(id.into_u64(), |body| body.set(&news));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let around = self.around(event.parent(), event.is_contextual());
        let mut body = Body::of_event(event, self.recorder.core().shown, around.map_or(0, |around| around.number));
        if event.metadata().target() == body::WAKER_TARGET {
            self.add_woken(event, &mut body);
        }
        let substream = match self.task() {
            Some(task) => task,
            None if self.substream == Substream::Zero => 0,
            None => around.map_or(0, |around| around.substream),
        };
        let now = self.recorder.core().now();
        self.with(|lane| lane.push(substream, now, now, &body));
    }

    fn on_enter(&self, id: &span::Id, _: Context<'_, S>) {
        let count = self.with(|lane| lane.enter(id.into_u64()));
        if self.recorder.core().memory.is_some() {
            self.note_entered(id.into_u64(), count);
        }
    }

    fn on_exit(&self, id: &span::Id, _: Context<'_, S>) {
        let core = self.recorder.core();
        // The clock is read first, so that the span's time is the program's and not ours.
        let end = core.now();
        if core.is_foreign() {
            return;
        }
        let number = id.into_u64();
        let mut room = FoundSpan::room();
        let found = self.spans.find(number);
        if let (true, Some(found)) = (core.memory.is_some(), found) {
            found.set_entered(0, 0);
        }
        let busy = match found.and_then(|found| Some((found, found.body(&mut room)?))) {
            Some((found, body)) => match found.count_poll() {
                0 => self.run(number, found.known().substream, end, body),
                poll => self.run(number, found.known().substream, end, &Body::of_poll(body, poll)),
            },
            None => self.run_other(number, found, end),
        };
        if let (true, Some(found), Some(busy)) = (self.recorded.lives || core.memory.is_some(), found, busy) {
            found.add_busy(busy);
        }
    }

    fn on_close(&self, id: span::Id, _: Context<'_, S>) {
        if self.recorder.core().is_foreign() {
            return;
        }
        if !self.recorded.lives {
            return self.spans.forget(id.into_u64());
        }
        let end = self.recorder.core().now();
        if let Some(state) = self.spans.remove(id.into_u64()) {
            life(self.recorder.core(), state, end, false);
        }
    }
}

/// Records the life of a span that is closed, or still open at the end of the recording.
pub(crate) fn life(core: &Arc<Core>, state: State, end: u64, is_open: bool) {
    let State { known, made, busy, polls, mut body } = state;
    let idle = end.saturating_sub(made).saturating_sub(busy);
    body.life(core.duration_ns(busy), core.duration_ns(idle), polls, is_open);
    Lane::with(core, |lane| lane.push(known.substream | LIFE, made, end, &body));
}
