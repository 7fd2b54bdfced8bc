//! What is shown while it runs: a screen, JSON lines, or complaints only.

use std::io::Write;

use anytrace_core::{Diagnostic, Error, text};
use anytrace_live::{ListenerReport, Observer, SourceName, Summary};

use super::arguments::SummaryForm;
use super::metrics::Metrics;
use super::screen::Screen;
use crate::terminal;

/// What is shown while it runs.
pub(super) struct Shown {
    pub(super) form: SummaryForm,
    pub(super) screen: Option<Screen>,
    pub(super) metrics: Option<Metrics>,
    /// Where the metrics and the viewer are.
    pub(super) metrics_at: Option<String>,
    pub(super) view_at: Option<String>,
    /// Complaints that wait until the screen is gone.
    pub(super) unprinted: Vec<String>,
}

/// Most complaints kept for the end.
const UNPRINTED_MAX: usize = 100;

impl Observer for Shown {
    fn listening(&mut self, listeners: &[ListenerReport]) -> Result<(), Error> {
        if self.form == SummaryForm::Json {
            let addresses: Vec<&str> = listeners.iter().map(|listener| listener.address.as_str()).collect();
            let line = serde_json::json!({
                "version": 1,
                "type": "listening",
                "addresses": addresses,
                "metrics": self.metrics_at,
                "view": self.view_at,
            });
            return print(&line);
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
        match (&mut self.screen, self.form) {
            (Some(screen), _) => Ok(screen.draw(summary, self.unprinted.last().map_or("", String::as_str))?),
            (None, SummaryForm::Json) => print(&summary.to_json()),
            (None, _) => Ok(()),
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
    /// Prints a complaint, now or when the screen is gone.
    fn put(&mut self, line: String) {
        if self.screen.is_none() {
            complain(&line);
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

/// One line of JSON, at once.
fn print(line: &serde_json::Value) -> Result<(), Error> {
    let mut out = terminal::stdout().json(true);
    Ok(writeln!(out, "{line}").and_then(|()| out.flush())?)
}
