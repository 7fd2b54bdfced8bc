//! Why a region is taken to have a layout.

/// How the type of a region is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Origin {
    /// The trace names it.
    #[default]
    Named,
    /// The user states it.
    Stated,
    /// It is inferred from where the region is allocated; it may be wrong.
    Inferred(Inferred),
}

/// What a type is inferred from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inferred {
    /// The kind of evidence.
    pub how: Evidence,
    /// The evidence, as far as it is a text: `new Order`, `sizeof(struct node)`.
    pub text: String,
}

/// Kinds of evidence for the type of an allocation, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Evidence {
    /// The source line allocates that type: `new T`, `sizeof(T)`.
    SourceLine,
    /// The function allocates for a type: `std::allocator<T>::allocate`.
    Function,
    /// The result is converted or assigned to a pointer to that type.
    Assignment,
    /// A pointer to that type is declared in the line of the call.
    Declaration,
    /// The only type that the function has a pointer to and that fits.
    OnlyType,
}

impl Evidence {
    /// `source line`, `function`, `assignment`, `declaration` or `only type`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::SourceLine => "source line",
            Self::Function => "function",
            Self::Assignment => "assignment",
            Self::Declaration => "declaration",
            Self::OnlyType => "only type",
        }
    }

    /// `high`, `medium` or `low`: how seldom it misleads.
    pub const fn confidence(self) -> &'static str {
        match self {
            Self::SourceLine | Self::Function => "high",
            Self::Assignment | Self::Declaration => "medium",
            Self::OnlyType => "low",
        }
    }

    /// How a table says it.
    pub const fn remark(self) -> &'static str {
        match self {
            Self::SourceLine => "inferred from the source line",
            Self::Function => "inferred from the function",
            Self::Assignment => "inferred from the assignment",
            Self::Declaration => "inferred from the declaration",
            Self::OnlyType => "a guess: the only type that fits",
        }
    }
}

impl Origin {
    /// The remark behind the name of a type; `None` where the trace names it.
    pub const fn remark(&self) -> Option<&'static str> {
        match self {
            Self::Named => None,
            Self::Stated => Some("by --type-of"),
            Self::Inferred(inferred) => Some(inferred.how.remark()),
        }
    }
}
