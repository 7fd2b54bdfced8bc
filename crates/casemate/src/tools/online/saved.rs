//! The state of an [`Online`] check as bytes.
//!
//! ```text
//! "anytrace casemate state 3\n"
//! options, note, report so far, ids, place in the trace, bytes of an incomplete record, machine
//! sum of all bytes before it
//! ```

use anytrace_core::OpenOptions;

use super::{Ids, Online};
use crate::model::{BREACHES, Breach, Checker};
use crate::model::{In, Out};
use crate::options::OPTIONS;
use crate::tools::check::{CheckOptions, Run, Verdict};
use crate::wire::walk::push::{Push, Standing};

const MAGIC: &[u8] = b"anytrace casemate state 3\n";

/// Why a state cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveError {
    /// It does not begin as a state does, or is that of another version.
    NoState,
    /// It is truncated or changed.
    Damaged,
    /// It was written with other rules or options.
    OtherOptions,
}

impl SaveError {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoState => "expected the state of a check by this version of anytrace",
            Self::Damaged => "the state is truncated or damaged",
            Self::OtherOptions => "the state was written with other rules or options",
        }
    }
}

/// A sum that changes with every changed byte: 64-bit FNV-1a.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

const VERDICTS: [Verdict; 4] = [Verdict::Ok, Verdict::Unknown, Verdict::Assertion, Verdict::Violation];

impl Online {
    /// The state, from which [`Self::restore`] continues with the byte after the last one pushed. `note` is returned
    /// there. `None` inside damage, before reading has resumed.
    pub fn save(&self, note: &[u8]) -> Option<Vec<u8>> {
        let standing = self.walk.standing()?;
        let mut out = Out(MAGIC.to_vec());
        save_options(&self.open, &self.run.options, &mut out);
        out.bytes(note);
        save_run(&self.run, &mut out);
        out.option(self.ids.last);
        out.flag(self.ids.must_follow);
        for number in [standing.offset, standing.seq, standing.line_ends, standing.line_start, standing.mode.into()] {
            out.number(number);
        }
        out.flag(standing.has_output);
        out.bytes(&standing.pending);
        self.checker.save(&mut out);
        let sum = sum(&out.0);
        out.number(sum);
        Some(out.0)
    }

    /// Continues from a state, and returns its note.
    ///
    /// # Errors
    /// Bytes that are no state, or one of other options. A state is damaged by accident only: one that was forged is
    /// not recognized as such.
    pub fn restore(
        name: &str,
        open: &OpenOptions,
        options: CheckOptions,
        state: &[u8],
    ) -> Result<(Self, Vec<u8>), SaveError> {
        let body = state.strip_prefix(MAGIC).ok_or(SaveError::NoState)?;
        let (body, stored) = body.split_last_chunk::<8>().ok_or(SaveError::Damaged)?;
        let before = state.get(..state.len() - 8).unwrap_or_default();
        if u64::from_le_bytes(*stored) != sum(before) || open.only("casemate", &[], OPTIONS).is_err() {
            return Err(SaveError::Damaged);
        }
        let mut input = In(body);
        let mut expected = Out::default();
        save_options(open, &options, &mut expected);
        input.0 = input.0.strip_prefix(expected.0.as_slice()).ok_or(SaveError::OtherOptions)?;
        restore_rest(name, open, options, &mut input).filter(|_| input.0.is_empty()).ok_or(SaveError::Damaged)
    }

    /// Drops the bytes of an incomplete record: its source has them still, from [`Self::offset`] on.
    pub fn forget_pending(&mut self) {
        self.walk.forget_pending();
    }
}

fn restore_rest(
    name: &str,
    open: &OpenOptions,
    options: CheckOptions,
    input: &mut In<'_>,
) -> Option<(Online, Vec<u8>)> {
    let note = input.bytes()?.to_vec();
    let run = restore_run(name, options, input)?;
    let ids = Ids { last: input.option()?, must_follow: input.flag()? };
    let standing = Standing {
        offset: input.number()?,
        seq: input.number()?,
        line_ends: input.number()?,
        line_start: input.number()?,
        mode: input.small()?,
        has_output: input.flag()?,
        pending: input.bytes()?.to_vec(),
    };
    let walk = Push::resume(open, standing)?;
    let checker = Checker::restore(options.model, input)?;
    Some((Online { open: open.clone(), walk, checker, run, ids }, note))
}

fn save_options(open: &OpenOptions, options: &CheckOptions, out: &mut Out) {
    options.model.save(out);
    out.flag(options.reads_are_errors);
    out.number(options.limit);
    out.bytes(open.own.word("radix").unwrap_or_default().as_bytes());
    out.number(open.limits.record_bytes_max);
}

fn save_breach(breach: &Breach, out: &mut Out) {
    out.bytes(breach.name().as_bytes());
}

fn restore_breach(input: &mut In<'_>) -> Option<&'static Breach> {
    let name = input.bytes()?;
    BREACHES.into_iter().find(|breach| breach.name().as_bytes() == name)
}

fn save_run(run: &Run, out: &mut Out) {
    let report = &run.report;
    let counts = [report.events, report.listed, report.errors, report.warnings, report.damage, report.lost];
    counts.into_iter().for_each(|count| out.number(count));
    out.number(VERDICTS.iter().position(|verdict| *verdict == report.verdict).unwrap_or(0) as u64);
    out.list(report.doubts.iter(), |out, breach| save_breach(breach, out));
    out.flag(report.has_loss);
    out.flag(run.is_over);
    out.list(run.claim.iter(), |out, claim| out.bytes(claim.as_bytes()));
    out.list(run.first.iter(), |out, message| out.bytes(message.as_bytes()));
}

fn restore_run(name: &str, options: CheckOptions, input: &mut In<'_>) -> Option<Run> {
    let mut run = Run::new(name.to_owned(), options);
    let report = &mut run.report;
    report.events = input.number()?;
    report.listed = input.number()?;
    report.errors = input.number()?;
    report.warnings = input.number()?;
    report.damage = input.number()?;
    report.lost = input.number()?;
    report.verdict = VERDICTS.get(input.small::<usize>()?).copied()?;
    report.doubts = input.list(restore_breach)?;
    report.has_loss = input.flag()?;
    run.is_over = input.flag()?;
    let claim = input.list(In::bytes)?.first().map(|claim| String::from_utf8(claim.to_vec()));
    run.claim = claim.transpose().ok()?;
    let first = input.list(In::bytes)?;
    let message = |text: &&[u8]| BREACHES.into_iter().map(|breach| breach.message).find(|one| one.as_bytes() == *text);
    run.first = first.first().map(|text| message(text).ok_or(())).transpose().ok()?;
    Some(run)
}
