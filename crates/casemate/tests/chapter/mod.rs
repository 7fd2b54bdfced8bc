//! Tables of the checker's chapter in the book that follow from the code.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/formats/casemate-checker.md");

/// A row of a table: how it must begin, and how it goes on where the chapter has no such row yet. That part may be
/// edited by hand.
pub(crate) type Row = (String, String);

/// Compares the rows below `header` with those that should be there. With `UPDATE_GOLDENS` the chapter gets them instead.
pub(crate) fn compare(header: &str, expected: &[Row]) {
    let chapter = std::fs::read_to_string(PATH).unwrap();
    let at = chapter.find(&format!("{header}\n|---")).unwrap_or_else(|| panic!("no table begins {header}"));
    let separator = at + header.len() + 1;
    let start = separator + chapter[separator..].find('\n').unwrap() + 1;
    let rows: Vec<&str> = chapter[start..].lines().take_while(|line| line.starts_with('|')).collect();
    if rows.len() == expected.len() && rows.iter().zip(expected).all(|(row, (start, _))| row.starts_with(start)) {
        return;
    }
    let row = |(start, rest): &Row| {
        let there = rows.iter().find(|row| row.starts_with(start)).map(|row| (*row).to_owned());
        there.unwrap_or_else(|| format!("{start}{rest}"))
    };
    let table: String = expected.iter().map(|expected| row(expected) + "\n").collect();
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        let end = start + rows.iter().map(|row| row.len() + 1).sum::<usize>();
        std::fs::write(PATH, format!("{}{table}{}", &chapter[..start], &chapter[end..])).unwrap();
    } else {
        panic!("`cargo xtask casemate-tables` writes the chapter's table anew. It should be:\n{header}\n{table}");
    }
}
