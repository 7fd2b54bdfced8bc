//! A checker's verdict on a trace.

use std::fmt;

use super::model::Model;
use super::options::Options;
use super::step::Step;

/// Why checking stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A rule of the model is broken.
    Fire(&'static str),
    /// An assertion of the reference fails.
    Assert(&'static str),
    /// The reference's process ends without a message (SIGABRT).
    Abort,
}

impl Fault {
    /// The reference's message; empty for an abort.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Fire(message) | Self::Assert(message) => message,
            Self::Abort => "",
        }
    }
}

/// The verdict on an entire trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No rule is broken.
    Ok,
    /// The first breach.
    Stop {
        /// Which record, from 0.
        index: usize,
        /// Its number in the trace.
        id: u64,
        /// True for assertions and aborts.
        is_assertion: bool,
        /// The reference's message.
        message: String,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Stop { index, id, is_assertion, message } => {
                let kind = if *is_assertion { "assert" } else { "fire" };
                write!(f, "{kind} at record {index} (id {id}): {message}")
            }
        }
    }
}

/// The reference's printed state: roots, lock associations, unclean entries.
///
/// The reference prints as many slots of roots as there are roots, so released ones show; here only present roots do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// `base/id` of each root, by slot.
    pub(crate) roots: String,
    /// Associations in the order of the hints, with the holder if the last acting thread has the lock.
    pub(crate) locks: Vec<String>,
    /// `address=state/invalidator`, newest first.
    pub(crate) unclean: String,
    /// `address=state/thread lost rights` of live entries whose maintenance is not complete, newest first.
    pub(crate) stale: String,
    /// What is not modelled, in order.
    pub(crate) doubts: String,
}

/// Checks a trace.
pub(crate) fn verdict(steps: &[Step], options: &Options) -> Verdict {
    run(steps, options, |_, _| {})
}

/// Checks a trace; the state is the one after the last step that broke no rule, seen by that step's thread.
pub(crate) fn final_state(steps: &[Step], options: &Options) -> (Verdict, State) {
    let mut state = State::default();
    let verdict = run(steps, options, |model, step| state = model.state(step.thread));
    (verdict, state)
}

/// How many reads before the first breach return a value other than the last written one.
pub(crate) fn wrong_reads(steps: &[Step], options: &Options) -> u64 {
    let mut count = 0;
    run(steps, options, |model, _| count = model.wrong_reads);
    count
}

fn run(steps: &[Step], options: &Options, mut after: impl FnMut(&Model, &Step)) -> Verdict {
    let mut model = Model::new(*options);
    for (index, step) in steps.iter().enumerate() {
        if let Err(fault) = model.step(step) {
            let is_assertion = !matches!(fault, Fault::Fire(_));
            return Verdict::Stop { index, id: step.id, is_assertion, message: fault.message().to_owned() };
        }
        after(&model, step);
    }
    Verdict::Ok
}

pub(crate) const UNINIT_WRITE: &str = "Attempted write to uninitialised location";
pub(crate) const THREAD_OWNED: &str = "Location owned by a thread but accessed by another";
pub(crate) const NO_LOCK: &str = "must have associated root with a lock";
pub(crate) const NOT_HELD: &str = "must write to pte while holding owner lock";
pub(crate) const PLAIN: &str = "Wrote plain without authorization";
pub(crate) const FROZEN: &str = "Wrote on a page with an unclean parent";
pub(crate) const VALID_VALID: &str = "BBM valid->valid";
pub(crate) const FREEZE_OWNED: &str = "Cannot freeze a location that is thread-locally owned";
pub(crate) const STALE: &str = "page handed over while TLBs may grant its old permissions";
pub(crate) const UNCLEAN_VALID: &str = "BBM invalid unclean->valid";
pub(crate) const UNCLEAN_CHILDREN: &str = "BBM write table descriptor with unclean children";
pub(crate) const DOUBLE_USE: &str = "double-use pte";
pub(crate) const UNMARK: &str = "unmark non-PTE";
pub(crate) const ENCODING: &str = "Saw invalid pte encoding";
pub(crate) const UNINIT_PTE: &str = "Saw uninitialised PTE on pgtable traversal";
pub(crate) const INPUT_SIZE: &str = "unsupported input address size";
pub(crate) const UNSET: &str =
    "attempted read of uninitialised system register without read_sysreg side effect installed";
pub(crate) const USED: &str = "cannot initialise used location";
pub(crate) const FREE_PTE: &str = "can't free location which is currently a PTE";
pub(crate) const NSH: &str = "Unsupported DSB NSH";
pub(crate) const NOT_BROADCAST: &str = "Unsupported TLBI (expected broadcast)";
pub(crate) const ASID: &str = "TTBR0_EL2 ASID is reserved 0";
pub(crate) const OTHER_ID: &str = "root already associated with an (VM/AS)ID";
pub(crate) const DUPLICATE_ID: &str = "duplicate (VM/AS)ID";
pub(crate) const REUSED: &str = "(VM/AS)ID reused without TLB maintenance";
pub(crate) const GLOBAL_KEPT: &str = "global entries of another tree may be in TLBs";
pub(crate) const GROUP: &str = "entries of a contiguous group differ";
pub(crate) const GROUP_KEPT: &str = "a contiguous group may be in TLBs";
pub(crate) const MANY_ROOTS: &str = "too many roots";
pub(crate) const MANY_ASSOCIATIONS: &str = "can't associate lock, not enough free lock slots";
pub(crate) const OWNER_IN_TREE: &str = "cannot change owned root if already in a tree";
pub(crate) const RELEASE_UNCLEAN: &str = "cannot release table where children are still unclean";
pub(crate) const NO_ROOT: &str = "root does not exist";
pub(crate) const IN_USE: &str = "cannot release table still in use";
pub(crate) const OWNER_UNINIT: &str = "cannot set thread owner for uninitialised PTE";
pub(crate) const OWNER_NON_PTE: &str = "cannot set thread owner for non PTE";
pub(crate) const OWNER_LEVEL: &str = "cannot set thread owner for non-final-level PTE";
pub(crate) const LOCKED: &str = "Tried to lock a component that was alerady held";
pub(crate) const MANY_LOCKS: &str = "Tried to acquire too many locks at once";
pub(crate) const REACQUIRE: &str = "Tried to reacquire lock on different thread";
pub(crate) const UNLOCK_FREE: &str = "Tried to unlock a component that was not held";
pub(crate) const UNLOCK_OTHER: &str = "Tried to unlock a cpmponent that was held by another thread";
pub(crate) const ASSERT_FALSE: &str = "assertion failed: false";
pub(crate) const ASSERT_GRANULE: &str = "assertion failed: discover_page_size(stage) == PAGE_SIZE";
pub(crate) const ASSERT_CONCATENATED: &str = "assertion failed: discover_nr_concatenated_pgtables(stage) == 0";
pub(crate) const ASSERT_TABLE: &str = "assertion failed: IS_PAGE_ALIGNED(table_start)";
pub(crate) const ASSERT_ADDRESS: &str = "assertion failed: IS_PAGE_ALIGNED(phys_addr)";
pub(crate) const ASSERT_SIZE: &str = "assertion failed: IS_PAGE_ALIGNED(size)";

/// Every message of section 2 (the abort has none).
pub(crate) const MESSAGES: &[&str] = &[
    UNINIT_WRITE,
    THREAD_OWNED,
    NO_LOCK,
    NOT_HELD,
    PLAIN,
    FROZEN,
    VALID_VALID,
    FREEZE_OWNED,
    UNCLEAN_VALID,
    STALE,
    UNCLEAN_CHILDREN,
    DOUBLE_USE,
    UNMARK,
    ENCODING,
    UNINIT_PTE,
    INPUT_SIZE,
    UNSET,
    USED,
    FREE_PTE,
    NSH,
    NOT_BROADCAST,
    ASID,
    OTHER_ID,
    DUPLICATE_ID,
    REUSED,
    GLOBAL_KEPT,
    GROUP,
    GROUP_KEPT,
    MANY_ROOTS,
    MANY_ASSOCIATIONS,
    OWNER_IN_TREE,
    RELEASE_UNCLEAN,
    NO_ROOT,
    IN_USE,
    OWNER_UNINIT,
    OWNER_NON_PTE,
    OWNER_LEVEL,
    LOCKED,
    MANY_LOCKS,
    REACQUIRE,
    UNLOCK_FREE,
    UNLOCK_OTHER,
    ASSERT_FALSE,
    ASSERT_GRANULE,
    ASSERT_CONCATENATED,
    ASSERT_TABLE,
    ASSERT_ADDRESS,
    ASSERT_SIZE,
];
