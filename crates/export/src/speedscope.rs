//! speedscope's own file: one evented profile per track.
//!
//! The file needs a track's events together, so they are buffered in the spool until the end; memory grows with
//! distinct names and tracks only. Times are integral nanoseconds since the trace's origin, or plain units (`none`)
//! where the trace has no clock. Spans only: instants, counters, flows, attributes and flags cannot be expressed.
//! Schema: `file-format-schema.json` of the npm package `speedscope`.

use anytrace_core::span::{EdgeBatch, EdgeKind, Location, NameId, SpanSource, Track, TrackId};
use anytrace_core::{Error, SpanSink, text};

use crate::formatters::Formatters;
use crate::pen::Pen;
use crate::spool::{Item, Lanes};
use crate::timeline::clock::Clock;
use crate::timeline::output::{Outlet, Timeline};
use crate::timeline::words::{Fragments, full_label, shown};

/// Events that are formatted at once.
const BATCH_ITEMS: usize = 16 * 1024;

/// A speedscope file being written.
pub struct Speedscope<'a> {
    pen: Pen<'a>,
    clock: Clock,
    title: String,
    lanes: Lanes<'a>,
    labels: Fragments,
    /// A frame object of each name.
    names: Fragments,
    /// Number of the frame of each name; `u32::MAX` while it has none.
    frames: Vec<u32>,
    /// The names that are frames, in order.
    used: Vec<NameId>,
    formatters: Formatters<Vec<Item>>,
}

impl<'a> Speedscope<'a> {
    /// Begins a file; all is written in [`Timeline::finish`].
    pub fn new(outlet: Outlet<'a>) -> Self {
        Self {
            pen: Pen::new(outlet.out),
            clock: Clock::default(),
            title: outlet.title.to_owned(),
            lanes: Lanes::new(outlet.spool),
            labels: Fragments::default(),
            names: Fragments::default(),
            frames: Vec::new(),
            used: Vec::new(),
            formatters: Formatters::new(outlet.threads, |items, out| {
                for item in items {
                    out.extend_from_slice(b",\n");
                    push_event(out, *item);
                }
            }),
        }
    }

    fn frame(&mut self, name: NameId) -> u32 {
        let Some(frame) = self.frames.get_mut(name as usize) else { return 0 };
        if *frame == u32::MAX {
            *frame = u32::try_from(self.used.len()).unwrap_or(u32::MAX - 1);
            self.used.push(name);
        }
        *frame
    }

    fn head(&mut self) -> Result<(), Error> {
        self.pen.push("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"anytrace ");
        self.pen.push(env!("CARGO_PKG_VERSION"));
        self.pen.push("\",\"name\":");
        let title = match self.clock.note() {
            Some(note) if self.title.is_empty() => note,
            Some(note) => format!("{} ({note})", self.title),
            None => self.title.clone(),
        };
        text::push_json_str(&mut self.pen.bytes, &title);
        self.pen.push(",\"activeProfileIndex\":0,\"shared\":{\"frames\":[");
        for (n, &name) in self.used.iter().enumerate() {
            self.pen.push(if n == 0 { "\n" } else { ",\n" });
            self.pen.bytes.extend_from_slice(self.names.get(name));
            self.pen.rest()?;
        }
        self.pen.push("\n]},\"profiles\":[");
        Ok(())
    }

    fn profile(&mut self, track: usize) -> Result<(), Error> {
        let (start, end) = self.lanes.range(track);
        let Self { pen, lanes, labels, formatters, .. } = self;
        pen.push("\n{\"type\":\"evented\",\"name\":");
        pen.bytes.extend_from_slice(labels.get(u32::try_from(track).unwrap_or(u32::MAX)));
        pen.push(if self.clock.is_real() { ",\"unit\":\"nanoseconds\"" } else { ",\"unit\":\"none\"" });
        pen.push(",\"startValue\":");
        text::push_dec(&mut pen.bytes, start);
        pen.push(",\"endValue\":");
        text::push_dec(&mut pen.bytes, end);
        pen.push(",\"events\":[");
        let (mut is_first, mut items) = (true, Vec::new());
        lanes.each(track, |item| {
            if is_first {
                is_first = false;
                pen.push("\n");
                push_event(&mut pen.bytes, item);
                return Ok(());
            }
            items.push(item);
            if items.len() < BATCH_ITEMS {
                return Ok(());
            }
            let mut empty = formatters.spare().unwrap_or_default();
            empty.clear();
            formatters.give(std::mem::replace(&mut items, empty), pen)
        })?;
        formatters.give(items, pen)?;
        formatters.finish(pen)?;
        pen.push("\n]}");
        Ok(())
    }
}

/// A frame is opened or closed.
fn push_event(out: &mut Vec<u8>, item: Item) {
    let is_begin = item.word & 1 == 0;
    let (open, close) = (b"{\"type\":\"O\",\"frame\":", b"{\"type\":\"C\",\"frame\":");
    out.extend_from_slice(if is_begin { open } else { close });
    text::push_dec(out, item.word >> 1);
    out.extend_from_slice(b",\"at\":");
    text::push_dec(out, item.time);
    out.push(b'}');
}

impl SpanSink for Speedscope<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.clock = Clock::new(source);
        Ok(())
    }

    fn wants_attributes(&self) -> bool {
        false
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        self.labels.add(|out| text::push_json_str(out, &full_label(track)));
        self.lanes.add();
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        self.frames.push(u32::MAX);
        self.names.add(|out| {
            out.extend_from_slice(b"{\"name\":");
            text::push_json_str(out, &shown(name));
            if let Some(location) = location {
                out.extend_from_slice(b",\"file\":");
                text::push_json_str(out, &location.file);
                if location.line > 0 {
                    out.extend_from_slice(b",\"line\":");
                    text::push_dec(out, location.line);
                }
            }
            out.push(b'}');
        });
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            let is_end = match edge.kind {
                EdgeKind::Begin => 0,
                EdgeKind::End => 1,
                _ => continue,
            };
            let word = u64::from(self.frame(edge.name)) << 1 | is_end;
            self.lanes.push(edge.track, Item { time: self.clock.since_origin(edge.time), word })?;
        }
        Ok(())
    }
}

impl Timeline for Speedscope<'_> {
    fn finish(&mut self) -> Result<(), Error> {
        self.head()?;
        let mut is_first = true;
        for track in 0..self.lanes.len() {
            if self.lanes.count(track) == 0 {
                continue;
            }
            if !is_first {
                self.pen.push(",");
            }
            is_first = false;
            self.profile(track)?;
        }
        self.pen.push("\n]}\n");
        self.pen.finish()
    }
}
