//! Counts what a rewrite loses while the diagnostics pass through, and states it in sentences.

use std::collections::BTreeMap;

use anytrace_core::{Diagnostic, Error, Sink};

use crate::rules;

/// Passes diagnostics on and counts them.
pub(crate) struct Losses<'a> {
    inner: &'a mut dyn Sink,
    /// Times and bytes skipped, by code.
    counts: BTreeMap<&'static str, (u64, u64)>,
    layers: u64,
}

impl<'a> Losses<'a> {
    pub(crate) fn new(inner: &'a mut dyn Sink) -> Self {
        Self { inner, counts: BTreeMap::new(), layers: 0 }
    }

    /// What was lost, one sentence each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let said = [
            (&rules::BAD_TAG, "no record starts here"),
            (&rules::TRUNCATED, "the data ended inside the last record"),
            (&rules::TRUNCATED_STRING, "a type name reached past the end of the data"),
            (&rules::NAME_TOO_LONG, "a type name was longer than the limit on a record"),
        ];
        let mut notes: Vec<String> = said
            .iter()
            .filter_map(|(rule, why)| {
                let (times, bytes) = self.counts.get(rule.code)?;
                Some(format!("dropped {bytes} bytes{}: {why} [{}]", in_places(*times), rule.code))
            })
            .collect();
        if self.layers > 0 {
            notes.push("the compressed data are damaged; what could be decompressed was used".to_owned());
        }
        notes
    }
}

pub(crate) fn in_places(times: u64) -> String {
    if times == 1 { String::new() } else { format!(" in {times} places") }
}

impl Sink for Losses<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        let count = self.counts.entry(diagnostic.code()).or_default();
        count.0 += 1;
        count.1 += diagnostic.skipped_bytes;
        self.layers += u64::from(diagnostic.code().starts_with("container/"));
        self.inner.report(diagnostic)
    }
}
