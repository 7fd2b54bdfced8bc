//! What the packets of a trace break or show beyond their grammar.

use anytrace_core::{Place, text};

/// A violation of the rules beyond grammar, or an oddity, and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) place: Place,
    pub(crate) what: FindingKind,
}

/// The kind of a [`Finding`]: the warnings of the corpus, by its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FindingKind {
    NoEpochYet,
    EpochAfterEvents,
    EpochSetAgain { before: u64, now: u64 },
    UnknownOption,
    EndBeforeStart { start: u64, end: u64 },
    CounterStartsAt { stream: u32, first: u32 },
    CounterGap { stream: u32, missing: u32 },
    CounterBack { stream: u32, by: u32 },
    CounterDoubtful { stream: u32, missing: u32 },
    TailMissing { stream: u32, missing: u64 },
}

impl Finding {
    /// Appends the warning in the corpus's notation: `counter-gap:3`.
    pub(crate) fn push_name(&self, out: &mut Vec<u8>) {
        let (name, number) = match self.what {
            FindingKind::NoEpochYet => ("no-epoch-yet", None),
            FindingKind::EpochAfterEvents => ("epoch-after-events", None),
            FindingKind::EpochSetAgain { .. } => ("epoch-set-again", None),
            FindingKind::UnknownOption => ("unknown-option", None),
            FindingKind::EndBeforeStart { .. } => ("end-before-start", None),
            FindingKind::CounterStartsAt { first: n, .. } => ("counter-starts-at", Some(n)),
            FindingKind::CounterGap { missing: n, .. } => ("counter-gap", Some(n)),
            FindingKind::CounterBack { by: n, .. } => ("counter-back", Some(n)),
            FindingKind::CounterDoubtful { missing: n, .. } => ("counter-doubtful", Some(n)),
            FindingKind::TailMissing { missing, .. } => {
                ("tail-missing", Some(u32::try_from(missing).unwrap_or(u32::MAX)))
            }
        };
        out.extend_from_slice(name.as_bytes());
        if let Some(number) = number {
            out.push(b':');
            text::push_dec(out, number);
        }
    }
}
