//! Where in the source untyped allocations are made, where programs are given.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anytrace_analysis::elements::TypeTable;
use anytrace_analysis::site_name::SiteName;
use anytrace_core::access::TypeNumber;
use anytrace_core::span::Location;
use anytrace_symbols::sites;
use serde_json::{Value, json};

use super::type_label::type_label;
use crate::failure::Failure;

/// A place that allocates, or a caller of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) function: String,
    pub(super) offset_bytes: u64,
    pub(super) location: Option<Location>,
}

/// The places of types that are named after one.
#[derive(Debug, Default)]
pub(super) struct Places(HashMap<TypeNumber, Vec<Place>>);

impl Places {
    /// Those of all types, with the lines that `programs` have for them.
    pub(super) fn of(table: &TypeTable, programs: &[PathBuf]) -> Result<Self, Failure> {
        let mut all: Vec<(TypeNumber, String, u64)> = Vec::new();
        for (number, one) in (0..).zip(table.types()) {
            let name = one.name.as_deref().unwrap_or_default();
            let each = SiteName::of(name.as_bytes()).map(SiteName::each).unwrap_or_default();
            all.extend(each.into_iter().map(|(name, at)| (number, String::from_utf8_lossy(name).into_owned(), at)));
        }
        let wanted: Vec<sites::Site<'_>> = all.iter().map(|(_, name, at)| (name.as_str(), *at)).collect();
        let paths: Vec<&Path> = programs.iter().map(PathBuf::as_path).collect();
        let found = sites::locations(&paths, &wanted).map_err(|error| Failure::bare(&error))?;
        let mut places: HashMap<TypeNumber, Vec<Place>> = HashMap::new();
        for ((number, function, offset_bytes), location) in all.into_iter().zip(found) {
            places.entry(number).or_default().push(Place { function, offset_bytes, location });
        }
        Ok(Self(places))
    }

    /// The place of a type, then its callers; empty for a type with a name of its own.
    pub(super) fn each(&self, number: TypeNumber) -> &[Place] {
        self.0.get(&number).map_or(&[], Vec::as_slice)
    }

    /// The same for programs.
    pub(super) fn json(&self, number: TypeNumber) -> Value {
        let each = self.each(number).iter().map(|place| {
            json!({
                "function": place.function,
                "offset": place.offset_bytes,
                "file": place.location.as_ref().map(|location| location.file.as_str()),
                "line": place.location.as_ref().map(|location| location.line),
            })
        });
        each.collect()
    }

    /// True where the line of any place is known.
    pub(super) fn has_lines(&self) -> bool {
        self.0.values().flatten().any(|place| place.location.is_some())
    }

    /// `file.c:12` of the place itself, without folders but a crate's; empty where it is unknown.
    pub(super) fn line(&self, number: TypeNumber) -> String {
        self.each(number).first().and_then(Place::line).unwrap_or_default()
    }
}

impl Place {
    /// `function+0x1f`, short.
    pub(super) fn label(&self) -> String {
        type_label(&format!("{}+{:#x}", self.function, self.offset_bytes))
    }

    /// `file.c:12`, without folders but a crate's.
    pub(super) fn line(&self) -> Option<String> {
        let Location { file, line } = self.location.as_ref()?;
        Some(format!("{}:{line}", shown_file(file)))
    }
}

/// A file's name; of Rust, where many files have the same, from the crate's folder on: `particles/src/main.rs`.
fn shown_file(path: &str) -> &str {
    let name = path.rfind('/').map_or(0, |at| at + 1);
    let source = path.rfind("/src/").filter(|_| path.ends_with(".rs"));
    let begin =
        source.map_or(name, |source| path.get(..source).and_then(|before| before.rfind('/')).map_or(0, |at| at + 1));
    path.get(begin..).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_crates_have_the_crate() {
        assert_eq!(shown_file("/home/me/particles/src/main.rs"), "particles/src/main.rs");
        assert_eq!(shown_file("/home/me/particles/src/a/mod.rs"), "particles/src/a/mod.rs");
        assert_eq!(shown_file("/home/me/app/src/main.c"), "main.c");
        assert_eq!(shown_file("main.rs"), "main.rs");
    }
}
