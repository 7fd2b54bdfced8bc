//! The totals of a collection.

use anytrace_casemate::tools::rings::Counts;
use serde_json::json;

use super::written::Written;
use crate::failure::Failure;
use crate::results::print_json;
use crate::{Verdict, ledger, paint};

/// Why a collection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum EndedBy {
    /// The program closed the trace.
    Closed,
    /// This process is gone.
    Process(u64),
    /// The program prepared its memory again.
    Replaced,
    #[default]
    Interrupt,
    /// The memory is not followed.
    Image,
}

impl EndedBy {
    fn word(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Process(_) => "process-gone",
            Self::Replaced => "replaced",
            Self::Interrupt => "interrupt",
            Self::Image => "image",
        }
    }

    fn text(self) -> String {
        match self {
            Self::Closed => "the program closed the trace".to_owned(),
            Self::Process(number) => {
                format!("process {number} is gone without closing the trace; all that it completed is here")
            }
            Self::Replaced => {
                "the program began a new trace in this memory, and records of this one are lost".to_owned()
            }
            Self::Interrupt => "ended by an interrupt; the program may go on".to_owned(),
            Self::Image => "the program had not closed the trace".to_owned(),
        }
    }
}

/// The totals.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) name: String,
    pub(super) cpus: usize,
    pub(super) counts: Counts,
    /// Places in the rings that are damaged.
    pub(super) damaged: u64,
    pub(super) ended_by: EndedBy,
}

impl Summary {
    fn is_complete(&self) -> bool {
        let Counts { dropped, missing, earlier, .. } = self.counts;
        dropped == 0 && missing == 0 && earlier == 0 && self.damaged == 0 && self.ended_by != EndedBy::Replaced
    }

    /// Completes the output and prints the totals.
    pub(super) fn print(self, is_json: bool, written: Written) -> Result<Verdict, Failure> {
        let verdict = if self.is_complete() { Verdict::Fine } else { Verdict::Breach };
        if !self.is_complete() && self.damaged == 0 {
            ledger::lose(&self.name);
        }
        let verdict = written.commit(verdict)?;
        let Counts { records, earlier, dropped, missing } = self.counts;
        if is_json {
            let object = json!({
                "version": 1, "file": self.name, "cpus": self.cpus, "records": records, "earlier": earlier,
                "dropped": dropped, "missing": missing, "damaged": self.damaged, "ended_by": self.ended_by.word(),
            });
            print_json(vec![object], false)?;
            return Ok(verdict);
        }
        let mut parts = vec![format!("{records} records of {} CPUs", self.cpus)];
        let losses = [
            (earlier, "taken out before"),
            (dropped, "dropped by full rings"),
            (missing, "begun and not finished, or damaged"),
        ];
        parts.extend(losses.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
        if self.is_complete() {
            parts.push("none lost".to_owned());
        }
        let name = anytrace_core::text::printable(&self.name);
        paint::complain("note", format_args!("{name}: {}; {}", parts.join(", "), self.ended_by.text()));
        Ok(verdict)
    }
}
