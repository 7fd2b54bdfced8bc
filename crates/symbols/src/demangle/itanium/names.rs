//! Names and encodings.

use super::node::{Function, Id, Node, Qualifiers, Reference};
use super::parser::Parser;

/// What the name of an encoding implies about its type.
#[derive(Debug, Default)]
pub(super) struct NameState {
    /// Constructors, destructors and conversions have no result in their mangling.
    is_without_result: bool,
    /// A template's instance has one.
    ends_with_arguments: bool,
    qualifiers: Qualifiers,
    reference: Reference,
}

impl<'a> Parser<'a> {
    /// A mangled name, after its `_Z`.
    pub(super) fn encoding(&mut self) -> Option<Id> {
        self.nest(|p| {
            let (levels, forward) = (std::mem::take(&mut p.levels), p.forward.len());
            let made = p.encoding_of(forward);
            p.levels = levels;
            made
        })
    }

    fn encoding_of(&mut self, forward: usize) -> Option<Id> {
        if matches!(self.look(), b'G' | b'T') {
            return self.special();
        }
        let mut state = NameState::default();
        let name = self.name(Some(&mut state))?;
        self.resolve(forward)?;
        if self.is_at_end_of_encoding() {
            return Some(name);
        }
        let mut conditions = Vec::new();
        if self.eat("Ua9enable_ifI") {
            while !self.eat("E") {
                conditions.push(self.template_argument()?);
            }
        }
        let result = if !state.is_without_result && state.ends_with_arguments { Some(self.a_type()?) } else { None };
        let mut parameters = Vec::new();
        if !self.eat("v") {
            loop {
                parameters.push(self.a_type()?);
                if self.is_at_end_of_encoding() || self.looks_at("Q") {
                    break;
                }
            }
        }
        let (qualifiers, reference) = (state.qualifiers, state.reference);
        let function = Function { result, parameters, qualifiers, reference, exceptions: None };
        self.make(Node::Encoding(name, function, conditions))
    }

    fn is_at_end_of_encoding(&self) -> bool {
        matches!(self.look(), 0 | b'E' | b'.' | b'_')
    }

    /// Entities that compilers generate besides functions.
    fn special(&mut self) -> Option<Id> {
        const OF_TYPES: [(&str, &str); 4] =
            [("TV", "vtable for "), ("TT", "VTT for "), ("TI", "typeinfo for "), ("TS", "typeinfo name for ")];
        if let Some((_, words)) = OF_TYPES.into_iter().find(|(code, _)| self.eat(code)) {
            let child = self.a_type()?;
            return self.make(Node::Prefixed(words, child));
        }
        let (words, child) = if self.eat("TA") {
            ("template parameter object for ", self.template_argument()?)
        } else if self.eat("Tc") {
            self.call_offset()?;
            self.call_offset()?;
            ("covariant return thunk to ", self.encoding()?)
        } else if self.eat("TC") {
            let complete = self.a_type()?;
            self.number();
            self.expect("_")?;
            let base = self.a_type()?;
            return self.make(Node::Construction(base, complete));
        } else if self.eat("TW") {
            ("thread-local wrapper routine for ", self.name(None)?)
        } else if self.eat("TH") {
            ("thread-local initialization routine for ", self.name(None)?)
        } else if self.eat("T") {
            let is_virtual = self.looks_at("v");
            self.call_offset()?;
            (if is_virtual { "virtual thunk to " } else { "non-virtual thunk to " }, self.encoding()?)
        } else if self.eat("GV") {
            ("guard variable for ", self.name(None)?)
        } else if self.eat("GR") {
            let child = self.name(None)?;
            let has_number = self.sequence_number().is_some();
            if !self.eat("_") && has_number {
                return None;
            }
            ("reference temporary for ", child)
        } else if self.eat("GTt") {
            ("transaction clone for ", self.encoding()?)
        } else {
            return None;
        };
        self.make(Node::Prefixed(words, child))
    }

    fn call_offset(&mut self) -> Option<()> {
        if self.eat("h") {
            self.signed_number()?;
            return self.expect("_");
        }
        self.expect("v")?;
        self.signed_number()?;
        self.expect("_")?;
        self.signed_number()?;
        self.expect("_")
    }

    /// A name; with `state` that of an encoding, to whose template arguments its type may refer.
    pub(super) fn name(&mut self, state: Option<&mut NameState>) -> Option<Id> {
        self.nest(|p| {
            if p.looks_at("N") {
                return p.nested(state);
            }
            if p.looks_at("Z") {
                return p.local(state);
            }
            let is_substitution = p.looks_at("S") && p.look_at(1) != b't';
            let mut state = state;
            let name = if is_substitution { p.substitution()? } else { p.unscoped(state.as_deref_mut())? };
            if !p.looks_at("I") {
                return (!is_substitution).then_some(name);
            }
            if !is_substitution {
                p.remember(name);
            }
            let arguments = p.template_arguments(state.is_some())?;
            if let Some(state) = state {
                state.ends_with_arguments = true;
            }
            p.make(Node::Template(name, arguments))
        })
    }

    fn unscoped(&mut self, state: Option<&mut NameState>) -> Option<Id> {
        let is_std = self.eat("St");
        self.eat("L");
        let name = self.unqualified(state, None)?;
        if !is_std {
            return Some(name);
        }
        let std = self.make(Node::Text("std"))?;
        self.make(Node::Nested(std, name))
    }

    fn local(&mut self, state: Option<&mut NameState>) -> Option<Id> {
        self.expect("Z")?;
        let function = self.encoding()?;
        self.expect("E")?;
        if self.eat("s") {
            self.discriminator();
            let text = self.make(Node::Text("string literal"))?;
            return self.make(Node::Nested(function, text));
        }
        if self.eat("d") {
            self.signed_number();
            self.expect("_")?;
            let entity = self.name(state)?;
            return self.make(Node::Nested(function, entity));
        }
        let entity = self.name(state)?;
        self.discriminator();
        self.make(Node::Nested(function, entity))
    }

    /// Skips the number that distinguishes entities of the same name; it is not shown.
    fn discriminator(&mut self) {
        let before = self.at;
        if self.eat("__") {
            if self.number().is_some() && self.eat("_") {
                return;
            }
        } else if self.eat("_") {
            if self.look().is_ascii_digit() {
                self.at += 1;
                return;
            }
        } else if self.look().is_ascii_digit() {
            // One of clang's own, at the end of the name.
            self.number();
            if self.look() == 0 {
                return;
            }
        }
        self.at = before;
    }

    fn nested(&mut self, mut state: Option<&mut NameState>) -> Option<Id> {
        self.expect("N")?;
        let qualifiers = self.qualifiers();
        let reference = self.reference_qualifier();
        if let Some(state) = state.as_deref_mut() {
            (state.qualifiers, state.reference) = (qualifiers, reference);
        }
        let mut so_far: Option<Id> = None;
        let mut is_last_remembered = false;
        if self.looks_at("St") {
            self.eat("St");
            so_far = Some(self.make(Node::Text("std"))?);
        }
        while !self.eat("E") {
            self.eat("L");
            self.eat("M");
            if self.looks_at("E") {
                continue;
            }
            if let (b'I', Some(name)) = (self.look(), so_far) {
                let arguments = self.template_arguments(state.is_some())?;
                if let Some(state) = state.as_deref_mut() {
                    state.ends_with_arguments = true;
                }
                let name = self.make(Node::Template(name, arguments))?;
                self.remember(name);
                (so_far, is_last_remembered) = (Some(name), true);
                continue;
            }
            if let Some(state) = state.as_deref_mut() {
                state.ends_with_arguments = false;
                state.is_without_result = false;
            }
            let is_substitution = self.looks_at("S") && self.look_at(1) != b't';
            let part = if is_substitution {
                self.substitution()?
            } else if self.looks_at("T") {
                self.template_parameter()?
            } else if self.looks_at("Dt") || self.looks_at("DT") {
                self.decltype()?
            } else if matches!((self.look(), self.look_at(1)), (b'C', b'1'..=b'5' | b'I') | (b'D', b'0'..=b'5')) {
                let (name, part) = self.structor(so_far?, state.as_deref_mut())?;
                so_far = Some(name);
                part
            } else {
                self.unqualified(state.as_deref_mut(), so_far)?
            };
            let name = match so_far {
                Some(scope) => self.make(Node::Nested(scope, part))?,
                None => part,
            };
            is_last_remembered = !(is_substitution && so_far.is_none());
            so_far = Some(name);
            if is_last_remembered {
                self.remember(name);
            }
        }
        // The caller remembers the name itself, if it is a type.
        if is_last_remembered {
            self.forget_last();
        }
        so_far
    }

    /// A constructor or destructor of `scope`; also returns the scope, as it is written in that case.
    fn structor(&mut self, scope: Id, state: Option<&mut NameState>) -> Option<(Id, Id)> {
        let scope = match *self.get(scope) {
            Node::Special(_, long, arguments) if !arguments.is_empty() => self.make(Node::Expanded(long, arguments))?,
            _ => scope,
        };
        let is_destructor = self.look() == b'D';
        self.at += 1;
        if !is_destructor && self.eat("I") {
            self.at += 1;
            self.name(None)?;
        } else {
            self.at += 1;
        }
        if let Some(state) = state {
            state.is_without_result = true;
        }
        let made = self.make(Node::Structor(scope, is_destructor))?;
        Some((scope, self.tags(made)?))
    }

    fn unqualified(&mut self, state: Option<&mut NameState>, _scope: Option<Id>) -> Option<Id> {
        let name = match self.look() {
            b'U' => {
                // In the name of an encoding, the arguments of an outer class are out of reach: `T_` in a lambda that
                // initializes a member is the lambda's own.
                if state.is_some() {
                    self.levels.clear();
                }
                self.unnamed()?
            }
            b'1'..=b'9' => self.source_name()?,
            b'D' if self.eat("DC") => {
                let mut names = Vec::new();
                while !self.eat("E") {
                    names.push(self.source_name()?);
                }
                self.make(Node::Binding(names))?
            }
            _ => self.operator_name(state)?,
        };
        self.tags(name)
    }

    /// Tags of the ABI after a name.
    pub(super) fn tags(&mut self, name: Id) -> Option<Id> {
        let mut name = name;
        while self.eat("B") {
            let tag = self.bare_name()?;
            name = self.make(Node::Tagged(name, tag))?;
        }
        Some(name)
    }

    pub(super) fn source_name(&mut self) -> Option<Id> {
        let name = self.bare_name()?;
        self.make(Node::Text(if name.starts_with("_GLOBAL__N") { "(anonymous namespace)" } else { name }))
    }

    /// A type without a name, or a lambda.
    fn unnamed(&mut self) -> Option<Id> {
        if self.eat("Ut") {
            let number = self.number().unwrap_or("");
            self.expect("_")?;
            return self.make(Node::Unnamed(number));
        }
        if self.eat("Ul") {
            return self.lambda();
        }
        if self.eat("Ub") {
            self.number();
            self.expect("_")?;
            return self.make(Node::Text("'block-literal'"));
        }
        None
    }

    fn lambda(&mut self) -> Option<Id> {
        let levels = self.levels.len();
        let lambda_level = self.lambda_level.replace(levels);
        let made = self.lambda_parts();
        self.levels.truncate(levels);
        self.lambda_level = lambda_level;
        let (templates, parameters) = made?;
        self.expect("E")?;
        let number = self.number().unwrap_or("");
        self.expect("_")?;
        self.make(Node::Lambda(number, templates, parameters))
    }

    fn lambda_parts(&mut self) -> Option<(Vec<Id>, Vec<Id>)> {
        let mut templates = Vec::new();
        let mut counts = [0; 3];
        while self.looks_at("T") && matches!(self.look_at(1), b'y' | b'n' | b't' | b'p') {
            if templates.is_empty() {
                self.levels.push(Vec::new());
            }
            templates.push(self.template_declaration(&mut counts)?);
        }
        let mut parameters = Vec::new();
        if !self.eat("v") {
            while !self.looks_at("E") {
                parameters.push(self.a_type()?);
            }
        }
        Some((templates, parameters))
    }

    /// A template parameter that a lambda declares.
    fn template_declaration(&mut self, counts: &mut [usize; 3]) -> Option<Id> {
        self.nest(|p| {
            use super::node::Part;
            let mut invent = |p: &mut Self, kind: usize, name: &'static str| {
                let count = counts.get_mut(kind)?;
                let made = p.make(Node::Invented(name, *count))?;
                *count += 1;
                p.levels.last_mut()?.push(made);
                Some(made)
            };
            if p.eat("Ty") {
                let name = invent(p, 0, "$T")?;
                return p.make(Node::Joined(vec![Part::Word("typename "), Part::One(name)]));
            }
            if p.eat("Tn") {
                let name = invent(p, 1, "$N")?;
                let of = p.a_type()?;
                return p.make(Node::Joined(vec![Part::One(of), Part::Word(" "), Part::One(name)]));
            }
            if p.eat("Tt") {
                let name = invent(p, 2, "$TT")?;
                let mut inner = Vec::new();
                p.levels.push(Vec::new());
                while !p.eat("E") {
                    inner.push(p.template_declaration(&mut [0; 3])?);
                }
                p.levels.pop();
                return p.make(Node::Joined(vec![
                    Part::Word("template<"),
                    Part::List(inner),
                    Part::Word("> typename "),
                    Part::One(name),
                ]));
            }
            p.expect("Tp")?;
            let child = p.template_declaration(counts)?;
            p.make(Node::Joined(vec![Part::One(child), Part::Word("...")]))
        })
    }

    /// An operator's name in an expression.
    pub(super) fn named_operator(&mut self) -> Option<Id> {
        self.operator_name(None)
    }

    /// An operator's name.
    fn operator_name(&mut self, state: Option<&mut NameState>) -> Option<Id> {
        if self.eat("cv") {
            let (try_arguments, permit) = (self.tries_arguments, self.permits_forward);
            self.tries_arguments = false;
            self.permits_forward = permit || state.is_some();
            let to = self.a_type();
            (self.tries_arguments, self.permits_forward) = (try_arguments, permit);
            if let Some(state) = state {
                state.is_without_result = true;
            }
            let to = to?;
            return self.make(Node::Conversion(to));
        }
        if self.eat("li") {
            let name = self.source_name()?;
            return self.make(Node::Literal(name));
        }
        if self.look() == b'v' && self.look_at(1).is_ascii_digit() {
            self.at += 2;
            let name = self.source_name()?;
            return self.make(Node::Conversion(name));
        }
        let name = super::operators::name(self.look(), self.look_at(1))?;
        self.at += 2;
        self.make(Node::Text(name))
    }
}
