//! From what a function says about an allocation in it to a type.

use anytrace_core::layout::{Evidence, Inferred, Layout, bare_name, canonical_name};

use super::super::build;
use super::super::index::{Index, Place};
use super::full_name;
use super::pointers::{Pointed, Shape, member, shape, stripped, target};
use super::scopes::{Scope, template_arguments};
use super::statement::{Claim, Expression, Part, Step, claims};

/// Deepest nesting of anonymous members and bases.
const NESTING_MAX: usize = 8;

/// What is known about a function from outside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around<'a> {
    /// The sizes of all blocks, in bytes.
    pub(super) sizes: &'a [u64],
    /// True for the function that calls the allocator itself.
    pub(super) is_innermost: bool,
    /// True where what it calls returns `void *`.
    pub(super) callee_is_allocator: bool,
}

/// What a function says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// No evidence: callers may have some.
    Nothing,
    /// Evidence for several types, for one that does not fit, or for something else than a record.
    Conflict,
    /// A record, its name, and why.
    Found(Place, String, Inferred),
}

/// A type that something is evidence for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Type {
    Record { place: Place, record: Place, name: String, layout: Box<Layout> },
    Other,
    Void,
    Unknown,
}

/// A size in a statement.
struct Sized {
    found: Type,
    part: Part,
    text: String,
}

/// What a function says of the allocation in one of its lines, whose file has this `code`.
pub(super) fn outcome(
    index: &Index<'_>,
    scope: &Scope,
    unit: u32,
    code: Option<&[String]>,
    around: Around<'_>,
) -> Outcome {
    let line = scope.line.as_ref().map_or(0, |(_, line)| *line);
    let view = View { index, scope, unit, around };
    let found = match code {
        Some(code) => view.of_source(&claims(code, line)),
        None => view.of_declarations(line),
    };
    if found != Outcome::Nothing {
        return found;
    }
    let of_function = view.of_function();
    if of_function != Outcome::Nothing || code.is_some() { of_function } else { view.only_type() }
}

/// True for `void *`.
pub(super) fn is_untyped(index: &Index<'_>, place: Place) -> bool {
    match target(index, place) {
        Some(Pointed::Nothing) => true,
        Some(Pointed::To(place)) => shape(index, place) == Shape::Void,
        None => false,
    }
}

struct View<'v, 'i, 'a> {
    index: &'i Index<'a>,
    scope: &'v Scope,
    unit: u32,
    around: Around<'v>,
}

impl View<'_, '_, '_> {
    /// What a statement says.
    fn of_source(&self, claims: &[Claim]) -> Outcome {
        let sizes: Vec<Sized> = claims.iter().filter_map(|claim| self.size(claim)).collect();
        let exact: Vec<&Sized> = sizes.iter().filter(|one| self.is_exact(&one.found)).collect();
        if exact.iter().any(|one| one.part != Part::Head) {
            return self.one_of(exact.iter().map(|one| (&one.found, one.text.as_str())), Evidence::SourceLine);
        }
        if !self.around.callee_is_allocator {
            return Outcome::Nothing;
        }
        let new: Vec<(Type, String)> = claims.iter().filter_map(|claim| self.created(claim)).collect();
        if !new.is_empty() {
            return self.one_of(new.iter().map(|(found, text)| (found, text.as_str())), Evidence::SourceLine);
        }
        // Without an array of open length the rest of a block is something else.
        if sizes.iter().any(|one| one.part == Part::Head) {
            let heads = sizes.iter().filter(|one| one.part == Part::Head && is_open(&one.found));
            let found = self.one_of(heads.map(|one| (&one.found, one.text.as_str())), Evidence::SourceLine);
            return if found == Outcome::Nothing { Outcome::Conflict } else { found };
        }
        let assigned: Vec<(Type, String)> = claims.iter().filter_map(|claim| self.assigned(claim)).collect();
        if sizes.iter().any(|one| one.found != Type::Unknown) {
            // What is the only argument would have been exact.
            if sizes.iter().any(|one| one.part == Part::All) {
                return Outcome::Conflict;
            }
            let others = assigned.iter().filter(|(found, _)| matches!(found, Type::Record { .. }) && self.fits(found));
            let all = sizes.iter().map(|one| (&one.found, one.text.as_str()));
            return self.one_of(all.chain(others.map(|(found, text)| (found, text.as_str()))), Evidence::SourceLine);
        }
        let found = self.one_of(assigned.iter().map(|(found, text)| (found, text.as_str())), Evidence::Assignment);
        match assigned.iter().find(|(found, _)| matches!(found, Type::Record { .. })) {
            Some((one, _)) if !self.is_array(one, claims) => Outcome::Conflict,
            _ => found,
        }
    }

    /// True where blocks have one element, or something shows that they are arrays: pointers to the first part of what
    /// is longer are common, and its bytes may be a multiple by chance.
    fn is_array(&self, found: &Type, claims: &[Claim]) -> bool {
        /// Bytes from which few sizes are multiples by chance.
        const BYTES_MIN: u64 = 24;
        /// So many different sizes are not.
        const SIZES_MIN: usize = 3;
        let Type::Record { layout, .. } = found else { return false };
        let is_named = |claim: &Claim| match claim {
            Claim::Product => true,
            Claim::LastArgument(name) => is_same(&self.known(self.named(name)), found),
            _ => false,
        };
        let has_many = self.around.sizes.len() >= SIZES_MIN && layout.bytes >= BYTES_MIN;
        self.is_exact(found) || has_many || claims.iter().any(is_named)
    }

    /// Pointers that are declared in the line of the call.
    fn of_declarations(&self, line: u32) -> Outcome {
        if !self.around.callee_is_allocator || line == 0 {
            return Outcome::Nothing;
        }
        let declared = self.scope.variables.iter().filter(|one| one.line == line && !one.is_parameter);
        let all: Vec<(Type, &str)> =
            declared.map(|variable| (self.pointed(Some(variable.declared)), variable.name.as_str())).collect();
        self.one_of(all.iter().map(|(found, name)| (found, *name)), Evidence::Declaration)
    }

    /// The template argument of a function that allocates for it.
    fn of_function(&self) -> Outcome {
        const ALLOCATORS: &[&str] =
            &["new_allocator<", "allocator<", "allocator_traits<", "make_unique<", "make_unique_for_overwrite<"];
        const RUST: &[&str] = &["alloc::boxed::", "alloc::raw_vec::", "alloc::vec::", "box_new<"];
        let name = self.scope.name.as_str();
        let last = name.rsplit("::").next().unwrap_or(name);
        let is_allocator = ALLOCATORS.iter().any(|one| name.contains(one))
            && (last.starts_with("allocate") || last.starts_with("make_unique"));
        if !is_allocator && !RUST.iter().any(|one| name.contains(one)) {
            return Outcome::Nothing;
        }
        let arguments = self.arguments();
        let Some((_, place)) = arguments.into_iter().find(|(name, _)| matches!(name.as_str(), "_Tp" | "T")) else {
            return Outcome::Nothing;
        };
        let found = self.kind(Some(place));
        self.one_of([(&found, name)].into_iter(), Evidence::Function)
    }

    /// The only record that variables of the function point to, and that fits.
    fn only_type(&self) -> Outcome {
        /// Smaller ones divide too many sizes.
        const BYTES_MIN: u64 = 16;
        if !self.around.is_innermost {
            return Outcome::Nothing;
        }
        let locals = self.scope.variables.iter().filter(|one| !one.is_parameter);
        let pointed = locals.map(|one| (self.pointed(Some(one.declared)), one.name.clone()));
        let fits = |found: &Type| {
            matches!(found, Type::Record { layout, .. } if layout.bytes >= BYTES_MIN) && self.fits(found)
        };
        let fitting: Vec<(Type, String)> = pointed.filter(|(found, _)| fits(found)).collect();
        match self.one_of(fitting.iter().map(|(found, name)| (found, name.as_str())), Evidence::OnlyType) {
            found @ Outcome::Found(..) => found,
            _ => Outcome::Nothing,
        }
    }

    /// The type that all evidence is for.
    fn one_of<'t>(&self, all: impl Iterator<Item = (&'t Type, &'t str)>, how: Evidence) -> Outcome {
        let mut only: Option<(&Type, &str)> = None;
        for (found, text) in all {
            match (only, found) {
                (_, Type::Void) => {}
                (_, Type::Unknown) if how != Evidence::SourceLine => {}
                (Some((known, _)), _) if is_same(known, found) => {}
                (Some(_), _) => return Outcome::Conflict,
                (None, _) => only = Some((found, text)),
            }
        }
        only.map_or(Outcome::Nothing, |(found, text)| self.found(found, how, text))
    }

    fn found(&self, found: &Type, how: Evidence, text: &str) -> Outcome {
        match found {
            // Nothing shows that an array of open length begins where the block does.
            Type::Record { .. } if is_open(found) && how > Evidence::SourceLine => Outcome::Conflict,
            Type::Record { place, name, .. } if self.fits(found) => {
                Outcome::Found(*place, name.clone(), Inferred { how, text: text.to_owned() })
            }
            _ => Outcome::Conflict,
        }
    }

    /// True where every block has a multiple of a record's bytes.
    fn fits(&self, found: &Type) -> bool {
        let Type::Record { layout, .. } = found else { return false };
        let fits =
            |size: &u64| if layout.is_open() { *size >= layout.bytes } else { size.is_multiple_of(layout.bytes) };
        layout.bytes > 0 && !layout.fields.is_empty() && self.around.sizes.iter().all(|size| *size > 0 && fits(size))
    }

    /// True where every block has as many bytes as one.
    fn is_exact(&self, found: &Type) -> bool {
        matches!(found, Type::Record { layout, .. } if self.around.sizes.iter().all(|size| *size == layout.bytes))
    }

    fn size(&self, claim: &Claim) -> Option<Sized> {
        let Claim::SizeOf { operand, part } = claim else { return None };
        let place = if operand.is_type { None } else { self.value(operand) };
        let is_pointer = operand.pointers > 0;
        let found = if is_pointer { Type::Other } else { self.known(place.or_else(|| self.named(&operand.name))) };
        let text = format!("sizeof({}{})", "*".repeat(operand.stars), operand.name);
        Some(Sized { found, part: *part, text })
    }

    /// The type of a `new`, unless the blocks have other sizes.
    fn created(&self, claim: &Claim) -> Option<(Type, String)> {
        let Claim::New { name, is_array } = claim else { return None };
        let found = if name.ends_with('*') { Type::Other } else { self.known(self.named(name)) };
        let is_possible = match &found {
            Type::Record { .. } if *is_array => self.fits(&found),
            Type::Record { .. } => self.is_exact(&found),
            _ => true,
        };
        let text = format!("new {name}{}", if *is_array { "[]" } else { "" });
        is_possible.then_some((found, text))
    }

    fn assigned(&self, claim: &Claim) -> Option<(Type, String)> {
        match claim {
            Claim::Cast(name) => {
                let element = name.strip_suffix('*')?;
                let is_pointer = element.ends_with('*');
                let found = if is_pointer { Type::Other } else { self.known(self.named(element)) };
                let found = if element == "void" { Type::Void } else { found };
                Some((found, format!("({name})")))
            }
            Claim::Assigned(place) => {
                let found = self.value(place).map_or(Type::Unknown, |place| self.pointed(Some(place)));
                Some((found, place.name.clone()))
            }
            Claim::Returned => Some((self.pointed(self.scope.returns), "return".to_owned())),
            _ => None,
        }
    }

    /// The type that a pointer points to.
    fn pointed(&self, pointer: Option<Place>) -> Type {
        match pointer.map(|pointer| target(self.index, pointer)) {
            Some(Some(Pointed::To(place))) => self.kind(Some(place)),
            Some(Some(Pointed::Nothing)) => Type::Void,
            _ => Type::Unknown,
        }
    }

    fn known(&self, place: Option<Place>) -> Type {
        place.map_or(Type::Unknown, |place| self.kind(Some(place)))
    }

    fn kind(&self, place: Option<Place>) -> Type {
        let Some(place) = place else { return Type::Void };
        match shape(self.index, place) {
            Shape::Record(record) => {
                let name = full_name(self.index, place);
                let layout = build::layout(self.index, place, &name);
                layout.map_or(Type::Unknown, |layout| Type::Record { place, record, name, layout: Box::new(layout) })
            }
            Shape::Void => Type::Void,
            Shape::Other => Type::Other,
        }
    }

    /// The type of an expression.
    fn value(&self, expression: &Expression) -> Option<Place> {
        let mut place = self.variable(&expression.name)?;
        for step in &expression.steps {
            place = match step {
                Step::Member(name) => {
                    let at = match shape(self.index, place) {
                        Shape::Record(_) if !is_owner(self.index, place) => place,
                        _ => element(self.index, place)?,
                    };
                    member(self.index, stripped(self.index, at)?, name, NESTING_MAX)?
                }
                Step::Element => element(self.index, place)?,
            };
        }
        (0..expression.stars).try_fold(place, |place, _| element(self.index, place))
    }

    /// The type of a variable, or of a member of the object.
    fn variable(&self, name: &str) -> Option<Place> {
        if let Some(found) = self.scope.variables.iter().find(|variable| variable.name == name) {
            return Some(found.declared);
        }
        if let Some(found) = self.object().and_then(|object| member(self.index, object, name, NESTING_MAX)) {
            return Some(found);
        }
        let globals = self.index.variables(&canonical_name(name));
        let global = globals.iter().find(|place| place.unit == self.unit).or(globals.first())?;
        build::declared(self.index, *global)
    }

    /// The class of a function that has one.
    fn object(&self) -> Option<Place> {
        let this = self.scope.variables.iter().find(|variable| variable.name == "this")?;
        stripped(self.index, element(self.index, this.declared)?)
    }

    /// The arguments of the function's template, or of its class's.
    fn arguments(&self) -> Vec<(String, Place)> {
        let own = self.scope.arguments.clone();
        let of_class = || self.object().map(|object| template_arguments(self.index, object)).unwrap_or_default();
        if own.is_empty() { of_class() } else { own }
    }

    /// The type of a name in this function.
    fn named(&self, name: &str) -> Option<Place> {
        let bare = canonical_name(bare_name(name));
        if let Some((_, argument)) = self.arguments().into_iter().find(|(name, _)| *name == bare) {
            return Some(argument);
        }
        let exact: Vec<Place> = self.index.definitions(&bare).collect();
        let names: Vec<&str> = self.index.full_names(&bare).collect();
        let within = |name: &&&str| {
            let scope = name.strip_suffix(bare.as_str()).unwrap_or_default();
            !scope.is_empty() && canonical_name(&self.scope.name).contains(scope)
        };
        // In a namespace its own names hide those outside.
        let inner = names.iter().filter(within).max_by_key(|name| name.len());
        if let Some(inner) = inner {
            return self.one_definition(&self.index.definitions(inner).collect::<Vec<_>>());
        }
        if !exact.is_empty() {
            return self.one_definition(&exact);
        }
        let [only] = names.as_slice() else { return None };
        self.one_definition(&self.index.definitions(only).collect::<Vec<_>>())
    }

    /// The definition in this unit, or the only one there is.
    fn one_definition(&self, all: &[Place]) -> Option<Place> {
        let own: Vec<&Place> = all.iter().filter(|place| place.unit == self.unit).collect();
        if let [own] = own.as_slice() {
            return Some(**own);
        }
        let (first, rest) = all.split_first()?;
        let layout = |place: &Place| build::layout(self.index, *place, "");
        let known = layout(first);
        rest.iter().all(|place| layout(place) == known).then_some(*first)
    }
}

fn is_owner(index: &Index<'_>, place: Place) -> bool {
    target(index, place).is_some()
}

fn element(index: &Index<'_>, place: Place) -> Option<Place> {
    match target(index, place)? {
        Pointed::To(place) => Some(place),
        Pointed::Nothing => None,
    }
}

fn is_open(found: &Type) -> bool {
    matches!(found, Type::Record { layout, .. } if layout.is_open())
}

/// True for one type, whatever its names.
fn is_same(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Record { record, layout, .. }, Type::Record { record: other, layout: second, .. }) => {
            record == other || (layout.fields == second.fields && layout.bytes == second.bytes)
        }
        (one, other) => one == other,
    }
}
