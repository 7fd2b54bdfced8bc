//! Memory accesses and cache misses by line, function or instruction of the program.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anytrace_core::access::TypeNumber;
use anytrace_core::access::codes::Place;
use anytrace_core::span::Location;

use crate::cache::results::{Codes, Tally};

/// What has a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A line of a source file.
    Line,
    /// A function with code of its own, of a file.
    Function,
    /// An instruction of a file.
    Instruction,
}

/// What a row is sorted by, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Records that the first level did not serve fully.
    Misses,
    /// Records that memory served.
    Memory,
    /// Records.
    Accesses,
}

impl Order {
    fn key(self, tally: &Tally) -> u64 {
        match self {
            Self::Misses => tally.first_level_misses(),
            Self::Memory => tally.memory(),
            Self::Accesses => tally.accesses(),
        }
    }
}

/// What a line, a function or an instruction does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// The function; of a line the one with most accesses. `None` where no program says so.
    pub function: Option<String>,
    /// The line; of a function and of an instruction that of most accesses. `None` as above.
    pub location: Option<Location>,
    /// The file with the code.
    pub file: Option<PathBuf>,
    /// The address of an instruction, in that file or, where there is none, of the run.
    pub address: Option<u64>,
    /// All its records.
    pub total: Tally,
    /// Its records by type, those outside typed memory under `None`.
    pub types: BTreeMap<Option<TypeNumber>, Tally>,
}

/// Accesses by place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Annotated {
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// All records that count.
    pub total: Tally,
    /// Those whose instruction is unknown; in no row.
    pub unknown: Tally,
}

/// What makes a row one.
type Key = (Option<PathBuf>, Option<String>, u64);

/// Adds up the accesses. `places`: one for each row of `codes`. `counts`: whether accesses to a type count.
pub fn annotate(
    codes: &Codes,
    places: &[Place],
    by: By,
    order: Order,
    counts: &dyn Fn(Option<TypeNumber>) -> bool,
) -> Annotated {
    let mut found = Annotated::default();
    // Beside each row, the accesses of what was taken for its function and line.
    let mut rows: BTreeMap<Key, (Row, u64)> = BTreeMap::new();
    for (one, place) in codes.rows.iter().zip(places).filter(|(one, _)| counts(one.of_type)) {
        found.total.add(&one.tally);
        if one.code == 0 {
            found.unknown.add(&one.tally);
            continue;
        }
        let (row, most) = rows.entry(key(place, by)).or_default();
        row.total.add(&one.tally);
        row.types.entry(one.of_type).or_default().add(&one.tally);
        if *most < one.tally.accesses() {
            *most = one.tally.accesses();
            row.function.clone_from(&place.function);
            row.location.clone_from(&place.location);
        }
        row.file.clone_from(&place.file);
        row.address = (by == By::Instruction).then_some(place.address);
    }
    found.rows = rows.into_values().map(|(row, _)| row).collect();
    // The order of keys decides where the figures do not.
    found.rows.sort_by_key(|row| std::cmp::Reverse((order.key(&row.total), row.total.accesses())));
    found
}

fn key(place: &Place, by: By) -> Key {
    let file = place.file.clone();
    match (by, &place.location) {
        (By::Line, Some(location)) => (None, Some(location.file.clone()), u64::from(location.line)),
        (By::Line, None) => (file, None, 0),
        // Without a name an address says most.
        (By::Function, _) if place.function.is_none() && file.is_none() => (None, None, place.address),
        (By::Function, _) => (file, place.function.clone(), 0),
        (By::Instruction, _) => (file, None, place.address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::results::CodeTally;

    fn place(function: &str, line: u32, address: u64) -> Place {
        let location = (line > 0).then(|| Location { file: "a.c".to_owned(), line });
        Place { function: Some(function.to_owned()), location, file: Some("a".into()), address }
    }

    fn codes() -> (Codes, Vec<Place>) {
        let row = |code, of_type, reads, misses: [u64; 2]| {
            let tally = Tally { reads, writes: 1, served_beyond_first: misses.to_vec() };
            CodeTally { code, of_type, tally }
        };
        let rows = vec![
            row(0, None, 9, [1, 0]),
            row(1, Some(0), 10, [2, 3]),
            row(1, None, 4, [0, 0]),
            row(2, Some(1), 7, [1, 9]),
            row(3, Some(0), 100, [0, 0]),
        ];
        let places = vec![Place::default(), place("f", 3, 1), place("f", 3, 1), place("f", 4, 2), place("g", 3, 3)];
        (Codes { rows, types: Vec::new() }, places)
    }

    fn found(by: By, order: Order) -> Vec<(Option<String>, u32, u64, u64)> {
        let (codes, places) = codes();
        let found = annotate(&codes, &places, by, order, &|_| true);
        assert_eq!((found.total.accesses(), found.unknown.accesses()), (135, 10));
        let sum: u64 = found.rows.iter().map(|row| row.total.accesses()).sum();
        assert_eq!(sum, 125, "every access is in one row");
        let line = |row: &Row| row.location.as_ref().map_or(0, |location| location.line);
        let all = found.rows.iter();
        all.map(|row| (row.function.clone(), line(row), row.total.accesses(), row.total.first_level_misses())).collect()
    }

    #[test]
    fn lines_functions_and_instructions_have_the_sums_of_their_accesses() {
        let name = |name: &str| Some(name.to_owned());
        // A line that is in two functions has the name of the one with more.
        assert_eq!(found(By::Line, Order::Misses), [(name("f"), 4, 8, 10), (name("g"), 3, 117, 5)]);
        assert_eq!(found(By::Function, Order::Misses), [(name("f"), 3, 24, 15), (name("g"), 3, 101, 0)]);
        let instructions = [(name("f"), 4, 8, 10), (name("f"), 3, 16, 5), (name("g"), 3, 101, 0)];
        assert_eq!(found(By::Instruction, Order::Misses), instructions);
        assert_eq!(found(By::Instruction, Order::Accesses).first(), Some(&(name("g"), 3, 101, 0)));
    }

    #[test]
    fn only_the_types_that_count_are_there() {
        let (codes, places) = codes();
        let found = annotate(&codes, &places, By::Function, Order::Memory, &|of| of == Some(1));
        assert_eq!((found.rows.len(), found.total.accesses(), found.total.memory()), (1, 8, 9));
        assert_eq!(found.rows[0].types.keys().collect::<Vec<_>>(), [&Some(1)]);
    }
}
