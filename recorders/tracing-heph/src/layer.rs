//! What `tracing` tells becomes Heph events.

use std::num::NonZeroU64;

use tracing_core::{Event, Subscriber, span};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::body::Body;
use crate::builder::Builder;
use crate::lane::Lane;
use crate::recorder::Recorder;

/// Set in the substreams of lives ([`Builder::lives`]): a life's substream is that of the runs with this bit set.
pub const LIFE: u64 = 1 << 52;

/// Set in the substreams of tasks, so that no root span has the same number.
#[cfg(feature = "tokio")]
const TASK: u64 = 1 << 48;

/// What the events of one thread are told apart by.
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
    /// None: all events have substream 0. For programs with very many short root spans, where a lane for each would
    /// tell nothing.
    Zero,
}

/// What of a span is recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spans {
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
    spans: Spans,
    substream: Substream,
}

/// What is kept with a span.
#[derive(Debug)]
struct Kept {
    /// Whose it is, when several such layers stand in one subscriber.
    owner: usize,
    substream: u64,
    made_ns: u64,
    busy_ns: u64,
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
    /// Starts to set one up.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(recorder: Recorder, spans: Spans, substream: Substream) -> Self {
        Self { recorder, spans, substream }
    }

    /// Records into the same trace without `tracing`.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    fn owner(&self) -> usize {
        std::sync::Arc::as_ptr(self.recorder.core()).addr()
    }

    fn with<R>(&self, f: impl FnOnce(&mut Lane) -> R) -> R {
        Lane::with(self.recorder.core(), f)
    }

    /// The substream of a span that is known to the registry.
    fn substream_of<S>(&self, id: &span::Id, ctx: &Context<'_, S>) -> Option<u64>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let span = ctx.span(id)?;
        let extensions = span.extensions();
        extensions.get::<Kept>()?.of(self.owner()).map(|kept| kept.substream)
    }

    /// The substream that the span has which the thread is in, if it is in one.
    fn current_substream<S>(&self, ctx: &Context<'_, S>) -> Option<u64>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let id = match self.with(|lane| lane.current().map(|open| (open.id, open.substream)))? {
            (_, Some(substream)) => return Some(substream),
            (id, None) => id,
        };
        let substream = self.substream_of(&span::Id::from_non_zero_u64(NonZeroU64::new(id)?), ctx)?;
        self.with(|lane| {
            if let Some(open) = lane.current() {
                open.substream = Some(substream);
            }
        });
        Some(substream)
    }

    /// The task that runs on this thread, if substreams are tasks.
    fn task(&self) -> Option<u64> {
        match self.substream {
            #[cfg(feature = "tokio")]
            Substream::TokioTask => tokio::task::try_id().map(|id| crate::task::number(id) | TASK),
            _ => None,
        }
    }
}

impl<S> Layer<S> for HephLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(id) else { return };
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
        let substream = self.with(|lane| {
            let substream = parent.unwrap_or_else(|| lane.new_substream());
            lane.made(id.into_u64(), substream);
            substream
        });
        let made_ns = if self.spans.lives { self.recorder.now_ns() } else { 0 };
        let mut kept = Kept { owner: self.owner(), substream, made_ns, busy_ns: 0, body, others: None };
        let mut extensions = span.extensions_mut();
        kept.others = extensions.remove::<Kept>().map(Box::new);
        extensions.insert(kept);
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(id) else { return };
        // A value's `Debug` may use the span itself: it is formatted before the span is locked.
        let news = Body::of_record(values);
        if let Some(kept) = span.extensions_mut().get_mut::<Kept>().and_then(|kept| kept.of_mut(self.owner())) {
            kept.body.set(&news);
        }
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        let body = Body::of_event(event, self.recorder.core().shown);
        let substream = self.task().or_else(|| match event.parent() {
            _ if self.substream == Substream::Zero => None,
            Some(parent) => self.substream_of(parent, &ctx),
            None if event.is_contextual() => self.current_substream(&ctx),
            None => None,
        });
        let now_ns = self.recorder.now_ns();
        self.with(|lane| lane.push(substream.unwrap_or(0), now_ns, now_ns, &body));
    }

    fn on_enter(&self, id: &span::Id, _: Context<'_, S>) {
        self.with(|lane| lane.enter(id.into_u64()));
    }

    fn on_exit(&self, id: &span::Id, ctx: Context<'_, S>) {
        // The clock is read first, so that the span's time is the program's and not ours.
        let end_ns = self.recorder.now_ns();
        let Some(span) = ctx.span(id) else { return };
        let owner = self.owner();
        let mut start_ns = None;
        {
            let extensions = span.extensions();
            let kept = extensions.get::<Kept>().and_then(|kept| kept.of(owner));
            self.with(|lane| {
                let Some(open) = lane.exit(id.into_u64()) else { return };
                start_ns = Some(open.start_ns);
                if let (Some(kept), true) = (kept, self.spans.runs) {
                    let substream = self.task().unwrap_or(kept.substream);
                    lane.push(substream, open.start_ns, end_ns, &kept.body);
                }
            });
        }
        if let (true, Some(start_ns)) = (self.spans.lives, start_ns)
            && let Some(kept) = span.extensions_mut().get_mut::<Kept>().and_then(|kept| kept.of_mut(owner))
        {
            kept.busy_ns = kept.busy_ns.saturating_add(end_ns.saturating_sub(start_ns));
        }
    }

    fn on_close(&self, id: span::Id, ctx: Context<'_, S>) {
        if !self.spans.lives {
            return;
        }
        let end_ns = self.recorder.now_ns();
        let Some(span) = ctx.span(&id) else { return };
        let mut extensions = span.extensions_mut();
        let Some(kept) = extensions.get_mut::<Kept>().and_then(|kept| kept.of_mut(self.owner())) else { return };
        let idle_ns = end_ns.saturating_sub(kept.made_ns).saturating_sub(kept.busy_ns);
        kept.body.busy_and_idle(kept.busy_ns, idle_ns);
        self.with(|lane| lane.push(kept.substream | LIFE, kept.made_ns, end_ns, &kept.body));
    }
}
