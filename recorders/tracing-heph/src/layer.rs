//! Turns what `tracing` reports into Heph events.

use std::num::NonZeroU64;
use std::sync::Arc;

use tracing_core::{Event, Subscriber, span};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::body::Body;
use crate::lane::Lane;
use crate::recorder::Recorder;
use crate::spans::{FoundSpan, Spans};

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
    spans: Spans,
}

/// What is kept in the extensions of a span that has no room in the table, or whose fields were set later.
#[derive(Debug)]
struct Kept {
    /// Its owner: a subscriber may contain several such layers.
    owner: usize,
    substream: u64,
    made: u64,
    busy: u64,
    body: Body,
    others: Option<Box<Kept>>,
}

impl Kept {
    fn of(&self, owner: usize) -> Option<&Self> {
        if self.owner == owner { Some(self) } else { self.others.as_ref()?.of(owner) }
    }

    fn of_mut(&mut self, owner: usize) -> Option<&mut Self> {
        if self.owner == owner { Some(self) } else { self.others.as_mut()?.of_mut(owner) }
    }
}

impl HephLayer {
    pub(crate) fn new(recorder: Recorder, recorded: Recorded, substream: Substream) -> Self {
        Self { recorder, recorded, substream, spans: Spans::new() }
    }

    /// Records into the same trace without `tracing`.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    fn owner(&self) -> usize {
        Arc::as_ptr(self.recorder.core()).addr()
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Lane) -> R) -> R {
        Lane::with(self.recorder.core(), f)
    }

    /// The substream of a span that was made before.
    fn substream_of<S>(&self, id: &span::Id, ctx: &Context<'_, S>) -> Option<u64>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        if let Some(found) = self.spans.find(id.into_u64()) {
            return Some(found.substream());
        }
        let span = ctx.span(id)?;
        let extensions = span.extensions();
        extensions.get::<Kept>()?.of(self.owner()).map(|kept| kept.substream)
    }
}

impl HephLayer {
    /// The substream that the span has which the thread is in, if it is in one.
    #[inline]
    fn current_substream<S>(&self, ctx: &Context<'_, S>) -> Option<u64>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        match self.with(|lane| lane.current())? {
            (_, Some(substream)) => Some(substream),
            (id, None) => {
                let substream = self.substream_of(&span_id(id)?, ctx)?;
                self.with(|lane| lane.set_current_substream(substream));
                Some(substream)
            }
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
}

impl<S> Layer<S> for HephLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, ctx: Context<'_, S>) {
        let body = Body::of_span(attributes, self.recorder.core().shown);
        let parent = if self.substream == Substream::Zero {
            Some(0)
        } else if let Some(parent) = attributes.parent() {
            self.substream_of(parent, &ctx)
        } else if attributes.is_contextual() {
            self.current_substream(&ctx)
        } else {
            None
        };
        let number = id.into_u64();
        let substream = self.with(|lane| lane.made(number, parent));
        let made = if self.recorded.lives { self.recorder.core().now() } else { 0 };
        if !self.spans.insert(number, substream, made, &body) {
            self.keep(id, substream, made, body, &ctx);
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, ctx: Context<'_, S>) {
        // Before the span is locked: a value's `Debug` may use the span itself.
        let news = Body::of_record(values);
        let Some(span) = ctx.span(id) else { return };
        let mut extensions = span.extensions_mut();
        if let Some(kept) = extensions.get_mut::<Kept>().and_then(|kept| kept.of_mut(self.owner())) {
            return kept.body.set(&news);
        }
        let Some(found) = self.spans.find(id.into_u64()) else { return };
        let mut room = FoundSpan::room();
        let mut body = Body::from(found.body(&mut room).unwrap_or_default());
        body.set(&news);
        let others = extensions.remove::<Kept>().map(Box::new);
        let (substream, made) = (found.substream(), found.made());
        extensions.insert(Kept { owner: self.owner(), substream, made, busy: 0, body, others });
        found.moved();
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        let body = Body::of_event(event, self.recorder.core().shown);
        let substream = self.task().or_else(|| match event.parent() {
            _ if self.substream == Substream::Zero => None,
            Some(parent) => self.substream_of(parent, &ctx),
            None if event.is_contextual() => self.current_substream(&ctx),
            None => None,
        });
        let now = self.recorder.core().now();
        self.with(|lane| lane.push(substream.unwrap_or(0), now, now, &body));
    }

    fn on_enter(&self, id: &span::Id, _: Context<'_, S>) {
        self.with(|lane| lane.enter(id.into_u64()));
    }

    fn on_exit(&self, id: &span::Id, ctx: Context<'_, S>) {
        // The clock is read first, so that the span's time is the program's and not ours.
        let end = self.recorder.core().now();
        let number = id.into_u64();
        let mut room = FoundSpan::room();
        let found = self.spans.find(number);
        let busy = match found.and_then(|found| Some((found.substream(), found.body(&mut room)?))) {
            Some((substream, body)) => self.run(number, substream, end, body),
            None => self.run_kept(id, end, &ctx),
        };
        if let (true, Some(found), Some(busy)) = (self.recorded.lives, found, busy) {
            found.add_busy(busy);
        }
    }

    fn on_close(&self, id: span::Id, ctx: Context<'_, S>) {
        let found = self.spans.find(id.into_u64());
        if self.recorded.lives {
            let end = self.recorder.core().now();
            let mut room = FoundSpan::room();
            match found.and_then(|found| Some((found, found.body(&mut room)?))) {
                Some((found, body)) => {
                    let (substream, made, busy) = (found.substream(), found.made(), found.busy());
                    self.life(substream, made..end, busy, Body::from(body));
                }
                None => self.life_kept(&id, found, end, &ctx),
            }
        }
        if let Some(found) = found {
            found.remove();
        }
    }
}

/// The rare paths: spans that are kept in their extensions, and lives.
impl HephLayer {
    #[cold]
    fn keep<S>(&self, id: &span::Id, substream: u64, made: u64, body: Body, ctx: &Context<'_, S>)
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let Some(span) = ctx.span(id) else { return };
        let mut extensions = span.extensions_mut();
        let others = extensions.remove::<Kept>().map(Box::new);
        extensions.insert(Kept { owner: self.owner(), substream, made, busy: 0, body, others });
    }

    #[cold]
    fn run_kept<S>(&self, id: &span::Id, end: u64, ctx: &Context<'_, S>) -> Option<u64>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let owner = self.owner();
        let span = ctx.span(id)?;
        let busy = {
            let extensions = span.extensions();
            match extensions.get::<Kept>().and_then(|kept| kept.of(owner)) {
                Some(kept) => self.run(id.into_u64(), kept.substream, end, &kept.body)?,
                // Made before the layer was there: its entry is forgotten.
                None => return self.with(|lane| lane.exit(id.into_u64())).and(None),
            }
        };
        if self.recorded.lives && self.spans.find(id.into_u64()).is_none() {
            let mut extensions = span.extensions_mut();
            if let Some(kept) = extensions.get_mut::<Kept>().and_then(|kept| kept.of_mut(owner)) {
                kept.busy = kept.busy.saturating_add(busy);
            }
        }
        Some(busy)
    }

    fn life(&self, substream: u64, time: std::ops::Range<u64>, busy: u64, mut body: Body) {
        let idle = time.end.saturating_sub(time.start).saturating_sub(busy);
        let core = self.recorder.core();
        body.busy_and_idle(core.duration_ns(busy), core.duration_ns(idle));
        self.with(|lane| lane.push(substream | LIFE, time.start, time.end, &body));
    }

    #[cold]
    fn life_kept<S>(&self, id: &span::Id, found: Option<FoundSpan<'_>>, end: u64, ctx: &Context<'_, S>)
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let Some(span) = ctx.span(id) else { return };
        let extensions = span.extensions();
        let Some(kept) = extensions.get::<Kept>().and_then(|kept| kept.of(self.owner())) else { return };
        let busy = kept.busy.saturating_add(found.map_or(0, FoundSpan::busy));
        self.life(kept.substream, kept.made..end, busy, kept.body.clone());
    }
}

fn span_id(number: u64) -> Option<span::Id> {
    NonZeroU64::new(number).map(span::Id::from_non_zero_u64)
}
