//! The next use of each line: what the policy OPT must know before a trace is simulated.

use std::sync::Arc;

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessKind, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::hash::Map;

use super::config::{Config, Policy};
use super::cores::Cores;
use super::touched::for_each_line;

/// Most line accesses that can be foreseen: 8 GiB of memory.
pub const FORESEEN_MAX: usize = 1 << 31;

/// For each line access of one line size, the number of the next access to that line.
pub type NextUses = Arc<Vec<u32>>;

/// No further use.
pub(super) const NEVER: u32 = u32::MAX;

/// Reads a trace and collects all next uses, in four bytes of memory for each line access and line size.
#[derive(Debug)]
pub struct NextUse {
    cores: Cores,
    with_fetches: bool,
    of: Vec<OfLine>,
}

/// Next uses of lines of one size, in caches of one kind.
#[derive(Debug)]
struct OfLine {
    shift: u32,
    is_private: bool,
    latest: Map<(u64, usize), u32>,
    next: Vec<u32>,
}

impl NextUse {
    /// Collects what these configurations must know; `None` when none of them has the policy OPT.
    pub fn new(configs: &[Config], cores: Cores, with_fetches: bool) -> Option<Self> {
        let mut of: Vec<OfLine> = Vec::new();
        for level in configs.iter().filter_map(|config| config.levels.first()).filter(|l| l.policy == Policy::Opt) {
            let (shift, is_private) = (level.geometry().shift, level.is_private);
            if !of.iter().any(|of| of.shift == shift && of.is_private == is_private) {
                of.push(OfLine { shift, is_private, latest: Map::default(), next: Vec::new() });
            }
        }
        (!of.is_empty()).then_some(Self { cores, with_fetches, of })
    }

    /// The result.
    pub fn finish(self) -> Foreseen {
        Foreseen(self.of.into_iter().map(|of| ((of.shift, of.is_private), Arc::new(of.next))).collect())
    }
}

/// Next uses, by log2 of the line's bytes and whether each core has its own cache.
#[derive(Debug, Clone, Default)]
pub struct Foreseen(Vec<((u32, bool), NextUses)>);

impl Foreseen {
    /// What a configuration must know.
    pub(super) fn of(&self, config: &Config) -> Option<NextUses> {
        let first = config.levels.first().filter(|level| level.policy == Policy::Opt)?;
        let key = (first.geometry().shift, first.is_private);
        self.0.iter().find(|(of, _)| *of == key).map(|(_, next)| Arc::clone(next))
    }
}

impl AccessSink for NextUse {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.cores.thread(number, id);
        Ok(())
    }

    fn type_name(&mut self, _number: TypeNumber, _name: Option<&[u8]>) -> Result<(), Error> {
        Ok(())
    }

    fn region_added(&mut self, _region: &RegionAdded) -> Result<(), Error> {
        Ok(())
    }

    fn region_removed(&mut self, _region: &RegionRemoved) -> Result<(), Error> {
        Ok(())
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        for of in &mut self.of {
            for access in batch.iter().filter(|access| self.with_fetches || access.kind != AccessKind::Fetch) {
                let core = if of.is_private { self.cores.of(access.thread) } else { 0 };
                for_each_line(access, of.shift, |at| {
                    let now = of.next.len();
                    let this = u32::try_from(now).unwrap_or(NEVER);
                    if let Some(before) = of.latest.insert((at, core), this)
                        && let Some(next) = of.next.get_mut(before as usize)
                    {
                        *next = this;
                    }
                    of.next.push(NEVER);
                });
                if of.next.len() > FORESEEN_MAX {
                    return Err(Error::limit(format!(
                        "opt can look ahead at most {FORESEEN_MAX} line accesses; the trace has more"
                    )));
                }
            }
        }
        Ok(())
    }
}
