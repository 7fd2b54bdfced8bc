//! The passes over a trace: one for everything; a second one where there are changes against false sharing to simulate,
//! or where the code addresses are in the trace itself.

use std::cell::RefCell;

use anytrace_analysis::annotate::{By, Order, annotate};
use anytrace_analysis::cache::ByCode;
use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::results::Codes;
use anytrace_analysis::fan::Fan;
use anytrace_analysis::heat::HeatCounter;
use anytrace_analysis::interleave::Schedule;
use anytrace_analysis::lifetimes::{LifetimeWatch, by_stack};
use anytrace_analysis::reuse::{Reuse, ReuseOptions};
use anytrace_analysis::sharing::{Sharing, SharingOptions};
use anytrace_analysis::type_profile::TypeProfiler;
use anytrace_core::access::codes::Codes as CodesOfTrace;
use anytrace_core::access::{AccessSink, DataOnly};
use anytrace_core::layout::Layouts;
use anytrace_core::text::printable;
use anytrace_core::{Collect, Diagnostic, Error, Sink, Trace};

use super::super::annotate::{complain, places, simulated, type_names};
use super::super::caches::typed_simulation;
use super::super::opening;
use super::super::places::Places;
use super::super::sharing::try_changes;
use super::super::type_data::SharedLayouts;
use super::heat::{COLUMNS_MAX, LINES_MAX, ROWS_MAX};
use super::{Code, Contents, Damage, ReportArguments};
use crate::failure::Failure;
use crate::report::Reporter;
use crate::{Verdict, open};

/// Diagnostics on the page.
const DAMAGE_MAX: usize = 20;

/// Passes diagnostics on and keeps the first of them for the page.
struct Kept<'a> {
    reporter: &'a mut Reporter,
    damage: &'a mut Damage,
}

impl Sink for Kept<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.damage.count += 1;
        if self.damage.texts.len() < DAMAGE_MAX {
            let mut text = String::new();
            // Writing to a String cannot fail.
            let _ = diagnostic.render("record", &mut text);
            self.damage.texts.push(text);
        }
        self.reporter.report(diagnostic)
    }
}

/// Reads the trace.
pub(super) fn read(
    options: &ReportArguments,
    config: Config,
    layouts: &mut dyn Layouts,
) -> Result<(Contents, Verdict), Failure> {
    let name = options.file.display().to_string();
    let failed = |error| Failure::of(&name, &error);
    let opened = opening::open(&options.file, &options.input)?;
    if opened.trace.is_none() {
        return Err(Failure::breach(format!("{name}: no records; nothing was written")));
    }
    let mut source = CodesOfTrace::of(&options.file, options.pc.as_deref()).map_err(|error| Failure::bare(&error))?;
    let has_file = matches!(source, CodesOfTrace::File(_));
    let own: &mut dyn Layouts = &mut *layouts;
    let shared = RefCell::new(own);
    let [mut of_types, mut of_lifetimes, mut of_sharing] = [(); 3].map(|()| SharedLayouts(&shared));
    let (simulation, line_bytes) = typed_simulation(&config)?;
    let mut profiler = TypeProfiler::new(&mut of_types, simulation, line_bytes);
    let mut reuse = Reuse::new(ReuseOptions { has_windows: true, ..ReuseOptions::default() });
    let mut watch = LifetimeWatch::new(&mut of_lifetimes);
    let mut sharing = Sharing::new(SharingOptions::default(), Some(&mut of_sharing));
    let mut heat = HeatCounter::new(None, SharingOptions::default().line_bytes);
    let mut of_file = if has_file { Some(by_code(options, &config, &mut source)?) } else { None };
    let mut damage = Damage::default();
    let read = {
        let (mut data_of_reuse, mut data_of_sharing) = (DataOnly::new(&mut reuse), DataOnly::new(&mut sharing));
        let mut sinks: Vec<&mut dyn AccessSink> =
            vec![&mut profiler, &mut data_of_reuse, &mut watch, &mut data_of_sharing, &mut heat];
        sinks.extend(of_file.as_mut().map(|engine| engine as &mut dyn AccessSink));
        let mut fan = Fan::new(sinks);
        opened.read_by(|trace, reporter| {
            Ok(trace.accesses(&mut fan, &mut Kept { reporter, damage: &mut damage })?.records)
        })?
    };
    let profile = profiler.finish().map_err(failed)?;
    let (reuse, lifetimes, sharing) = (reuse.finish(read.records), watch.finish(), sharing.finish());
    let heat = heat.finish(ROWS_MAX, COLUMNS_MAX, LINES_MAX);
    let mut codes = match of_file {
        Some(engine) => engine.finish().map_err(failed)?.1,
        None if profile.fetches > 0 => again(options, &config, &mut source)?,
        None => Vec::new(),
    };
    let (code, of_codes) = code(options, &codes.pop().unwrap_or_default(), source, &mut damage)?;
    let tried = try_changes(
        &options.file,
        &options.input,
        (&SharingOptions::default(), Schedule::Recorded),
        &sharing,
        layouts,
    )?;
    let contents = Contents {
        format: read.format,
        config,
        top: options.top,
        stacks: by_stack(&lifetimes),
        places: Places::of(&profile.table, &options.type_data.binary)?,
        name,
        profile,
        reuse,
        lifetimes,
        sharing,
        tried,
        heat,
        code,
        damage,
    };
    Ok((contents, read.verdict.max(of_codes)))
}

/// The engine of lines and functions.
fn by_code<'s>(
    options: &ReportArguments,
    config: &Config,
    source: &'s mut CodesOfTrace,
) -> Result<ByCode<'s>, Failure> {
    let engine = ByCode::new(vec![config.clone()], simulated(&options.input), source);
    engine.map_err(|error| Failure::of(&options.file.display().to_string(), &error))
}

/// Another pass for the code addresses that are in the trace itself; the first one reported the damage. Nothing of what
/// can be read only once.
fn again(options: &ReportArguments, config: &Config, source: &mut CodesOfTrace) -> Result<Vec<Codes>, Failure> {
    if open::is_read_once(&options.file) {
        return Ok(Vec::new());
    }
    let opened = opening::open(&options.file, &options.input)?;
    let mut engine = by_code(options, config, source)?;
    let read = |trace: Box<dyn Trace>| trace.accesses(&mut engine, &mut Collect::default()).map(drop);
    let done = opened.trace.map_or(Ok(()), read).and_then(|()| engine.finish());
    done.map(|(_, codes)| codes).map_err(|error| Failure::of(&options.file.display().to_string(), &error))
}

/// Lines and functions, where code addresses are known.
fn code(
    options: &ReportArguments,
    codes: &Codes,
    source: CodesOfTrace,
    damage: &mut Damage,
) -> Result<(Option<Code>, Verdict), Failure> {
    let (modules, read) = source.finish();
    let verdict = complain(&options.file.display().to_string(), &read);
    damage.count += read.faults.len() as u64;
    damage.texts.extend(read.faults.iter().map(|fault| printable(fault)));
    if !codes.rows.iter().any(|row| row.code != 0) {
        return Ok((None, verdict));
    }
    let places = places(codes, &modules, &options.type_data.binary, options.mangling)?;
    let by = |by| annotate(codes, &places, by, Order::Misses, &|_| true);
    Ok((Some(Code { lines: by(By::Line), functions: by(By::Function), types: type_names(codes) }), verdict))
}
