//! Types of allocations, inferred from where they are made.
//!
//! The evidence, function by function from the innermost inlined one outwards: what the source line says, where the
//! file is here; else the function's template arguments, or pointers that are declared in the line. A type that does
//! not divide the sizes of all blocks, or evidence for several types, infers nothing.

mod claims;
mod pointers;
mod rows;
mod scopes;
mod statement;

use std::collections::HashMap;

use anytrace_core::layout::{Layout, Origin, canonical_name, without_arguments};
use anytrace_core::span::Mangling;
use anytrace_core::text::shown;

use super::index::{Index, Place};
use crate::sites::{Site, names};
use crate::{ObjectFile, demangle};
use claims::{Around, Outcome};
use rows::Rows;
use scopes::{Functions, scopes};

/// Largest source file.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Most functions of one name.
const SAME_NAME_MAX: usize = 16;

/// What is known of a program's sites.
pub(super) struct Sites {
    functions: Functions,
    rows: Rows,
    /// First addresses, and sizes.
    symbols: HashMap<String, Vec<(u64, u64)>>,
    code: SourceCode,
}

/// Source files without comments; `None` for those that are not here.
#[derive(Default)]
struct SourceCode(HashMap<String, Option<Vec<String>>>);

impl SourceCode {
    fn lines(&mut self, file: &str) -> Option<&[String]> {
        let read = || {
            let meta = std::fs::metadata(file).ok()?;
            if !meta.is_file() || meta.len() > FILE_BYTES_MAX {
                return None;
            }
            let bytes = std::fs::read(file).ok()?;
            Some(statement::code_lines(&String::from_utf8_lossy(&bytes)))
        };
        self.0.entry(file.to_owned()).or_insert_with(read).as_deref()
    }
}

impl Sites {
    pub(super) fn new(index: &Index<'_>, object: &ObjectFile<'_>) -> Self {
        let mut symbols: HashMap<String, Vec<(u64, u64)>> = HashMap::new();
        for symbol in object.symbols().symbols() {
            let own = shown(symbol.name);
            for name in names(&own) {
                let all = symbols.entry(name).or_default();
                if all.len() < SAME_NAME_MAX {
                    all.push((symbol.address, symbol.size_bytes));
                }
            }
        }
        Self { functions: Functions::new(index), rows: Rows::default(), symbols, code: SourceCode::default() }
    }

    /// The type of what is allocated at the first of these places, called from the next: blocks of `sizes`.
    pub(super) fn infer(&mut self, index: &Index<'_>, places: &[Site<'_>], sizes: &[u64]) -> Option<Layout> {
        // The first call is of an allocator, which returns `void *`.
        let mut callee_is_allocator = true;
        for (number, (name, offset)) in places.iter().enumerate() {
            let known = self.symbols.get(&canonical_name(&demangle(name, Mangling::Demangled)));
            let fits = |(_, size): &&(u64, u64)| *size == 0 || offset <= size;
            let addresses: Vec<u64> =
                known?.iter().filter(fits).map(|(begin, _)| begin.wrapping_add(*offset).wrapping_sub(1)).collect();
            let mut outcomes = Vec::new();
            for address in addresses {
                let around = Around { sizes, is_innermost: number == 0, callee_is_allocator };
                outcomes.push(self.at(index, address, around));
            }
            let (mut first, is_allocator) = outcomes.first()?.clone();
            if outcomes.iter().any(|(outcome, _)| *outcome != first) {
                first = only_exact(index, &outcomes, sizes);
            }
            match first {
                Outcome::Found(place, name, inferred) => {
                    let mut layout = super::build::layout(index, place, &name)?;
                    layout.origin = Origin::Inferred(inferred);
                    return Some(layout);
                }
                Outcome::Conflict => return None,
                Outcome::Nothing => callee_is_allocator = is_allocator,
            }
        }
        None
    }

    /// What the functions at an address say, and whether the outermost of them returns `void *`.
    fn at(&mut self, index: &Index<'_>, address: u64, mut around: Around<'_>) -> (Outcome, bool) {
        let Some(function) = self.functions.at(address) else { return (Outcome::Nothing, false) };
        let line = self.rows.line(index, function.unit, address);
        let all = scopes(index, function, address, line);
        for scope in &all {
            let code = scope.line.as_ref().and_then(|(file, _)| self.code.lines(file));
            let outcome = claims::outcome(index, scope, function.unit, code, around);
            if outcome != Outcome::Nothing {
                return (outcome, false);
            }
            let is_allocator = scope.returns.is_some_and(|place| claims::is_untyped(index, place));
            around = Around { is_innermost: false, callee_is_allocator: is_allocator, ..around };
        }
        (Outcome::Nothing, around.callee_is_allocator)
    }
}

/// Of functions that share a name, shortened or in several files, the one whose type has just the bytes of all blocks.
fn only_exact(index: &Index<'_>, outcomes: &[(Outcome, bool)], sizes: &[u64]) -> Outcome {
    let is_exact = |outcome: &&Outcome| {
        let Outcome::Found(place, name, _) = outcome else { return false };
        let bytes = super::build::layout(index, *place, name).map(|layout| layout.bytes);
        sizes.iter().all(|size| Some(*size) == bytes)
    };
    let mut exact = outcomes.iter().map(|(outcome, _)| outcome).filter(is_exact);
    let Some(first) = exact.next() else { return Outcome::Conflict };
    if exact.all(|other| other == first) { first.clone() } else { Outcome::Conflict }
}

/// The name of a type, with enclosing scopes where the list of names has them.
fn full_name(index: &Index<'_>, place: Place) -> String {
    let own = super::spelling::type_name(index, Some(place));
    let record = pointers::stripped(index, place);
    let is_it = |name: &&str| index.definitions(name).any(|one| one == place || Some(one) == record);
    let plain = without_arguments(&own);
    let listed = index.full_names(&own).chain(plain.iter().flat_map(|plain| index.full_names(plain)));
    let bytes = canonical_name(&own).len();
    listed.filter(|name| name.len() > bytes).find(is_it).map_or(own.clone(), str::to_owned)
}
