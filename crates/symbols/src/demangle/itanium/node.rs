//! The description in a mangled name: a graph of nodes, since substitutions refer to earlier parts.

/// A node's number.
pub(super) type Id = u32;

/// Qualifiers of types and of member functions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Qualifiers {
    pub(super) is_const: bool,
    pub(super) is_volatile: bool,
    pub(super) is_restrict: bool,
}

impl Qualifiers {
    pub(super) fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// The qualifiers after a member function's parameters, or in a reference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Reference {
    #[default]
    None,
    Left,
    Right,
}

/// A function's type or, with a name, a function.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) result: Option<Id>,
    pub(super) parameters: Vec<Id>,
    pub(super) qualifiers: Qualifiers,
    pub(super) reference: Reference,
    /// `noexcept` and similar, printed after the rest.
    pub(super) exceptions: Option<Id>,
}

#[derive(Debug, Clone)]
pub(super) enum Node<'a> {
    /// Text of the name itself, or a word.
    Text(&'a str),
    /// `std::basic_string<char, …>` in place of its short name: the short name, the name of its template, and the
    /// arguments.
    Special(&'static str, &'static str, &'static str),
    /// The long form of a special substitution.
    Expanded(&'static str, &'static str),
    /// `a::b`
    Nested(Id, Id),
    /// `::a`
    Global(Id),
    /// `a<…>`
    Template(Id, Id),
    /// `<…>`
    Arguments(Vec<Id>),
    /// A pack among template arguments.
    ArgumentPack(Vec<Id>),
    /// A template parameter that is a pack: one of its elements at a time.
    Pack(Vec<Id>),
    /// `…...`
    Expansion(Id),
    /// A template parameter whose arguments appear later; by number.
    Forward(usize),
    /// The same once they are known.
    Forwarded(Id),
    /// A prefix in words.
    Prefixed(&'static str, Id),
    /// `a-in-b`
    Construction(Id, Id),
    /// `operator T`
    Conversion(Id),
    /// `operator"" a`
    Literal(Id),
    /// The class of a constructor or destructor.
    Structor(Id, bool),
    /// `a[abi:b]`
    Tagged(Id, &'a str),
    Pointer(Id),
    Reference(Id, Reference),
    /// Class, member.
    MemberPointer(Id, Id),
    Qualified(Id, Qualifiers),
    /// Type, vendor's qualifier, its arguments.
    Vendor(Id, &'a str, Option<Id>),
    /// `T complex`
    Postfixed(Id, &'static str),
    /// Element, dimension.
    Array(Id, Option<Id>),
    /// `T vector[n]`
    Vector(Option<Id>, Option<Id>),
    FunctionType(Function),
    /// Name, type, `enable_if` conditions.
    Encoding(Id, Function, Vec<Id>),
    /// `'unnamed1'`
    Unnamed(&'a str),
    /// Number, template parameters, parameters.
    Lambda(&'a str, Vec<Id>, Vec<Id>),
    /// `[a, b]`
    Binding(Vec<Id>),
    /// `a (.cold)`
    Suffixed(Id, &'a str),
    /// Several parts, one after the other.
    Joined(Vec<Part>),
    /// `(type)5`, `5u`: the type's name, or its suffix, and the number.
    Integer(&'static str, &'a str),
    /// `(Enum)5`
    Enumerator(Id, &'a str),
    /// `fp1`
    Parameter(&'a str),
    /// Bytes of a float's hexadecimal digits, and their number.
    Float(&'a str, usize),
    /// A template parameter of a lambda: `$T0`.
    Invented(&'static str, usize),
}

/// A part of [`Node::Joined`].
#[derive(Debug, Clone)]
pub(super) enum Part {
    Word(&'static str),
    One(Id),
    /// With commas between them.
    List(Vec<Id>),
    /// The elements of a pack, with commas between them.
    Elements(Id),
}
