//! What is wrong with one file: counts of everything, and as many diagnostics as a limit allows.

use std::collections::BTreeMap;

use anytrace_core::{Diagnostic, Error, Format, Rule, Severity, Sink, layer_rules};

use crate::FileReport;

/// Counts diagnostics and keeps some of them. As a [`Sink`], it keeps those that [`Self::count`] says are to be shown.
#[derive(Debug, Clone)]
pub struct Findings {
    limit: u64,
    shown: u64,
    kept: Vec<Diagnostic>,
    counts: BTreeMap<&'static str, u64>,
    by_severity: [u64; 3],
    lost: u64,
    skipped_bytes: u64,
}

impl Findings {
    /// Nothing found yet; a limit of 0 is none.
    pub fn new(limit: u64) -> Self {
        Self {
            limit: if limit == 0 { u64::MAX } else { limit },
            shown: 0,
            kept: Vec::new(),
            counts: BTreeMap::new(),
            by_severity: [0; 3],
            lost: 0,
            skipped_bytes: 0,
        }
    }

    /// Counts a diagnostic; true when it is to be shown. The first of each rule always is, so that a flood of one cannot
    /// hide another.
    pub fn count(&mut self, diagnostic: &Diagnostic) -> bool {
        self.by_severity[diagnostic.severity as usize] += 1;
        self.skipped_bytes = self.skipped_bytes.saturating_add(diagnostic.skipped_bytes);
        self.lost += u64::from(diagnostic.is_loss());
        let count = self.counts.entry(diagnostic.code()).or_default();
        *count += 1;
        let is_shown = self.shown < self.limit || *count == 1;
        self.shown += u64::from(is_shown);
        is_shown
    }

    /// Keeps a diagnostic that is to be shown.
    pub fn keep(&mut self, diagnostic: Diagnostic) {
        self.kept.push(diagnostic);
    }

    /// The diagnostics kept.
    pub fn kept(&self) -> &[Diagnostic] {
        &self.kept
    }

    /// Exact counts by code.
    pub fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// Exact number of diagnostics of a severity.
    pub fn of(&self, severity: Severity) -> u64 {
        self.by_severity[severity as usize]
    }

    /// At how many places records were lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes that were skipped.
    pub fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }

    /// How many diagnostics were not shown.
    pub fn not_shown(&self) -> u64 {
        self.counts.values().sum::<u64>() - self.shown
    }

    /// The report of a file.
    pub fn into_report(self, file: &str, format: Option<&dyn Format>, records: u64) -> FileReport {
        let mut rules: Vec<&'static Rule> = format.map(|format| format.rules().to_vec()).unwrap_or_default();
        rules.extend(layer_rules());
        FileReport {
            lost: self.lost,
            errors: self.of(Severity::Error),
            warnings: self.of(Severity::Warning),
            notes: self.of(Severity::Note),
            file: file.to_owned(),
            format: format.map_or("unknown", Format::name),
            noun: format.map_or("record", Format::noun),
            rules,
            records,
            diagnostics: self.kept,
            counts: self.counts,
        }
    }
}

impl Sink for Findings {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        if self.count(&diagnostic) {
            self.keep(diagnostic);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static GAP: Rule = Rule::error("x/gap", "records are missing");
    static ODD: Rule = Rule::warning("x/odd", "a size is odd");

    #[test]
    fn beyond_the_limit_only_the_first_of_each_rule_is_kept_and_all_are_counted() {
        let mut findings = Findings::new(2);
        for offset in 0..5 {
            findings.report(GAP.at(offset).skipped(3)).unwrap();
        }
        findings.report(ODD.at(9)).unwrap();
        let kept: Vec<u64> = findings.kept().iter().map(|one| one.offset).collect();
        assert_eq!((kept, findings.not_shown()), (vec![0, 1, 9], 3));
        assert_eq!((findings.of(Severity::Error), findings.lost(), findings.skipped_bytes()), (5, 5, 15));
        let report = findings.into_report("f", None, 7);
        assert_eq!((report.records, report.warnings, report.counts["x/gap"]), (7, 1, 5));
    }

    #[test]
    fn a_limit_of_0_is_none() {
        let mut findings = Findings::new(0);
        (0..9).for_each(|offset| findings.report(GAP.at(offset)).unwrap());
        assert_eq!((findings.kept().len(), findings.not_shown()), (9, 0));
    }
}
