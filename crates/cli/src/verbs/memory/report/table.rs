//! Tables of the page.

use std::fmt::Write;

use anytrace_core::text::{grouped, xml};

use super::super::caches;

/// A cell: HTML, and how much of the most there is, in percent, where it is shaded.
pub(super) struct Cell {
    html: String,
    share: Option<u64>,
    is_text: bool,
}

impl Cell {
    /// A number; nothing much for 0.
    pub(super) fn number(value: u64) -> Self {
        Self::figure(if value == 0 { "·".to_owned() } else { grouped(u128::from(value)) })
    }

    /// Bytes with a unit.
    pub(super) fn bytes(value: u64) -> Self {
        Self::figure(if value == 0 { "·".to_owned() } else { bytes(value) })
    }

    /// A figure in words, `12.5%`.
    pub(super) fn figure(text: String) -> Self {
        Self { html: xml(&text), share: None, is_text: false }
    }

    /// Text, which is escaped.
    pub(super) fn text(text: &str) -> Self {
        Self::html(xml(text))
    }

    /// Text that is escaped already.
    pub(super) fn html(html: String) -> Self {
        Self { html, share: None, is_text: true }
    }

    /// Shaded by how much it is of the most.
    pub(super) fn shaded(self, value: u64, most: u64) -> Self {
        let share = u128::from(value) * 100 / u128::from(most.max(1));
        Self { share: u64::try_from(share).ok(), ..self }
    }
}

/// Bytes with a unit and separators: `1,234.5 GiB`.
pub(super) fn bytes(value: u64) -> String {
    let text = caches::bytes(value);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    number.parse().map_or(text.clone(), |number: u64| format!("{}{rest}", grouped(u128::from(number))))
}

/// A row; one with an id can be linked to.
pub(super) struct Row {
    pub(super) id: Option<String>,
    pub(super) cells: Vec<Cell>,
}

impl From<Vec<Cell>> for Row {
    fn from(cells: Vec<Cell>) -> Self {
        Self { id: None, cells }
    }
}

/// A table. `more`: rows that are not shown.
pub(super) fn table(headings: &[&str], rows: Vec<Row>, more: usize) -> String {
    let is_text = |at: usize| rows.iter().any(|row| row.cells.get(at).is_some_and(|cell| cell.is_text));
    let mut out = String::from("<div class=\"wide\"><table>\n<thead><tr>");
    for (at, heading) in headings.iter().enumerate() {
        let class = if is_text(at) { " class=\"left\"" } else { "" };
        let _ = write!(out, "<th{class}>{}</th>", xml(heading));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &rows {
        let id = row.id.as_ref().map(|id| format!(" id=\"{}\"", xml(id))).unwrap_or_default();
        let _ = write!(out, "<tr{id}>");
        for cell in &row.cells {
            let class = if cell.is_text { " class=\"left\"" } else { "" };
            let style = cell.share.map(|share| format!(" style=\"--share: {share}%\"")).unwrap_or_default();
            let _ = write!(out, "<td{class}{style}>{}</td>", cell.html);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    if more > 0 {
        let _ = writeln!(out, "<p>and {} more (<code>--top</code>)</p>", grouped(more as u128));
    }
    out
}
