//! What is printed beside the trace: frames with most calls, that there are no reasons, and unknown functions.

use std::io::Write;

use anytrace_apitrace::tools::gltrim::Plan;
use anytrace_core::Outcome;
use serde_json::json;

use crate::failure::Failure;

/// The frames with most calls.
pub(super) fn top(plan: &Plan, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "Calls per frame:")?;
    for (frame, calls) in &plan.top {
        writeln!(out, "  Frame[{frame}] = {calls}")?;
    }
    Ok(())
}

/// Who reads reasons as JSON is given an object where there are none.
pub(super) fn nothing(message: &str, lost: u64, out: &mut dyn Write) -> Result<(), Failure> {
    let value = json!({ "version": anytrace_export::json::VERSION, "error": message, "lost": lost });
    Ok(writeln!(out, "{value}")?)
}

/// Reports functions that nothing is known of.
pub(super) fn noted(mut outcome: Outcome, plan: &Plan) -> Outcome {
    let unknown = plan.unknown();
    if !unknown.is_empty() {
        let names: Vec<String> =
            unknown.iter().take(8).map(|(name, _)| anytrace_core::text::printable(name).to_string()).collect();
        let more = unknown.len().saturating_sub(names.len());
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        outcome.notes.push(format!("Unknown functions {}{more}: all their calls are kept.", names.join(", ")));
    }
    outcome
}
