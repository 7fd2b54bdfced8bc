//! The sessions of a trace, and whether their recorders' last accounts are in it.

use anytrace_core::Place;

use crate::verbs::counters::Counters;
use crate::verbs::finding::{Finding, FindingKind};
use crate::wire::record::Metadata;
use crate::wire::session::{Account, Counted, Session};

/// Most sessions of a trace that are distinguished.
const SESSIONS_MAX: usize = 256;

/// A session of which a part is in the trace.
#[derive(Debug)]
pub(crate) struct SeenSession {
    /// Where it begins.
    pub(crate) place: Place,
    pub(crate) session: Session,
    /// All its events, by its last account; `None` where that is not in the trace.
    pub(crate) closed: Option<(Place, Counted)>,
}

/// The sessions in order of their beginning.
#[derive(Debug, Default)]
pub(crate) struct SeenSessions(pub(crate) Vec<SeenSession>);

impl SeenSessions {
    /// Takes an option; false if it is not one of a session.
    pub(crate) fn option(
        &mut self,
        place: Place,
        metadata: &Metadata<'_>,
        counters: &Counters,
        findings: &mut Vec<Finding>,
    ) -> bool {
        if let Some(session) = metadata.session() {
            if !self.0.iter().any(|seen| seen.session.id == session.id) && self.0.len() < SESSIONS_MAX {
                self.0.push(SeenSession { place, session, closed: None });
            }
            return true;
        }
        let Some(account) = metadata.account() else {
            return metadata.thread().is_some() || metadata.resource().is_some();
        };
        let Some(seen) = self.0.iter_mut().find(|seen| seen.session.id == account.id) else { return true };
        if account.is_closed {
            let is_first = seen.closed.replace((place, account.all)).is_none();
            if is_first {
                tails(place, &account, seen.session.part == 0, counters, findings);
            }
        }
        true
    }
}

/// Reports the streams whose last events are missing. `is_all`: the trace has the session's first part.
fn tails(place: Place, account: &Account, is_all: bool, counters: &Counters, findings: &mut Vec<Finding>) {
    // A later file of a collector begins in the middle: of a stream that is not in it nothing can be said.
    let is_all = is_all && counters.streams.iter().all(|stream| stream.first_counter == 0);
    for &(stream, counted) in &account.streams {
        let missing = match counters.find(stream) {
            Some(known) => known.missing_after(counted.recorded).into(),
            None if is_all => counted.recorded,
            None => 0,
        };
        if missing > 0 {
            findings.push(Finding { place, what: FindingKind::TailMissing { stream, missing } });
        }
    }
}
