//! Moments in the order of the file, for code that copies the peer, which reads a thread's buffers in that order.

use anytrace_core::{Diagnostic, Error, Input, OpenOptions, Sink};

use crate::options::OPTIONS;
use crate::wire::basic::walk_basic;
use crate::wire::fdr::FdrWalk;
use crate::wire::moment::{BasicMoments, FdrMoments, Moment, Moments};
use crate::wire::open::{Form, Opened, XrayTrace, end, read_to_end};
use crate::wire::record::TYPE_FDR;
use crate::wire::yaml::{YamlHeader, YamlMoments, walk_yaml};

/// The part of the header that tools need.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WireFacts {
    /// Ticks a second; 0 where unknown.
    pub(crate) cycle_frequency: u64,
    /// Whether each thread has buffers of its own.
    pub(crate) is_fdr: bool,
}

/// Sends diagnostics to a separate sink.
struct Apart<'a, M> {
    moments: &'a mut M,
    sink: &'a mut dyn Sink,
}

impl<M: Moments> Moments for Apart<'_, M> {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        self.moments.moment(moment)
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

/// Emits the moments of a trace in the order of the file; `start` receives the header first.
pub(crate) fn in_wire_order<M: Moments>(
    input: Input,
    options: &OpenOptions,
    start: impl FnOnce(WireFacts) -> M,
    sink: &mut dyn Sink,
) -> Result<(WireFacts, M), Error> {
    options.only("xray", &["endian"], OPTIONS)?;
    let Opened { cursor, form, limits } = XrayTrace::new(input, options).start(sink)?;
    let (facts, moments, cursor) = match form {
        Form::Empty | Form::Unreadable(_) => {
            let facts = WireFacts::default();
            (facts, start(facts), read_to_end(cursor)?)
        }
        Form::Yaml => {
            let mut facts = WireFacts::default();
            let mut moments = start(facts);
            let on_header = |_: &mut Apart<'_, M>, header: &YamlHeader| {
                facts.cycle_frequency = header.cycle_frequency;
                Ok(())
            };
            let mut apart = Apart { moments: &mut moments, sink };
            let (_, cursor) = walk_yaml(cursor, &limits, &mut YamlMoments { moments: &mut apart, on_header })?;
            (facts, moments, cursor)
        }
        Form::Binary(header, layout) => {
            let is_fdr = header.type_code == TYPE_FDR;
            let facts = WireFacts { cycle_frequency: header.cycle_frequency, is_fdr };
            let mut moments = start(facts);
            let mut apart = Apart { moments: &mut moments, sink };
            let cursor = if is_fdr {
                let mut fdr = FdrMoments::new(&mut apart, header.version);
                FdrWalk::new(cursor, header, layout, &limits).walk(&mut fdr)?.1
            } else {
                let mut basic = BasicMoments::new(&mut apart, header.version);
                let (_, cursor) = walk_basic(cursor, layout, &mut basic)?;
                basic.finish()?;
                cursor
            };
            (facts, moments, cursor)
        }
    };
    end(&cursor, sink)?;
    Ok((facts, moments))
}
