//! The break-before-make checker as part of `check`: the architecture's rules, continuing after each violation.

use anytrace_core::{Error, Severity};

use crate::model::{Checker, Options, Violation};
use crate::wire::record::Record;
use crate::wire::walk::{Here, Item};

/// Checks one trace, piece by piece. Memory: see [`Checker`].
pub(crate) struct ModelCheck {
    checker: Checker,
    /// Bytes were lost: the effect of the steps in them is unknown.
    has_loss: bool,
    /// A step did something that is not modelled.
    has_doubt: bool,
}

impl ModelCheck {
    pub(crate) fn new() -> Self {
        Self {
            checker: Checker::new(Options { goes_on: true, ..Options::ARCHITECTURE }),
            has_loss: false,
            has_doubt: false,
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, item: &Item<'_>, place: &mut Here<'_>) -> Result<(), Error> {
        match item {
            Item::Record(record) if self.apply(item) => self.report(record, place),
            Item::Record(_) => Ok(()),
            _ => {
                self.apply(item);
                Ok(())
            }
        }
    }

    /// Applies the next piece; true if it breaks a rule: [`Self::violations`].
    #[inline]
    pub(crate) fn apply(&mut self, item: &Item<'_>) -> bool {
        match item {
            Item::Record(record) => {
                let found = self.checker.step(record.thread, &record.transition);
                if found.is_empty() {
                    return false;
                }
                self.has_doubt |= found.iter().any(|violation| violation.breach.is_doubt);
                true
            }
            Item::Lost(_) => {
                self.has_loss = true;
                false
            }
            _ => false,
        }
    }

    /// The rules that the last record breaks.
    pub(crate) fn violations(&self) -> &[Violation] {
        self.checker.found()
    }

    /// Error or warning: records lost before, and steps that are not modelled, may have made an error valid.
    pub(crate) fn severity(&self, violation: &Violation) -> Severity {
        if self.has_loss || self.has_doubt { violation.severity.min(Severity::Warning) } else { violation.severity }
    }

    #[cold]
    fn report(&mut self, record: &Record<'_>, place: &mut Here<'_>) -> Result<(), Error> {
        for violation in self.violations() {
            let mut complaint = place.complaint(violation.breach.rule, 0).record(place.seq);
            complaint = complaint.found(found(violation, record));
            if (self.has_loss || self.has_doubt) && violation.is_error() {
                let help = match self.has_loss {
                    true => "records before this one were lost; they may have made it valid",
                    false => "records before this one are not modelled; they may have made it valid",
                };
                complaint = complaint.severity(Severity::Warning).help(help);
            }
            place.report(complaint)?;
        }
        Ok(())
    }
}

fn found(violation: &Violation, record: &Record<'_>) -> String {
    let mut text = format!("{} (id {}, thread {}", record.kind().name(), record.id, record.thread);
    if let Some(location) = violation.location {
        text.push_str(&format!(", at {location:#x}"));
    }
    if violation.more > 0 {
        text.push_str(&format!(" and {} more", violation.more));
    }
    let stale = || violation.stale.map(|stale| stale.words()).or(violation.reuse.map(|reuse| reuse.words()));
    if let Some(words) = violation.change.and_then(|change| change.words(true)).or_else(stale) {
        text.push_str(&format!(", {words}"));
    }
    text.push(')');
    text
}
