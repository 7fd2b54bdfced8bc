//! What is worth knowing about a trace of page-table events: the verdict, and the first violation.

use std::path::Path;

use anytrace_casemate::tools::{self, CheckOptions, Verdict};
use anytrace_core::{Collect, Input};

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::highlight::{Highlight, Highlights};
use crate::open;
use crate::report::{Reporter, Way};
use crate::units::counted;

/// Longest file whose violation is explained: that takes all of it in memory.
const EXPLAINED_BYTES_MAX: u64 = 64 << 20;

/// The highlights of a Casemate trace. A violation is the traced program's fault, not the trace's: only damage gives
/// another verdict than fine.
pub(crate) fn highlights(path: &Path, input: &InputArguments) -> Result<Highlights, Failure> {
    let name = path.display().to_string();
    let opened = super::open_input(path, input)?;
    let mut damage = super::damage(path, input);
    let report = tools::check(opened, &open::open_options(input), &CheckOptions::default(), &mut damage)
        .map_err(|error| Failure::of(&name, &error))?;
    damage.print_rest()?;
    let events = counted(report.events, "transition");
    let highlight = match (report.verdict, report.violations.first()) {
        (Verdict::Ok, _) => {
            Highlight::new(format!("All {events} follow the break-before-make rule."), "casemate check")
        }
        (Verdict::Unknown, _) => {
            let places = counted(report.lost, "place");
            let text = format!("No violation in {events}, but the verdict is unknown: records were lost at {places}.");
            Highlight::new(text, "check")
        }
        (_, Some(first)) => Highlight::new(violation(path, input, first)?, "casemate explain"),
        (_, None) => Highlight::new(format!("{events} break a rule."), "casemate check"),
    };
    Ok((vec![highlight], damage.verdict()))
}

/// The first violation in a sentence, with what is missing where the trace is small enough to look for it.
fn violation(path: &Path, input: &InputArguments, first: &tools::Found) -> Result<String, Failure> {
    let entry = first.location.map(|location| format!(", entry {location:#x}")).unwrap_or_default();
    let source = first.source.as_deref().map(|source| format!(", {source}")).unwrap_or_default();
    let text = format!("{} (line {}{source}{entry})", capitalized(first.breach.rule.summary), first.line);
    Ok(match missing(path, input)? {
        Some(missing) => format!("{text}. Missing: {missing}."),
        None => format!("{text}."),
    })
}

/// What a correct program would have done before the first violation.
fn missing(path: &Path, input: &InputArguments) -> Result<Option<String>, Failure> {
    let is_small = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() <= EXPLAINED_BYTES_MAX);
    if !is_small {
        return Ok(None);
    }
    let name = path.display().to_string();
    // Its damage was reported by the check.
    let mut damage = Reporter::new(&name, anytrace_formats::by_name("casemate"), Way::Keep, input.limit);
    let bytes = super::read_complete(path, input, &mut damage)?;
    let again = || Ok(Input::from_bytes(&name, bytes.clone()));
    let explained =
        tools::explain(&again, &open::open_options(input), &CheckOptions::default(), &mut Collect::default());
    let explained = explained.map_err(|error| Failure::of(&name, &error))?;
    Ok(explained.stories.into_iter().next().map(|story| story.missing).filter(|missing| !missing.is_empty()))
}

/// A sentence's first letter.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
