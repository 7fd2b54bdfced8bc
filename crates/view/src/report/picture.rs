//! The pictures of a report.

use std::fmt::Write;

use anytrace_core::text::{grouped, xml};
use serde_json::Value;

use super::Contents;
use super::words::Unit;

/// Pixels of the timeline for which items are made: half as many as it is wide.
pub(super) const PIXELS: u32 = 560;

/// Width of a picture.
const WIDTH: f64 = 1120.0;

/// Height of a row.
const ROW: f64 = 13.0;

/// Rows of the timeline, of all tracks and of one.
const ROWS: u64 = 72;
const DEPTHS: u64 = 12;

/// Depths of the flame graph.
const FLAME_DEPTHS: usize = 48;

/// Width of a character, about.
const CHARACTER: f64 = 5.6;

/// Colors that people who cannot tell red from green can tell apart.
const COLORS: [&str; 8] = ["#8ab6e0", "#f0b563", "#7cc8b0", "#d9a3c7", "#c9c26a", "#e59a80", "#9fb0c3", "#b7a4dc"];

/// The tracks that are drawn: those with most slices, in the order of the trace.
pub(super) fn shown_tracks(trace: &Value) -> Vec<u64> {
    let tracks = trace["tracks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let number = |track: &Value, key: &str| track[key].as_u64().unwrap_or(0);
    let mut by_size: Vec<&Value> = tracks.iter().filter(|track| number(track, "depth") > 0).collect();
    by_size.sort_by_key(|track| (std::cmp::Reverse(number(track, "slices")), number(track, "id")));
    let mut rows = 0;
    let fits = |track: &&Value| {
        rows += number(track, "depth").min(DEPTHS) + 1;
        rows <= ROWS
    };
    let mut ids: Vec<u64> = by_size.into_iter().take_while(fits).map(|track| number(track, "id")).collect();
    ids.sort_unstable();
    ids
}

/// The color of a name, the same in every report.
fn color(name: &str) -> &'static str {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let at = usize::try_from((hash >> 32) % COLORS.len() as u64).unwrap_or(0);
    COLORS.get(at).copied().unwrap_or("#9fb0c3")
}

/// An item of a tile.
struct Item {
    track: u64,
    depth: u64,
    start: f64,
    end: f64,
    busy: f64,
    count: u32,
    name: u32,
    longest: u32,
}

/// The items of `api/tiles`.
fn items(tiles: &[u8]) -> impl Iterator<Item = Item> {
    let words = tiles.get(16..).unwrap_or_default().chunks_exact(48);
    words.map(|bytes| {
        let word = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes);
        let float = |at: usize| bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0.0, f64::from_le_bytes);
        Item {
            track: word(0).into(),
            depth: word(4).into(),
            start: float(8),
            end: float(16),
            busy: float(24),
            count: word(32),
            name: word(36),
            longest: word(44),
        }
    })
}

/// The timeline of the largest tracks.
pub(super) fn timeline(contents: &Contents, unit: &Unit) -> String {
    let range = &contents.trace["range"];
    let (Some(start), Some(end)) = (range["start"].as_f64(), range["end"].as_f64()) else { return String::new() };
    let all = contents.trace["tracks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = shown_tracks(&contents.trace);
    let (mut tops, mut labels, mut y) = (Vec::new(), String::new(), 0.0);
    for id in &shown {
        let Some(track) = all.iter().find(|track| track["id"].as_u64() == Some(*id)) else { continue };
        let _ = writeln!(labels, "<text x=\"2\" y=\"{:.0}\">{}</text>", y + ROW - 3.0, xml(&label(track)));
        tops.push((*id, y + ROW));
        let depths = track["depth"].as_u64().unwrap_or(0).min(DEPTHS);
        y += ROW * (f64::from(u32::try_from(depths).unwrap_or(0)) + 1.0) + 4.0;
    }
    let scale = WIDTH / (end - start).max(1.0);
    let mut boxes = String::new();
    for item in items(&contents.tiles).filter(|item| item.depth < DEPTHS) {
        let Some((_, top)) = tops.iter().find(|(id, _)| *id == item.track) else { continue };
        let top = top + ROW * f64::from(u32::try_from(item.depth).unwrap_or(0));
        draw(&mut boxes, &item, ((item.start - start) * scale, top, (item.end - item.start) * scale), contents, unit);
    }
    let left_out = all.len().saturating_sub(shown.len());
    let more = if left_out > 0 { format!("<p>{left_out} tracks more</p>") } else { String::new() };
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {y:.0}\" role=\"img\" aria-label=\"Timeline\">\n{labels}{boxes}</svg>\n\
         <p>{} from left to right. Runs of spans narrower than a pixel are one box, the paler the less busy.</p>{more}",
        unit.length(end - start)
    )
}

fn label(track: &Value) -> String {
    let name = track["name"].as_str().map_or(String::new(), |name| format!(" {name}"));
    let process = track["process_name"].as_str().map_or(String::new(), |name| format!("{name} "));
    format!("{process}{}{name}", track["thread"])
}

fn draw(out: &mut String, item: &Item, (x, y, width): (f64, f64, f64), contents: &Contents, unit: &Unit) {
    let is_single = item.count == 1;
    let number = if is_single { item.name } else { item.longest };
    let name = contents.names.get(number as usize).map(String::as_str).unwrap_or_default();
    let busy = item.busy / (item.end - item.start).max(f64::MIN_POSITIVE);
    let opacity = if is_single { 1.0 } else { (0.35 + 0.65 * busy).clamp(0.35, 1.0) };
    let tip = if is_single {
        format!("{} {}", xml(name), unit.length(item.end - item.start))
    } else {
        format!("{} spans, busy {}, longest {}", grouped(item.count.into()), unit.length(item.busy), xml(name))
    };
    // A gap keeps neighbors of one name apart.
    let drawn = if is_single && width > 3.0 { width - 0.7 } else { width.max(0.7) };
    rect(out, (x, y, drawn), (color(name), opacity), &tip);
    if is_single {
        caption(out, (x, y, width), name);
    }
}

fn rect(out: &mut String, (x, y, width): (f64, f64, f64), (color, opacity): (&str, f64), tip: &str) {
    let height = ROW - 1.0;
    let opacity = if opacity < 1.0 { format!(" opacity=\"{opacity:.2}\"") } else { String::new() };
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"{height:.0}\" fill=\"{color}\"{opacity}><title>{tip}</title></rect>"
    );
}

/// A name inside a box, as far as there is room.
fn caption(out: &mut String, (x, y, width): (f64, f64, f64), name: &str) {
    let room = usize::try_from(crate::axis::to_u64((width - 4.0).max(0.0) / CHARACTER)).unwrap_or(0);
    if room < 3 {
        return;
    }
    let shown: String = if name.chars().count() <= room {
        name.to_owned()
    } else {
        name.chars().take(room - 1).chain(['…']).collect()
    };
    let _ = writeln!(out, "<text class=\"in\" x=\"{:.1}\" y=\"{:.0}\">{}</text>", x + 2.0, y + ROW - 3.5, xml(&shown));
}

/// The flame graph, callers above what they call.
pub(super) fn flame(flame: &Value, unit: &Unit) -> String {
    let root = &flame["root"];
    let total = root["total"].as_f64().unwrap_or(0.0);
    if total <= 0.0 {
        return String::new();
    }
    let (mut boxes, mut deepest) = (String::new(), 0);
    let mut waiting = vec![(root, 0.0, 0)];
    while let Some((node, x, depth)) = waiting.pop() {
        let mut x: f64 = x;
        for child in node["children"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let time = child["total"].as_f64().unwrap_or(0.0);
            let width = time / total * WIDTH;
            if width >= 0.3 && depth < FLAME_DEPTHS {
                deepest = deepest.max(depth);
                let name = child["name"].as_str().unwrap_or_default();
                let y = ROW * f64::from(u32::try_from(depth).unwrap_or(0));
                let count = grouped(child["count"].as_u64().unwrap_or(0).into());
                let share = time / total * 100.0;
                let tip = format!("{}: {} ({share:.1} %), {count} times", xml(name), unit.length(time));
                rect(&mut boxes, (x, y, (width - 0.3).max(0.3)), (color(name), 1.0), &tip);
                caption(&mut boxes, (x, y, width), name);
                waiting.push((child, x, depth + 1));
            }
            x += width;
        }
    }
    let height = ROW * f64::from(u32::try_from(deepest + 1).unwrap_or(0));
    format!("<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"Flame graph\">\n{boxes}</svg>")
}
