//! `casemate check`: the verdict on a trace, with everything that a report needs.

mod ahead;

use anytrace_core::{Diagnostic, Error, Input, OpenOptions, Severity, Sink, text};

use crate::model::{Breach, Checker, LiveChange, Options, Reuse, StaleUse, Violation, Watch};
use crate::wire::output::claim_text;
use crate::wire::record::{Record, Source};
use crate::wire::walk::{Here, Item, Walk};

/// How to check.
#[derive(Debug, Clone, Copy)]
pub struct CheckOptions {
    /// The rules; [`Options::goes_on`] lists all violations.
    pub model: Options,
    /// Read values that differ from memory are errors.
    pub reads_are_errors: bool,
    /// Most violations listed; 0 is all. Counts are exact.
    pub limit: u64,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { model: Options::ARCHITECTURE, reads_are_errors: false, limit: 1000 }
    }
}

/// The verdict on a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// No rule is broken.
    Ok,
    /// Records were lost, or did something that is not modelled, before any rule was broken: later violations may be
    /// caused by that, and these records may have broken a rule themselves. [`Report::reasons`] says why.
    Unknown,
    /// The first broken rule is an assertion of the reference.
    Assertion,
    /// A rule is broken.
    Violation,
}

impl Verdict {
    /// The verdict for programs: `ok`, `unknown` or `violation`; a failed assertion is a violation too.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok | Self::Unknown => self.name(),
            Self::Assertion | Self::Violation => "violation",
        }
    }

    /// `ok`, `unknown`, `assertion` or `violation`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Assertion => "assertion",
            Self::Violation => "violation",
        }
    }
}

/// The relation of a place to a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An entry above the location, nearest first.
    Above,
    /// Another place where the same step broke the same rule.
    Also,
}

impl Role {
    /// `table entry above` or `also at`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Above => "table entry above",
            Self::Also => "also at",
        }
    }
}

/// A place related to a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Related {
    /// Its address.
    pub location: u64,
    /// Its relation.
    pub role: Role,
}

/// A violation with its place in the trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The rule.
    pub breach: &'static Breach,
    /// Error or warning.
    pub severity: Severity,
    /// The record's own number.
    pub record_id: u64,
    /// The record's number in the trace, from 0.
    pub index: u64,
    /// Byte offset of the record.
    pub offset: u64,
    /// Its line, from 1.
    pub line: u64,
    /// Its thread.
    pub thread: u32,
    /// Its place in the traced program, escaped.
    pub source: Option<String>,
    /// The same as file and line.
    pub source_line: Option<(String, u64)>,
    /// What it concerns.
    pub location: Option<u64>,
    /// For a change of a live entry without a break: the change, and which attribute decides.
    pub change: Option<LiveChange>,
    /// For memory that is handed over too early: how, and what TLBs may still grant.
    pub stale: Option<StaleUse>,
    /// For a VMID or ASID that gets another tree: the one before.
    pub reuse: Option<Reuse>,
    /// Entries above the location, and further places.
    pub related: Vec<Related>,
    /// Further places not listed.
    pub more: u64,
    /// The record as it is in the trace, at most 200 bytes of it.
    pub text: String,
}

/// The verdict at the end of a log, `! message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Its text, escaped.
    pub text: String,
    /// True when the first violation found has the same message.
    pub is_same: bool,
}

/// The findings for one trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The name of the file.
    pub file: String,
    /// Records checked, including the failing one.
    pub events: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// The violations, at most as many as the limit; none where each was passed on when it was found.
    pub violations: Vec<Found>,
    /// How many violations and warnings were listed or passed on.
    pub listed: u64,
    /// How many violations there were.
    pub errors: u64,
    /// How many warnings there were.
    pub warnings: u64,
    /// The log's own verdict.
    pub claim: Option<Claim>,
    /// Errors of grammar: records were lost, and the verdict may be wrong.
    pub damage: u64,
    /// The number of places at which records were lost.
    pub lost: u64,
    /// What is not modelled, each once, in the order of the trace: why the verdict is not `ok`.
    pub doubts: Vec<&'static Breach>,
    /// Records were lost before any rule was broken, here or when the trace was repaired.
    pub has_loss: bool,
}

impl Report {
    /// True when the trace is fine in every respect, including the log's own verdict.
    pub fn is_fine(&self) -> bool {
        self.verdict == Verdict::Ok && self.errors == 0 && self.damage == 0 && self.claim.is_none()
    }

    /// Why the verdict is unknown; empty for other verdicts.
    pub fn reasons(&self) -> Vec<&'static str> {
        if self.verdict != Verdict::Unknown {
            return Vec::new();
        }
        let lost = if self.has_loss || self.lost > 0 { Some("records were lost") } else { None };
        lost.into_iter().chain(self.doubts.iter().map(|breach| breach.message)).collect()
    }

    /// Adds what was lost before the records came to the checker: in a compressed file that ends too early, say.
    pub fn add_lost(&mut self, places: u64) {
        self.lost += places;
        self.damage += places;
        if self.verdict == Verdict::Ok && self.lost > 0 {
            self.verdict = Verdict::Unknown;
        }
    }
}

/// Counts damage and passes it on to the caller.
pub(super) struct CountingSink<'a> {
    pub(super) inner: &'a mut dyn Sink,
    pub(super) errors: u64,
    pub(super) lost: u64,
}

impl Sink for CountingSink<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.errors += u64::from(diagnostic.severity == Severity::Error);
        self.lost += u64::from(diagnostic.is_loss());
        self.inner.report(diagnostic)
    }
}

/// Checks a trace in one pass; for memory see [`Checker`]; it does not depend on the trace's length. The trace is read
/// to its end even where checking stops at a violation: later damage counts, and a claimed verdict may follow.
///
/// With [`OpenOptions::threads`] above 1 the records are parsed ahead by other threads; the report is the same.
///
/// # Errors
/// I/O errors, and whatever the sink returns. Damage is reported to the sink and skipped.
pub fn check(input: Input, open: &OpenOptions, options: &CheckOptions, sink: &mut dyn Sink) -> Result<Report, Error> {
    check_in_pieces(input, open, options, ahead::PIECE_BYTES, sink)
}

/// The same with pieces of another length for the threads: for tests.
///
/// # Errors
/// As [`check()`].
#[doc(hidden)]
pub fn check_in_pieces(
    input: Input,
    open: &OpenOptions,
    options: &CheckOptions,
    piece_bytes: usize,
    sink: &mut dyn Sink,
) -> Result<Report, Error> {
    let mut run = Run::new(input.name().to_owned(), *options);
    let mut sink = CountingSink { inner: sink, errors: 0, lost: 0 };
    if open.threads > 1 && open.part.is_none() {
        ahead::check(input, open, piece_bytes, &mut run, &mut sink)?;
        run.count_damage(sink.errors, sink.lost);
        return Ok(run.finish());
    }
    let mut checker = Checker::new(options.model);
    let mut reader = Walk::new(input, open)?;
    reader.for_each(&mut sink, |item, place| {
        run.take(&mut checker, &item, place);
        Ok(())
    })?;
    run.count_damage(sink.errors, sink.lost);
    Ok(run.finish())
}

/// The verdict in the making. `report.verdict`, its counts and `first` are those of the records so far.
pub(super) struct Run {
    pub(super) options: CheckOptions,
    pub(super) report: Report,
    pub(super) claim: Option<String>,
    /// The violation at which checking stops was found.
    pub(super) is_over: bool,
    /// The message of the first violation that is an error.
    pub(super) first: Option<&'static str>,
}

impl Run {
    pub(super) fn new(file: String, options: CheckOptions) -> Self {
        let report = Report {
            file,
            events: 0,
            verdict: Verdict::Ok,
            violations: Vec::new(),
            listed: 0,
            errors: 0,
            warnings: 0,
            claim: None,
            damage: 0,
            lost: 0,
            doubts: Vec::new(),
            has_loss: false,
        };
        Self { options, report, claim: None, is_over: false, first: None }
    }

    #[inline]
    pub(super) fn take<W: Watch>(&mut self, checker: &mut Checker<W>, item: &Item<'_>, place: &mut Here<'_>) {
        match item {
            Item::Record(_) if self.is_over => {}
            Item::Record(record) => {
                let found = checker.step(record.thread, &record.transition);
                if !found.is_empty() {
                    let found = found.to_vec();
                    self.found(checker, &found, record, place);
                }
                self.report.events = place.seq + 1;
            }
            Item::Claim(line) => self.claim(line),
            // Violations found before the loss remain valid.
            Item::Lost(_) => self.note_loss(),
            Item::Space(_) | Item::Output(_) => {}
        }
    }

    fn note_loss(&mut self) {
        if self.report.verdict <= Verdict::Unknown {
            self.report.verdict = Verdict::Unknown;
            self.report.has_loss = true;
        }
    }

    /// Records were lost before they came here.
    #[cold]
    pub(super) fn lose(&mut self) {
        self.note_loss();
        self.count_damage(1, 1);
    }

    /// Adds diagnostics of the grammar: errors, and those of them that lost records.
    pub(super) fn count_damage(&mut self, errors: u64, lost: u64) {
        self.report.damage += errors;
        self.report.lost += lost;
    }

    /// The violations found since the last call.
    #[inline]
    pub(super) fn take_new(&mut self) -> Vec<Found> {
        if self.report.violations.is_empty() { Vec::new() } else { std::mem::take(&mut self.report.violations) }
    }

    #[cold]
    fn claim(&mut self, line: &[u8]) {
        self.claim.get_or_insert_with(|| text::escaped(claim_text(line)));
    }

    #[cold]
    fn found<W: Watch>(
        &mut self,
        checker: &Checker<W>,
        found: &[Violation],
        record: &Record<'_>,
        place: &mut Here<'_>,
    ) {
        for violation in found {
            let is_read = violation.breach.name() == "read-mismatch";
            let is_error = violation.is_error() || is_read && self.options.reads_are_errors;
            let (count, severity) = match is_error {
                true => (&mut self.report.errors, Severity::Error),
                false => (&mut self.report.warnings, Severity::Warning),
            };
            *count += 1;
            let is_first = *count == 1;
            if is_error {
                self.first.get_or_insert(violation.breach.message);
            }
            if violation.breach.is_doubt && self.report.verdict <= Verdict::Unknown {
                self.report.verdict = Verdict::Unknown;
                if !self.report.doubts.contains(&violation.breach) {
                    self.report.doubts.push(violation.breach);
                }
            }
            if is_error && self.report.verdict == Verdict::Ok {
                let is_assertion = violation.breach.is_assertion;
                self.report.verdict = if is_assertion { Verdict::Assertion } else { Verdict::Violation };
            }
            if is_error && !self.options.model.goes_on {
                self.is_over = true;
            }
            let has_room = self.options.limit == 0 || self.report.listed < self.options.limit;
            if has_room || is_first {
                self.report.listed += 1;
                let entry = describe(checker, violation, severity, record, place);
                self.report.violations.push(entry);
            }
        }
    }

    pub(super) fn finish(mut self) -> Report {
        // Compressed data that end too early have no bytes that could be lost.
        self.report.add_lost(0);
        self.report.claim = self.claim.map(|text| Claim { is_same: Some(text.as_str()) == self.first, text });
        self.report
    }
}

fn describe<W: Watch>(
    checker: &Checker<W>,
    violation: &Violation,
    severity: Severity,
    record: &Record<'_>,
    place: &mut Here<'_>,
) -> Found {
    let (line, _) = place.complaint(violation.breach.rule, 0).line.unwrap_or((0, 0));
    let cell = violation.location.and_then(|location| checker.cell(location));
    let above = cell.map(|cell| checker.parents(&cell)).unwrap_or_default();
    let above = above.iter().map(|cell| Related { location: cell.address, role: Role::Above });
    let also = violation.also_at.iter().map(|location| Related { location: *location, role: Role::Also });
    Found {
        breach: violation.breach,
        severity,
        record_id: record.id,
        index: place.seq,
        offset: place.offset,
        line,
        thread: record.thread,
        source: source_text(&record.source),
        source_line: record.source.file_line().map(|(file, line)| (text::escaped(file), line)),
        location: violation.location,
        change: violation.change,
        stale: violation.stale,
        reuse: violation.reuse,
        related: above.chain(also).collect(),
        more: violation.more.saturating_sub(violation.also_at.len() as u64),
        text: short(record.text),
    }
}

/// A record's source as text.
pub(crate) fn source_text(source: &Source<'_>) -> Option<String> {
    match source {
        Source::Absent => None,
        Source::Text(bytes) => Some(text::escaped(bytes)),
        Source::Key(key) => Some(key.to_string()),
    }
}

/// The first bytes of a record, on one line.
pub(crate) fn short(bytes: &[u8]) -> String {
    let shown = String::from_utf8_lossy(bytes.get(..200).unwrap_or(bytes));
    let words = shown.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut shown = words.collect::<Vec<_>>().join(" ");
    if bytes.len() > 200 {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use anytrace_core::Collect;

    use super::*;

    fn run(log: &str, options: CheckOptions) -> Report {
        let input = Input::from_bytes("t.log", log.as_bytes().to_vec());
        check(input, &OpenOptions::default(), &options, &mut Collect::default()).unwrap()
    }

    const TWICE: &str = "(lock (id 7) (tid 1) (address 0x10) (src \"a.c:3\"))\n(lock (id 9) (tid 2) (address 0x10) (src \"b.c:4\"))\n(lock 11 1 20)\n";

    #[test]
    fn a_violation_has_its_place_in_trace_and_program() {
        let report = run(TWICE, CheckOptions::default());
        assert_eq!((report.verdict, report.events, report.errors), (Verdict::Violation, 2, 1));
        let found = &report.violations[0];
        assert_eq!((found.record_id, found.index, found.line, found.thread), (9, 1, 2, 2));
        assert_eq!(found.source_line, Some(("b.c".to_owned(), 4)));
        assert_eq!(found.location, Some(0x10));
        assert!(!report.is_fine());
    }

    #[test]
    fn going_on_lists_all() {
        let mut options = CheckOptions::default();
        options.model.goes_on = true;
        let report = run(&format!("{TWICE}(unlock 12 1 30)(unlock 13 1 40)"), options);
        assert_eq!((report.events, report.errors), (5, 3));
        options.limit = 1;
        let report = run(&format!("{TWICE}(unlock 12 1 30)(unlock 13 1 40)"), options);
        assert_eq!((report.violations.len(), report.errors), (1, 3));
    }

    #[test]
    fn a_claimed_verdict_is_compared() {
        let claim = |log: &str| run(log, CheckOptions::default()).claim;
        let same = "! Tried to lock a component that was alerady held\n";
        assert_eq!(claim(&format!("{TWICE}{same}")).map(|claim| claim.is_same), Some(true));
        assert_eq!(claim(&format!("{TWICE}! other\n")).map(|claim| claim.is_same), Some(false));
        let far = format!("{TWICE}{}{same}", "(lock 12 1 30)(unlock 13 1 30)\n".repeat(100));
        assert_eq!(claim(&far).map(|claim| claim.is_same), Some(true));
        let unfounded = run("(lock 1 1 10)\n! BBM valid->valid\n", CheckOptions::default());
        assert_eq!((unfounded.verdict, unfounded.is_fine()), (Verdict::Ok, false));
    }

    #[test]
    fn reads_that_differ_warn_unless_they_are_errors() {
        let log = "(mem-init 1 0 1000 1000)(mem-read 2 0 1000 5)";
        let report = run(log, CheckOptions::default());
        assert_eq!((report.verdict, report.errors, report.warnings), (Verdict::Ok, 0, 1));
        let report = run(log, CheckOptions { reads_are_errors: true, ..CheckOptions::default() });
        assert_eq!((report.verdict, report.errors), (Verdict::Violation, 1));
    }

    #[test]
    fn damage_makes_a_verdict_doubtful() {
        // A damaged TLBI may be the one that the next write needs.
        let unknown = run("(lock 1 1 10)\n(tlbi (id 2) (tid 1) vmalls-13)\n(lock 3 2 10)", CheckOptions::default());
        assert_eq!((unknown.verdict, unknown.lost, unknown.errors), (Verdict::Unknown, 1, 1));
        assert_eq!(unknown.reasons(), ["records were lost"]);
        // A violation found before it remains one.
        let before = run(&format!("{TWICE}(tlbi (id 12) (tid 1) vmalls-13)"), CheckOptions::default());
        assert!(before.reasons().is_empty());
        assert_eq!((before.verdict, before.lost, before.damage), (Verdict::Violation, 1, 1));
        let repaired =
            run("(lock 1 1 10)\n; anytrace: records were lost here\n(unlock 2 1 10)", CheckOptions::default());
        assert_eq!((repaired.verdict, repaired.lost, repaired.is_fine()), (Verdict::Unknown, 0, false));
        let report = run("(lock 1 1 10)(unlock 2 1 xyz)", CheckOptions::default());
        assert_eq!((report.verdict, report.damage, report.is_fine()), (Verdict::Unknown, 1, false));
    }

    #[test]
    fn what_is_not_modelled_makes_a_verdict_unknown_with_its_reason() {
        let tree = "(mem-init 1 0 1000 1000)(hint 2 0 set_root_lock 1000 9000)(sysreg-write 3 0 vtcr_el2 2b)\
                    (mem-write 4 0 plain 1008 50003)(sysreg-write 5 0 vttbr_el2 1000)(lock 6 0 9000)";
        let removed = format!("{tree}(mem-write 7 0 plain 1008 0)(barrier 8 0 dsb ish)");
        let made = "(barrier 10 0 dsb ish)(mem-write 11 0 release 1008 60003)";
        // It may have cleaned the entry.
        let report = run(&format!("{removed}(tlbi 9 0 vmallws2e1is){made}"), CheckOptions::default());
        assert_eq!((report.verdict, report.errors, report.lost), (Verdict::Unknown, 1, 0));
        assert_eq!(report.reasons(), ["a TLBI is not modelled"]);
        assert!(!report.is_fine());
        // Nor is anything known of it where the model has nothing to clean.
        let report = run(&format!("{tree}(tlbi 9 0 vmallws2e1is)"), CheckOptions::default());
        assert_eq!((report.verdict, report.warnings), (Verdict::Unknown, 1));
        let report = run(&format!("{tree}(sysreg-write 9 0 tcr2_el2 1)"), CheckOptions::default());
        assert_eq!(report.reasons(), ["a system register is not modelled"]);
        let report = run(&format!("{tree}(sysreg-write 9 0 vbar_el2 1)"), CheckOptions::default());
        assert_eq!((report.verdict, report.warnings), (Verdict::Ok, 0));
        let report = run(&format!("{tree}(sysreg-write 9 0 ttbr1_el1 1000)"), CheckOptions::default());
        assert_eq!(report.reasons(), ["tables of this translation regime are not followed"]);
        // A violation before it stands.
        let report = run(&format!("{removed}{made}(sysreg-write 12 0 tcr2_el2 1)"), CheckOptions::default());
        assert_eq!((report.verdict, report.reasons().len()), (Verdict::Violation, 0));
    }

    #[test]
    fn damage_counts_however_far_behind_the_violation_it_is() {
        let rest = "(lock 12 1 30)(unlock 13 1 30)\n".repeat(100);
        let damaged = run(&format!("{TWICE}{rest}(unlock 14 1 xyz)\n"), CheckOptions::default());
        assert_eq!((damaged.verdict, damaged.lost, damaged.damage), (Verdict::Violation, 1, 1));
        // Nothing else depends on what follows it.
        let intact = run(&format!("{TWICE}{rest}"), CheckOptions::default());
        assert_eq!(Report { lost: 0, damage: 0, ..damaged }, intact);
        assert_eq!((intact.events, intact.errors, intact.violations.len()), (2, 1, 1));
    }
}
