//! Links from one part of the page to another: which types and stacks have a place of their own.

use std::collections::HashMap;

use anytrace_analysis::lifetimes::stack_name;
use anytrace_core::access::TypeNumber;
use anytrace_core::text::xml;

use super::super::type_label::type_label;
use super::Contents;

/// Types whose layout is on the page.
const TYPES_MAX: usize = 12;

/// The parts that can be linked to.
pub(super) struct Links<'a> {
    /// Types by misses, the most first.
    pub(super) types: Vec<TypeNumber>,
    /// Those of them whose layout is on the page, by name.
    laid_out: HashMap<&'a str, TypeNumber>,
    /// Rows of the table of leaks by name.
    stacks: HashMap<&'a str, usize>,
}

impl<'a> Links<'a> {
    pub(super) fn of(contents: &'a Contents) -> Self {
        let profile = &contents.profile;
        let of = |number: &TypeNumber| profile.types.get(*number as usize).map(|one| one.counts).unwrap_or_default();
        let mut types: Vec<TypeNumber> = (0..).zip(&profile.types).map(|(number, _)| number).collect();
        types.retain(|number| {
            of(number).accesses() > 0 || profile.types.get(*number as usize).is_some_and(|one| one.regions > 0)
        });
        types.sort_by_key(|number| (std::cmp::Reverse((of(number).misses, of(number).accesses())), *number));
        let laid_out = types.iter().filter(|number| of(number).accesses() > 0).take(TYPES_MAX.min(contents.top));
        let laid_out = laid_out.map(|number| (profile.table.name(*number), *number)).collect();
        let stacks = contents.stacks.iter().take(contents.top).enumerate();
        Self { laid_out, stacks: stacks.map(|(at, one)| (one.name.as_str(), at)).collect(), types }
    }

    /// The types whose layout is on the page, those with most misses first.
    pub(super) fn laid_out(&self) -> impl Iterator<Item = TypeNumber> {
        let mut all: Vec<TypeNumber> = self.laid_out.values().copied().collect();
        all.sort_by_key(|number| self.types.iter().position(|one| one == number));
        all.into_iter()
    }

    /// A type's name, short, as a link to its layout where that is on the page.
    pub(super) fn type_name(&self, name: &str) -> String {
        self.named(name, &xml(&type_label(name)))
    }

    /// The same with another label, which is escaped.
    pub(super) fn named(&self, name: &str, label: &str) -> String {
        let title = if label == xml(name) { String::new() } else { format!(" title=\"{}\"", xml(name)) };
        match self.laid_out.get(name) {
            Some(number) => format!("<a href=\"#type-{number}\"{title}>{label}</a>"),
            None if title.is_empty() => label.to_owned(),
            None => format!("<span{title}>{label}</span>"),
        }
    }

    /// A link to the leaks of a type.
    pub(super) fn leaks(&self, name: &str) -> Option<String> {
        let at = self.stacks.get(stack_name(name))?;
        Some(format!("<a href=\"#stack-{at}\">leaks</a>"))
    }
}
