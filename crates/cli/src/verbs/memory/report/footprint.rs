//! Memory over time: bytes in live regions, and bytes touched.

use anytrace_analysis::reuse::Window;
use anytrace_analysis::type_profile::Series as Live;
use anytrace_core::text::{grouped, xml};
use anytrace_export::plot::{Panel, Series, Unit, color, svg};

use super::super::mrc::complete_windows;
use super::super::type_label::type_label;
use super::Contents;
use super::table::bytes;

/// Types with a line of their own.
const TYPES_MAX: usize = 3;

/// The pictures.
pub(super) fn body(contents: &Contents) -> String {
    let panels: Vec<Panel> = live(contents).into_iter().chain(touched(contents)).collect();
    if panels.is_empty() {
        return String::new();
    }
    let found = &contents.lifetimes;
    let mut out = String::from("<p>Time counts records. ");
    if found.live_bytes_peak > 0 {
        out.push_str(&format!(
            "Live are the regions that were added and not yet removed: at most {}, at record {}. ",
            bytes(found.live_bytes_peak),
            grouped(u128::from(found.peak_at))
        ));
    }
    out.push_str("Touched are the cache lines with an access in a window of time.</p>\n<figure>");
    let mut drawn = Vec::new();
    // Writing to a Vec cannot fail.
    let _ = svg("", "record", &panels, &mut drawn);
    out.push_str(&String::from_utf8_lossy(&drawn));
    out.push_str("<figcaption>");
    for (at, line) in
        panels.first().filter(|panel| panel.hides_names).into_iter().flat_map(|panel| &panel.series).enumerate()
    {
        out.push_str(&format!("<span><b style=\"color: {}\">━</b> {}</span> ", color(at), xml(&line.name)));
    }
    out.push_str("</figcaption></figure>\n");
    out
}

fn live(contents: &Contents) -> Option<Panel> {
    let found = &contents.lifetimes;
    if found.live_bytes_peak == 0 {
        return None;
    }
    let line = |name: String, live: &Live| Series {
        name,
        values: (0..).zip(live.slots()).map(|(at, bytes): (u64, &u64)| (at * live.width(), *bytes)).collect(),
    };
    let mut series = vec![line("all types".to_owned(), &found.live)];
    let mut types: Vec<_> = (0..).zip(&found.types).filter(|(_, one)| one.live_bytes_peak > 0).collect();
    types.sort_by_key(|(number, one)| (std::cmp::Reverse(one.live_bytes_peak), *number));
    let shown = types.iter().take(TYPES_MAX);
    series.extend(shown.map(|(number, one)| line(type_label(found.table.name(*number)), &one.live)));
    Some(Panel { title: "Live memory".to_owned(), series, unit: Unit::Bytes, hides_names: true })
}

fn touched(contents: &Contents) -> Option<Panel> {
    let found = contents.reuse.working_set.as_ref().filter(|found| !found.windows.is_empty())?;
    let line_bytes = contents.reuse.line_bytes;
    let bytes = |window: &Window| (window.from, window.lines.saturating_mul(line_bytes));
    let values = complete_windows(found).map(bytes).collect();
    let title = format!("Memory touched in {} records", grouped(u128::from(found.window_records)));
    Some(Panel { series: vec![Series { name: title.clone(), values }], title, unit: Unit::Bytes, ..Panel::default() })
}
