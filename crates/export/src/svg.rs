//! A flame graph of a trace's self time as SVG: to open in a browser, click into and search.
//!
//! Counted as [`crate::folded`] does and drawn as [`crate::flame`] does; the verb `flame` has more options. Memory grows with distinct
//! stacks and the text of the folded lines.

use std::io::Write;

use anytrace_core::span::{EdgeBatch, Location, NameId, SpanSource, Track, TrackId};
use anytrace_core::{Error, SpanSink};

use crate::flame::{self, SvgOptions};
use crate::folded::Tally;
use crate::timeline::{Outlet, Timeline};

/// A flame graph, as its times are counted.
pub struct Svg<'a> {
    out: &'a mut dyn Write,
    title: String,
    tally: Tally,
}

impl<'a> Svg<'a> {
    /// Begins; all is written in [`Timeline::finish`].
    pub fn new(outlet: Outlet<'a>) -> Self {
        Self { out: outlet.out, title: outlet.title.to_owned(), tally: Tally::default() }
    }
}

impl SpanSink for Svg<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.tally.source(source);
        Ok(())
    }

    fn wants_attributes(&self) -> bool {
        false
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        self.tally.track(track);
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], _location: Option<&Location>) -> Result<(), Error> {
        self.tally.name(name);
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        batch.edges().iter().for_each(|edge| self.tally.edge(edge));
        Ok(())
    }
}

impl Timeline for Svg<'_> {
    fn finish(&mut self) -> Result<(), Error> {
        let mut lines = String::new();
        let mut has_weight = false;
        self.tally.each_line(|line| {
            has_weight |= !line.ends_with(b" 0");
            lines.push_str(&String::from_utf8_lossy(line));
            lines.push('\n');
            Ok(())
        })?;
        if !has_weight {
            // The picture of nothing: a line of some weight is what the drawing takes.
            lines = "nothing took any time 1\n".to_owned();
        }
        let options = SvgOptions {
            title: self.title.clone(),
            subtitle: self.tally.note().unwrap_or_default(),
            unit: self.tally.unit().to_owned(),
            is_inverted: false,
        };
        flame::svg(&lines, &options, &mut self.out).map_err(|error| Error::io("writing", error))
    }
}
