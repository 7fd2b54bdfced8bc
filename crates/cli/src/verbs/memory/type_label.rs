//! Names of types in tables, where the longest name makes every line as long.
//!
//! Allocations without a type are called by the place that makes them, and functions of templates have names of hundreds
//! of letters. Headings, JSON and CSV have them in full.

use anytrace_analysis::site_name::{SiteName, is_static};
use anytrace_core::layout::Layout;
use anytrace_core::span::Mangling;
use anytrace_core::text::printable;
use anytrace_symbols::demangle;
use anytrace_symbols::sites::without_brackets;

/// Names of up to this many letters are shown unchanged.
const LETTERS_MAX: usize = 72;

/// The name of a type for a table: Rust's names as in the source, long ones without what their brackets hold; of the
/// callers of a place as many as there is room for.
pub(super) fn type_label(name: &str) -> String {
    let each = SiteName::of(name.as_bytes()).map(SiteName::each).unwrap_or_default();
    let [_, callers @ ..] = each.as_slice() else { return label(name) };
    if callers.is_empty() {
        return label(name);
    }
    let labels = each.iter().map(|(name, at)| label(&format!("{}+{at:#x}", String::from_utf8_lossy(name))));
    let mut out = String::new();
    for one in labels {
        if !out.is_empty() && out.chars().count() + one.chars().count() >= LETTERS_MAX {
            out.push_str(" < …");
            break;
        }
        if !out.is_empty() {
            out.push_str(" < ");
        }
        out.push_str(&one);
    }
    let remarks = name.rsplit_once(" (").filter(|(places, _)| SiteName::of(places.as_bytes()).is_some());
    remarks.map_or_else(|| out.clone(), |(_, remarks)| format!("{out} ({}", printable(remarks)))
}

/// The same with the type of its elements, where the name is only that of a place: `fill+0x1c: Order [inferred from the
/// source line]`.
pub(super) fn typed_label(name: &str, layout: Option<&Layout>) -> String {
    match layout.and_then(|layout| Some((layout, layout.origin.remark()?))) {
        Some((layout, remark)) => format!("{}: {} [{remark}]", type_label(name), type_label(&layout.name)),
        None => type_label(name),
    }
}

/// The same in full, for headings.
pub(super) fn typed_name(name: &str, layout: Option<&Layout>) -> String {
    match layout.and_then(|layout| Some((layout, layout.origin.remark()?))) {
        Some((layout, remark)) => format!("{}: {} [{remark}]", printable(name), printable(&layout.name)),
        None => printable(name).to_string(),
    }
}

fn label(name: &str) -> String {
    if let Some((variable, remark)) = name.rsplit_once(" (").filter(|_| is_static(name.as_bytes())) {
        return format!("{} ({}", label(variable), printable(remark));
    }
    let place = name.rfind("+0x").unwrap_or(name.len());
    let (function, place) = name.split_at(place);
    let readable = without_library_paths(&demangle(function, Mangling::Demangled));
    if readable.chars().count() + place.chars().count() <= LETTERS_MAX {
        return printable(&format!("{readable}{place}"));
    }
    let without = without_brackets(&readable, "…");
    let room = LETTERS_MAX.saturating_sub(place.chars().count());
    if without.chars().count() <= room {
        return printable(&format!("{without}{place}"));
    }
    // The end says more than the beginning: the function comes after its namespaces.
    let cut = without.chars().count() - room.saturating_sub(1);
    let end: String = without.chars().skip(cut).collect();
    printable(&format!("…{end}{place}"))
}

/// `Vec<app::Particle>` for `alloc::vec::Vec<app::Particle, alloc::alloc::Global>`: types of Rust's library need no path,
/// and their allocator is nearly always the same. Paths of other crates stay.
fn without_library_paths(name: &str) -> String {
    let is_path = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | ':');
    let mut kept = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let end = match rest.find(|letter| !is_path(letter)) {
            Some(0) => first.len_utf8(),
            Some(end) => end,
            None => rest.len(),
        };
        let (path, behind) = rest.split_at(end);
        kept.push_str(without_library_path(path));
        rest = behind;
    }
    kept.replace(", Global>", ">")
}

/// `Vec` for `alloc::vec::Vec`; any other path unchanged.
fn without_library_path(path: &str) -> &str {
    let starts = ["alloc::", "core::", "std::", "hashbrown::"];
    if !starts.iter().any(|start| path.starts_with(start)) {
        return path;
    }
    // The first part with a capital letter is a type, what follows is in it.
    let mut begin = 0;
    for part in path.split("::") {
        if part.starts_with(|letter: char| letter.is_uppercase()) {
            return path.get(begin..).unwrap_or(path);
        }
        begin += part.len() + 2;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_shown_as_far_as_there_is_room() {
        assert_eq!(type_label("f+0x1<g+0x2 (calloc)"), "f+0x1 < g+0x2 (calloc)");
        let many = (0..20).map(|n| format!("caller{n}+0x{n}")).collect::<Vec<_>>().join("<");
        let label = type_label(&many);
        assert!(label.starts_with("caller0+0x0 < caller1+0x1 <") && label.ends_with(" < …"), "{label}");
        assert!(label.chars().count() <= LETTERS_MAX + 4, "{label}");
    }

    #[test]
    fn long_names_of_templates_lose_what_their_brackets_hold() {
        let long = "void std::deque<std::function<void (int)>, std::allocator<std::function<void (int)> > >::\
                    _M_push_back_aux<std::function<void (int)> >(std::function<void (int)>&&)+0x139";
        assert_eq!(type_label(long), "void std::deque<…>::_M_push_back_aux<…>(…)+0x139");
        let operator = format!("{}::operator()(int)+0x1", "a<b>::".repeat(12));
        assert!(type_label(&operator).ends_with("a<…>::::operator()(…)+0x1"), "{}", type_label(&operator));
    }

    #[test]
    fn what_is_still_too_long_keeps_its_end() {
        let label = type_label(&format!("{}::the_end+0x7", "n".repeat(200)));
        assert!(label.starts_with('…') && label.ends_with("n::the_end+0x7"), "{label}");
        assert_eq!(label.chars().count(), LETTERS_MAX);
    }

    #[test]
    fn short_names_stay_and_those_of_rust_are_readable() {
        for name in ["struct Node", "std::map<int, long>", "main+0x1f", "rust::alloc", ""] {
            assert_eq!(type_label(name), name);
        }
        assert_eq!(
            type_label("_RNvMs_NtNtCsjrHSEGnQ3l9_3std6thread6threadNtB4_6Thread3new+0x5c"),
            "<Thread>::new+0x5c"
        );
        for (full, short) in [
            ("alloc::vec::Vec<app::Particle, alloc::alloc::Global>", "Vec<app::Particle>"),
            ("core::option::Option<alloc::boxed::Box<app::Node>>", "Option<Box<app::Node>>"),
            ("alloc::raw_vec::RawVec<T, A>::grow_one+0x5", "RawVec<T, A>::grow_one+0x5"),
            (
                "std::vector<std::string, std::allocator<std::string> >",
                "std::vector<std::string, std::allocator<std::string> >",
            ),
            ("my::core::Thing", "my::core::Thing"),
        ] {
            assert_eq!(type_label(full), short);
        }
    }
}
