//! The page of memory accesses: misses by the size of a cache, a heat map, types, and lines that threads take from each
//! other.

use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::presets::Preset;
use anytrace_analysis::cache::{Simulation, processor};
use anytrace_analysis::heat::{Heat, HeatCounter};
use anytrace_analysis::reuse::{Curve, Parts, Reuse, ReuseOptions, Sample};
use anytrace_analysis::sharing::{ContendedLine, Cores, Sharing, SharingOptions, SharingResults};
use anytrace_analysis::type_profile::{Counts, TypeProfile, TypeProfiler};
use anytrace_core::access::{DataOnly, TypeNumber};
use anytrace_core::layout::NoLayouts;
use anytrace_core::{AccessSink, Error, Summary};
use serde_json::{Value, json};

use super::page::{Page, text};

mod annotated;

/// Rows and columns of the heat map.
const HEAT_ROWS: usize = 64;
const HEAT_COLUMNS: u64 = 128;

/// Bytes of a cache line.
const LINE_BYTES: u64 = 64;

/// Lines by which the curve of misses is estimated.
const SAMPLE_LINES: usize = 1 << 16;

/// A cache of each thread in which lines are taken by others, as that of `memory sharing`.
const SHARED_BYTES: u64 = 4096;
const SHARED_WAYS: u64 = 4;

/// Rows of a table.
const ROWS_MAX: usize = 200;

/// Types shown at a row of the heat map.
const ROW_TYPES_MAX: usize = 3;

/// The page of one file.
pub(super) fn page(page: &Page<'_>) -> Result<Vec<Value>, Error> {
    let Some((format, _)) = page.open()? else { return Ok(vec![text("The file is empty.")]) };
    if !format.has_accesses() {
        return Ok(Vec::new());
    }
    let (config, whose) = caches();
    let mut blocks = vec![misses(&curve(page)?, &config, whose)];
    let mut heat = HeatCounter::new(None, LINE_BYTES);
    read(page, &mut heat)?;
    blocks.push(heat_map(&heat.finish(HEAT_ROWS, HEAT_COLUMNS, 0)));
    blocks.extend(annotated::blocks(page, &config)?);
    let profile = types(page, &config)?;
    if !profile.types.is_empty() {
        blocks.push(type_table(&profile, &config));
        blocks.push(offset_table(&profile));
    }
    let shared = sharing(page)?;
    if shared.threads.len() > 1 {
        blocks.push(sharing_table(&shared));
    }
    Ok(blocks)
}

/// Reads the accesses to data.
fn read(page: &Page<'_>, sink: &mut dyn AccessSink) -> Result<Summary, Error> {
    page.work.check().map_err(|problem| Error::usage(problem.text))?;
    match page.open()? {
        Some((_, trace)) => trace.accesses(&mut DataOnly::new(sink), &mut page.findings()),
        None => Ok(Summary::default()),
    }
}

/// The caches that are simulated, and whose they are.
fn caches() -> (Config, &'static str) {
    match processor::of_this_machine() {
        Some(preset) => (preset.config(), "this machine"),
        None => (Preset::documented().config(), Preset::documented().name),
    }
}

fn curve(page: &Page<'_>) -> Result<Curve, Error> {
    let mut reuse = Reuse::new(ReuseOptions {
        line_bytes: LINE_BYTES,
        parts: Parts::None,
        sample: Some(Sample::Lines(SAMPLE_LINES)),
        has_windows: false,
        window_records: None,
    });
    let records = read(page, &mut reuse)?.records;
    Ok(reuse.finish(records).curve)
}

fn misses(curve: &Curve, config: &Config, whose: &str) -> Value {
    let sizes = curve.sizes();
    let bytes: Vec<u64> = sizes.iter().map(|lines| lines.saturating_mul(LINE_BYTES)).collect();
    let ratios: Vec<f64> = sizes.iter().map(|lines| curve.ratio(*lines)).collect();
    let marks =
        config.levels.iter().map(|level| json!({"x": level.size, "label": format!("{} of {whose}", level.name)}));
    json!({
        "kind": "curve",
        "title": "Share of accesses that miss a cache of so many bytes (fully associative, LRU, lines of 64 bytes)",
        "x": bytes,
        "series": [{"name": "misses", "y": ratios}],
        "log_x": true,
        "marks": marks.collect::<Vec<_>>(),
    })
}

/// The types of the accesses to a row, those with most accesses first.
fn types_of(heat: &Heat, row: u64) -> String {
    let types = heat.by_time.types_of(row);
    let more = if types.len() > ROW_TYPES_MAX { ", …" } else { "" };
    let names = types.iter().take(ROW_TYPES_MAX).filter_map(|(number, _)| heat.names.get(*number as usize));
    format!("{}{more}", names.map(String::as_str).collect::<Vec<_>>().join(", "))
}

fn heat_map(heat: &Heat) -> Value {
    let by_time = &heat.by_time;
    let mut rows: Vec<u64> = by_time.cells.iter().map(|(row, ..)| *row).collect();
    rows.dedup();
    let columns = by_time.cells.iter().map(|(_, column, _)| column + 1).max().unwrap_or(0).min(HEAT_COLUMNS);
    let width = usize::try_from(columns).unwrap_or(0);
    let mut cells = vec![0_u64; rows.len() * width];
    for (row, column, count) in &by_time.cells {
        let place = rows.binary_search(row).ok().zip(usize::try_from(*column).ok());
        if let Some(cell) = place.and_then(|(row, column)| cells.get_mut(row * width + column)) {
            *cell += count;
        }
    }
    let name = |row: &u64| {
        let first = row.saturating_mul(by_time.row_bytes);
        format!("{first:#x} {}", types_of(heat, *row)).trim_end().to_owned()
    };
    json!({
        "kind": "heat",
        "title": format!("Accesses by address ({} bytes a row) and time ({} records a column)", by_time.row_bytes, by_time.column_records),
        "x_label": "records",
        "y_label": "address",
        "columns": width,
        "rows": rows.len(),
        "cells": cells,
        "row_names": rows.iter().map(name).collect::<Vec<_>>(),
    })
}

fn types(page: &Page<'_>, config: &Config) -> Result<TypeProfile, Error> {
    let (simulation, line_bytes) = Simulation::by_type(config)?;
    let mut layouts = NoLayouts;
    let mut profiler = TypeProfiler::new(&mut layouts, simulation, line_bytes);
    read(page, &mut profiler)?;
    profiler.finish()
}

fn table(title: &str, columns: &[(&str, &str)], rows: Vec<Value>) -> Value {
    let columns: Vec<_> = columns.iter().map(|(name, align)| json!({"name": name, "align": align})).collect();
    json!({"kind": "table", "title": title, "columns": columns, "rows": rows})
}

fn type_table(profile: &TypeProfile, config: &Config) -> Value {
    let mut types: Vec<_> = (0..).zip(&profile.types).collect();
    types.sort_by_key(|(number, one)| (std::cmp::Reverse((one.counts.misses, one.counts.accesses())), *number));
    let row = |(number, one): &(TypeNumber, &anytrace_analysis::type_profile::TypeCounts)| {
        let Counts { reads, writes, misses, memory, straddles, .. } = one.counts;
        json!([profile.table.name(*number), one.regions, one.live_bytes_peak, reads, writes, misses, memory, straddles])
    };
    let title = format!("Types, in the caches of {}", config.name);
    let columns = [
        ("type", "left"),
        ("regions", "right"),
        ("peak bytes", "right"),
        ("reads", "right"),
        ("writes", "right"),
        ("first-level misses", "right"),
        ("served by memory", "right"),
        ("straddle lines", "right"),
    ];
    table(&title, &columns, types.iter().take(ROWS_MAX).map(row).collect())
}

/// Fields have names where the program's type data are at hand, which `memory types -m PROGRAM` reads.
fn offset_table(profile: &TypeProfile) -> Value {
    let mut offsets: Vec<_> = profile.offsets.iter().collect();
    offsets.sort_by_key(|(key, counts)| (std::cmp::Reverse((counts.misses, counts.accesses())), *key));
    let row = |((number, offset, bytes), counts): &((TypeNumber, u64, u16), Counts)| {
        json!([profile.table.name(*number), offset, bytes, counts.reads, counts.writes, counts.misses, counts.memory])
    };
    let columns = [
        ("type", "left"),
        ("offset", "right"),
        ("bytes", "right"),
        ("reads", "right"),
        ("writes", "right"),
        ("first-level misses", "right"),
        ("served by memory", "right"),
    ];
    table("Fields, by offset in their type", &columns, offsets.into_iter().take(ROWS_MAX).map(row).collect())
}

fn sharing(page: &Page<'_>) -> Result<SharingResults, Error> {
    let options = SharingOptions {
        line_bytes: LINE_BYTES,
        cache_bytes: SHARED_BYTES,
        ways: SHARED_WAYS,
        cores: Cores::PerThread,
    };
    let mut sharing = Sharing::new(options, None);
    read(page, &mut sharing)?;
    Ok(sharing.finish())
}

fn sharing_table(found: &SharingResults) -> Value {
    let threads = |line: &ContendedLine| {
        let of = |core: u32| found.threads_of(core).map(|id| id.map_or("others".to_owned(), |id| id.to_string()));
        line.cores.iter().flat_map(|core| of(core.core)).collect::<Vec<_>>().join(", ")
    };
    let row = |line: &ContendedLine| {
        let address = format!("{:#x}", line.line);
        json!([address, threads(line), line.accesses(), line.false_misses, line.true_misses, line.handovers])
    };
    let columns = [
        ("line", "left"),
        ("threads", "left"),
        ("accesses", "right"),
        ("false sharing misses", "right"),
        ("true sharing misses", "right"),
        ("handovers", "right"),
    ];
    let title = format!("Lines that threads take from each other, of {} that several touch", found.lines_shared);
    table(&title, &columns, found.contended.iter().take(ROWS_MAX).map(row).collect())
}
