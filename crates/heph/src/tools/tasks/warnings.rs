//! What is remarkable about a task; the cases are those that tokio-console warns of.

/// A task that was polled once, for at least this long, never yields.
const NEVER_YIELDS_NS: u64 = 1_000_000_000;

/// A warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Warning {
    /// More than half of its wake-ups were its own: it polls in a circle. The share in percent.
    SelfWakes(u64),
    /// It waits, and all its wakers are gone: nobody can wake it.
    LostWaker,
    /// It was polled once for a second or more, without a pause.
    NeverYields(u64),
    /// Polls that took as long as the limit or longer: how many, and the longest.
    LongPolls(u64, u64),
}

/// What warnings are about.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signs {
    pub(super) longest_ns: u64,
    pub(super) long_polls: u64,
    pub(super) wakes: u64,
    pub(super) self_wakes: u64,
    /// Wakers that were made by cloning or dropped; by value, waking drops too.
    pub(super) clones: u64,
    pub(super) drops: u64,
    /// True when the longest poll was the first, and nothing followed but the end: a future that is dropped is entered
    /// for that.
    pub(super) is_one_poll: bool,
    /// True when it is known that the task has not ended, and nobody woke it since its last poll.
    pub(super) waits: bool,
}

impl Warning {
    /// Its name for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::SelfWakes(_) => "self-wakes",
            Self::LostWaker => "lost-waker",
            Self::NeverYields(_) => "never-yields",
            Self::LongPolls(..) => "long-polls",
        }
    }

    pub(super) fn of(signs: &Signs) -> Vec<Self> {
        let mut found = Vec::new();
        if signs.self_wakes * 2 > signs.wakes {
            found.push(Self::SelfWakes(signs.self_wakes.saturating_mul(100) / signs.wakes.max(1)));
        }
        if signs.waits && signs.clones > 0 && signs.drops >= signs.clones {
            found.push(Self::LostWaker);
        }
        if signs.is_one_poll && signs.longest_ns >= NEVER_YIELDS_NS {
            found.push(Self::NeverYields(signs.longest_ns));
        } else if signs.long_polls > 0 {
            found.push(Self::LongPolls(signs.long_polls, signs.longest_ns));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_warning_has_its_case_and_a_quiet_task_has_none() {
        let quiet = Signs { longest_ns: 5, wakes: 2, self_wakes: 1, clones: 2, drops: 1, ..Signs::default() };
        assert_eq!(Warning::of(&quiet), []);
        assert_eq!(Warning::of(&Signs { self_wakes: 2, ..quiet }), [Warning::SelfWakes(100)]);
        assert_eq!(Warning::of(&Signs { drops: 2, ..quiet }), []);
        assert_eq!(Warning::of(&Signs { drops: 2, waits: true, ..quiet }), [Warning::LostWaker]);
        assert_eq!(Warning::of(&Signs { waits: true, clones: 0, drops: 0, ..quiet }), []);
        assert_eq!(Warning::of(&Signs { long_polls: 2, longest_ns: 9, ..quiet }), [Warning::LongPolls(2, 9)]);
        let second = Signs { is_one_poll: true, longest_ns: NEVER_YIELDS_NS, long_polls: 1, ..quiet };
        assert_eq!(Warning::of(&second), [Warning::NeverYields(NEVER_YIELDS_NS)]);
    }
}
