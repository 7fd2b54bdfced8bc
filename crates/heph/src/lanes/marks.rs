//! Hands out the places where reading can begin.

use anytrace_core::index::{Index, Mark, MarkSink, Needs};
use anytrace_core::{Diagnostic, DumpForm, DumpOptions, Error, Place, Selection, Sink};

use crate::verbs::select::Filter;

use crate::wire::marks::encode;
use crate::wire::reader::{Reader, Visitor};
use crate::wire::record::Record;

/// Reads a trace and marks the first packet after each `every_bytes` bytes.
pub(crate) fn find(
    mut reader: Reader,
    every_bytes: u64,
    out: &mut dyn MarkSink,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    out.share(reader.agreement().to_vec());
    let mut next = every_bytes;
    let mut checked = Checked(sink);
    while !reader.read_before(next, &mut checked)?
        && let Some((Place { offset, seq }, work)) = reader.next_place()?
    {
        out.mark(Mark { offset, seq, state: encode(work) })?;
        next = offset.saturating_add(every_bytes);
    }
    reader.report_layers(&mut checked)
}

/// What a dump needs. JSON lines have warnings about counters, which depend on all packets before them.
pub(crate) fn dump_needs(dump: &DumpOptions, index: &Index) -> Result<Option<Needs>, Error> {
    if dump.form == DumpForm::Jsonl {
        Filter::check(&dump.selection)?;
        return Ok(None);
    }
    needs(&dump.selection, index)
}

/// What a trim needs: it keeps all metadata.
pub(crate) fn trim_needs(selection: &Selection, index: &Index) -> Result<Option<Needs>, Error> {
    let needs = needs(selection, index)?;
    Ok(needs.map(|needs| Needs { kinds: &["metadata"], ..needs }))
}

fn needs(selection: &Selection, index: &Index) -> Result<Option<Needs>, Error> {
    Filter::check(selection)?;
    if !selection.own.is_empty() {
        return Ok(None);
    }
    let mut needs = Needs::of(selection);
    if selection.has_relative_time() {
        let Some(earliest) = index.time_range().and_then(|time| u64::try_from(*time.start()).ok()) else {
            return Ok(None);
        };
        needs.start = Some(earliest);
    }
    let bounds = Filter::from_start(selection, needs.start.unwrap_or(0)).into_time();
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    needs.filter.time = bounds.map(|time| signed(time.start)..=signed(time.end));
    Ok(Some(needs))
}

/// Passes damage on; packets are only parsed.
struct Checked<'a>(&'a mut dyn Sink);

impl Visitor for Checked<'_> {
    #[inline]
    fn packet(&mut self, _: Place, _: &[u8], _: &Record<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.0.report(diagnostic)
    }
}
