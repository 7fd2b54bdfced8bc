//! Operators: their codes, names and places.

/// How an operator's operands are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Prefix,
    /// A prefix, or with `_` after the code in an expression; otherwise a postfix.
    Step,
    Binary,
    Member,
    Index,
    Conditional,
    Call,
    New,
    Delete,
}

/// Code, name after `operator`, shape.
const OPERATORS: [(&[u8; 2], &str, Shape); 51] = [
    (b"aN", "operator&=", Shape::Binary),
    (b"aS", "operator=", Shape::Binary),
    (b"aa", "operator&&", Shape::Binary),
    (b"ad", "operator&", Shape::Prefix),
    (b"an", "operator&", Shape::Binary),
    (b"aw", "operator co_await", Shape::Prefix),
    (b"cl", "operator()", Shape::Call),
    (b"cm", "operator,", Shape::Binary),
    (b"co", "operator~", Shape::Prefix),
    (b"dV", "operator/=", Shape::Binary),
    (b"da", "operator delete[]", Shape::Delete),
    (b"de", "operator*", Shape::Prefix),
    (b"dl", "operator delete", Shape::Delete),
    (b"ds", "operator.*", Shape::Member),
    (b"dt", "operator.", Shape::Member),
    (b"dv", "operator/", Shape::Binary),
    (b"eO", "operator^=", Shape::Binary),
    (b"eo", "operator^", Shape::Binary),
    (b"eq", "operator==", Shape::Binary),
    (b"ge", "operator>=", Shape::Binary),
    (b"gt", "operator>", Shape::Binary),
    (b"ix", "operator[]", Shape::Index),
    (b"lS", "operator<<=", Shape::Binary),
    (b"le", "operator<=", Shape::Binary),
    (b"ls", "operator<<", Shape::Binary),
    (b"lt", "operator<", Shape::Binary),
    (b"mI", "operator-=", Shape::Binary),
    (b"mL", "operator*=", Shape::Binary),
    (b"mi", "operator-", Shape::Binary),
    (b"ml", "operator*", Shape::Binary),
    (b"mm", "operator--", Shape::Step),
    (b"na", "operator new[]", Shape::New),
    (b"ne", "operator!=", Shape::Binary),
    (b"ng", "operator-", Shape::Prefix),
    (b"nt", "operator!", Shape::Prefix),
    (b"nw", "operator new", Shape::New),
    (b"oR", "operator|=", Shape::Binary),
    (b"oo", "operator||", Shape::Binary),
    (b"or", "operator|", Shape::Binary),
    (b"pL", "operator+=", Shape::Binary),
    (b"pl", "operator+", Shape::Binary),
    (b"pm", "operator->*", Shape::Member),
    (b"pp", "operator++", Shape::Step),
    (b"ps", "operator+", Shape::Prefix),
    (b"pt", "operator->", Shape::Member),
    (b"qu", "operator?", Shape::Conditional),
    (b"rM", "operator%=", Shape::Binary),
    (b"rS", "operator>>=", Shape::Binary),
    (b"rm", "operator%", Shape::Binary),
    (b"rs", "operator>>", Shape::Binary),
    (b"ss", "operator<=>", Shape::Binary),
];

fn find(first: u8, second: u8) -> Option<&'static (&'static [u8; 2], &'static str, Shape)> {
    OPERATORS.iter().find(|(code, ..)| **code == [first, second])
}

/// The name of an operator's function.
pub(super) fn name(first: u8, second: u8) -> Option<&'static str> {
    find(first, second).map(|(_, name, _)| *name)
}

/// The operator in an expression.
pub(super) fn symbol(first: u8, second: u8) -> Option<(&'static str, Shape)> {
    find(first, second).map(|(_, name, shape)| (name.strip_prefix("operator").unwrap_or(name).trim_start(), *shape))
}
