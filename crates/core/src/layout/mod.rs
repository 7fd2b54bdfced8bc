//! The layout of types in memory: which fields are at which bytes of an element. Readers of debug data build it; the
//! attribution of accesses to fields uses it.
//!
//! A [`Layout`] is flat: its members, and those of nested records and bases, follow each other as declared, each with
//! the path that leads to it. A repeated field appears once, with its [`Dimension`]s.
//!
//! ```
//! use anytrace_core::layout::{Dimension, Field, Layout, RecordKind};
//!
//! let mut layout = Layout::new("Particle", RecordKind::Struct, 24);
//! layout.push(Field::new("id", 0, 4, "int"));
//! layout.push(Field::new("pos", 8, 4, "float").repeated(Dimension { stride_bytes: 4, count: 3 }));
//! assert_eq!(layout.describe(12, 4), "pos[1]");
//! assert_eq!(layout.describe(4, 2), "(padding)");
//! assert_eq!(layout.describe(0, 12), "id, pos[0]");
//! assert_eq!(layout.holes(), [(4, 4), (20, 4)]);
//! ```

mod lookup;
mod names;
mod origin;

pub use lookup::Hit;
pub use names::{bare_name, canonical_name, without_arguments};
pub use origin::{Evidence, Inferred, Origin};

/// Most fields of a layout; a type with more is cut there and marked so.
pub const FIELDS_MAX: usize = 4096;

/// Deepest nesting of records in a layout.
pub const NESTING_MAX: u16 = 32;

/// What kind of type a layout is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RecordKind {
    /// `struct`, and Rust's structs and tuples.
    Struct,
    /// C++ `class`.
    Class,
    /// `union`.
    Union,
    /// A Rust enum with data: its variants overlap.
    Variants,
    /// No record: a number, a pointer, an array of them.
    Scalar,
}

impl RecordKind {
    /// `struct`, `class`, `union`, `enum` or `scalar`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Struct => "struct",
            Self::Class => "class",
            Self::Union => "union",
            Self::Variants => "enum",
            Self::Scalar => "scalar",
        }
    }

    /// The kind of a [`Self::word`].
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Struct, Self::Class, Self::Union, Self::Variants, Self::Scalar]
            .into_iter()
            .find(|kind| kind.word() == word)
    }
}

/// What part of its record a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// A member that is declared.
    Member,
    /// An inherited class.
    Base,
    /// The pointer to a table of virtual functions.
    Vptr,
    /// What selects the variant of an enum.
    Tag,
    /// One variant of an enum.
    Variant,
}

impl Role {
    /// `member`, `base`, `vptr`, `tag` or `variant`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Base => "base",
            Self::Vptr => "vptr",
            Self::Tag => "tag",
            Self::Variant => "variant",
        }
    }

    /// The role of a [`Self::word`].
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Member, Self::Base, Self::Vptr, Self::Tag, Self::Variant].into_iter().find(|role| role.word() == word)
    }
}

/// A repetition: one dimension of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dimension {
    /// Bytes from one to the next.
    pub stride_bytes: u64,
    /// Number of elements; 0 is an array without an end, the last member of its record.
    pub count: u64,
}

/// The position of a bit field, counted from the first bit of the element in memory order: bit 0 is the least
/// significant of byte 0 in little-endian data, the most significant in big-endian data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bits {
    /// The first bit.
    pub first: u64,
    /// How many.
    pub count: u64,
}

/// One member, at any depth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its own name; empty for anonymous structs and unions.
    pub name: String,
    /// Number of the field it is part of; `None` at the top.
    pub parent: Option<usize>,
    /// How deep it is nested, from 0.
    pub depth: u16,
    /// Where it begins in the element; in arrays, that of the first.
    pub offset_bytes: u64,
    /// Bytes of one repetition, without any dimensions; for bit fields, the bytes that its bits touch.
    pub bytes: u64,
    /// For bit fields.
    pub bits: Option<Bits>,
    /// Name of the type of one of it.
    pub type_name: String,
    /// The outermost first, those of the fields it is part of included.
    pub dimensions: Vec<Dimension>,
    /// How many of the last dimensions are its own.
    pub own_dimensions: usize,
    /// Its role in its record.
    pub role: Role,
    /// True when it has no fields of its own: accesses are counted for leaves.
    pub is_leaf: bool,
}

impl Field {
    /// A plain member.
    pub fn new(name: &str, offset_bytes: u64, bytes: u64, type_name: &str) -> Self {
        Self {
            name: name.to_owned(),
            parent: None,
            depth: 0,
            offset_bytes,
            bytes,
            bits: None,
            type_name: type_name.to_owned(),
            dimensions: Vec::new(),
            own_dimensions: 0,
            role: Role::Member,
            is_leaf: true,
        }
    }

    /// The same field, repeated within each of its present repetitions.
    pub fn repeated(mut self, dimension: Dimension) -> Self {
        self.dimensions.push(dimension);
        self.own_dimensions += 1;
        self
    }

    /// Its own dimensions.
    pub fn own(&self) -> &[Dimension] {
        let from = self.dimensions.len().saturating_sub(self.own_dimensions);
        self.dimensions.get(from..).unwrap_or_default()
    }

    /// The type as written in source code: `char[48]`.
    pub fn type_text(&self) -> String {
        let mut text = self.type_name.clone();
        for dimension in self.own() {
            match dimension.count {
                0 => text.push_str("[]"),
                count => text.push_str(&format!("[{count}]")),
            }
        }
        text
    }

    /// Bytes of all repetitions within one of the record it is declared in: of the entire array.
    pub fn total_bytes(&self) -> u64 {
        let own = self.own();
        if own.iter().any(|dimension| dimension.count == 0) {
            return 0;
        }
        own.iter().fold(self.bytes, |bytes, dimension| {
            let before_last = dimension.stride_bytes.saturating_mul(dimension.count - 1);
            before_last.saturating_add(bytes)
        })
    }

    /// One past the last byte of any repetition, outer repetitions included.
    pub fn end_bytes(&self) -> u64 {
        self.dimensions.iter().fold(self.offset_bytes.saturating_add(self.bytes), |end, dimension| {
            end.saturating_add(dimension.stride_bytes.saturating_mul(dimension.count.saturating_sub(1)))
        })
    }

    /// True for an array without an end.
    pub fn is_open(&self) -> bool {
        self.own().iter().any(|dimension| dimension.count == 0)
    }
}

/// The layout of a type in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Full name, without `struct` and its like.
    pub name: String,
    /// What kind of type.
    pub kind: RecordKind,
    /// `sizeof`; 0 where it is unknown.
    pub bytes: u64,
    /// In the order of declaration, each after its parent.
    pub fields: Vec<Field>,
    /// Bases whose place only the running program knows, usually at the end of the object.
    pub virtual_bases: Vec<String>,
    /// True when there are more fields than [`FIELDS_MAX`] or deeper ones than [`NESTING_MAX`].
    pub is_cut: bool,
    /// Why a region is taken to have it.
    pub origin: Origin,
}

impl Layout {
    /// One without fields.
    pub fn new(name: &str, kind: RecordKind, bytes: u64) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            bytes,
            fields: Vec::new(),
            virtual_bases: Vec::new(),
            is_cut: false,
            origin: Origin::Named,
        }
    }

    /// Adds a field; its parent is no longer a leaf. Returns its number, or `None` when there is no room: the layout is
    /// then marked as cut.
    pub fn push(&mut self, field: Field) -> Option<usize> {
        if self.fields.len() >= FIELDS_MAX || field.depth > NESTING_MAX {
            self.is_cut = true;
            return None;
        }
        if let Some(parent) = field.parent.and_then(|parent| self.fields.get_mut(parent)) {
            parent.is_leaf = false;
        }
        self.fields.push(field);
        Some(self.fields.len() - 1)
    }

    /// Fields that accesses are counted for.
    pub fn leaves(&self) -> impl Iterator<Item = (usize, &Field)> {
        self.fields.iter().enumerate().filter(|(_, field)| field.is_leaf)
    }

    /// True when its last field is an array without an end: allocations are longer than the type.
    pub fn is_open(&self) -> bool {
        self.fields.iter().any(Field::is_open)
    }

    /// Bytes of an element of an allocation whose elements have `recorded` bytes in the trace: the size of the type
    /// where it divides that number, because allocations by `malloc` are recorded as one element of all bytes.
    pub fn element_bytes(&self, recorded: u64) -> u64 {
        let is_multiple = self.bytes > 0 && recorded.checked_rem(self.bytes) == Some(0);
        if is_multiple && recorded > 0 && !self.is_open() { self.bytes } else { recorded }
    }

    /// Path to a field: `a.b[].c`. Anonymous fields add nothing.
    pub fn path(&self, field: usize) -> String {
        self.path_with(field, |_, _| "[]".to_owned())
    }

    /// Path to one of a field: `a.b[3].c`.
    pub fn path_at(&self, field: usize, indices: &[u64]) -> String {
        self.path_with(field, |at, _| indices.get(at).map_or_else(|| "[]".to_owned(), |index| format!("[{index}]")))
    }

    fn path_with(&self, field: usize, index: impl Fn(usize, &Dimension) -> String) -> String {
        let mut chain = Vec::new();
        let mut next = Some(field);
        while let Some((at, found)) = next.and_then(|at| Some((at, self.fields.get(at)?))) {
            chain.push(found);
            // Parents precede their fields, so a chain always ends.
            next = found.parent.filter(|parent| *parent < at);
        }
        let mut path = String::new();
        for found in chain.iter().rev() {
            if !found.name.is_empty() {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&found.name);
            }
            let first = found.dimensions.len().saturating_sub(found.own_dimensions);
            for (at, dimension) in found.dimensions.iter().enumerate().skip(first) {
                path.push_str(&index(at, dimension));
            }
        }
        path
    }

    /// Bytes that belong to no field, as offset and length, ascending. Empty for scalars, for cut layouts and where the
    /// size is unknown.
    pub fn holes(&self) -> Vec<(u64, u64)> {
        if self.fields.is_empty() || self.is_cut {
            return Vec::new();
        }
        let mut spans = Vec::new();
        let mut budget = 1 << 16;
        for (_, field) in self.leaves() {
            if field.is_open() {
                spans.push((field.offset_bytes, u64::MAX));
            } else {
                lookup::spans(field, &mut spans, &mut budget);
            }
        }
        if budget == 0 {
            return Vec::new();
        }
        spans.sort_unstable();
        let mut holes = Vec::new();
        let mut covered = 0;
        for (start, end) in spans {
            if start > covered {
                holes.push((covered, start.min(self.bytes).saturating_sub(covered)));
            }
            covered = covered.max(end);
        }
        if covered < self.bytes {
            holes.push((covered, self.bytes - covered));
        }
        holes.retain(|(_, bytes)| *bytes > 0);
        holes
    }
}

/// A source of layouts: a program's debug data, a file.
pub trait Layouts {
    /// The layout of a type by its name as the trace has it: `struct.Foo`, `class.ns::Foo`, `union.U`, `Foo.12`,
    /// `double`. Where several types share a name, `recorded_bytes`, the size of an element in the trace, decides.
    /// `None` when no type fits or the choice is ambiguous.
    fn layout(&mut self, trace_name: &str, recorded_bytes: u64) -> Option<std::sync::Arc<Layout>>;
}

/// No type data.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLayouts;

impl Layouts for NoLayouts {
    fn layout(&mut self, _trace_name: &str, _recorded_bytes: u64) -> Option<std::sync::Arc<Layout>> {
        None
    }
}
