//! The base of the parser: its place in the name, its nodes, the parts that substitutions can refer to.

use super::node::{Id, Node, Qualifiers, Reference};

/// Deepest nesting of a name.
const DEPTH_MAX: u32 = 192;
/// Most nodes of a name.
const NODES_MAX: usize = 1 << 18;

pub(super) struct Parser<'a> {
    text: &'a str,
    pub(super) at: usize,
    nodes: Vec<Node<'a>>,
    /// What `S_` and its like refer to.
    remembered: Vec<Id>,
    /// What `T_` and its like refer to, by level: the first is of the encoding, others of lambdas around.
    pub(super) levels: Vec<Vec<Id>>,
    /// References to template arguments that appear later: [`Node::Forward`], until they are resolved.
    pub(super) forward: Vec<Id>,
    pub(super) permits_forward: bool,
    /// False in the target type of a conversion: template arguments after it belong to the operator.
    pub(super) tries_arguments: bool,
    /// The level of the parameters of the lambda that is being described: they are `auto`.
    pub(super) lambda_level: Option<usize>,
    depth: u32,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            nodes: Vec::new(),
            remembered: Vec::new(),
            levels: Vec::new(),
            forward: Vec::new(),
            permits_forward: false,
            tries_arguments: true,
            lambda_level: None,
            depth: 0,
        }
    }

    pub(super) fn into_nodes(self) -> Vec<Node<'a>> {
        self.nodes
    }

    /// The byte here; 0 past the end.
    pub(super) fn look(&self) -> u8 {
        self.look_at(0)
    }

    pub(super) fn look_at(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    pub(super) fn looks_at(&self, what: &str) -> bool {
        self.rest().starts_with(what)
    }

    /// Consumes `what`, if it is here.
    pub(super) fn eat(&mut self, what: &str) -> bool {
        let is_here = self.looks_at(what);
        if is_here {
            self.at += what.len();
        }
        is_here
    }

    pub(super) fn expect(&mut self, what: &str) -> Option<()> {
        self.eat(what).then_some(())
    }

    /// Runs a part of the parser one level deeper.
    pub(super) fn nest<R>(&mut self, run: impl FnOnce(&mut Self) -> Option<R>) -> Option<R> {
        if self.depth >= DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let made = run(self);
        self.depth -= 1;
        made
    }

    pub(super) fn make(&mut self, node: Node<'a>) -> Option<Id> {
        if self.nodes.len() >= NODES_MAX {
            return None;
        }
        let id = Id::try_from(self.nodes.len()).ok()?;
        self.nodes.push(node);
        Some(id)
    }

    pub(super) fn get(&self, id: Id) -> &Node<'a> {
        self.nodes.get(id as usize).unwrap_or(&Node::Text(""))
    }

    pub(super) fn remember(&mut self, id: Id) {
        self.remembered.push(id);
    }

    pub(super) fn forget_last(&mut self) {
        self.remembered.pop();
    }

    /// Sets the targets of the references made since `from`.
    pub(super) fn resolve(&mut self, from: usize) -> Option<()> {
        for at in self.forward.drain(from.min(self.forward.len())..).collect::<Vec<_>>() {
            let Node::Forward(number) = *self.get(at) else { continue };
            let to = *self.levels.first()?.get(number)?;
            // One that refers to itself would never end.
            if to == at {
                return None;
            }
            if let Some(node) = self.nodes.get_mut(at as usize) {
                *node = Node::Forwarded(to);
            }
        }
        Some(())
    }

    pub(super) fn qualifiers(&mut self) -> Qualifiers {
        Qualifiers { is_restrict: self.eat("r"), is_volatile: self.eat("V"), is_const: self.eat("K") }
    }

    pub(super) fn reference_qualifier(&mut self) -> Reference {
        if self.eat("O") {
            Reference::Right
        } else if self.eat("R") {
            Reference::Left
        } else {
            Reference::None
        }
    }

    /// Decimal digits.
    pub(super) fn number(&mut self) -> Option<&'a str> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let text = self.rest().get(..digits).filter(|text| !text.is_empty())?;
        self.at += digits;
        Some(text)
    }

    /// The same with `n` for a minus.
    pub(super) fn signed_number(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.eat("n");
        self.number()?;
        self.text.get(start..self.at)
    }

    /// A length and as many bytes.
    pub(super) fn bare_name(&mut self) -> Option<&'a str> {
        let length: usize = self.number()?.parse().ok()?;
        let name = self.rest().get(..length).filter(|name| !name.is_empty())?;
        self.at += length;
        Some(name)
    }

    /// A number in base 36.
    pub(super) fn sequence_number(&mut self) -> Option<usize> {
        let mut value: Option<usize> = None;
        while let digit @ (b'0'..=b'9' | b'A'..=b'Z') = self.look() {
            let digit = if digit.is_ascii_digit() { digit - b'0' } else { digit - b'A' + 10 };
            value = Some(value.unwrap_or(0).checked_mul(36)?.checked_add(usize::from(digit))?);
            self.at += 1;
        }
        value
    }

    /// `S…`: something described before, or one of the standard library's names.
    pub(super) fn substitution(&mut self) -> Option<Id> {
        const STANDARD: [(&str, &str, &str, &str); 6] = [
            ("Sa", "std::allocator", "allocator", ""),
            ("Sb", "std::basic_string", "basic_string", ""),
            ("Ss", "std::string", "basic_string", "<char, std::char_traits<char>, std::allocator<char>>"),
            ("Si", "std::istream", "basic_istream", "<char, std::char_traits<char>>"),
            ("So", "std::ostream", "basic_ostream", "<char, std::char_traits<char>>"),
            ("Sd", "std::iostream", "basic_iostream", "<char, std::char_traits<char>>"),
        ];
        if let Some((_, short, long, arguments)) = STANDARD.into_iter().find(|(code, ..)| self.eat(code)) {
            let name = self.make(Node::Special(short, long, arguments))?;
            let tagged = self.tags(name)?;
            if tagged != name {
                self.remember(tagged);
            }
            return Some(tagged);
        }
        self.expect("S")?;
        let number = match self.sequence_number() {
            None => 0,
            Some(number) => number.checked_add(1)?,
        };
        self.expect("_")?;
        self.remembered.get(number).copied()
    }

    /// `T…`: a template parameter.
    pub(super) fn template_parameter(&mut self) -> Option<Id> {
        self.expect("T")?;
        let mut level = 0;
        if self.eat("L") {
            level = self.number()?.parse::<usize>().ok()?.checked_add(1)?;
            self.expect("_")?;
        }
        let number = if self.eat("_") {
            0
        } else {
            let number = self.number()?.parse::<usize>().ok()?.checked_add(1)?;
            self.expect("_")?;
            number
        };
        // The encoding's own arguments may appear after the name that refers to them.
        if self.permits_forward && level == 0 {
            let made = self.make(Node::Forward(number))?;
            self.forward.push(made);
            return Some(made);
        }
        if let Some(found) = self.levels.get(level).and_then(|all| all.get(number)) {
            return Some(*found);
        }
        if self.lambda_level.is_some_and(|at| level == at && level <= self.levels.len()) {
            // The parameters that follow are of this level, too.
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            return self.make(Node::Text("auto"));
        }
        None
    }

    /// `I…E`. The template parameters of an encoding's type refer to the arguments of its own name.
    pub(super) fn template_arguments(&mut self, are_own: bool) -> Option<Id> {
        self.nest(|p| {
            p.expect("I")?;
            if are_own {
                p.levels = vec![Vec::new()];
            }
            let mut arguments = Vec::new();
            while !p.eat("E") {
                if !are_own {
                    arguments.push(p.template_argument()?);
                    continue;
                }
                let levels = std::mem::take(&mut p.levels);
                let argument = p.template_argument();
                p.levels = levels;
                let argument = argument?;
                arguments.push(argument);
                let entry = match p.get(argument) {
                    Node::ArgumentPack(elements) => {
                        let elements = elements.clone();
                        p.make(Node::Pack(elements))?
                    }
                    _ => argument,
                };
                p.levels.last_mut()?.push(entry);
            }
            p.make(Node::Arguments(arguments))
        })
    }

    pub(super) fn template_argument(&mut self) -> Option<Id> {
        self.nest(|p| match p.look() {
            b'X' => {
                p.at += 1;
                let made = p.expression()?;
                p.expect("E")?;
                Some(made)
            }
            b'J' => {
                p.at += 1;
                let mut elements = Vec::new();
                while !p.eat("E") {
                    elements.push(p.template_argument()?);
                }
                p.make(Node::ArgumentPack(elements))
            }
            b'L' if p.eat("LZ") => {
                let made = p.encoding()?;
                p.expect("E")?;
                Some(made)
            }
            b'L' => p.literal(),
            _ => p.a_type(),
        })
    }
}
