//! A simulation that counts the misses of marked accesses: less work than following all types.

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessFlags, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};

use super::config::Config;
use super::options::Options;
use super::results::Results;
use super::simulation::Simulation;

/// Marks an access, for [`ByMark`]. No trace has it: adapters in front of the simulation set it.
pub(crate) const MARKED: AccessFlags = AccessFlags(1 << 7);

/// Simulates caches, and counts the marked records that the first level did not serve.
#[derive(Debug)]
pub(crate) struct ByMark {
    simulation: Simulation,
}

impl ByMark {
    /// Begins with empty caches.
    ///
    /// # Errors
    /// Usage, when a configuration is wrong.
    pub(crate) fn new(config: &Config, options: Options) -> Result<Self, Error> {
        // Marks take the place of types.
        let options = Options { with_types: false, ..options };
        Ok(Self { simulation: Simulation::new(vec![config.clone()], options)? })
    }

    /// The results, and how many marked records the first level did not serve.
    ///
    /// # Errors
    /// As the sink's.
    pub(crate) fn finish(self) -> Result<(Results, u64), Error> {
        let mut marked = 0;
        let results = self.simulation.finish_with(&mut |beyond| marked = beyond(1).iter().sum())?;
        Ok((results, marked))
    }
}

impl AccessSink for ByMark {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.simulation.thread(number, id)
    }

    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.simulation.type_name(number, name)
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.simulation.region_added(region)
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.simulation.region_removed(region)
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        self.simulation.take_by(batch, &mut |batch, numbers| {
            numbers.extend(batch.iter().map(|access| u32::from(access.flags.has(MARKED))));
        })
    }
}
