//! The page that shows two sets of images side by side.

use std::io::{self, Write};

use anytrace_core::text::xml;

use crate::tools::diff_images::{Comparison, THUMBNAIL};

/// An image on the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// There is none.
    Missing,
    /// An image that is shown enlarged: its address and size.
    Small(String, (u32, u32)),
    /// An image and its thumbnail.
    Large(String, String),
    /// It cannot be read: its address and why.
    Unreadable(String, String),
}

/// A pair of images.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What follows the prefix in both paths.
    pub name: String,
    /// Address of the first.
    pub address: String,
    /// How much they differ; `None` if one is missing or cannot be read.
    pub comparison: Option<Comparison>,
    /// The first, the second and the difference; none for pairs that are not shown.
    pub cells: Option<[Cell; 3]>,
}

impl Row {
    /// True when both images exist and match.
    pub fn is_match(&self) -> bool {
        self.comparison.is_some_and(|comparison| comparison.is_match())
    }
}

/// Writes the page.
///
/// # Errors
/// What the writer returns.
pub fn write_page(prefixes: [&str; 2], rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    let [a, b] = prefixes.map(xml);
    let matches = rows.iter().filter(|row| row.is_match()).count();
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n  <head>\n    <meta charset=\"utf-8\">\n    <title>{a} and {b}</title>\n    \
         <style>\n      body {{ font-family: sans-serif; }}\n      table {{ border-collapse: collapse; }}\n      \
         td, th {{ border: 1px solid #888; padding: 4px; }}\n      img {{ image-rendering: pixelated; display: block; }}\n      \
         .match {{ background: #20ff20; }}\n      .mismatch {{ background: #ff2020; }}\n      a {{ color: #000; }}\n    \
         </style>\n  </head>\n  <body>\n    <p>{matches} of {} images match.</p>\n    <table>\n      \
         <tr><th>File</th><th>{a}</th><th>{b}</th><th>&Delta;</th></tr>",
        rows.len()
    )?;
    for row in rows {
        let class = if row.is_match() { "match" } else { "mismatch" };
        writeln!(out, "      <tr>")?;
        writeln!(
            out,
            "        <td class=\"{class}\"><a href=\"{}\">{}</a><br>{}</td>",
            xml(&row.address),
            xml(&row.name),
            verdict(row)
        )?;
        for cell in row.cells.iter().flatten() {
            writeln!(out, "        <td>{}</td>", shown(cell))?;
        }
        writeln!(out, "      </tr>")?;
    }
    writeln!(out, "    </table>\n  </body>\n</html>")
}

fn verdict(row: &Row) -> String {
    match row.comparison {
        None if row.cells.iter().flatten().any(|cell| matches!(cell, Cell::Unreadable(..))) => "unreadable".to_owned(),
        None => "missing".to_owned(),
        Some(Comparison { pixels: None, .. }) => "other size".to_owned(),
        Some(Comparison { pixels: Some(pixels), precision_bits }) => {
            format!("{pixels} pixels differ, {precision_bits:.2} bits precision")
        }
    }
}

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Missing => String::new(),
        Cell::Small(address, (width, height)) => {
            let most = u64::from(*width.max(height)).max(1);
            let scaled = |length: u32| u64::from(length) * u64::from(THUMBNAIL) / most;
            let (address, width, height) = (xml(address), scaled(*width), scaled(*height));
            format!("<img src=\"{address}\" width=\"{width}\" height=\"{height}\" alt=\"\">")
        }
        Cell::Large(address, thumbnail) => {
            format!("<a href=\"{}\"><img src=\"{}\" alt=\"\"></a>", xml(address), xml(thumbnail))
        }
        Cell::Unreadable(address, why) => format!("<a href=\"{}\">{}</a>", xml(address), xml(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let row = Row {
            name: "<script>\"".to_owned(),
            address: "a?\"><b>".to_owned(),
            comparison: None,
            cells: Some([Cell::Missing, Cell::Small("&".to_owned(), (64, 48)), Cell::Missing]),
        };
        let mut out = Vec::new();
        write_page(["a<", "b"], &[row], &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        assert!(page.contains("&lt;script&gt;&quot;") && !page.contains("<script>") && !page.contains("<b>"));
        assert!(page.contains("<img src=\"&amp;\" width=\"320\" height=\"240\" alt=\"\">"));
        assert!(page.contains("0 of 1 images match"));
    }
}
