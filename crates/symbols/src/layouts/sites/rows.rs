//! The line tables of units.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use super::super::index::{Index, Unit};

/// A line of a source file: the path as far as debug data have it, and the number, from 1.
pub(super) type Line = (String, u32);

/// Most tables kept.
const TABLES_MAX: usize = 8;

#[derive(Debug, Clone, Copy)]
struct Row {
    address: u64,
    /// The end of a sequence: nothing is known from here.
    is_end: bool,
    file: u64,
    line: u32,
}

/// Line tables, each decoded once as long as few units are asked for.
#[derive(Debug, Default)]
pub(super) struct Rows(RefCell<HashMap<u32, Rc<Vec<Row>>>>);

impl Rows {
    /// The line of the instruction at an address of a unit.
    pub(super) fn line(&self, index: &Index<'_>, unit_number: u32, address: u64) -> Option<Line> {
        let unit = index.unit(unit_number)?;
        let rows = self.table(unit_number, &unit);
        let after = rows.partition_point(|row| row.address <= address);
        let row = rows.get(after.checked_sub(1)?).filter(|row| !row.is_end && row.line > 0)?;
        Some((file_name(index, &unit, row.file)?, row.line))
    }

    fn table(&self, unit_number: u32, unit: &Unit<'_>) -> Rc<Vec<Row>> {
        if let Some(known) = self.0.borrow().get(&unit_number) {
            return Rc::clone(known);
        }
        let rows = Rc::new(decoded(unit));
        let mut tables = self.0.borrow_mut();
        if tables.len() >= TABLES_MAX {
            tables.clear();
        }
        tables.insert(unit_number, Rc::clone(&rows));
        rows
    }
}

/// The rows of a unit, as far as they can be read: one takes at least a byte.
fn decoded(unit: &Unit<'_>) -> Vec<Row> {
    let Some(program) = unit.line_program.clone() else { return Vec::new() };
    let mut rows = program.rows();
    let mut found = Vec::new();
    while let Ok(Some((_, row))) = rows.next_row() {
        let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
        found.push(Row { address: row.address(), is_end: row.end_sequence(), file: row.file_index(), line });
    }
    // Where one sequence ends another may begin.
    found.sort_by_key(|row| (row.address, !row.is_end));
    found
}

/// The path of a file of a unit's table.
pub(super) fn file_name(index: &Index<'_>, unit: &Unit<'_>, number: u64) -> Option<String> {
    let program = unit.line_program.as_ref()?;
    let file = program.header().file(number)?;
    let text = |value| Some(index.dwarf.attr_string(unit, value).ok()?.to_string_lossy().into_owned());
    let mut path = PathBuf::new();
    if let Some(folder) = unit.comp_dir {
        path.push(folder.to_string_lossy().as_ref());
    }
    if let Some(folder) = file.directory(program.header()).and_then(text) {
        path.push(folder);
    }
    path.push(text(file.path_name())?);
    Some(path.to_string_lossy().into_owned())
}
