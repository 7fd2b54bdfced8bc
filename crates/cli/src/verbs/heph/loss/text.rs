//! `loss` for people.

use anytrace_core::text::printable;
use anytrace_heph::tools::loss::{Fate, LossReport, SessionLoss, SourceLoss};

use crate::table::{Align, Table};
use crate::units::{counted, grouped, percent};

/// Most ranges named in a row.
const RANGES_SHOWN: usize = 8;

/// Most streams of a session in a row each.
const STREAMS_SHOWN: usize = 100;

pub(super) fn page(report: &LossReport) -> String {
    let (events, lost) = (counted(report.received(), "event"), report.lost());
    let mut out = format!("{events} received, {} lost", number(lost));
    if report.doubtful() > 0 {
        let words = "before counters that can hardly be right";
        out.push_str(&format!("; {} doubtful, {words}", number(report.doubtful())));
    }
    out.push('\n');
    if report.received() == 0 && report.sessions.is_empty() {
        return out;
    }
    if report.without_session().next().is_some() {
        out.push_str(&sources(report));
        for source in report.without_session() {
            notes(source, &mut out);
        }
        let head = report.sum(|stream| stream.lost_at_head, |_| 0);
        if head > 0 {
            let words = "before the first event that arrived: lost, or sent before anyone listened";
            out.push_str(&format!("{} of the lost counters are {words}\n", number(head)));
        }
        out.push_str("losses after a stream's last event cannot be detected\n");
    }
    report.sessions.iter().for_each(|session| out.push_str(&session_text(session)));
    out
}

fn number(number: u64) -> String {
    grouped(number.into())
}

/// The streams of sources that belong to no session.
fn sources(report: &LossReport) -> String {
    let mut table = Table::new(&[
        ("source", Align::Left),
        ("stream", Align::Right),
        ("sent", Align::Right),
        ("received", Align::Right),
        ("lost", Align::Right),
        ("", Align::Right),
        ("twice", Align::Right),
        ("malformed", Align::Right),
        ("out of order", Align::Right),
        ("restarts", Align::Right),
        ("lost counters", Align::Left),
    ]);
    for source in report.without_session() {
        let shown = anytrace_core::text::printable(&source.name);
        for stream in &source.streams {
            let sent = stream.sent_at_least();
            table.row(vec![
                shown.clone(),
                stream.stream.to_string(),
                number(sent),
                number(stream.received),
                number(stream.lost),
                if stream.lost > 0 { percent(stream.lost as f64, sent as f64) } else { String::new() },
                number(stream.duplicates),
                number(stream.malformed),
                number(stream.out_of_order),
                number(stream.restarts),
                ranges(stream.lost_ranges.iter().map(|&(first, count)| (first.into(), count))),
            ]);
        }
    }
    table.render()
}

/// A session: who recorded it, whether all of it is known, and its streams.
fn session_text(loss: &SessionLoss) -> String {
    let session = &loss.session;
    let (program, recorder) = (printable(&session.program), printable(&session.recorder));
    let parts = match loss.last_part.saturating_add(1) {
        all if all > loss.parts => format!("{} of {}", number(loss.parts), counted(all, "part")),
        all => counted(all, "part"),
    };
    let mut out = format!("session {}: {program}, process {}, {recorder}; {parts}, ", loss.id(), session.process);
    if loss.is_closed {
        out.push_str("closed\n");
    } else {
        out.push_str("not closed: the tail is unknown");
        if let Some(most) = loss.tail_at_most() {
            out.push_str(&format!(" (at most {}, if the recorder's memory was not full)", counted(most, "more event")));
        }
        out.push('\n');
    }
    let mut table = Table::new(&[
        ("stream", Align::Right),
        ("recorded", Align::Right),
        ("received", Align::Right),
        ("lost", Align::Right),
        ("", Align::Right),
        ("dropped", Align::Right),
        ("refused", Align::Right),
        ("on the way", Align::Right),
        ("doubtful", Align::Right),
        ("twice", Align::Right),
        ("out of order", Align::Right),
        ("missing counters", Align::Left),
    ]);
    let mut row = |name: String, fate: &Fate, missing: String| {
        let lost = fate.lost;
        table.row(vec![
            name,
            number(fate.recorded),
            number(fate.received),
            number(lost),
            if lost > 0 { percent(lost as f64, fate.recorded as f64) } else { String::new() },
            number(fate.dropped),
            number(fate.refused),
            number(fate.lost_on_the_way()),
            number(fate.doubtful),
            number(fate.duplicates),
            number(fate.out_of_order),
            missing,
        ]);
    };
    // Programs with thousands of threads are summed up.
    for stream in loss.streams.iter().take(STREAMS_SHOWN) {
        row(stream.stream.to_string(), &stream.fate, ranges(stream.missing.iter().copied()));
    }
    row("all".to_owned(), &loss.all, String::new());
    out.push_str(&table.render());
    let hidden = loss.streams.len().saturating_sub(STREAMS_SHOWN) as u64;
    if hidden > 0 {
        out.push_str(&format!("and {}\n", counted(hidden, "more stream")));
    }
    if loss.all.before > 0 {
        let words = "in parts before the first one given, or lost there";
        out.push_str(&format!("{} {words}\n", counted(loss.all.before, "event")));
    }
    if loss.uncounted > 0 {
        out.push_str(&format!("{} of further streams are not tracked\n", counted(loss.uncounted, "event")));
    }
    out
}

/// What a row does not say of a source.
fn notes(source: &SourceLoss, out: &mut String) {
    let name = anytrace_core::text::printable(&source.name);
    if source.bad_datagrams > 0 {
        out.push_str(&format!(
            "{name}: {} with an incomplete last packet\n",
            counted(source.bad_datagrams, "datagram")
        ));
    }
    if source.epochs_ns.is_empty() {
        out.push_str(&format!("{name}: no epoch arrived; metadata have no counter, so it may have been lost\n"));
    }
    if source.uncounted > 0 {
        out.push_str(&format!("{name}: {} of further streams are not tracked\n", counted(source.uncounted, "event")));
    }
}

/// `3, 7..9`, as many as fit.
fn ranges(all: impl ExactSizeIterator<Item = (u64, u64)>) -> String {
    let left = all.len().saturating_sub(RANGES_SHOWN);
    let shown = all.take(RANGES_SHOWN).map(|(first, count)| match count {
        1 => first.to_string(),
        _ => format!("{first}..{}", first + (count - 1)),
    });
    let mut out = shown.collect::<Vec<_>>().join(", ");
    if left > 0 {
        out.push_str(&format!(" … and {left} more"));
    }
    out
}
