//! Which thread runs on which core.

use anytrace_core::access::ThreadNumber;

use super::config::CORES_MAX;

/// Which thread runs on which core.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CorePlan {
    /// Each thread has its own core, in order of first appearance; from [`CORES_MAX`] threads on they share.
    #[default]
    PerThread,
    /// This many cores, in turn.
    Count(usize),
    /// Cores of threads by their ids in the trace; other threads take turns on the cores after the highest one listed.
    Map(Vec<(u64, usize)>),
}

/// Cores of threads.
#[derive(Debug, Clone, Default)]
pub struct Cores {
    plan: CorePlan,
    /// By thread. The list is copied for each chunk of accesses that others work off.
    of: Vec<u8>,
    others: usize,
    /// The highest core and one.
    count: usize,
}

impl Cores {
    /// Begins without threads.
    pub fn new(plan: CorePlan) -> Self {
        Self { plan, of: Vec::new(), others: 0, count: 0 }
    }

    /// The core that a thread of this id would get now.
    pub(super) fn next(&self, id: Option<u64>) -> usize {
        let in_turn = self.others;
        let core = match &self.plan {
            CorePlan::PerThread => in_turn,
            CorePlan::Count(cores) => in_turn % (*cores).max(1),
            CorePlan::Map(map) => match map.iter().find(|(of, _)| Some(*of) == id) {
                Some((_, core)) => *core,
                None => map.iter().map(|(_, core)| core + 1).max().unwrap_or(0) + in_turn,
            },
        };
        core % CORES_MAX
    }

    /// Takes a thread; gives its core.
    pub(super) fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> usize {
        let core = self.next(id);
        let is_mapped = matches!(&self.plan, CorePlan::Map(map) if map.iter().any(|(of, _)| Some(*of) == id));
        self.others += usize::from(!is_mapped);
        let at = number as usize;
        if at >= self.of.len() {
            self.of.resize(at + 1, 0);
        }
        if let Some(place) = self.of.get_mut(at) {
            *place = u8::try_from(core).expect("CORES_MAX fits 8 bits");
        }
        self.count = self.count.max(core + 1);
        core
    }

    /// The core of a thread.
    #[inline]
    pub(super) fn of(&self, thread: ThreadNumber) -> usize {
        self.of.get(thread as usize).map_or(0, |core| usize::from(*core))
    }

    /// Cores assigned so far: the highest and all below it.
    pub(super) fn count(&self) -> usize {
        self.count.max(1)
    }
}
