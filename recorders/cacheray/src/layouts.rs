//! The layout of a Rust type in memory, described by `#[derive(TraceType)]` and written as type data.

use std::fmt::Write;

/// A type whose layout is known by name. Derive it; by hand it is `name` and `fields`.
pub trait TraceType: Sized {
    /// The name in the trace: the type's path, as in debug data.
    fn name() -> &'static str {
        std::any::type_name::<Self>()
    }

    /// What kind of type it is.
    const SHAPE: Shape = Shape::Struct;

    /// The fields, as declared; none for an enum, whose layout is up to the compiler.
    fn fields() -> Vec<Field>;
}

/// Kinds of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Fields one after the other.
    Struct,
    /// Fields in one place.
    Union,
    /// One of several.
    Enum,
}

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name; a number for tuples.
    pub name: &'static str,
    /// Its type's name.
    pub type_name: &'static str,
    /// Bytes from the start of the type.
    pub offset: usize,
    /// Its length in bytes.
    pub size: usize,
}

/// Layouts to be written as type data: the JSON of upstream's `dwarf2json`, version 4, with the size of each type
/// added.
#[derive(Debug, Clone, Default)]
pub struct Layouts {
    types: Vec<TypeEntry>,
}

#[derive(Debug, Clone)]
struct TypeEntry {
    name: &'static str,
    shape: Shape,
    size: usize,
    fields: Vec<Field>,
}

impl Layouts {
    /// No type yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more type.
    #[must_use]
    pub fn with<T: TraceType>(mut self) -> Self {
        let entry = TypeEntry { name: T::name(), shape: T::SHAPE, size: size_of::<T>(), fields: T::fields() };
        if !self.types.iter().any(|known| known.name == entry.name) {
            self.types.push(entry);
        }
        self
    }

    /// The JSON text.
    pub fn to_json(&self) -> String {
        let mut next = 0;
        let structs = self.list(&mut next, |shape| shape != Shape::Union);
        let unions = self.list(&mut next, |shape| shape == Shape::Union);
        format!("{{\"version\":4,\"structs\":[{structs}],\"unions\":[{unions}],\"typedefs\":[]}}\n")
    }

    fn list(&self, next: &mut usize, wanted: impl Fn(Shape) -> bool) -> String {
        let mut text = String::new();
        for entry in self.types.iter().filter(|entry| wanted(entry.shape)) {
            let comma = if text.is_empty() { "" } else { "," };
            let (id, name, size) = (*next, quoted(entry.name), entry.size);
            *next += 1;
            let members: Vec<_> = entry.fields.iter().enumerate().map(|(n, field)| member(n, field)).collect();
            let members = members.join(",");
            // Writing to a string does not fail.
            let _ = write!(text, "{comma}{{\"id\":{id},\"name\":{name},\"size\":{size},\"members\":[{members}]}}");
        }
        text
    }
}

fn member(id: usize, field: &Field) -> String {
    let (name, kind) = (quoted(field.name), quoted(field.type_name));
    let (offset, size) = (field.offset, field.size);
    format!("{{\"id\":{id},\"memberName\":{name},\"name\":{kind},\"offset\":{offset},\"size\":{size}}}")
}

/// A JSON string. Names of Rust items have no control characters.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
