//! Sends what is collected on to an OpenTelemetry collector: a program of its own reads the files as they grow. What
//! cannot be sent yet waits in them, so no sender waits for whoever is sent to.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anytrace_core::Error;
use serde_json::{Value, json};

use crate::helper::{Helper, Said};

/// How long sending the rest may take when the collection ends.
const LAST_SENDS: Duration = Duration::from_secs(10);

/// Where to send what is collected, by which program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardOptions {
    /// `http://HOST:PORT` or `https://HOST:PORT`; OTLP over gRPC.
    pub to: String,
    /// `anytrace-otlp`.
    pub program: PathBuf,
}

/// What was sent on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForwardReport {
    /// Where to.
    pub to: String,
    /// Spans that were taken.
    pub sent: u64,
    /// Spans that were refused for good.
    pub lost: u64,
    /// Why the last of them were.
    pub refusal: Option<String>,
    /// What is in the way; the rest waits for that in the files.
    pub fault: Option<String>,
    /// True when all that was collected is sent; only known at the end.
    pub is_complete: bool,
}

impl ForwardReport {
    /// The fields as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "to": self.to,
            "sent": self.sent,
            "lost": self.lost,
            "refusal": self.refusal,
            "fault": self.fault,
            "complete": self.is_complete,
        })
    }
}

/// The program at work.
#[derive(Debug)]
pub(crate) struct Forwarder {
    helper: Option<Helper>,
    /// Events that were in files when it began, and those that it has read.
    events_before: u64,
    events: u64,
    pub(crate) report: ForwardReport,
}

impl Forwarder {
    /// Starts it. `earlier`: the files of an earlier collection, with so many events, which are not sent.
    pub(crate) fn start(
        options: &ForwardOptions,
        folder: &Path,
        earlier: &[PathBuf],
        events_before: u64,
    ) -> Result<Self, Error> {
        let request = json!({"action": "forward", "to": options.to, "folder": folder, "earlier": earlier});
        let (helper, _) = Helper::start(&options.program, &request)?;
        let report = ForwardReport { to: options.to.clone(), ..ForwardReport::default() };
        Ok(Self { helper: Some(helper), events_before, events: 0, report })
    }

    /// Takes what it has said since; the text says what has become different.
    pub(crate) fn look(&mut self) -> Option<String> {
        let (said, has_ended) = self.helper.as_ref()?.said();
        let before = (self.report.lost, self.report.fault.clone());
        said.into_iter().for_each(|said| self.hear(said));
        if has_ended {
            self.helper = None;
            self.report.fault.get_or_insert_with(|| "the program that sends has ended".to_owned());
        }
        let ForwardReport { to, lost, refusal, fault, .. } = &self.report;
        match fault {
            Some(fault) if before.1.as_ref() != Some(fault) => Some(format!("nothing is sent to {to}: {fault}")),
            _ if before.0 != *lost => {
                let why = refusal.as_deref().unwrap_or_default();
                Some(format!("{to} has refused {} spans: {why}", lost - before.0))
            }
            _ => None,
        }
    }

    fn hear(&mut self, said: Said) {
        let report = &mut self.report;
        match said {
            Said::Forwarded { events, sent, lost, refusal, fault } => {
                self.events = events;
                (report.sent, report.lost, report.refusal, report.fault) = (sent, lost, refusal, fault);
            }
            Said::Failed(why) => report.fault = Some(why),
            Said::Ready(_) | Said::Unauthorized { .. } => {}
        }
    }

    /// Waits until all is sent, for a while. The files are complete, and this many events were ever in them.
    pub(crate) fn finish(&mut self, events: u64) {
        let Some(mut helper) = self.helper.take() else { return };
        helper.ask_to_end();
        let deadline = Instant::now() + LAST_SENDS;
        loop {
            let (said, has_ended) = helper.said();
            said.into_iter().for_each(|said| self.hear(said));
            if has_ended {
                let unread = (events - self.events_before.min(events)).saturating_sub(self.events);
                if unread > 0 {
                    let gone = format!("{unread} events were in files that were removed before they were sent");
                    self.report.fault.get_or_insert(gone);
                }
                self.report.is_complete = self.report.fault.is_none();
                return;
            }
            if Instant::now() >= deadline {
                self.report.fault.get_or_insert_with(|| "the rest was not taken within 10 s".to_owned());
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
