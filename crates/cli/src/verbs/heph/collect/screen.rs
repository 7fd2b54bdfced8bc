//! The live summary on a terminal.

mod widgets;

use std::io::{self, Stdout};

use anytrace_core::text::printable;
use anytrace_live::Summary;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style, Stylize};
use ratatui::widgets::{Block, Paragraph};
use ratatui::{Frame, Terminal};

use crate::terminal;
use widgets::{description_table, figures, source_table};

/// The alternate screen; the terminal is as it was when this value is gone.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        execute!(terminal::screen(), EnterAlternateScreen)?;
        let mut drawn = Terminal::new(CrosstermBackend::new(terminal::screen()))?;
        drawn.hide_cursor()?;
        Ok(Self { terminal: drawn })
    }

    /// Shows a summary and the last complaint.
    pub(super) fn draw(&mut self, summary: &Summary, complaint: &str) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, summary, complaint)).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing can be done where the terminal is gone.
        let _ = self.terminal.show_cursor();
        let _ = execute!(terminal::screen(), LeaveAlternateScreen);
    }
}

fn draw(frame: &mut Frame<'_>, summary: &Summary, complaint: &str) {
    let sources = u16::try_from(summary.total.sources.len()).unwrap_or(u16::MAX).saturating_add(3).min(14);
    let parts = Layout::vertical([
        Constraint::Length(6),
        Constraint::Length(sources),
        Constraint::Min(4),
        Constraint::Length(1),
        Constraint::Length(1),
    ]);
    let [head, middle, bottom, notice, keys] = parts.areas(frame.area());
    frame.render_widget(Paragraph::new(figures(summary)).block(Block::bordered().title(" heph collect ")), head);
    frame.render_widget(source_table(summary), middle);
    frame.render_widget(description_table(summary), bottom);
    let line = complaint.lines().next().unwrap_or_default();
    frame.render_widget(Paragraph::new(printable(line)).style(Style::new().fg(Color::Yellow)), notice);
    frame.render_widget(Paragraph::new("Ctrl-C ends the collection and prints the report").dim(), keys);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anytrace_live::{
        DescriptionRow, Drops, EndedBy, Percentiles, Report, SourceName, SourceReport, StreamLoss, Summary,
    };
    use ratatui::backend::TestBackend;

    use super::*;

    fn summary() -> Summary {
        let lengths = Percentiles { p50_ns: 900, p90_ns: 2_000, p99_ns: 30_000, p999_ns: 400_000, max_ns: 5_000_000 };
        let lost = StreamLoss { stream: 3, received: 90, lost: 10, ..StreamLoss::default() };
        let source = SourceReport {
            name: SourceName { number: 1, kind: "unix", peer: "\u{1b}[31mred".to_owned() },
            events: 90,
            metadata: 1,
            bytes: 7_000,
            files: 1,
            damaged_places: 0,
            skipped_bytes: 0,
            unfinished_bytes: 0,
            dropped: Drops::default(),
            over_rate: Drops::default(),
            uncounted: 0,
            totals: lost.clone(),
            stream_count: 1,
            streams: vec![lost.clone()],
            session: None,
        };
        let description =
            DescriptionRow { description: "\u{1b}[2Jpoll".to_owned(), count: 90, total_ns: 90_000, lengths };
        let total = Report {
            elapsed: Duration::from_secs(5),
            ended_by: EndedBy::Running,
            events: 90,
            metadata: 1,
            bytes: 7_000,
            files: 1,
            lengths,
            descriptions: vec![description],
            other_descriptions: 0,
            sources: vec![source],
            other_sources: 0,
            totals: lost.clone(),
            without_session: lost,
            sessions: Vec::new(),
            removed_files: 0,
            removed_bytes: 0,
            unwritten_events: 0,
            collections: 1,
            earlier_kernel_dropped: 0,
            earlier_refused: 0,
            earlier_unauthorized: 0,
            dropped: Drops::default(),
            over_rate: Drops::default(),
            damaged_places: 0,
            skipped_bytes: 0,
            unfinished_bytes: 0,
            forwarded: None,
            listeners: Vec::new(),
        };
        Summary { interval: Duration::from_secs(1), events: 1_234_567, bytes: 99_000_000, total }
    }

    #[test]
    fn the_screen_has_rates_losses_and_lengths_and_no_escapes_of_senders() {
        for (width, height) in [(120, 30), (40, 8), (1, 1)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &summary(), "\u{1b}[0mcomplaint")).unwrap();
            let shown = terminal.backend().to_string();
            assert!(!shown.contains('\u{1b}'), "{shown}");
            if width == 120 {
                for part in
                    ["1,234,567 events/s", "99.0 MB/s", "lost 10", "3:10", "\\u{1b}[2Jpoll", "400.0 µs", "complaint"]
                {
                    assert!(shown.contains(part), "{part} is not in\n{shown}");
                }
            }
        }
    }
}
