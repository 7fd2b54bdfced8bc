//! `convert` and `repair`.

use std::io::Write;

use anytrace_core::{Collect, Error, Input, OpenOptions, Outcome, Place, Plan, Sink, Target};

use crate::verbs::head_check::HeadCheck;
use crate::verbs::losses::{Losses, in_places};
use crate::verbs::output::{Form, Output};
use crate::verbs::trim;
use crate::wire::detect;
use crate::wire::parse::parse_record;
use crate::wire::reader::{Reader, Visit, after, run_of};
use crate::wire::record::{Layout, Record, Tag};

/// Carries out a plan.
pub(crate) fn rewrite(
    reader: Reader,
    plan: &Plan,
    limits: anytrace_core::Limits,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let layout = *reader.layout();
    let form = Form::new(plan.target(), layout)?;
    let may_change = matches!(plan, Plan::Repair(_)) && form.is_trace() && !reader.is_layout_given();
    let mut out = out;
    let mut checked = HeadCheck::new(&mut out, may_change);
    let mut outcome = match plan {
        Plan::Convert(_) => convert(reader, Output::new(&mut checked, layout, form), sink)?,
        Plan::Repair(_) => repair(reader, form, &mut checked, sink)?,
        Plan::Trim(selection, _) => {
            trim::trim(reader, selection, limits, Output::new(&mut checked, layout, form), sink)?
        }
    };
    match form {
        Form::Trace(layout) => outcome.notes.extend(checked.finish(layout)?),
        // It was passed on unchanged.
        Form::Jsonl(_) => {}
    }
    Ok(outcome)
}

fn convert(reader: Reader, output: Output<'_>, sink: &mut dyn Sink) -> Result<Outcome, Error> {
    let mut losses = Losses::new(sink);
    let mut copy = Copy { layout: *reader.layout(), output };
    let passed = reader.walk(&mut copy, &mut losses)?;
    Ok(Outcome {
        records_read: passed.records,
        records_written: copy.output.finish()?,
        bytes_lost: passed.bytes_lost,
        notes: losses.notes(),
    })
}

/// Writes everything that was read.
struct Copy<'a> {
    layout: Layout,
    output: Output<'a>,
}

impl Visit for Copy<'_> {
    fn run(&mut self, window: &[u8], at: Place, _sink: &mut dyn Sink) -> Result<usize, Error> {
        let run = run_of(window, self.layout);
        self.output.accesses(run, at)?;
        Ok(run.len())
    }

    fn rtta(&mut self, record: &Record<'_>, _raw: &[u8], at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        self.output.record(record, at)
    }
}

fn repair(reader: Reader, form: Form, checked: &mut HeadCheck<'_>, sink: &mut dyn Sink) -> Result<Outcome, Error> {
    let mut outcome = repair_once(reader, form, checked, sink)?;
    let Some(bytes) = checked.buffered() else { return Ok(outcome) };
    // A few implausible records may look like another layout once the damage around them is gone; opening the result
    // would then find errors again. Every iteration drops bytes, so this ends.
    while let Some(layout) = detect::misread(bytes) {
        let reader = Reader::new(Input::from_bytes("", bytes.clone()), &OpenOptions::default())?;
        let mut again = Vec::new();
        let next = repair_once(reader, Form::Trace(layout), &mut again, &mut Collect::default())?;
        if again.len() >= bytes.len() {
            break;
        }
        outcome.bytes_lost += (bytes.len() - again.len()) as u64;
        outcome.records_written = next.records_written;
        outcome.notes.push("dropped implausible, ambiguous records".to_owned());
        *bytes = again;
    }
    outcome.notes.dedup();
    Ok(outcome)
}

fn repair_once(reader: Reader, form: Form, out: &mut dyn Write, sink: &mut dyn Sink) -> Result<Outcome, Error> {
    let layout = *reader.layout();
    let output = Output::new(out, layout, form);
    let mut losses = Losses::new(sink);
    let mut repair = Repair { output, layout, zeros: None, zero_tail_bytes: 0, stripped: 0 };
    let passed = reader.walk(&mut repair, &mut losses)?;
    repair.flush_zeros()?;
    let mut notes = losses.notes();
    if repair.zero_tail_bytes > 0 {
        notes.push(format!("cut {} bytes of zeros off the end", repair.zero_tail_bytes));
    }
    if repair.stripped > 0 {
        notes.push(format!("cleared access flags on RTTA records{}", in_places(repair.stripped)));
    }
    Ok(Outcome {
        records_read: passed.records,
        bytes_lost: passed.bytes_lost + repair.zero_tail_bytes,
        records_written: repair.output.finish()?,
        notes,
    })
}

/// Writes everything but a zero tail, and RTTA records without flags.
struct Repair<'a> {
    output: Output<'a>,
    layout: Layout,
    /// Zero records buffered until something follows: the first one's place and their number.
    zeros: Option<(Place, u64)>,
    zero_tail_bytes: u64,
    stripped: u64,
}

impl Repair<'_> {
    fn flush_zeros(&mut self) -> Result<(), Error> {
        let Some((at, records)) = self.zeros.take() else { return Ok(()) };
        let zeros = [0; 18];
        let Ok((record, _)) = parse_record(&zeros, self.layout) else { return Ok(()) };
        for _ in 0..records {
            self.output.record(&record, at)?;
        }
        Ok(())
    }
}

impl Visit for Repair<'_> {
    fn run(&mut self, window: &[u8], at: Place, _sink: &mut dyn Sink) -> Result<usize, Error> {
        let run = run_of(window, self.layout);
        let stride = self.layout.access_bytes();
        let is_zero = |record: &&[u8]| record.iter().all(|&b| b == 0);
        let zeros = run.rchunks_exact(stride).take_while(is_zero).count();
        let kept = run.len() - zeros * stride;
        if kept > 0 {
            self.flush_zeros()?;
            self.output.accesses(run.get(..kept).unwrap_or_default(), at)?;
        }
        if zeros > 0 {
            let place = after(at, kept / stride, stride);
            self.zeros.get_or_insert((place, 0)).1 += zeros as u64;
        }
        Ok(run.len())
    }

    fn rtta(&mut self, record: &Record<'_>, _raw: &[u8], at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        self.flush_zeros()?;
        self.stripped += u64::from(record.tag.has_flags());
        self.output.record(&Record { tag: Tag(record.tag.0 & !Tag::FLAGS), ..*record }, at)
    }

    fn zero_tail(&mut self, _at: Place) {
        if let Some((_, records)) = self.zeros.take() {
            self.zero_tail_bytes = records * self.layout.access_bytes() as u64;
        }
    }
}
