//! One pass over a trace's accesses that runs any number of engines.
//!
//! ```
//! use anytrace_analysis::fan::Fan;
//! use anytrace_analysis::heat::HeatCounter;
//! use anytrace_analysis::reuse::{Reuse, ReuseOptions};
//!
//! let (mut heat, mut reuse) = (HeatCounter::new(None, 64), Reuse::new(ReuseOptions::default()));
//! let mut fan = Fan::new(vec![&mut heat, &mut reuse]);
//! // `trace.accesses(&mut fan, &mut sink)?` emits the trace.
//! drop(fan);
//! assert_eq!((heat.finish(1, 1, 1).accesses, reuse.finish(0).curve.line_accesses), (0, 0));
//! ```

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};

/// Passes everything to each of its sinks, in order. It asks for all accesses, whatever the sinks could do without.
pub struct Fan<'a> {
    sinks: Vec<&'a mut dyn AccessSink>,
}

impl<'a> Fan<'a> {
    /// A fan of these sinks.
    pub fn new(sinks: Vec<&'a mut dyn AccessSink>) -> Self {
        Self { sinks }
    }

    fn each(&mut self, mut call: impl FnMut(&mut dyn AccessSink) -> Result<(), Error>) -> Result<(), Error> {
        self.sinks.iter_mut().try_for_each(|sink| call(&mut **sink))
    }
}

impl AccessSink for Fan<'_> {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.each(|sink| sink.thread(number, id))
    }

    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.each(|sink| sink.type_name(number, name))
    }

    fn fields_known(&mut self, number: TypeNumber) -> Result<(), Error> {
        self.each(|sink| sink.fields_known(number))
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.each(|sink| sink.region_added(region))
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.each(|sink| sink.region_removed(region))
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        self.each(|sink| sink.accesses(batch))
    }
}
