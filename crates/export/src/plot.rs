//! Numbers over frames, requests or any other count, as an SVG: panels one above the other, lines in them.
//!
//! However many values there are, a picture has at most [`COLUMNS`] points a line: where several values share a
//! point, the greatest is drawn.
//!
//! ```
//! use anytrace_export::plot::{Panel, Series, svg};
//!
//! let series = Series { name: "calls".to_owned(), values: vec![(0, 10), (1, 12)] };
//! let panel = Panel { title: "Calls".to_owned(), series: vec![series], ..Panel::default() };
//! let mut out = Vec::new();
//! svg("game.trace", "frame", &[panel], &mut out).unwrap();
//! assert!(String::from_utf8(out).unwrap().contains("game.trace"));
//! ```

use std::io::{self, Write};

use anytrace_core::text::{grouped, printable, xml_characters};
use plotters::coord::Shift;
use plotters::prelude::{
    BLACK, ChartBuilder, Color, DrawingArea, IntoDrawingArea, IntoFont, LineSeries, PathElement, RGBColor, SVGBackend,
    WHITE,
};

/// Most points of a line.
pub const COLUMNS: usize = 1000;

const WIDTH: u32 = 1100;
const PANEL_HEIGHT: u32 = 202;
const TITLE_HEIGHT: u32 = 40;

/// Colors of a panel's lines, distinguishable for the color-blind too.
const COLORS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];

/// Values by place, in ascending order of places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Places and values.
    pub values: Vec<(u64, u64)>,
}

/// What values count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unit {
    /// Anything: an axis has decimal units.
    #[default]
    Count,
    /// Bytes: an axis has binary units.
    Bytes,
}

impl Unit {
    /// What values are divided by on an axis up to `most`, and what follows their numbers.
    fn scale(self, most: u64) -> (f64, &'static str) {
        let binary = [(30, " GiB"), (20, " MiB"), (10, " KiB"), (0, " B")];
        let fitting = binary.into_iter().find(|(shift, _)| most >> shift >= 2 || *shift == 0);
        match (self, fitting) {
            (Self::Bytes, Some((shift, suffix))) => ((1_u64 << shift) as f64, suffix),
            _ => (1.0, ""),
        }
    }
}

/// Lines over one axis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Panel {
    /// The title above it.
    pub title: String,
    /// Its lines.
    pub series: Vec<Series>,
    /// What their values count.
    pub unit: Unit,
    /// True where the names of several lines are not in the picture: its caller shows them, with [`color`].
    pub hides_names: bool,
}

/// The color of a panel's line, `#0072b2`.
pub fn color(line: usize) -> String {
    let RGBColor(red, green, blue) = COLORS.get(line % COLORS.len()).copied().unwrap_or_default();
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Writes a picture; without a title if that is empty. `axis` is the unit of the horizontal positions.
///
/// # Errors
/// When writing fails.
pub fn svg(title: &str, axis: &str, panels: &[Panel], out: &mut dyn Write) -> io::Result<()> {
    let mut text = String::new();
    draw(title, axis, panels, &mut text).map_err(io::Error::other)?;
    out.write_all(text.as_bytes())
}

/// Text as one line of a picture: what would move or hide it, and what XML forbids, is escaped. `plotters` writes
/// markup as entities.
pub(crate) fn shown_text(text: &str) -> String {
    xml_characters(&printable(text))
}

/// First place, last place and the greatest value.
fn range(panels: &[Panel]) -> (f64, f64) {
    let places = || panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.values).map(|(at, _)| *at);
    let (first, last) = (places().min().unwrap_or(0), places().max().unwrap_or(0));
    // A place alone has some width all the same.
    (first as f64, last.max(first.saturating_add(1)) as f64)
}

fn draw(title: &str, axis: &str, panels: &[Panel], text: &mut String) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let title_height = if title.is_empty() { 0 } else { TITLE_HEIGHT };
    let height = title_height + PANEL_HEIGHT * u32::try_from(panels.len().max(1)).unwrap_or(1);
    let root = SVGBackend::with_string(text, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE).map_err(|error| failed(&error))?;
    let titled = |root: DrawingArea<_, _>| root.titled(&shown_text(title), ("sans-serif", 20).into_font());
    let root = if title.is_empty() { root } else { titled(root).map_err(|error| failed(&error))? };
    let (first, last) = range(panels);
    for (panel, area) in panels.iter().zip(root.split_evenly((panels.len().max(1), 1))) {
        draw_over(panel, axis, (first, last), &area)?;
    }
    root.present().map_err(|error| failed(&error))
}

/// Draws a panel into an area whose coordinates are those of its values.
pub(crate) fn draw_panel(panel: &Panel, axis: &str, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), String> {
    draw_over(panel, axis, range(std::slice::from_ref(panel)), area)
}

fn draw_over(
    panel: &Panel,
    axis: &str,
    (first, last): (f64, f64),
    area: &DrawingArea<SVGBackend<'_>, Shift>,
) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let most = panel.series.iter().flat_map(|series| &series.values).map(|(_, value)| *value).max().unwrap_or(0);
    let (scale, suffix) = panel.unit.scale(most);
    let has_names = panel.series.len() > 1 && !panel.hides_names;
    let mut chart = ChartBuilder::on(area)
        .caption(shown_text(&panel.title), ("sans-serif", 14))
        .margin(6)
        .x_label_area_size(38)
        .y_label_area_size(80)
        .build_cartesian_2d(first..last, 0.0..(most.max(1) as f64) / scale * 1.05)
        .map_err(|error| failed(&error))?;
    chart
        .configure_mesh()
        .x_desc(shown_text(axis))
        // Places are integers: there is nothing to name between two of them.
        .x_labels((last - first + 1.0).min(12.0) as usize)
        .y_labels(5)
        .x_label_formatter(&|place| if place.fract() == 0.0 { grouped(*place as u128) } else { String::new() })
        .y_label_formatter(&|value| format!("{}{suffix}", shown(*value)))
        .light_line_style(WHITE)
        .draw()
        .map_err(|error| failed(&error))?;
    for (series, color) in panel.series.iter().zip(COLORS.iter().cycle()) {
        let line =
            LineSeries::new(points(&series.values).map(|(at, value)| (at, value / scale)), color.stroke_width(1));
        let drawn = chart.draw_series(line).map_err(|error| failed(&error))?;
        if has_names {
            drawn
                .label(shown_text(&series.name))
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 14, y)], color.stroke_width(2)));
        }
    }
    if has_names {
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// A value on an axis: short.
fn shown(value: f64) -> String {
    for (size, unit) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= size * 10.0 {
            return format!("{:.0} {unit}", value / size);
        }
    }
    // Integers need no decimal.
    if value.fract() == 0.0 { grouped(value as u128) } else { format!("{value:.1}") }
}

/// The points drawn: at most one per column, the maximum of each.
fn points(values: &[(u64, u64)]) -> impl Iterator<Item = (f64, f64)> {
    let each = values.len().div_ceil(COLUMNS).max(1);
    values.chunks(each).filter_map(|chunk| {
        let (at, _) = chunk.first()?;
        let most = chunk.iter().map(|(_, value)| *value).max()?;
        Some((*at as f64, most as f64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(values: Vec<(u64, u64)>) -> String {
        let series = |name: &str| Series { name: name.to_owned(), values: values.clone() };
        let panels = [
            Panel { title: "One".to_owned(), series: vec![series("a")], ..Panel::default() },
            Panel { title: "Two & <more>".to_owned(), series: vec![series("b"), series("c")], ..Panel::default() },
        ];
        let mut out = Vec::new();
        svg("a \"title\" & <more>", "frame", &panels, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_million_values_are_a_thousand_points_with_the_peaks() {
        let mut values: Vec<(u64, u64)> = (0..1_000_000).map(|at| (at, 1)).collect();
        values[123_456].1 = 77;
        let points: Vec<(f64, f64)> = points(&values).collect();
        assert_eq!((points.len(), points.iter().map(|(_, value)| *value).fold(0.0, f64::max)), (1000, 77.0));
        assert!(picture(values).len() < 100_000);
    }

    #[test]
    fn every_picture_is_complete_and_the_same_each_time() {
        for values in [vec![], vec![(7, 0)], vec![(0, u64::MAX), (u64::MAX, 1)], vec![(0, 3), (1, 5)]] {
            let made = picture(values.clone());
            assert!(made.starts_with("<svg") && made.trim_end().ends_with("</svg>"), "{made}");
            assert!(made.contains("&lt;more&gt;") && !made.contains("NaN"), "{made}");
            assert_eq!(made, picture(values));
        }
    }

    #[test]
    fn no_place_is_named_twice() {
        for last in [1, 2, 4, 7, 13, 60, 999] {
            let panel = Panel {
                title: "One".to_owned(),
                series: vec![Series { name: "a".to_owned(), values: vec![(0, 1), (last, 1)] }],
                ..Panel::default()
            };
            let mut out = Vec::new();
            svg("t", "frame", &[panel], &mut out).unwrap();
            let made = String::from_utf8(out).unwrap();
            // The texts below the axis are those that are centered at its ticks; the title and the axis' name are no
            // numbers.
            let centered = made.split("<text ").filter(|part| part.contains("text-anchor=\"middle\""));
            let named: Vec<u64> =
                centered.filter_map(|part| part.split_once('>')?.1.split_once('<')?.0.trim().parse().ok()).collect();
            assert!(named.len() >= 2, "0..{last}: {named:?}");
            assert!(named.windows(2).all(|two| two[0] < two[1]), "0..{last}: {named:?}");
        }
    }

    #[test]
    fn names_that_a_caller_shows_are_not_in_the_picture() {
        let series = |name: &str| Series { name: name.to_owned(), values: vec![(0, 1), (9, 5)] };
        let panel = |hides_names| Panel { series: vec![series("one"), series("two")], hides_names, ..Panel::default() };
        let mut drawn = [Vec::new(), Vec::new()];
        for (out, hides_names) in drawn.iter_mut().zip([false, true]) {
            svg("", "record", &[panel(hides_names)], out).unwrap();
        }
        let [shown, hidden] = drawn.map(|out| String::from_utf8(out).unwrap());
        assert!(shown.contains("two") && !hidden.contains("two"), "{hidden}");
        assert!(hidden.to_lowercase().contains(&color(1)), "{hidden}");
        assert_eq!(color(0), color(COLORS.len()));
    }

    #[test]
    fn axes_have_short_numbers() {
        assert_eq!([0.0, 0.5, 9999.0, 20_000.0, 3e7, 2e10].map(shown), ["0", "0.5", "9,999", "20 k", "30 M", "20 G"]);
        assert_eq!(
            [0, 500, 3 << 20].map(|most| Unit::Bytes.scale(most)),
            [(1.0, " B"), (1.0, " B"), (1_048_576.0, " MiB")]
        );
        assert_eq!(Unit::Count.scale(u64::MAX), (1.0, ""));
    }
}
