//! Where in the source places are that a recorder named by function and offset.

use std::collections::HashMap;
use std::path::Path;

use anytrace_core::layout::canonical_name;
use anytrace_core::span::{Location, Mangling};
use anytrace_core::text::shown;
use anytrace_core::{Error, InputOptions};

use crate::{Program, demangle};

/// A place that a call returns to: a function's name, as its file has it or demangled, and bytes from its begin.
pub type Site<'n> = (&'n str, u64);

/// Names of at least so many bytes may be shortened by the recorder, which takes 200 of the C++ library's spelling.
const SHORTENED_BYTES_MIN: usize = 150;

/// The names that a recorder may have given to a function: demangled, and without what its brackets contain where that
/// is long.
pub(crate) fn names(linked: &str) -> Vec<String> {
    let demangled = demangle(linked, Mangling::Demangled);
    let mut all = vec![canonical_name(&demangled)];
    if demangled.len() >= SHORTENED_BYTES_MIN {
        all.push(canonical_name(&without_brackets(&demangled, "")));
    }
    all
}

/// `a<…>::b(…)` for `a<int>::b(long)`, with a mark in place of what the brackets contain. Without a mark it is what the
/// recorder makes of long names. The brackets of `operator<`, `operator->` and `operator()` do not count as brackets.
pub fn without_brackets(name: &str, mark: &str) -> String {
    let mut kept = String::new();
    let mut depth = 0_usize;
    for (at, letter) in name.char_indices() {
        let before = name.get(..at).unwrap_or_default();
        let is_operator = before.ends_with("operator") || before.ends_with('-');
        match letter {
            '<' | '(' if !is_operator => {
                if depth == 0 {
                    kept.push(letter);
                    kept.push_str(mark);
                }
                depth += 1;
            }
            '>' | ')' if !is_operator && depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    kept.push(letter);
                }
            }
            _ if depth == 0 => kept.push(letter),
            _ => {}
        }
    }
    kept
}

/// True for a header that comes with a compiler.
fn is_of_compiler(file: &str) -> bool {
    const FOLDERS: &[&str] = &["/include/c++/", "/usr/lib/gcc", "/lib/clang/", "/rustc/", "/library/alloc/src/"];
    FOLDERS.iter().any(|folder| file.contains(folder))
}

/// The source lines of calls; `None` where no program has the function, or several that differ. Of files that are no
/// programs nothing is known.
///
/// # Errors
/// I/O; [`anytrace_core::Kind::Unsupported`] when a program is damaged.
pub fn locations(programs: &[&Path], sites: &[Site<'_>]) -> Result<Vec<Option<Location>>, Error> {
    let mut wanted: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, (name, _)) in sites.iter().enumerate() {
        wanted.entry(canonical_name(name)).or_default().push(at);
    }
    let mut found: Vec<Vec<Location>> = vec![Vec::new(); sites.len()];
    for path in programs {
        let program = Program::open(path, InputOptions::default())?;
        if !program.binary().is_object() {
            continue;
        }
        let objects = program.objects(None)?;
        let symbols = objects.symbols();
        // What is missing shows as a site without a place.
        let debug = objects.debug_data(&mut Vec::new())?;
        // Without debug data there is nothing to find here.
        let Ok(lines) = debug.lines() else { continue };
        for symbol in symbols.symbols() {
            let own = shown(symbol.name);
            let known = wanted.get(own.as_ref()).or_else(|| names(&own).iter().find_map(|name| wanted.get(name)));
            for at in known.into_iter().flatten() {
                let Some((_, offset)) = sites.get(*at) else { continue };
                if symbol.size_bytes > 0 && *offset > symbol.size_bytes {
                    continue;
                }
                // The call itself precedes what it returns to.
                let address = symbol.address.wrapping_add(*offset).wrapping_sub(1);
                let frames = lines.frames(address);
                let mut inlined = frames.into_iter().filter_map(|frame| frame.location);
                // A line of the program says more than one of the library that it calls.
                let first = inlined.next();
                let own = inlined.find(|place| !is_of_compiler(&place.file));
                let inlined = first.filter(|place| own.is_none() || !is_of_compiler(&place.file)).or(own);
                let location = inlined.or_else(|| lines.location(address));
                if let (Some(location), Some(all)) = (location, found.get_mut(*at))
                    && !all.contains(&location)
                {
                    all.push(location);
                }
            }
        }
    }
    let only = |mut all: Vec<Location>| if all.len() == 1 { all.pop() } else { None };
    Ok(found.into_iter().map(only).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_known_by_what_the_recorder_keeps() {
        let long = format!("a::b<{}>::operator<(c<d> const&)", "x<y>, ".repeat(50));
        assert_eq!(names(&long)[1], "a::b<>::operator<()");
        assert_eq!(names("f(int, std::vector<int>)"), ["f(int,std::vector<int>)"]);
    }

    #[test]
    fn brackets_of_operators_stay() {
        assert_eq!(without_brackets("a<int>::b(long)", "…"), "a<…>::b(…)");
        assert_eq!(without_brackets("p<d<e>>::operator->(f)", "…"), "p<…>::operator->(…)");
        assert_eq!(without_brackets("p::operator<(q<r> const&)", ""), "p::operator<()");
    }

    #[test]
    fn headers_of_compilers_are_known() {
        assert!(is_of_compiler("/usr/include/c++/12/bits/new_allocator.h"));
        assert!(!is_of_compiler("/home/me/app/include/list.h"));
    }
}
