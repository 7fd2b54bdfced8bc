//! What the format explains in words: the violations of a trace, and the machine after a record.

use anytrace_core::index::Open;
use anytrace_core::{Error, Explanation, Lines, OpenOptions, Sink, Subject};

use super::check::CheckOptions;
use super::checkpoints::StateAt;
use super::explain::explain as stories;
use super::history::Where;
use super::machine::state_text;
use crate::model::{Checker, Options};
use crate::wire::walk::{Item, Walk};

/// The explanations of the format.
pub(crate) const EXPLANATIONS: &[Explanation] = &[
    Explanation { name: "breaches", title: "Explain", subject: Subject::Trace },
    Explanation { name: "state", title: "Machine", subject: Subject::Record },
];

/// Violations that are explained.
const EXPLAINED_MAX: u64 = 100;

/// Begins what leads to a record; see [`Where::words`].
const RECORD: &str = "record ";

/// Writes an explanation.
pub(crate) fn explain(
    explanation: &str,
    at: Option<u64>,
    open: &Open<'_>,
    options: &OpenOptions,
    out: &mut dyn Lines,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let text = match explanation {
        "breaches" => {
            let model = Options { goes_on: true, ..Options::ARCHITECTURE };
            let check = CheckOptions { model, limit: EXPLAINED_MAX, ..CheckOptions::default() };
            stories(open, options, &check, sink)?.text()
        }
        "state" => state_text(&state(at, open, options, sink)?, true),
        other => return Err(Error::usage(format!("casemate traces have no explanation {other}"))),
    };
    text.lines().try_for_each(|line| out.line(line, record_of(line)))
}

/// The machine after a record, or at the end.
fn state(at: Option<u64>, open: &Open<'_>, options: &OpenOptions, sink: &mut dyn Sink) -> Result<StateAt, Error> {
    let mut state = StateAt { checker: Checker::new(Options { goes_on: true, ..Options::ARCHITECTURE }), at: None };
    let mut is_there = false;
    let read = Walk::new(open()?, options)?.for_each(sink, |item, place| {
        let Item::Record(record) = item else { return Ok(()) };
        state.checker.step(record.thread, &record.transition);
        is_there = at == Some(place.seq);
        if at.is_none() || is_there {
            state.at = Some(Where::of(record, place.seq));
        }
        if is_there { Err(Error::usage("the record is reached")) } else { Ok(()) }
    });
    match (read, at) {
        (Err(error), _) if !is_there => Err(error),
        (Ok(()), Some(record)) => Err(Error::usage(format!("there is no record {record}"))),
        _ => Ok(state),
    }
}

/// The first record that a line is about.
fn record_of(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(RECORD)?;
    let (number, rest) = rest.split_once(' ')?;
    if rest.starts_with("(id ") { number.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use anytrace_core::testing::explained;

    use super::*;
    use crate::Casemate;

    fn lines(explanation: &str, at: Option<u64>) -> Result<Vec<(String, Option<u64>)>, Error> {
        let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let bytes = std::fs::read(examples.join("tour/missing-tlbi.casemate")).unwrap();
        explained(&Casemate, &bytes, explanation, at)
    }

    #[test]
    fn breaches_lead_to_their_records() {
        let found = lines("breaches", None).unwrap();
        let at: Vec<u64> = found.iter().filter_map(|(_, record)| *record).collect();
        assert!(!at.is_empty(), "{found:?}");
        assert!(found.iter().any(|(text, _)| text.trim_start().starts_with("missing: ")), "{found:?}");
    }

    #[test]
    fn the_machine_is_that_after_the_record() {
        let found = lines("state", Some(3)).unwrap();
        assert_eq!(found.first().and_then(|(_, record)| *record), Some(3), "{found:?}");
        let last = lines("state", None).unwrap();
        assert!(last.first().and_then(|(_, record)| *record) > Some(3), "{last:?}");
        let missing = lines("state", Some(1 << 40)).unwrap_err();
        assert!(missing.to_string().contains("no record"), "{missing}");
        assert!(lines("nothing", None).is_err());
    }

    #[test]
    fn only_a_record_is_one() {
        assert_eq!(record_of("    record 12 (id 23), thread 0"), Some(12));
        assert_eq!(record_of("at record 7 (id 7)"), Some(7));
        for line in ["record x (id 3)", "a record 3 of", "record", ""] {
            assert_eq!(record_of(line), None, "{line}");
        }
    }
}
