//! Short traces in the peer's forms, aligned as the peer aligns them.

use std::io::Write;
use std::thread;

use anytrace_analysis::diff::Record;
use anytrace_analysis::matching::{Operation, operations};
use anytrace_core::{Collect, Error};

use crate::tools::callset::CallSet;
use crate::tools::diff::engine::Show;
use crate::tools::diff::entry::{Entry, MakeOptions, Maker};
use crate::tools::diff::lines::{Printer, compare};
use crate::tools::diff::python::Python;
use crate::tools::diff::side::{Consumer, Open, Property, Source, read};
use crate::tools::diff::{DiffForm, DiffOptions, DiffTotals, PEER_CALLS_MAX};

/// Most bytes of calls kept of a side.
const KEPT_BYTES: usize = 12 << 20;

/// Keeps calls as long as there are few.
#[derive(Default)]
struct Few {
    properties: Vec<Property>,
    calls: Vec<Entry>,
    bytes: usize,
    are_too_many: bool,
}

impl Consumer for Few {
    fn properties(&mut self, properties: Vec<Property>) -> Result<(), Error> {
        self.properties = properties;
        Ok(())
    }

    fn call(&mut self, maker: &Maker) -> Result<bool, Error> {
        if self.calls.len() == PEER_CALLS_MAX || self.bytes > KEPT_BYTES {
            self.are_too_many = true;
            return Ok(false);
        }
        let entry = maker.entry();
        self.bytes += entry.buffered_bytes();
        self.calls.push(entry);
        Ok(true)
    }
}

fn few(open: &Open<'_>, calls: &CallSet, options: MakeOptions) -> Result<(Few, Collect), Error> {
    let (mut few, mut damage) = (Few::default(), Collect::default());
    read(open, calls, options, &mut few, &mut damage)?;
    Ok((few, damage))
}

/// Compares two short traces. Returns `None`, without printing or reporting anything, if one is not short.
pub(crate) fn diff(
    a: &mut Source<'_>,
    b: &mut Source<'_>,
    options: &DiffOptions,
    out: &mut dyn Write,
) -> Result<Option<DiffTotals>, Error> {
    let (first, second) = (options.make_options(0), options.make_options(1));
    let (from_a, from_b) = thread::scope(|scope| {
        let (open, calls) = (a.open, &a.calls);
        let other = scope.spawn(move || few(open, calls, first));
        let here = few(b.open, &b.calls, second);
        (other.join().unwrap_or_else(|_| Err(Error::limit("a reading thread failed"))), here)
    });
    let ((in_a, damage_a), (in_b, damage_b)) = (from_a?, from_b?);
    if in_a.are_too_many || in_b.are_too_many {
        return Ok(None);
    }
    damage_a.0.into_iter().try_for_each(|one| a.sink.report(one))?;
    damage_b.0.into_iter().try_for_each(|one| b.sink.report(one))?;
    let totals = match options.form {
        DiffForm::Lines(form) => {
            let mut printer = Printer::new(form, options, out);
            compare(&lines(&in_a), &lines(&in_b), &mut printer)?
        }
        _ => python(in_a.calls, in_b.calls, options, out)?,
    };
    out.flush()?;
    Ok(Some(totals))
}

/// The lines of a side's text.
fn lines(few: &Few) -> Vec<&[u8]> {
    let texts = few.properties.iter().map(|(text, _)| text.as_slice()).chain(few.calls.iter().map(Entry::tail));
    texts.flat_map(crate::tools::diff::lines::split).collect()
}

/// What the peer's matcher ignores: error queries that found no error.
fn is_noise(entry: &Entry) -> bool {
    let returned = entry.part(entry.arguments()).map(|(_, value)| value);
    entry.name() == b"glGetError"
        && returned.is_some_and(|value| matches!(value, b"GL_NO_ERROR" | b"0" | b"False" | b"0.0" | b"-0.0"))
}

fn python(a: Vec<Entry>, b: Vec<Entry>, options: &DiffOptions, out: &mut dyn Write) -> Result<DiffTotals, Error> {
    let hashes = |entries: &[Entry]| entries.iter().map(|entry| entry.hash).collect::<Vec<_>>();
    let names = |entries: &[Entry]| entries.iter().map(|entry| entry.name_hash).collect::<Vec<_>>();
    let found = operations(&hashes(&a), &hashes(&b), &|at| b.get(at).is_some_and(is_noise));
    let mut show = Python::new(options, out);
    let mut totals = DiffTotals::default();
    let (mut a, mut b) = (a.into_iter(), b.into_iter());
    for (operation, in_a, in_b) in found {
        let removed: Vec<Entry> = a.by_ref().take(in_a.len()).collect();
        let added: Vec<Entry> = b.by_ref().take(in_b.len()).collect();
        if operation != Operation::Replace {
            show_operation(operation, removed, added, &mut show, &mut totals)?;
            continue;
        }
        let inner = operations(&names(&removed), &names(&added), &|_| false);
        let (mut removed, mut added) = (removed.into_iter(), added.into_iter());
        for (operation, in_a, in_b) in inner {
            // Only the names are equal here.
            let operation = match operation {
                Operation::Equal => Operation::Replace,
                Operation::Replace if in_b.len() < in_a.len() => Operation::Insert,
                Operation::Replace => Operation::Delete,
                other => other,
            };
            let removed = removed.by_ref().take(in_a.len()).collect();
            let added = added.by_ref().take(in_b.len()).collect();
            show_operation(operation, removed, added, &mut show, &mut totals)?;
        }
    }
    show.finish(&totals)?;
    Ok(totals)
}

/// Shows calls: pairs that are equal, pairs of the same name (replace), or one side's after the other's.
fn show_operation(
    operation: Operation,
    removed: Vec<Entry>,
    added: Vec<Entry>,
    show: &mut Python<'_>,
    totals: &mut DiffTotals,
) -> Result<(), Error> {
    match operation {
        Operation::Equal => {
            totals.same += removed.len() as u64;
            removed.into_iter().zip(added).try_for_each(|(old, new)| show.same(old, new))
        }
        Operation::Replace => {
            totals.changed += removed.len() as u64;
            removed.into_iter().zip(added).try_for_each(|(old, new)| show.changed(old, new, &[]))
        }
        Operation::Delete | Operation::Insert => {
            totals.removed += removed.len() as u64;
            totals.added += added.len() as u64;
            if operation == Operation::Insert {
                added.into_iter().try_for_each(|new| show.added(new))?;
                return removed.into_iter().try_for_each(|old| show.removed(old));
            }
            removed.into_iter().try_for_each(|old| show.removed(old))?;
            added.into_iter().try_for_each(|new| show.added(new))
        }
    }
}
