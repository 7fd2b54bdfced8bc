//! Rules beyond grammar.

use anytrace_core::{Diagnostic, Error, Place, Sink, Summary};

use crate::model::session::{Entered, Go, Session, What, about, walk};
use crate::rules;
use crate::wire::reader::Reader;
use crate::wire::record::Record;
use crate::wire::text::Content;

/// Reports every violation of a rule.
pub(crate) fn check(mut reader: Reader, distinct_max: usize, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let mut faults = Faults::default();
    let mut strays = Strays::default();
    let mut session = Session::new(distinct_max);
    let mut has_no_time = false;
    let passed = walk(&mut reader, &mut session, sink, |_, place, record, entered, sink| {
        if let Some(diagnostic) = faults.of(place, record, entered) {
            sink.report(diagnostic)?;
        }
        if strays.is_stray(record) && !std::mem::replace(&mut strays.is_reported, true) {
            sink.report(about(&rules::STRAY, place, record, 0))?;
        }
        if entered.is_sample() && entered.time_ns.is_none() && !std::mem::replace(&mut has_no_time, true) {
            sink.report(about(&rules::NO_TIME, place, record, 0))?;
        }
        match entered.what {
            What::Lost(count) => sink.report(about(&rules::LOST, place, record, 0).found(count.to_string()))?,
            What::Throttled => sink.report(about(&rules::THROTTLED, place, record, 0))?,
            _ => {}
        }
        Ok(Go::On)
    })?;
    say_limits(session.is_full(), sink)?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

/// Reports that something had no room of its own, where it had none.
pub(crate) fn say_limits(is_full: bool, sink: &mut dyn Sink) -> Result<(), Error> {
    if !is_full {
        return Ok(());
    }
    let report = rules::LIMIT.at(0).field("name").expected("at most 24 MiB of names");
    sink.report(report.help("what has no room is called (other), or has no name; all samples are counted"))
}

/// Reports what cannot be understood of records, and what was recorded and is not read.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    has_unread: bool,
    has_stacks: bool,
}

impl Faults {
    /// What is to be said of a record.
    pub(crate) fn of(&mut self, place: Place, record: &Record<'_>, entered: &Entered<'_>) -> Option<Diagnostic> {
        match &entered.what {
            What::Bad(rule, fault) => {
                let diagnostic =
                    about(rule, place, record, fault.at).field(format!("{}.{}", record.kind_name(), fault.field));
                Some(diagnostic.expected(fault.expected))
            }
            What::NotRead(what) => {
                let is_first = !std::mem::replace(&mut self.has_unread, true);
                is_first.then(|| about(&rules::NOT_READ, place, record, 0).field(record.kind_name()).found(*what))
            }
            What::Sample(sample) if sample.stack_bytes > 0 => {
                let is_first = !std::mem::replace(&mut self.has_stacks, true);
                is_first.then(|| {
                    about(&rules::NOT_UNWOUND, place, record, 0)
                        .help("perf script unwinds them, and anytrace reads its output")
                })
            }
            _ => None,
        }
    }
}

/// Finds lines of stacks without a sample.
#[derive(Debug, Default)]
pub(crate) struct Strays {
    is_in_sample: bool,
    is_reported: bool,
}

impl Strays {
    pub(crate) fn is_stray(&mut self, record: &Record<'_>) -> bool {
        let Record::Line(line) = record else { return false };
        match &line.content {
            Content::Head(_) => self.is_in_sample = true,
            Content::Blank => self.is_in_sample = false,
            Content::Frame(_) | Content::Detail => return !self.is_in_sample,
            Content::Comment => {}
        }
        false
    }

    /// After damage, which may have been the first line of a sample.
    pub(crate) fn lose(&mut self) {
        self.is_in_sample = false;
    }
}
