//! Tables with columns as wide as what is in them.

use unicode_width::UnicodeWidthStr;

/// Where a column's text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table for a terminal.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns. The last may be as long as it likes.
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        Self { columns: columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect(), rows: Vec::new() }
    }

    /// Adds a row; one cell a column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines: headings first, two spaces between columns, nothing after the last word.
    pub(crate) fn render(&self) -> String {
        let heading: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let all = || std::iter::once(&heading).chain(&self.rows);
        let width_of = |column: usize| all().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| width_of(column).unwrap_or(0)).collect();
        let mut out = String::new();
        for row in all() {
            let mut line = String::new();
            for ((cell, width), (_, align)) in row.iter().zip(&widths).zip(&self.columns) {
                let space = " ".repeat(width.saturating_sub(cell.width()));
                line.push_str("  ");
                match align {
                    Align::Left => line.extend([cell.as_str(), space.as_str()]),
                    Align::Right => line.extend([space.as_str(), cell.as_str()]),
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&[("n", Align::Right), ("name", Align::Left), ("x", Align::Left)]);
        table.row(vec!["1,000".into(), "µ".into(), "y".into()]);
        table.row(vec!["7".into(), "longer".into(), String::new()]);
        assert_eq!(table.render(), "      n  name    x\n  1,000  µ       y\n      7  longer\n");
    }
}
