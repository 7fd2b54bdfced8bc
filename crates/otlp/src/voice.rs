//! What is said to the collector: one JSON object a line on standard output. Complaints of a call by hand go to standard
//! error.

use std::io::Write;

use anytrace_core::Error;
use serde_json::{Value, json};

/// Says something. A collector that no longer listens is about to end this program.
pub(crate) fn say(what: &Value) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{what}").and_then(|()| out.flush());
}

/// The address that is listened on, or sent to.
pub(crate) fn ready(address: &str) {
    say(&json!({"said": "ready", "address": address}));
}

/// A sender that may not send.
pub(crate) fn unauthorized(peer: &str, why: &str) {
    say(&json!({"said": "unauthorized", "peer": peer, "why": why}));
}

/// Events read so far, spans sent on, those that were refused and why the last of them, and what is in the way now.
pub(crate) fn forwarded(events: u64, sent: u64, lost: u64, refusal: Option<&str>, fault: Option<&str>) {
    let (refusal, fault) = (json!(refusal), json!(fault));
    say(
        &json!({"said": "forwarded", "events": events, "sent": sent, "lost": lost, "refusal": refusal, "fault": fault}),
    );
}

/// The end, before its time.
pub(crate) fn failed(error: &Error) {
    say(&json!({"said": "failed", "why": error.to_string()}));
}

/// Something for a person.
pub(crate) fn complain(what: &str) {
    let _ = writeln!(std::io::stderr(), "anytrace-otlp: {what}");
}
