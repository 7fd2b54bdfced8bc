//! Miss-ratio curves as an SVG: the share of accesses that miss, over the size of the cache on a logarithmic axis, with
//! marks at relevant sizes; below it, if asked for, numbers over time.
//!
//! ```
//! use anytrace_export::curves::{Chart, Line, svg};
//!
//! let line = Line { name: "all".to_owned(), points: vec![(64, 1.0), (128, 0.25), (4096, 0.1)] };
//! let chart = Chart { lines: vec![line], marks: vec![("L1".to_owned(), 32_768)], ..Chart::default() };
//! let mut out = Vec::new();
//! svg("app.trace", &chart, None, &mut out).unwrap();
//! assert!(String::from_utf8(out).unwrap().contains("32 KiB"));
//! ```

use std::io::{self, Write};

use plotters::chart::SeriesLabelPosition;
use plotters::coord::Shift;
use plotters::prelude::{
    BLACK, ChartBuilder, Color, DrawingArea, IntoDrawingArea, IntoFont, LineSeries, PathElement, RGBColor, SVGBackend,
    Text, WHITE,
};

use crate::plot::{Panel, draw_panel, shown_text};

/// Most lines drawn: as many as can be distinguished.
pub const LINES_MAX: usize = 8;

const WIDTH: u32 = 1000;
const TITLE_HEIGHT: u32 = 40;
const CHART_HEIGHT: u32 = 480;
const PANEL_HEIGHT: u32 = 220;

/// Dashes of a mark.
const DASHES: i32 = 26;

/// Colors of lines, distinguishable for the color-blind too (Okabe & Ito).
const COLORS: [RGBColor; LINES_MAX] = [
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(150, 140, 0),
];

/// A curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Sizes in bytes, ascending, and shares from 0 to 1 from that size on.
    pub points: Vec<(u64, f64)>,
}

/// Curves over one axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chart {
    /// The curves; those beyond [`LINES_MAX`] are left out.
    pub lines: Vec<Line>,
    /// Names and sizes in bytes of the marks.
    pub marks: Vec<(String, u64)>,
    /// True where the axis of shares is logarithmic, too, from the least share above 0.
    pub has_log_shares: bool,
}

impl Chart {
    /// The axis of shares: from its lower to its upper end.
    fn share_range(&self) -> (f64, f64) {
        if !self.has_log_shares {
            return (0.0, 1.04);
        }
        let shares = self.lines.iter().flat_map(|line| &line.points).map(|(_, share)| *share);
        let least = shares.filter(|share| *share > 0.0).fold(1.0, f64::min);
        let low = least.max(SHARE_MIN).log10().floor().min(-1.0);
        (low, -low * 0.04)
    }

    /// Where a share is on the axis.
    fn share_place(&self, share: f64) -> f64 {
        let (low, _) = self.share_range();
        if self.has_log_shares { share.max(SHARE_MIN).log10().max(low) } else { share }
    }

    /// A place on the axis of shares in words; nothing between two powers of ten.
    fn share_label(&self, place: f64) -> String {
        if !self.has_log_shares {
            return format!("{:.0} %", place * 100.0);
        }
        if place.fract().abs() > 1e-9 {
            return String::new();
        }
        let decimals = if place < -2.0 { (-2.0 - place) as usize } else { 0 };
        format!("{:.decimals$} %", 10_f64.powf(place) * 100.0)
    }
}

/// The least share on a logarithmic axis.
const SHARE_MIN: f64 = 1e-9;

/// Writes a picture; without a title if that is empty; with `panel`, numbers over records below the curves.
///
/// # Errors
/// When writing fails.
pub fn svg(title: &str, chart: &Chart, panel: Option<&Panel>, out: &mut dyn Write) -> io::Result<()> {
    let mut text = String::new();
    draw(title, chart, panel, &mut text).map_err(io::Error::other)?;
    out.write_all(text.as_bytes())
}

fn draw(title: &str, chart: &Chart, panel: Option<&Panel>, text: &mut String) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let title_height = if title.is_empty() { 0 } else { TITLE_HEIGHT };
    let height = title_height + CHART_HEIGHT + if panel.is_some() { PANEL_HEIGHT } else { 0 };
    let root = SVGBackend::with_string(text, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE).map_err(|error| failed(&error))?;
    let root =
        if title.is_empty() { Ok(root) } else { root.titled(&shown_text(title), ("sans-serif", 20).into_font()) };
    let root = root.map_err(|error| failed(&error))?;
    let (upper, lower) = root.split_vertically(CHART_HEIGHT);
    draw_chart(chart, &upper)?;
    if let Some(panel) = panel {
        draw_panel(panel, "record", &lower)?;
    }
    root.present().map_err(|error| failed(&error))
}

/// The axis' range: doublings of a byte.
fn range(chart: &Chart) -> (f64, f64) {
    let sizes = || chart.lines.iter().flat_map(|line| &line.points).map(|(size, _)| (*size).max(1));
    let first = sizes().min().unwrap_or(64);
    let marked = chart.marks.iter().map(|(_, size)| *size).max().unwrap_or(0);
    let last = sizes().max().unwrap_or(64).max(marked).max(first.saturating_mul(4));
    // Some space after the last mark, for its name.
    (f64::from(first.ilog2()), (last as f64).log2().ceil() + 1.5)
}

fn draw_chart(chart: &Chart, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let (first, last) = range(chart);
    let (low, high) = chart.share_range();
    let mut context = ChartBuilder::on(area)
        .margin(10)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(first..last, low..high)
        .map_err(|error| failed(&error))?;
    context
        .configure_mesh()
        .x_desc("size of a fully associative LRU cache")
        .y_desc("accesses that miss")
        .x_labels((last - first) as usize + 1)
        .y_labels(if chart.has_log_shares { (-low) as usize + 1 } else { 11 })
        .x_label_formatter(&|place| if place.fract() == 0.0 { size(place.exp2() as u64) } else { String::new() })
        .y_label_formatter(&|place| chart.share_label(*place))
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12))
        .draw()
        .map_err(|error| failed(&error))?;
    for (name, at) in &chart.marks {
        let place = (*at.max(&1) as f64).log2();
        let step = (high - low) / f64::from(DASHES);
        let dashes = (0..DASHES).map(|dash| {
            let from = low + f64::from(dash) * step;
            PathElement::new(vec![(place, from), (place, from + step / 2.0)], BLACK.mix(0.5))
        });
        context.draw_series(dashes).map_err(|error| failed(&error))?;
        let label = Text::new(
            format!("{} {}", shown_text(name), size(*at)),
            (place + 0.06, high - step / 4.0),
            ("sans-serif", 13).into_font(),
        );
        context.draw_series([label]).map_err(|error| failed(&error))?;
    }
    let place = |(size, share): (f64, f64)| (size, chart.share_place(share));
    for (line, color) in chart.lines.iter().zip(COLORS) {
        let drawn = context
            .draw_series(LineSeries::new(steps(&line.points, last).map(place), color.stroke_width(2)))
            .map_err(|error| failed(&error))?;
        if chart.lines.len() > 1 {
            drawn
                .label(shown_text(&line.name))
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], color.stroke_width(2)));
        }
    }
    if chart.lines.len() > 1 {
        context
            .configure_series_labels()
            // Below the names of marks, above the ends of most curves.
            .position(SeriesLabelPosition::MiddleRight)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// A curve as a stair: a cache of a size between two of the points misses as often as one of the lesser.
fn steps(points: &[(u64, f64)], last: f64) -> impl Iterator<Item = (f64, f64)> {
    let ends = points.iter().skip(1).map(|(size, _)| (*size).max(1) as f64).map(f64::log2).chain([last]);
    points.iter().zip(ends).flat_map(|((size, share), end)| {
        let start = ((*size).max(1) as f64).log2();
        [(start, *share), (end, *share)]
    })
}

/// A size with its unit: `64 B`, `32 KiB`, `1.5 MiB`.
pub fn size(bytes: u64) -> String {
    for (power, unit) in [(60, "EiB"), (50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >> power > 0 {
            let scaled = bytes as f64 / (power as f64).exp2();
            // Integers need no decimal.
            return if scaled.fract() == 0.0 { format!("{scaled} {unit}") } else { format!("{scaled:.1} {unit}") };
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Series;

    fn picture(chart: &Chart, panel: Option<&Panel>) -> String {
        let mut out = Vec::new();
        svg("a \"title\" & <more>", chart, panel, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn characters_that_xml_forbids_are_in_no_picture() {
        let name = "a\0\u{1b}[31m\n\u{ffff}<b>".to_owned();
        let lines = vec![
            Line { name: name.clone(), points: vec![(64, 1.0)] },
            Line { name: "b".to_owned(), points: vec![(64, 0.5)] },
        ];
        let series = |name: &str| Series { name: name.to_owned(), values: vec![(0, 1), (1, 2)] };
        let panel = Panel { title: name.clone(), series: vec![series(&name), series("b")], ..Panel::default() };
        let mut out = Vec::new();
        let chart = Chart { lines, marks: vec![(name.clone(), 4096)], ..Chart::default() };
        svg(&name, &chart, Some(&panel), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let is_bad = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}');
        assert!(
            !text.contains(is_bad) && text.matches("a\\u{0}\\u{1b}[31m\\u{a}\\u{ffff}&lt;b&gt;").count() == 5,
            "{text}"
        );
    }

    #[test]
    fn sizes_have_units() {
        let shown = [0, 64, 1024, 1536, 32 << 10, 1 << 20, 3 << 29, u64::MAX].map(size);
        assert_eq!(shown, ["0 B", "64 B", "1 KiB", "1.5 KiB", "32 KiB", "1 MiB", "1.5 GiB", "16 EiB"]);
    }

    #[test]
    fn a_cache_between_two_sizes_is_as_the_lesser() {
        let stair: Vec<_> = steps(&[(64, 1.0), (128, 0.5)], 9.0).collect();
        assert_eq!(stair, [(6.0, 1.0), (7.0, 1.0), (7.0, 0.5), (9.0, 0.5)]);
    }

    #[test]
    fn shares_may_have_an_axis_of_powers_of_ten_down_to_the_least() {
        let points = vec![(64, 1.0), (4096, 0.25), (8192, 0.0004), (16_384, 0.0)];
        let lines = vec![Line { name: "all".to_owned(), points }];
        let chart = Chart { lines, has_log_shares: true, ..Chart::default() };
        assert_eq!(chart.share_range().0, -4.0);
        assert_eq!([1.0, 0.1, 0.0].map(|share| chart.share_place(share)), [0.0, -1.0, -4.0]);
        assert_eq!(
            [0.0, -1.0, -2.0, -4.0, -1.5].map(|at| chart.share_label(at)),
            ["100 %", "10 %", "1 %", "0.01 %", ""]
        );
        let (made, titled) = (picture(&chart, None), picture(&Chart { has_log_shares: false, ..chart }, None));
        assert!(made.contains("0.01 %") && !titled.contains("0.01 %"), "{made}");
    }

    #[test]
    fn every_picture_is_complete_and_the_same_each_time() {
        let line = |name: &str, points: &[(u64, f64)]| Line { name: name.to_owned(), points: points.to_vec() };
        let charts = [
            Chart::default(),
            Chart { lines: vec![line("", &[])], ..Chart::default() },
            Chart {
                lines: vec![line("a", &[(64, 1.0)])],
                marks: vec![("L1 & <x>".to_owned(), 32 << 10)],
                has_log_shares: true,
            },
            Chart {
                lines: (0..20).map(|n| line(&format!("<{n}>"), &[(1, 1.0), (u64::MAX, 0.0)])).collect(),
                marks: vec![("far".to_owned(), u64::MAX), ("none".to_owned(), 0)],
                ..Chart::default()
            },
        ];
        let series = Series { name: "lines".to_owned(), values: (0..5000).map(|at| (at, at % 77)).collect() };
        let panel = Panel { title: "Working set".to_owned(), series: vec![series], ..Panel::default() };
        for chart in &charts {
            for panel in [None, Some(&panel)] {
                let made = picture(chart, panel);
                assert!(made.starts_with("<svg") && made.trim_end().ends_with("</svg>"));
                assert!(!made.contains("NaN") && !made.contains("<more>"), "{made}");
                assert_eq!(made, picture(chart, panel));
            }
        }
        assert!(picture(&charts[3], None).contains("&lt;7&gt;"));
        assert!(!picture(&charts[3], None).contains("&lt;8&gt;"));
    }
}
