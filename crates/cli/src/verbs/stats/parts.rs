//! The table of an indexed trace, read in parts on all processors.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anytrace_analysis::accounting::Accounting;
use anytrace_analysis::pass::{Done, Engine, Pass};
use anytrace_core::index::Part;
use anytrace_core::table::{Filter, SPANS};
use anytrace_core::{Collect, Diagnostic, Error, Format, Input, InputOptions, OpenOptions, SpanOptions};

use crate::arguments::StatsArguments;
use crate::failure::Failure;
use crate::report::{Reporter, Way};
use crate::spans::{SpansRead, complain};
use crate::{indexed, open};

/// Parts for each thread: those that are done early take more.
const PARTS: usize = 4;

/// What a part gave.
type Counted = (Accounting, Done, Vec<Diagnostic>);

/// Reads a trace with an index; `None` where it must be read at once: without an index that has its spans, with one
/// thread, with damage, which is reported in the order of the file, with names from outside, which may be the same for
/// two functions, or where something goes wrong.
pub(super) fn read(path: &Path, options: &StatsArguments) -> Result<Option<(SpansRead, Accounting)>, Failure> {
    let (spans, input) = (&options.spans, &options.input);
    let how = open::open_options(input);
    let is_simple = !spans.tail_chains && spans.symbols.sources().is_empty();
    if !is_simple || how.threads < 2 || open::is_read_once(path) {
        return Ok(None);
    }
    let Ok(Ok((format, _))) = open::open_trace(path, input) else { return Ok(None) };
    if !format.part_tables().contains(&SPANS.name) {
        return Ok(None);
    }
    let Some(index) = indexed::find(path, format, input, &options.index)? else { return Ok(None) };
    let parts = index.parts(&SPANS, &Filter::default(), how.threads * PARTS);
    if !index.has_spans() || parts.len() < 2 || index.chunks.iter().any(|chunk| chunk.is_damaged) {
        return Ok(None);
    }
    let Some((accounting, done, reports)) = count(path, format, options, &how, &parts) else { return Ok(None) };
    let name = path.display().to_string();
    let mut reporter = Reporter::new(&name, Some(format), Way::Stderr, input.limit);
    reporter.take(reports)?;
    reporter.print_rest()?;
    complain(&name, spans, &done, true);
    Ok(Some((SpansRead { done, format: format.name(), verdict: reporter.verdict() }, accounting)))
}

/// Reads the parts side by side and joins what they gave, in their order.
fn count(
    path: &Path,
    format: &'static dyn Format,
    options: &StatsArguments,
    how: &OpenOptions,
    parts: &[Part],
) -> Option<Counted> {
    let next = AtomicUsize::new(0);
    let counted: Mutex<Vec<Option<Counted>>> = Mutex::new(parts.iter().map(|_| None).collect());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(at) else { return };
            let one = count_part(path, format, options, OpenOptions { part: Some(part.clone()), ..how.clone() }).ok();
            let is_wrong = one.is_none();
            let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = counted.get_mut(at) {
                *place = one;
            }
            if is_wrong {
                // The others need not begin.
                next.store(parts.len(), Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        (1..how.threads.min(parts.len())).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut counted = counted.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter();
    let (mut accounting, mut done, mut reports) = counted.next()??;
    for one in counted {
        let (own, own_done, own_reports) = one?;
        let names = done.join(&own_done)?;
        accounting.join(own, &names);
        reports.extend(own_reports);
    }
    Some((accounting, done, reports))
}

fn count_part(
    path: &Path,
    format: &'static dyn Format,
    options: &StatsArguments,
    how: OpenOptions,
) -> Result<Counted, Error> {
    let mut accounting = Accounting::new(super::by(options.by));
    let engines: Vec<&mut dyn Engine> = vec![&mut accounting];
    let mut pass = Pass::new(options.spans.filter(options.duration), false, engines);
    let mut reports = Collect::default();
    let trace = format.open(Input::open(path, InputOptions::default())?, &OpenOptions { threads: 1, ..how })?;
    trace.spans(&SpanOptions::default(), &mut pass, &mut reports)?;
    let done = pass.finish();
    Ok((accounting, done, reports.0))
}
