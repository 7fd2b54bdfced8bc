//! Expressions and literals.

use super::node::{Id, Node, Part};
use super::operators::{self, Shape};
use super::parser::Parser;
use Part::{Elements, List, One, Word};

impl<'a> Parser<'a> {
    fn join(&mut self, parts: Vec<Part>) -> Option<Id> {
        self.make(Node::Joined(parts))
    }

    /// Expressions up to `E`.
    fn expressions(&mut self) -> Option<Vec<Id>> {
        let mut all = Vec::new();
        while !self.eat("E") {
            all.push(self.expression()?);
        }
        Some(all)
    }

    pub(super) fn expression(&mut self) -> Option<Id> {
        self.nest(Self::expression_here)
    }

    fn expression_here(&mut self) -> Option<Id> {
        let is_global = self.eat("gs");
        match (self.look(), self.look_at(1)) {
            (b'L', _) => return self.literal(),
            (b'T', b'0'..=b'9' | b'_' | b'L') => return self.template_parameter(),
            (b'f', b'p') => return self.function_parameter(),
            (b'f', b'L') if !self.look_at(2).is_ascii_digit() => return self.fold(),
            (b'f', b'L') => return self.function_parameter(),
            (b'f', _) => return self.fold(),
            (b's', b'r') | (b'o', b'n') | (b'd', b'n') => return self.unresolved(is_global),
            (b'1'..=b'9', _) => return self.unresolved(is_global),
            _ => {}
        }
        if let Some(made) = self.cast() {
            return made;
        }
        if let Some(made) = self.of_one() {
            return made;
        }
        let code = (self.look(), self.look_at(1));
        let (symbol, shape) = operators::symbol(code.0, code.1)?;
        self.at += 2;
        self.operation(symbol, shape, is_global)
    }

    /// Casts: `code type expression`. The outer `None` means that there is no cast.
    fn cast(&mut self) -> Option<Option<Id>> {
        const CASTS: [(&str, &str); 4] =
            [("dc", "dynamic_cast<"), ("sc", "static_cast<"), ("cc", "const_cast<"), ("rc", "reinterpret_cast<")];
        if let Some((_, word)) = CASTS.into_iter().find(|(code, _)| self.eat(code)) {
            return Some(self.cast_to(word));
        }
        if self.eat("cv") {
            return Some(self.conversion());
        }
        if self.eat("tl") {
            return Some(self.braced_type());
        }
        if self.eat("il") {
            return Some(self.braced().and_then(|all| self.join(vec![Word("{"), List(all), Word("}")])));
        }
        None
    }

    fn cast_to(&mut self, word: &'static str) -> Option<Id> {
        let to = self.a_type()?;
        let from = self.expression()?;
        self.join(vec![Word(word), One(to), Word(">("), One(from), Word(")")])
    }

    fn conversion(&mut self) -> Option<Id> {
        let before = std::mem::replace(&mut self.tries_arguments, false);
        let to = self.a_type();
        self.tries_arguments = before;
        let to = to?;
        let from = if self.eat("_") { self.expressions()? } else { vec![self.expression()?] };
        self.join(vec![Word("("), One(to), Word(")("), List(from), Word(")")])
    }

    fn braced_type(&mut self) -> Option<Id> {
        let of = self.a_type()?;
        let all = self.braced()?;
        self.join(vec![One(of), Word("{"), List(all), Word("}")])
    }

    fn braced(&mut self) -> Option<Vec<Id>> {
        let mut all = Vec::new();
        while !self.eat("E") {
            all.push(self.braced_expression()?);
        }
        Some(all)
    }

    fn braced_expression(&mut self) -> Option<Id> {
        self.nest(|p| {
            if p.eat("di") {
                let field = p.source_name()?;
                let value = p.braced_expression()?;
                return p.join(vec![Word("."), One(field), Word(" = "), One(value)]);
            }
            if p.eat("dx") {
                let index = p.expression()?;
                let value = p.braced_expression()?;
                return p.join(vec![Word("["), One(index), Word("] = "), One(value)]);
            }
            if p.eat("dX") {
                let (first, last) = (p.expression()?, p.expression()?);
                let value = p.braced_expression()?;
                let parts = vec![Word("["), One(first), Word(" ... "), One(last), Word("] = "), One(value)];
                return p.join(parts);
            }
            p.expression()
        })
    }

    /// Operators with one operand, written as words. The outer `None` means that there is none.
    fn of_one(&mut self) -> Option<Option<Id>> {
        const OF_EXPRESSION: [(&str, &str, &str); 5] = [
            ("az", "alignof (", ")"),
            ("sz", "sizeof (", ")"),
            ("te", "typeid (", ")"),
            ("nx", "noexcept (", ")"),
            ("tw", "throw ", ""),
        ];
        const OF_TYPE: [(&str, &str); 3] = [("at", "alignof ("), ("st", "sizeof ("), ("ti", "typeid (")];
        if let Some((_, word, end)) = OF_EXPRESSION.into_iter().find(|(code, ..)| self.eat(code)) {
            let inner = self.expression();
            return Some(inner.and_then(|inner| self.join(vec![Word(word), One(inner), Word(end)])));
        }
        if let Some((_, word)) = OF_TYPE.into_iter().find(|(code, _)| self.eat(code)) {
            let inner = self.a_type();
            return Some(inner.and_then(|inner| self.join(vec![Word(word), One(inner), Word(")")])));
        }
        if self.eat("tr") {
            return Some(self.make(Node::Text("throw")));
        }
        if self.eat("sp") {
            let inner = self.expression();
            return Some(inner.and_then(|inner| self.make(Node::Expansion(inner))));
        }
        if self.eat("sZ") {
            if self.looks_at("T") {
                let pack = self.template_parameter();
                return Some(pack.and_then(|pack| self.join(vec![Word("sizeof...("), Elements(pack), Word(")")])));
            }
            // Of a function's parameters only the name is known.
            let pack = self.function_parameter();
            return Some(pack.and_then(|pack| self.join(vec![Word("sizeof... ("), One(pack), Word(")")])));
        }
        if self.eat("sP") {
            let mut arguments = Vec::new();
            while !self.eat("E") {
                let Some(argument) = self.template_argument() else { return Some(None) };
                arguments.push(argument);
            }
            return Some(self.join(vec![Word("sizeof... ("), List(arguments), Word(")")]));
        }
        None
    }

    fn operation(&mut self, symbol: &'static str, shape: Shape, is_global: bool) -> Option<Id> {
        match shape {
            Shape::Prefix => {
                let inner = self.expression()?;
                self.join(vec![Word(symbol), Word("("), One(inner), Word(")")])
            }
            Shape::Step => {
                let is_prefix = self.eat("_");
                let inner = self.expression()?;
                if is_prefix {
                    return self.join(vec![Word(symbol), Word("("), One(inner), Word(")")]);
                }
                self.join(vec![Word("("), One(inner), Word(")"), Word(symbol)])
            }
            Shape::Binary => {
                let (left, right) = (self.expression()?, self.expression()?);
                // Where it might end the template arguments around it.
                let (open, close) = if symbol == ">" { ("((", "))") } else { ("(", ")") };
                let parts = vec![Word(open), One(left), Word(") "), Word(symbol), Word(" ("), One(right), Word(close)];
                self.join(parts)
            }
            Shape::Member => {
                let (left, right) = (self.expression()?, self.expression()?);
                self.join(vec![One(left), Word(symbol), One(right)])
            }
            Shape::Index => {
                let (left, right) = (self.expression()?, self.expression()?);
                self.join(vec![Word("("), One(left), Word(")["), One(right), Word("]")])
            }
            Shape::Conditional => {
                let (condition, yes, no) = (self.expression()?, self.expression()?, self.expression()?);
                self.join(vec![Word("("), One(condition), Word(") ? ("), One(yes), Word(") : ("), One(no), Word(")")])
            }
            Shape::Call => {
                let called = self.expression()?;
                let arguments = self.expressions()?;
                self.join(vec![One(called), Word("("), List(arguments), Word(")")])
            }
            Shape::New => self.new_expression(symbol, is_global),
            Shape::Delete => {
                let inner = self.expression()?;
                let word = if symbol == "delete" { "delete" } else { "delete[] " };
                self.join(vec![Word(if is_global { "::" } else { "" }), Word(word), One(inner)])
            }
        }
    }

    fn new_expression(&mut self, symbol: &'static str, is_global: bool) -> Option<Id> {
        let mut placement = Vec::new();
        while !self.eat("_") {
            placement.push(self.expression()?);
        }
        let of = self.a_type()?;
        let mut parts = vec![Word(if is_global { "::" } else { "" }), Word(symbol), Word(" ")];
        if !placement.is_empty() {
            parts.extend([Word("("), List(placement), Word(")")]);
        }
        parts.push(One(of));
        if self.eat("pi") {
            let arguments = self.expressions()?;
            parts.extend([Word("("), List(arguments), Word(")")]);
        } else {
            self.expect("E")?;
        }
        self.join(parts)
    }

    fn function_parameter(&mut self) -> Option<Id> {
        if self.eat("fpT") {
            return self.make(Node::Text("this"));
        }
        if self.eat("fL") {
            self.number()?;
            self.expect("p")?;
        } else {
            self.expect("fp")?;
        }
        self.qualifiers();
        let number = self.number().unwrap_or("");
        self.expect("_")?;
        self.make(Node::Parameter(number))
    }

    fn fold(&mut self) -> Option<Id> {
        self.expect("f")?;
        let kind = self.look();
        self.at += 1;
        let (symbol, _) = operators::symbol(self.look(), self.look_at(1))?;
        self.at += 2;
        let first = self.expression()?;
        let second = if matches!(kind, b'L' | b'R') { Some(self.expression()?) } else { None };
        let brackets = |p: &mut Self, id| p.join(vec![Word("("), One(id), Word(")")]);
        let parts = match (kind, second) {
            (b'l', _) => {
                let pack = self.expansion_in_brackets(first)?;
                vec![Word("(... "), Word(symbol), Word(" "), One(pack), Word(")")]
            }
            (b'r', _) => {
                let pack = self.expansion_in_brackets(first)?;
                vec![Word("("), One(pack), Word(" "), Word(symbol), Word(" ...)")]
            }
            (b'L', Some(second)) => {
                let (init, all) = (brackets(self, first)?, self.expansion_in_brackets(second)?);
                vec![
                    Word("("),
                    One(init),
                    Word(" "),
                    Word(symbol),
                    Word(" ... "),
                    Word(symbol),
                    Word(" "),
                    One(all),
                    Word(")"),
                ]
            }
            (b'R', Some(second)) => {
                let (all, init) = (self.expansion_in_brackets(first)?, brackets(self, second)?);
                vec![
                    Word("("),
                    One(all),
                    Word(" "),
                    Word(symbol),
                    Word(" ... "),
                    Word(symbol),
                    Word(" "),
                    One(init),
                    Word(")"),
                ]
            }
            _ => return None,
        };
        self.join(parts)
    }

    fn expansion_in_brackets(&mut self, pack: Id) -> Option<Id> {
        let all = self.make(Node::Expansion(pack))?;
        self.join(vec![Word("("), One(all), Word(")")])
    }

    /// A name that depends on template parameters.
    fn unresolved(&mut self, is_global: bool) -> Option<Id> {
        if self.eat("srN") {
            let mut name = self.unresolved_type()?;
            if self.looks_at("I") {
                let arguments = self.template_arguments(false)?;
                name = self.make(Node::Template(name, arguments))?;
            }
            while !self.eat("E") {
                let level = self.simple_id()?;
                name = self.make(Node::Nested(name, level)).filter(|_| self.look() != 0)?;
            }
            let base = self.base_name()?;
            return self.make(Node::Nested(name, base));
        }
        if !self.eat("sr") {
            let base = self.base_name()?;
            return if is_global { self.make(Node::Global(base)) } else { Some(base) };
        }
        let mut name;
        if self.look().is_ascii_digit() {
            name = self.simple_id()?;
            if is_global {
                name = self.make(Node::Global(name))?;
            }
            while !self.eat("E") {
                let level = self.simple_id()?;
                name = self.make(Node::Nested(name, level))?;
            }
        } else {
            name = self.unresolved_type()?;
            if self.looks_at("I") {
                let arguments = self.template_arguments(false)?;
                name = self.make(Node::Template(name, arguments))?;
            }
        }
        let base = self.base_name()?;
        self.make(Node::Nested(name, base))
    }

    fn unresolved_type(&mut self) -> Option<Id> {
        if self.looks_at("T") {
            let made = self.template_parameter()?;
            self.remember(made);
            return Some(made);
        }
        if self.looks_at("D") {
            let made = self.decltype()?;
            self.remember(made);
            return Some(made);
        }
        self.substitution()
    }

    fn simple_id(&mut self) -> Option<Id> {
        let name = self.source_name()?;
        self.with_arguments(name)
    }

    fn with_arguments(&mut self, name: Id) -> Option<Id> {
        if !self.looks_at("I") {
            return Some(name);
        }
        let arguments = self.template_arguments(false)?;
        self.make(Node::Template(name, arguments))
    }

    fn base_name(&mut self) -> Option<Id> {
        if self.look().is_ascii_digit() {
            return self.simple_id();
        }
        if self.eat("dn") {
            let of = if self.look().is_ascii_digit() { self.simple_id()? } else { self.unresolved_type()? };
            return self.make(Node::Structor(of, true));
        }
        self.eat("on");
        let name = self.named_operator()?;
        self.with_arguments(name)
    }

    pub(super) fn literal(&mut self) -> Option<Id> {
        const INTEGERS: [(&str, &str); 13] = [
            ("w", "wchar_t"),
            ("c", "char"),
            ("a", "signed char"),
            ("h", "unsigned char"),
            ("s", "short"),
            ("t", "unsigned short"),
            ("i", ""),
            ("j", "u"),
            ("l", "l"),
            ("m", "ul"),
            ("x", "ll"),
            ("y", "ull"),
            ("n", "__int128"),
        ];
        self.expect("L")?;
        if self.eat("_Z") || self.eat("Z") {
            let made = self.encoding()?;
            self.expect("E")?;
            return Some(made);
        }
        if self.eat("b0E") {
            return self.make(Node::Text("false"));
        }
        if self.eat("b1E") {
            return self.make(Node::Text("true"));
        }
        let integer = INTEGERS.into_iter().chain([("o", "unsigned __int128")]).find(|(code, _)| self.eat(code));
        if let Some((_, of)) = integer {
            let number = self.signed_number()?;
            self.expect("E")?;
            return self.make(Node::Integer(of, number));
        }
        for (code, digits) in [("f", 8), ("d", 16), ("e", 20)] {
            if self.eat(code) {
                let text = self.rest().get(..digits)?;
                if !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
                    return None;
                }
                self.at += digits;
                self.expect("E")?;
                return self.make(Node::Float(text, digits));
            }
        }
        if self.eat("Dn") {
            self.eat("0");
            self.expect("E")?;
            return self.make(Node::Text("nullptr"));
        }
        if self.looks_at("A") {
            let of = self.a_type()?;
            self.expect("E")?;
            return self.join(vec![Word("\"<"), One(of), Word(">\"")]);
        }
        if self.looks_at("Ul") {
            let closure = self.name(None)?;
            self.expect("E")?;
            let parameters = match self.get(closure) {
                Node::Lambda(_, _, parameters) => parameters.clone(),
                _ => Vec::new(),
            };
            return self.join(vec![Word("[]("), List(parameters), Word("){...}")]);
        }
        let of = self.a_type()?;
        let Some(number) = self.signed_number() else {
            self.expect("E")?;
            return None;
        };
        self.expect("E")?;
        self.make(Node::Enumerator(of, number))
    }
}
