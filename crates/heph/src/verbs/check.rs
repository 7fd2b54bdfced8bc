//! Rules beyond grammar: epochs, counters, order of times, and nesting.

use anytrace_core::text::{escaped, printable};
use anytrace_core::{Diagnostic, Error, Place, Sink};

use crate::rules;
use crate::verbs::finding::{Finding, FindingKind};
use crate::verbs::observer::Observer;
use crate::verbs::sessions::SeenSession;
use crate::wire::dialect::{LIFE, Signs};
use crate::wire::fault::Damage;
use crate::wire::reader::Visitor;
use crate::wire::record::{Metadata, Record};
use crate::wire::session::{Counted, Session};

/// Longest part of an option's name that a message shows.
const OPTION_NAME_SHOWN: usize = 100;

/// Reports every violation of every rule.
pub(crate) struct Checker<'s> {
    observer: Observer,
    signs: Signs,
    sink: &'s mut dyn Sink,
}

impl<'s> Checker<'s> {
    pub(crate) fn new(distinct_max: usize, sink: &'s mut dyn Sink) -> Self {
        Self { observer: Observer::new(distinct_max), signs: Signs::default(), sink }
    }

    /// Reports what only the end of the trace shows.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.observer.finish();
        self.report_findings()?;
        let observer = &self.observer;
        if let Some(place) = observer.first_overlap.filter(|_| observer.lanes.overlaps > 0) {
            let found = format!("about {} of {} events, the first here", observer.lanes.overlaps, observer.events);
            let help = overlap_help(observer.first_overlap_substream, self.signs.dialect(true));
            self.sink.report(rules::PARTIAL_OVERLAP.at(place.offset).record(place.seq).found(found).help(help))?;
        }
        if let Some(place) = observer.counters.first_late {
            let found = format!("{} events, the first here", observer.counters.late);
            let help = "nothing is lost: the counters were filled in later";
            self.sink.report(rules::COUNTER_OUT_OF_ORDER.at(place.offset).record(place.seq).found(found).help(help))?;
        }
        for seen in &observer.sessions.0 {
            self.sink.report(session_report(seen))?;
        }
        if observer.counters.other_events > 0 {
            let found = format!("{} events of other streams", observer.counters.other_events);
            self.sink.report(rules::TOO_MANY_STREAMS.at(0).found(found))?;
        }
        Ok(())
    }

    /// Findings about an option, with its name.
    #[cold]
    fn metadata(&mut self, metadata: &Metadata<'_>) -> Result<(), Error> {
        for finding in self.observer.findings.drain(..) {
            let mut diagnostic = to_diagnostic(&finding);
            if finding.what == FindingKind::UnknownOption {
                let name = metadata.option.get(..OPTION_NAME_SHOWN).unwrap_or(metadata.option);
                diagnostic = diagnostic.field("option name").found(format!("\"{}\"", escaped(name)));
            }
            self.sink.report(diagnostic)?;
        }
        Ok(())
    }

    #[cold]
    fn report_findings(&mut self) -> Result<(), Error> {
        for finding in self.observer.findings.drain(..) {
            self.sink.report(to_diagnostic(&finding))?;
        }
        Ok(())
    }
}

impl Visitor for Checker<'_> {
    #[inline]
    fn packet(&mut self, place: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        self.observer.packet(place, bytes.len(), packet);
        if let Record::Event(event) = packet {
            self.signs.event(event);
        }
        if self.observer.findings.is_empty() {
            return Ok(());
        }
        if let Record::Metadata(metadata) = packet {
            return self.metadata(metadata);
        }
        self.report_findings()
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        self.observer.damage(damage);
        self.report(damage.to_diagnostic())?;
        self.report_findings()
    }
}

/// Whether a session is over, and what its recorder counted.
fn session_report(seen: &SeenSession) -> Diagnostic {
    let Session { id, program, process, part, .. } = &seen.session;
    let name = format!("session {id:032x} of {} (process {process})", printable(program));
    let Some((place, all)) = seen.closed else {
        let found = match part {
            0 => "not closed: the tail is unknown".to_owned(),
            part => format!("part {part} of it, not closed: the tail is unknown"),
        };
        let help = "the program was killed, still runs, or the end is in a later file";
        return rules::SESSION_NOT_CLOSED
            .at(seen.place.offset)
            .record(seen.place.seq)
            .field(name)
            .found(found)
            .help(help);
    };
    let Counted { recorded, dropped, lost } = all;
    let found = format!("closed: {recorded} events recorded, {dropped} dropped, {lost} refused by the destination");
    rules::SESSION_CLOSED.at(place.offset).record(place.seq).field(name).found(found)
}

/// Why events of a lane may overlap, by who wrote the trace: the runtime, or a recorder.
fn overlap_help(substream: u64, dialect: Option<&str>) -> &'static str {
    match (dialect, substream & LIFE != 0) {
        (Some("new"), _) => {
            "expected of Heph since December 2024, where events of all actors of a thread share one lane"
        }
        (Some(_), _) => "not expected of Heph until December 2024, where each actor has a separate lane",
        (None, true) => {
            "expected of tracing-heph with `lives`: the lives of spans below one root share a lane and overlap as the spans did"
        }
        (None, false) => {
            "not written by Heph's runtime: spans of this lane were not left in the reverse order of being entered, or tasks share the lane"
        }
    }
}

fn to_diagnostic(finding: &Finding) -> Diagnostic {
    let made = |rule: &'static anytrace_core::Rule| rule.at(finding.place.offset).record(finding.place.seq);
    match finding.what {
        FindingKind::NoEpochYet => made(&rules::NO_EPOCH_YET).help("times stay relative unless an epoch follows"),
        FindingKind::EpochAfterEvents => made(&rules::EPOCH_AFTER_EVENTS),
        FindingKind::EpochSetAgain { before, now } => {
            made(&rules::EPOCH_SET_AGAIN).field("epoch value").expected(before.to_string()).found(now.to_string())
        }
        FindingKind::UnknownOption => made(&rules::UNKNOWN_OPTION),
        FindingKind::EndBeforeStart { start, end } => {
            made(&rules::END_BEFORE_START).field("end").expected(format!("at least {start}")).found(end.to_string())
        }
        FindingKind::CounterStartsAt { stream, first } => counter(made(&rules::COUNTER_STARTS_AT), stream, first),
        FindingKind::CounterGap { stream, missing } => counter(made(&rules::COUNTER_GAP), stream, missing),
        FindingKind::CounterBack { stream, by } => counter(made(&rules::COUNTER_BACK), stream, by),
        FindingKind::CounterDoubtful { stream, missing } => {
            counter(made(&rules::COUNTER_DOUBTFUL), stream, missing).help("a damaged or forged packet, most likely")
        }
        FindingKind::TailMissing { stream, missing } => {
            made(&rules::TAIL_MISSING).field(format!("stream {stream}")).found(format!("{missing} events missing"))
        }
    }
}

fn counter(diagnostic: Diagnostic, stream: u32, number: u32) -> Diagnostic {
    diagnostic.field(format!("counter of stream {stream}")).found(number.to_string())
}
