//! What the levels of the caches did, and the curve of misses over the size of a cache with these levels marked.

use anytrace_analysis::cache::results::LevelResults;
use anytrace_analysis::reuse::Curve;
use anytrace_core::text::grouped;
use anytrace_export::curves::{Chart, Line, svg};

use super::super::caches::described_level;
use super::super::mrc::points;
use super::Contents;
use super::table::{Cell, bytes, table};
use crate::units::percent;

/// The levels that were simulated.
pub(super) fn results(contents: &Contents) -> &[LevelResults] {
    let caches = contents.profile.caches.as_ref();
    caches.and_then(|found| found.configs.first()).map_or(&[], |config| &config.levels)
}

/// The table of levels, the curve, and the curve at the sizes of the levels.
pub(super) fn body(contents: &Contents) -> String {
    let rows = results(contents).iter().zip(&contents.config.levels).map(|(found, level)| {
        let (hits, misses) = (found.counts.hits(), found.counts.misses());
        vec![
            Cell::text(&described_level(level)),
            Cell::number(hits + misses),
            Cell::number(misses),
            Cell::figure(percent(misses as f64, (hits + misses) as f64)).shaded(misses, hits + misses),
            Cell::number(found.counts.evictions),
            Cell::number(found.counts.writebacks_out),
        ]
        .into()
    });
    let headings = ["level", "lines asked for", "misses", "miss ratio", "evictions", "written back"];
    let mut out = table(&headings, rows.collect(), 0);
    let curve = &contents.reuse.curve;
    if curve.line_accesses == 0 {
        return out;
    }
    out.push_str(&format!(
        "<h3 id=\"curve\">Misses by cache size</h3>\n<p>The share of {} accesses to lines of {} bytes that miss a fully \
         associative LRU cache of each size. {} distinct lines, {}, are touched; no cache saves the first access to each: \
         {}. Both axes are logarithmic; dashed lines are the caches above.</p>\n<figure>",
        grouped(u128::from(curve.line_accesses)),
        contents.reuse.line_bytes,
        grouped(u128::from(curve.cold)),
        bytes(curve.cold.saturating_mul(contents.reuse.line_bytes)),
        share(curve.ratio(u64::MAX))
    ));
    let mut drawn = Vec::new();
    // Writing to a Vec cannot fail.
    let _ = svg("", &chart(contents), None, &mut drawn);
    out.push_str(&String::from_utf8_lossy(&drawn));
    out.push_str("</figure>\n");
    out.push_str(&sizes(contents, curve));
    out
}

fn chart(contents: &Contents) -> Chart {
    let line = Line { name: "all".to_owned(), points: points(&contents.reuse.curve, contents.reuse.line_bytes) };
    let marks = contents.config.levels.iter().map(|level| (level.name.clone(), level.size));
    Chart { lines: vec![line], marks: marks.collect(), has_log_shares: true }
}

/// The curve at the sizes of the levels and at the size that suffices.
fn sizes(contents: &Contents, curve: &Curve) -> String {
    let line_bytes = contents.reuse.line_bytes.max(1);
    let levels = contents.config.levels.iter().map(|level| (level.name.clone(), (level.size / line_bytes).max(1)));
    let suffices = [("no larger one misses less".to_owned(), curve.lines_that_suffice().max(1))];
    let rows = levels.chain(suffices).map(|(name, lines)| {
        vec![
            Cell::text(&name),
            Cell::bytes(lines.saturating_mul(line_bytes)),
            Cell::number(lines),
            Cell::number(curve.misses(lines)),
            Cell::figure(share(curve.ratio(lines))),
        ]
        .into()
    });
    table(&["cache", "size", "lines", "misses", "miss ratio"], rows.collect(), 0)
}

/// A share, small ones with more digits.
fn share(ratio: f64) -> String {
    if ratio > 0.0 && ratio < 0.01 { format!("{:.4}%", ratio * 100.0) } else { percent(ratio, 1.0) }
}
