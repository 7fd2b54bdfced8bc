//! What is shown while it runs: a screen, JSON lines, or complaints only.

use std::io::{self, Write};

use anytrace_core::{Diagnostic, Error, text};
use anytrace_live::{ListenerReport, Observer, SourceName, Summary};
use serde_json::Value;

use super::beside::Beside;
use super::metrics::Metrics;
use super::screen::Screen;
use crate::terminal;

/// What is shown while it runs.
pub(super) struct Shown {
    /// Where JSON lines are wanted.
    pub(super) lines: Option<Beside<Value>>,
    /// Where a screen is: what it shows, and the last complaint.
    screen: Option<Beside<(Summary, String)>>,
    complaints: Beside<String>,
    metrics: Option<Metrics>,
    /// Where the metrics and the viewer are.
    pub(super) metrics_at: Option<String>,
    pub(super) view_at: Option<String>,
    /// Complaints that wait until the screen is gone.
    pub(super) unprinted: Vec<String>,
}

/// Lines of JSON that wait to be printed.
const WAITING: usize = 4;

/// Most complaints kept for the end, or that wait.
const UNPRINTED_MAX: usize = 100;

impl Observer for Shown {
    fn listening(&mut self, listeners: &[ListenerReport]) -> Result<(), Error> {
        if let Some(lines) = &mut self.lines {
            let addresses: Vec<&str> = listeners.iter().map(|listener| listener.address.as_str()).collect();
            let line = serde_json::json!({
                "version": 1,
                "type": "listening",
                "addresses": addresses,
                "metrics": self.metrics_at,
                "view": self.view_at,
            });
            return Ok(lines.show(line)?);
        }
        for listener in listeners.iter().filter(|_| self.screen.is_none()) {
            let buffer = listener.receive_buffer_bytes.map_or(String::new(), |bytes| {
                format!(", receive buffer {} KiB", crate::units::grouped(u128::from(bytes / 1024)))
            });
            let _ = writeln!(terminal::stderr(), "listening on {}{buffer}", listener.address);
        }
        Ok(())
    }

    fn summary(&mut self, summary: &Summary) -> Result<(), Error> {
        if let Some(metrics) = &self.metrics {
            metrics.show(&summary.total);
        }
        match (&mut self.screen, &mut self.lines) {
            (Some(screen), _) => {
                let complaint = self.unprinted.last().cloned().unwrap_or_default();
                Ok(screen.offer((summary.clone(), complaint))?)
            }
            (None, Some(lines)) => {
                let mut line = summary.to_json();
                line["skipped"] = lines.skipped.into();
                Ok(lines.offer(line)?)
            }
            (None, None) => Ok(()),
        }
    }

    fn storage(&mut self, is_full: bool) -> Result<(), Error> {
        self.put(match is_full {
            true => "the disk is full: nothing more is taken until there is room".to_owned(),
            false => "there is room on the disk again".to_owned(),
        });
        Ok(())
    }

    fn trouble(&mut self, what: &str) -> Result<(), Error> {
        self.put(what.to_owned());
        Ok(())
    }

    fn unauthorized(&mut self, peer: &str, why: &str) -> Result<(), Error> {
        self.put(format!("{peer} may not send: {why}"));
        Ok(())
    }

    fn damage(&mut self, source: &SourceName, diagnostic: Diagnostic) -> Result<(), Error> {
        let mut line = format!("{}: ", source.peer);
        // Writing to a string cannot fail.
        let _ = diagnostic.render("packet", &mut line);
        self.put(line);
        Ok(())
    }
}

impl Shown {
    pub(super) fn new(has_lines: bool, screen: Option<Screen>, metrics: Option<Metrics>) -> io::Result<Self> {
        let print = |line: Value| {
            let mut out = terminal::stdout().json(true);
            writeln!(out, "{line}").and_then(|()| out.flush())
        };
        let draws = |mut screen: Screen| {
            Beside::start(1, move |(summary, complaint): (Summary, String)| screen.draw(&summary, &complaint))
        };
        Ok(Self {
            lines: has_lines.then(|| Beside::start(WAITING, print)).transpose()?,
            screen: screen.map(draws).transpose()?,
            complaints: Beside::start(UNPRINTED_MAX, |line: String| {
                complain(&line);
                Ok(())
            })?,
            metrics,
            metrics_at: None,
            view_at: None,
            unprinted: Vec::new(),
        })
    }

    /// Ends the screen and prints the last complaints, as far as they are taken.
    pub(super) fn end(&mut self) {
        if let Some(mut screen) = self.screen.take() {
            screen.end_soon();
        }
        if self.complaints.skipped > 0 {
            self.unprinted.push(format!("{} more complaints were not taken", self.complaints.skipped));
        }
        self.complaints.end_soon();
    }

    /// Prints a complaint, now or when the screen is gone.
    fn put(&mut self, line: String) {
        if self.screen.is_none() {
            let skipped = self.complaints.skipped;
            let line = if skipped > 0 { format!("{skipped} complaints were not taken\n{line}") } else { line };
            // Nobody hears what goes wrong with it.
            let _ = self.complaints.offer(line);
        } else if self.unprinted.len() < UNPRINTED_MAX {
            self.unprinted.push(line);
        }
    }
}

/// A complaint about what was received; nothing in it may move a terminal.
pub(super) fn complain(line: &str) {
    let safe: Vec<_> = line.lines().map(text::printable).collect();
    let _ = writeln!(terminal::stderr(), "{}", safe.join("\n"));
}
