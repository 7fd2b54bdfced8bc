//! Counts over two axes as an SVG: the darker, the more. Colors are on a power scale, so that small counts beside large
//! ones are visible.
//!
//! ```
//! use anytrace_export::heatmap::{Grid, Row, svg};
//!
//! let rows = vec![Row { label: "0x1000".to_owned(), ..Row::default() }];
//! let grid = Grid { title: "a.trace".to_owned(), rows, columns: 4, cells: vec![(0, 1, 7)], ..Grid::default() };
//! let mut out = Vec::new();
//! svg(&grid, &mut out).unwrap();
//! assert!(String::from_utf8(out).unwrap().contains("a.trace"));
//! ```

use std::fmt::Write as _;
use std::io::{self, Write};

use anytrace_core::text::{grouped, xml};

/// Colors from low to high: those of ColorBrewer's YlOrRd with a darker end, distinguishable for the color-blind too.
const COLORS: [&str; 10] =
    ["#ffeda0", "#fed976", "#feb24c", "#fd8d3c", "#fc4e2a", "#e31a1c", "#bd0026", "#800026", "#5a0024", "#30001a"];

/// Least pixels left of the plot.
const LEFT_MIN: usize = 170;

/// Pixels of a letter of a row's name, and of the space around names.
const LETTER: f64 = 6.7;
const NAME_MARGIN: f64 = 36.0;

/// Most letters of a row's name.
const NAME_LETTERS_MAX: usize = 48;

const TOP: usize = 64;
const PLOT_WIDTH: usize = 1000;
const PLOT_HEIGHT: usize = 560;
const LEGEND_WIDTH: usize = 150;
const BOTTOM: usize = 64;

/// Place of the legend's last line.
const LEGEND_END: usize = TOP + 14 + COLORS.len() * 18 + 16;

/// Pixels between rows that do not follow each other.
const GAP: usize = 3;

/// Most labels of the rows.
const LABELS_MAX: usize = 26;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// Its label.
    pub label: String,
    /// What is there, or nothing; it is shown in front of the label.
    pub name: String,
    /// True when something is left out before it.
    pub is_apart: bool,
}

/// The contents of a heat map.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grid {
    /// The title above it.
    pub title: String,
    /// A line below that.
    pub subtitle: String,
    /// The meaning of columns.
    pub x_title: String,
    /// The meaning of rows.
    pub y_title: String,
    /// The unit of the counts.
    pub unit: String,
    /// From the top.
    pub rows: Vec<Row>,
    /// How many.
    pub columns: usize,
    /// Columns with a label, and the labels.
    pub ticks: Vec<(usize, String)>,
    /// Row, column and count; none twice.
    pub cells: Vec<(usize, usize, u64)>,
}

/// Writes a picture.
///
/// # Errors
/// When writing fails.
pub fn svg(grid: &Grid, out: &mut dyn Write) -> io::Result<()> {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = draw(grid, &mut text);
    out.write_all(text.as_bytes())
}

impl Row {
    /// The label with the name, which is cut where it is long.
    fn text(&self) -> String {
        let count = self.name.chars().count();
        let cut = |letters| self.name.chars().take(letters).collect::<String>();
        match count {
            0 => self.label.clone(),
            1..=NAME_LETTERS_MAX => format!("{} {}", self.name, self.label),
            _ => format!("{}… {}", cut(NAME_LETTERS_MAX - 1), self.label),
        }
    }
}

/// Pixels left of the plot, where the names of rows are.
fn left(rows: &[Row]) -> usize {
    let letters = rows.iter().map(|row| row.text().chars().count()).max().unwrap_or(0);
    LEFT_MIN.max((letters as f64 * LETTER + NAME_MARGIN) as usize)
}

/// Where rows are, in pixels from the top of the plot: start and height.
fn row_places(rows: &[Row]) -> Vec<(f64, f64)> {
    let gaps = rows.iter().skip(1).filter(|row| row.is_apart).count();
    // With very many gaps they become thin.
    let gap = (GAP as f64).min(PLOT_HEIGHT as f64 / 4.0 / gaps.max(1) as f64);
    let height = (PLOT_HEIGHT as f64 - gap * gaps as f64) / rows.len().max(1) as f64;
    let height = height.min(24.0);
    let mut at = 0.0;
    let mut places = Vec::with_capacity(rows.len());
    for (number, row) in rows.iter().enumerate() {
        if row.is_apart && number > 0 {
            at += gap;
        }
        places.push((at, height));
        at += height;
    }
    places
}

/// The class of a count: equal steps of its logarithm.
fn class_of(count: u64, most: u64) -> usize {
    if count == 0 || most <= 1 {
        return COLORS.len() - 1;
    }
    let share = (count as f64).ln() / (most as f64).ln();
    ((share * COLORS.len() as f64) as usize).min(COLORS.len() - 1)
}

fn draw(grid: &Grid, text: &mut String) -> std::fmt::Result {
    let places = row_places(&grid.rows);
    let plot_height = places.last().map_or(40.0, |(at, height)| at + height);
    // Few rows are less high than the legend beside them.
    let height = (TOP as f64 + plot_height + BOTTOM as f64).max((LEGEND_END + 12) as f64);
    let left = left(&grid.rows);
    let width = left + PLOT_WIDTH + LEGEND_WIDTH;
    writeln!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height:.0}\" viewBox=\"0 0 {width} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">"
    )?;
    writeln!(text, "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>")?;
    writeln!(text, "<text x=\"{left}\" y=\"24\" font-size=\"17\">{}</text>", xml(&grid.title))?;
    writeln!(text, "<text x=\"{left}\" y=\"44\" fill=\"#555555\">{}</text>", xml(&grid.subtitle))?;
    writeln!(
        text,
        "<rect x=\"{left}\" y=\"{TOP}\" width=\"{PLOT_WIDTH}\" height=\"{plot_height:.1}\" fill=\"#f4f4f4\"/>"
    )?;
    let most = grid.cells.iter().map(|cell| cell.2).max().unwrap_or(0);
    cells(grid, (left, &places), most, text)?;
    gaps(grid, (left, &places), text)?;
    names(grid, (left, &places), text)?;
    axes(grid, (left, &places), plot_height, text)?;
    legend(grid, left, most, text)?;
    writeln!(text, "</svg>")
}

/// One path a color: runs of cells of one color in a row are one rectangle.
fn cells(grid: &Grid, (left, places): (usize, &[(f64, f64)]), most: u64, text: &mut String) -> std::fmt::Result {
    let mut paths = vec![String::new(); COLORS.len()];
    let column = PLOT_WIDTH as f64 / grid.columns.max(1) as f64;
    let mut sorted: Vec<&(usize, usize, u64)> = grid.cells.iter().filter(|cell| cell.2 > 0).collect();
    sorted.sort_unstable();
    let mut at = 0;
    while let Some(&&(row, first, count)) = sorted.get(at) {
        let class = class_of(count, most);
        let mut last = first;
        at += 1;
        while let Some(&&(_, next, _)) =
            sorted.get(at).filter(|next| next.0 == row && next.1 == last + 1 && class_of(next.2, most) == class)
        {
            last = next;
            at += 1;
        }
        let (Some(path), Some((y, height))) = (paths.get_mut(class), places.get(row)) else { continue };
        let x = left as f64 + first as f64 * column;
        let run = (last + 1 - first) as f64 * column;
        write!(path, "M{x:.1} {:.1}h{run:.1}v{:.1}h-{run:.1}z", TOP as f64 + y, height.max(0.6))?;
    }
    for (path, color) in paths.iter().zip(COLORS).filter(|(path, _)| !path.is_empty()) {
        writeln!(text, "<path fill=\"{color}\" shape-rendering=\"crispEdges\" d=\"{path}\"/>")?;
    }
    Ok(())
}

/// A white line where addresses are left out.
fn gaps(grid: &Grid, (left, places): (usize, &[(f64, f64)]), text: &mut String) -> std::fmt::Result {
    for ((_, (y, _)), before) in grid.rows.iter().zip(places).skip(1).zip(places).filter(|((row, _), _)| row.is_apart) {
        let from = before.0 + before.1;
        writeln!(
            text,
            "<rect x=\"{left}\" y=\"{:.1}\" width=\"{PLOT_WIDTH}\" height=\"{:.1}\" fill=\"#ffffff\"/>",
            TOP as f64 + from,
            y - from
        )?;
    }
    Ok(())
}

/// What is in each row that has a name, for the pointer: only some rows have room for a label.
fn names(grid: &Grid, (left, places): (usize, &[(f64, f64)]), text: &mut String) -> std::fmt::Result {
    for (row, (y, height)) in grid.rows.iter().zip(places).filter(|(row, _)| !row.name.is_empty()) {
        writeln!(
            text,
            "<rect x=\"{left}\" y=\"{:.1}\" width=\"{PLOT_WIDTH}\" height=\"{:.1}\" fill-opacity=\"0\"><title>{} {}</title></rect>",
            TOP as f64 + y,
            height.max(0.6),
            xml(&row.label),
            xml(&row.name)
        )?;
    }
    Ok(())
}

fn axes(grid: &Grid, (left, places): (usize, &[(f64, f64)]), plot_height: f64, text: &mut String) -> std::fmt::Result {
    let room = plot_height / LABELS_MAX as f64;
    let mut free = f64::NEG_INFINITY;
    for (row, (y, height)) in grid.rows.iter().zip(places) {
        let middle = y + height / 2.0;
        if middle < free {
            continue;
        }
        free = middle + room.max(12.0);
        let at = TOP as f64 + middle + 4.0;
        writeln!(
            text,
            "<text x=\"{}\" y=\"{at:.1}\" text-anchor=\"end\" font-family=\"monospace\">{}</text>",
            left - 8,
            xml(&row.text())
        )?;
    }
    let bottom = TOP as f64 + plot_height;
    let column = PLOT_WIDTH as f64 / grid.columns.max(1) as f64;
    for (at, label) in &grid.ticks {
        let x = left as f64 + *at as f64 * column;
        writeln!(text, "<path stroke=\"#888888\" d=\"M{x:.1} {bottom:.1}v5\"/>")?;
        writeln!(text, "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>", bottom + 18.0, xml(label))?;
    }
    let (middle, below) = (left + PLOT_WIDTH / 2, bottom + 40.0);
    writeln!(text, "<text x=\"{middle}\" y=\"{below:.1}\" text-anchor=\"middle\">{}</text>", xml(&grid.x_title))?;
    let center = TOP as f64 + plot_height / 2.0;
    writeln!(
        text,
        "<text transform=\"translate(18 {center:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        xml(&grid.y_title)
    )
}

fn legend(grid: &Grid, left: usize, most: u64, text: &mut String) -> std::fmt::Result {
    let x = left + PLOT_WIDTH + 24;
    writeln!(text, "<text x=\"{x}\" y=\"{}\">{}</text>", TOP + 4, xml(&grid.unit))?;
    let steps = if most <= 1 { COLORS.len() - 1..COLORS.len() } else { 0..COLORS.len() };
    let mut label_before = String::new();
    for (line, class) in steps.rev().enumerate() {
        let y = TOP + 14 + line * 18;
        let color = COLORS.get(class).copied().unwrap_or("#000000");
        writeln!(text, "<rect x=\"{x}\" y=\"{y}\" width=\"16\" height=\"18\" fill=\"{color}\"/>")?;
        let from = (most.max(1) as f64).powf(class as f64 / COLORS.len() as f64).ceil();
        let label = if most <= 1 { "1".to_owned() } else { format!("from {}", grouped(from as u128)) };
        if label != label_before {
            writeln!(text, "<text x=\"{}\" y=\"{}\">{label}</text>", x + 24, y + 13)?;
        }
        label_before = label;
    }
    let y = LEGEND_END;
    writeln!(text, "<text x=\"{x}\" y=\"{y}\" fill=\"#555555\">most: {}</text>", grouped(u128::from(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(grid: &Grid) -> String {
        let mut out = Vec::new();
        svg(grid, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn runs_of_one_color_are_one_rectangle() {
        let rows = vec![Row::default(), Row { label: "<b>".to_owned(), name: "struct.<i>".to_owned(), is_apart: true }];
        let cells = vec![(0, 0, 5), (0, 1, 5), (0, 3, 5), (1, 0, 1)];
        let grid = Grid { rows, columns: 4, cells, ticks: vec![(0, "0".to_owned())], ..Grid::default() };
        let text = picture(&grid);
        let paths: Vec<&str> = text.lines().filter(|line| line.starts_with("<path fill")).collect();
        assert_eq!((paths.len(), paths[1].matches('M').count()), (2, 2));
        assert!(text.contains("struct.&lt;i&gt; &lt;b&gt;") && text.trim_end().ends_with("</svg>"));
        assert_eq!(text, picture(&grid));
    }

    #[test]
    fn the_most_is_darkest_and_one_is_lightest() {
        assert_eq!([1, 999, 1000].map(|count| class_of(count, 1000)), [0, 9, 9]);
        assert_eq!(class_of(1, 1), 9);
    }

    #[test]
    fn long_names_are_cut_and_have_room() {
        let row = |name: &str| Row { label: "0x40".to_owned(), name: name.to_owned(), ..Row::default() };
        assert_eq!((row("").text(), row("T").text()), ("0x40".to_owned(), "T 0x40".to_owned()));
        let long = row(&"é".repeat(200));
        assert_eq!(long.text().chars().count(), NAME_LETTERS_MAX + 5);
        assert_eq!(left(&[row("T")]), LEFT_MIN);
        assert!(left(&[long]) as f64 > (NAME_LETTERS_MAX + 5) as f64 * LETTER);
    }

    #[test]
    fn nothing_is_a_picture_too() {
        let text = picture(&Grid { title: "\u{1}".to_owned(), ..Grid::default() });
        assert!(text.starts_with("<svg") && !text.contains("NaN") && !text.contains("inf") && text.contains("\\u{1}"));
    }

    #[test]
    fn the_legend_is_in_the_picture_however_few_rows_there_are() {
        for rows in [1, 2, 3, 40] {
            let cells = (0..rows).map(|row| (row, 0, 1000)).collect();
            let text = picture(&Grid { rows: vec![Row::default(); rows], columns: 1, cells, ..Grid::default() });
            let number = |text: &str| text.split('"').next().and_then(|text| text.parse::<f64>().ok()).unwrap();
            let height = number(text.split(" height=\"").nth(1).unwrap());
            let lowest = text.split(" y=\"").skip(1).map(number).fold(0.0, f64::max);
            assert!(text.contains("most: 1,000") && lowest < height, "{rows}: {lowest} {height}");
        }
    }

    #[test]
    fn many_rows_have_few_labels() {
        let row =
            |number: usize| Row { label: format!("L{number}"), is_apart: number.is_multiple_of(2), ..Row::default() };
        let grid = Grid { rows: (0..2000).map(row).collect(), columns: 1, ..Grid::default() };
        let text = picture(&grid);
        assert!(text.matches("monospace").count() <= 60, "{}", text.matches("monospace").count());
    }
}
