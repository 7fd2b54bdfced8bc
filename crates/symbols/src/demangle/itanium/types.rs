//! Types.

use super::node::{Function, Id, Node, Part, Reference};
use super::parser::Parser;

/// Types of one letter.
fn builtin(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'v' => "void",
        b'w' => "wchar_t",
        b'b' => "bool",
        b'c' => "char",
        b'a' => "signed char",
        b'h' => "unsigned char",
        b's' => "short",
        b't' => "unsigned short",
        b'i' => "int",
        b'j' => "unsigned int",
        b'l' => "long",
        b'm' => "unsigned long",
        b'x' => "long long",
        b'y' => "unsigned long long",
        b'n' => "__int128",
        b'o' => "unsigned __int128",
        b'f' => "float",
        b'd' => "double",
        b'e' => "long double",
        b'g' => "__float128",
        b'z' => "...",
        _ => return None,
    })
}

/// Types of `D` and a letter.
fn builtin_of_d(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'd' => "decimal64",
        b'e' => "decimal128",
        b'f' => "decimal32",
        b'h' => "half",
        b'i' => "char32_t",
        b's' => "char16_t",
        b'u' => "char8_t",
        b'a' => "auto",
        b'c' => "decltype(auto)",
        b'n' => "std::nullptr_t",
        _ => return None,
    })
}

impl<'a> Parser<'a> {
    pub(super) fn a_type(&mut self) -> Option<Id> {
        self.nest(|p| {
            if let Some(name) = builtin(p.look()) {
                p.at += 1;
                return p.make(Node::Text(name));
            }
            if let (b'D', Some(name)) = (p.look(), builtin_of_d(p.look_at(1))) {
                p.at += 2;
                return p.make(Node::Text(name));
            }
            if p.look() == b'S' && p.look_at(1) != b't' {
                let name = p.substitution()?;
                // A lone substitution is not a new candidate.
                if !(p.looks_at("I") && p.tries_arguments) {
                    return Some(name);
                }
                let arguments = p.template_arguments(false)?;
                let made = p.make(Node::Template(name, arguments))?;
                p.remember(made);
                return Some(made);
            }
            let made = p.compound()?;
            p.remember(made);
            Some(made)
        })
    }

    /// A type that may be referred to later.
    fn compound(&mut self) -> Option<Id> {
        match self.look() {
            b'r' | b'V' | b'K' => {
                if self.is_function_behind_qualifiers() {
                    return self.function_type();
                }
                self.qualified()
            }
            b'U' => self.qualified(),
            b'u' => {
                self.at += 1;
                let name = self.bare_name()?;
                self.make(Node::Text(name))
            }
            b'F' => self.function_type(),
            b'D' => self.of_d(),
            b'A' => self.array(),
            b'M' => {
                self.at += 1;
                let class = self.a_type()?;
                let member = self.a_type()?;
                self.make(Node::MemberPointer(class, member))
            }
            b'T' if matches!(self.look_at(1), b's' | b'u' | b'e') => {
                let word = match self.look_at(1) {
                    b's' => "struct ",
                    b'u' => "union ",
                    _ => "enum ",
                };
                self.at += 2;
                let name = self.name(None)?;
                self.make(Node::Prefixed(word, name))
            }
            b'T' => {
                let parameter = self.template_parameter()?;
                if !(self.looks_at("I") && self.tries_arguments) {
                    return Some(parameter);
                }
                self.remember(parameter);
                let arguments = self.template_arguments(false)?;
                self.make(Node::Template(parameter, arguments))
            }
            b'P' => self.around(Node::Pointer),
            b'R' => self.around(|to| Node::Reference(to, Reference::Left)),
            b'O' => self.around(|to| Node::Reference(to, Reference::Right)),
            b'C' => self.around(|of| Node::Postfixed(of, " complex")),
            b'G' => self.around(|of| Node::Postfixed(of, " imaginary")),
            _ => self.name(None),
        }
    }

    fn around(&mut self, make: impl FnOnce(Id) -> Node<'a>) -> Option<Id> {
        self.at += 1;
        let inner = self.a_type()?;
        self.make(make(inner))
    }

    fn is_function_behind_qualifiers(&self) -> bool {
        let behind = self.rest().trim_start_matches(['r', 'V', 'K']);
        behind.starts_with('F') || ["Do", "DO", "Dw", "Dx"].iter().any(|code| behind.starts_with(code))
    }

    fn of_d(&mut self) -> Option<Id> {
        match self.look_at(1) {
            b'T' | b't' => self.decltype(),
            b'v' => self.vector(),
            b'p' => {
                self.at += 2;
                let inner = self.a_type()?;
                self.make(Node::Expansion(inner))
            }
            b'o' | b'O' | b'w' | b'x' => self.function_type(),
            b'F' => {
                self.at += 2;
                let bits = self.number()?;
                self.eat("_");
                let bits = self.make(Node::Text(bits))?;
                self.make(Node::Joined(vec![Part::Word("_Float"), Part::One(bits)]))
            }
            b'B' | b'U' => {
                let word = if self.look_at(1) == b'U' { "unsigned _BitInt(" } else { "_BitInt(" };
                self.at += 2;
                let bits = if self.look().is_ascii_digit() {
                    let bits = self.number()?;
                    self.make(Node::Text(bits))?
                } else {
                    self.expression()?
                };
                self.expect("_")?;
                self.make(Node::Joined(vec![Part::Word(word), Part::One(bits), Part::Word(")")]))
            }
            _ => self.name(None),
        }
    }

    pub(super) fn decltype(&mut self) -> Option<Id> {
        self.at += 2;
        let inner = self.expression()?;
        self.expect("E")?;
        self.make(Node::Joined(vec![Part::Word("decltype("), Part::One(inner), Part::Word(")")]))
    }

    fn qualified(&mut self) -> Option<Id> {
        self.nest(|p| {
            if p.eat("U") {
                let word = p.bare_name()?;
                let arguments = if p.looks_at("I") { Some(p.template_arguments(false)?) } else { None };
                let inner = p.qualified()?;
                return p.make(Node::Vendor(inner, word, arguments));
            }
            let qualifiers = p.qualifiers();
            let inner = p.a_type()?;
            if qualifiers.is_none() {
                return Some(inner);
            }
            p.make(Node::Qualified(inner, qualifiers))
        })
    }

    fn function_type(&mut self) -> Option<Id> {
        let qualifiers = self.qualifiers();
        let mut exceptions = None;
        if self.eat("Do") {
            exceptions = Some(self.make(Node::Text("noexcept"))?);
        } else if self.eat("DO") {
            let condition = self.expression()?;
            self.expect("E")?;
            let parts = vec![Part::Word("noexcept("), Part::One(condition), Part::Word(")")];
            exceptions = Some(self.make(Node::Joined(parts))?);
        } else if self.eat("Dw") {
            let mut types = Vec::new();
            while !self.eat("E") {
                types.push(self.a_type()?);
            }
            let parts = vec![Part::Word("throw("), Part::List(types), Part::Word(")")];
            exceptions = Some(self.make(Node::Joined(parts))?);
        }
        self.eat("Dx");
        self.expect("F")?;
        self.eat("Y");
        let result = Some(self.a_type()?);
        let mut parameters = Vec::new();
        let mut reference = Reference::None;
        loop {
            if self.eat("E") {
                break;
            }
            if self.eat("v") {
                continue;
            }
            if self.eat("RE") {
                reference = Reference::Left;
                break;
            }
            if self.eat("OE") {
                reference = Reference::Right;
                break;
            }
            parameters.push(self.a_type()?);
        }
        self.make(Node::FunctionType(Function { result, parameters, qualifiers, reference, exceptions }))
    }

    fn array(&mut self) -> Option<Id> {
        self.expect("A")?;
        let dimension = if self.look().is_ascii_digit() {
            let text = self.number()?;
            self.expect("_")?;
            Some(self.make(Node::Text(text))?)
        } else if self.eat("_") {
            None
        } else {
            let dimension = self.expression()?;
            self.expect("_")?;
            Some(dimension)
        };
        let element = self.a_type()?;
        self.make(Node::Array(element, dimension))
    }

    fn vector(&mut self) -> Option<Id> {
        self.expect("Dv")?;
        let dimension = if self.look().is_ascii_digit() {
            let text = self.number()?;
            self.expect("_")?;
            if self.eat("p") {
                let dimension = self.make(Node::Text(text))?;
                return self.make(Node::Vector(None, Some(dimension)));
            }
            Some(self.make(Node::Text(text))?)
        } else if self.eat("_") {
            None
        } else {
            let dimension = self.expression()?;
            self.expect("_")?;
            Some(dimension)
        };
        let element = self.a_type()?;
        self.make(Node::Vector(Some(element), dimension))
    }
}
