//! Printing: C++ declarations have parts to the left and to the right of the declared name.

use super::node::{Function, Id, Node, Part, Qualifiers, Reference};

/// Deepest nesting that is printed.
const DEPTH_MAX: u32 = 512;
/// Most nodes that are visited.
const STEPS_MAX: u32 = 1 << 20;

/// The text of a node and all it refers to; `None` where that is too long or too much.
pub(super) fn print(nodes: &[Node<'_>], root: Id, bytes_max: usize) -> Option<String> {
    let mut printer = Printer { nodes, out: String::new(), bytes_max, steps: 0, depth: 0, pack: None };
    printer.print(root)?;
    Some(printer.out)
}

/// The pack being expanded: none found yet, or which element of how many.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Unknown,
    Element(usize, usize),
}

struct Printer<'n> {
    nodes: &'n [Node<'n>],
    out: String,
    bytes_max: usize,
    steps: u32,
    depth: u32,
    /// Set inside an expansion.
    pack: Option<Turn>,
}

/// What is printed to the right of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Right {
    Nothing,
    Array,
    Function,
    /// Something else, as after a pointer to an array.
    Other,
}

impl<'n> Printer<'n> {
    fn node(&self, id: Id) -> &'n Node<'n> {
        self.nodes.get(id as usize).unwrap_or(&Node::Text(""))
    }

    fn put(&mut self, text: &str) -> Option<()> {
        if self.out.len() + text.len() > self.bytes_max {
            return None;
        }
        self.out.push_str(text);
        Some(())
    }

    fn step(&mut self) -> Option<()> {
        self.steps += 1;
        (self.steps < STEPS_MAX).then_some(())
    }

    fn print(&mut self, id: Id) -> Option<()> {
        self.left(id)?;
        self.right(id)
    }

    fn deeper(&mut self, run: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.step()?;
        if self.depth >= DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        run(self)?;
        self.depth -= 1;
        Some(())
    }

    /// The current element of a pack.
    fn element(&mut self, elements: &[Id]) -> Option<Id> {
        let turn = self.pack.get_or_insert(Turn::Unknown);
        if let Turn::Unknown = turn {
            *turn = Turn::Element(0, elements.len());
        }
        match *turn {
            Turn::Element(at, _) => elements.get(at).copied(),
            Turn::Unknown => None,
        }
    }

    /// Separated by commas; an element that prints nothing, such as an empty pack, gets none.
    fn list(&mut self, ids: &[Id]) -> Option<()> {
        let mut is_first = true;
        for id in ids {
            let before = self.out.len();
            if !is_first {
                self.put(", ")?;
            }
            let start = self.out.len();
            self.print(*id)?;
            if self.out.len() == start {
                self.out.truncate(before);
            } else {
                is_first = false;
            }
        }
        Some(())
    }

    fn left(&mut self, id: Id) -> Option<()> {
        self.deeper(|p| p.left_here(id))
    }

    fn right(&mut self, id: Id) -> Option<()> {
        self.deeper(|p| p.right_here(id))
    }

    fn left_here(&mut self, id: Id) -> Option<()> {
        match self.node(id) {
            Node::Text(text) => self.put(text),
            Node::Special(short, ..) => self.put(short),
            Node::Expanded(long, arguments) => {
                self.put("std::")?;
                self.put(long)?;
                self.put(arguments)
            }
            Node::Nested(scope, name) => {
                self.print(*scope)?;
                self.put("::")?;
                self.print(*name)
            }
            Node::Global(name) => {
                self.put("::")?;
                self.print(*name)
            }
            Node::Template(name, arguments) => {
                self.print(*name)?;
                self.print(*arguments)
            }
            Node::Arguments(arguments) => {
                self.put("<")?;
                self.list(arguments)?;
                self.put(">")
            }
            Node::ArgumentPack(elements) => self.list(elements),
            Node::Pack(elements) => match self.element(elements) {
                Some(element) => self.left(element),
                None => Some(()),
            },
            Node::Expansion(inner) => self.expansion(*inner),
            Node::Forward(_) => None,
            Node::Forwarded(to) => self.left(*to),
            Node::Prefixed(word, inner) => {
                self.put(word)?;
                self.print(*inner)
            }
            Node::Construction(base, complete) => {
                self.put("construction vtable for ")?;
                self.print(*base)?;
                self.put("-in-")?;
                self.print(*complete)
            }
            Node::Conversion(to) => {
                self.put("operator ")?;
                self.print(*to)
            }
            Node::Literal(name) => {
                self.put("operator\"\" ")?;
                self.print(*name)
            }
            Node::Structor(scope, is_destructor) => {
                if *is_destructor {
                    self.put("~")?;
                }
                let base = self.base_name(*scope)?;
                match self.node(base) {
                    Node::Expanded(long, _) | Node::Special(_, long, _) => self.put(long),
                    _ => self.print(base),
                }
            }
            Node::Tagged(name, tag) => {
                self.left(*name)?;
                self.put("[abi:")?;
                self.put(tag)?;
                self.put("]")
            }
            Node::Pointer(to) => {
                self.left(*to)?;
                self.open(*to, "", "*")
            }
            Node::Reference(..) => {
                let (to, kind) = self.collapsed(id)?;
                self.left(to)?;
                self.open(to, "", if kind == Reference::Right { "&&" } else { "&" })
            }
            Node::MemberPointer(class, member) => {
                self.left(*member)?;
                self.open(*member, " ", "")?;
                self.print(*class)?;
                self.put("::*")
            }
            Node::Qualified(inner, qualifiers) => {
                self.left(*inner)?;
                self.qualifiers(*qualifiers)
            }
            Node::Vendor(inner, word, arguments) => {
                self.print(*inner)?;
                self.put(" ")?;
                self.put(word)?;
                arguments.map_or(Some(()), |arguments| self.print(arguments))
            }
            Node::Postfixed(inner, word) => {
                self.print(*inner)?;
                self.put(word)
            }
            Node::Array(element, _) => self.left(*element),
            Node::Vector(element, dimension) => {
                match element {
                    Some(element) => self.print(*element)?,
                    None => self.put("pixel")?,
                }
                self.put(" vector[")?;
                if let Some(dimension) = dimension {
                    self.print(*dimension)?;
                }
                self.put("]")
            }
            Node::FunctionType(function) => {
                if let Some(result) = function.result {
                    self.left(result)?;
                    self.put(" ")?;
                }
                Some(())
            }
            Node::Encoding(name, function, _) => {
                if let Some(result) = function.result {
                    self.left(result)?;
                    if self.is_right(result)? == Right::Nothing {
                        self.put(" ")?;
                    }
                }
                self.print(*name)
            }
            Node::Unnamed(number) => {
                self.put("'unnamed")?;
                self.put(number)?;
                self.put("'")
            }
            Node::Lambda(number, templates, parameters) => {
                self.put("'lambda")?;
                self.put(number)?;
                self.put("'")?;
                if !templates.is_empty() {
                    self.put("<")?;
                    self.list(templates)?;
                    self.put(">")?;
                }
                self.put("(")?;
                self.list(parameters)?;
                self.put(")")
            }
            Node::Binding(names) => {
                self.put("[")?;
                self.list(names)?;
                self.put("]")
            }
            Node::Suffixed(inner, suffix) => {
                self.print(*inner)?;
                self.put(" (")?;
                self.put(suffix)?;
                self.put(")")
            }
            Node::Joined(parts) => parts.iter().try_for_each(|part| self.part(part)),
            Node::Integer(of, number) => self.integer(of, number),
            Node::Enumerator(of, number) => {
                self.put("(")?;
                self.print(*of)?;
                self.put(")")?;
                self.number(number)
            }
            Node::Parameter(number) => {
                self.put("fp")?;
                self.put(number)
            }
            Node::Float(digits, count) => self.float(digits, *count),
            Node::Invented(word, number) => {
                self.put(word)?;
                match number.checked_sub(1) {
                    Some(number) => self.put(&number.to_string()),
                    None => Some(()),
                }
            }
        }
    }

    fn right_here(&mut self, id: Id) -> Option<()> {
        match self.node(id) {
            Node::Pack(elements) => match self.element(elements) {
                Some(element) => self.right(element),
                None => Some(()),
            },
            Node::Forwarded(to) => self.right(*to),
            Node::Tagged(name, _) => self.right(*name),
            Node::Qualified(inner, _) => self.right(*inner),
            Node::Pointer(to) | Node::MemberPointer(_, to) => self.close(*to),
            Node::Reference(..) => {
                let (to, _) = self.collapsed(id)?;
                self.close(to)
            }
            Node::Array(element, dimension) => {
                if !self.out.ends_with(']') {
                    self.put(" ")?;
                }
                self.put("[")?;
                if let Some(dimension) = dimension {
                    self.print(*dimension)?;
                }
                self.put("]")?;
                self.right(*element)
            }
            Node::FunctionType(function) => self.behind(function),
            Node::Encoding(_, function, conditions) => {
                self.behind(function)?;
                if conditions.is_empty() {
                    return Some(());
                }
                self.put(" [enable_if:")?;
                self.list(conditions)?;
                self.put("]")
            }
            _ => Some(()),
        }
    }

    /// Parameters, the result's right part, qualifiers.
    fn behind(&mut self, function: &Function) -> Option<()> {
        self.put("(")?;
        self.list(&function.parameters)?;
        self.put(")")?;
        if let Some(result) = function.result {
            self.right(result)?;
        }
        self.qualifiers(function.qualifiers)?;
        self.put(match function.reference {
            Reference::None => "",
            Reference::Left => " &",
            Reference::Right => " &&",
        })?;
        if let Some(exceptions) = function.exceptions {
            self.put(" ")?;
            self.print(exceptions)?;
        }
        Some(())
    }

    fn qualifiers(&mut self, qualifiers: Qualifiers) -> Option<()> {
        let words = [
            (qualifiers.is_const, " const"),
            (qualifiers.is_volatile, " volatile"),
            (qualifiers.is_restrict, " restrict"),
        ];
        words.into_iter().filter(|(is, _)| *is).try_for_each(|(_, word)| self.put(word))
    }

    /// Prints what is between the target type of a pointer and its star.
    fn open(&mut self, to: Id, plain: &str, star: &str) -> Option<()> {
        let bracket = match self.is_right(to)? {
            // Of members' pointers the arrays have no blank before their bracket, as in LLVM.
            Right::Array if plain.is_empty() => " (",
            Right::Array | Right::Function => "(",
            Right::Nothing | Right::Other => plain,
        };
        self.put(bracket)?;
        self.put(star)
    }

    fn close(&mut self, to: Id) -> Option<()> {
        if matches!(self.is_right(to)?, Right::Array | Right::Function) {
            self.put(")")?;
        }
        self.right(to)
    }

    /// Whether a type has a part to its right.
    fn is_right(&mut self, id: Id) -> Option<Right> {
        let mut at = id;
        let mut is_behind_pointer = false;
        loop {
            self.step()?;
            let found = match self.node(at) {
                Node::Pack(elements) => match self.element(elements) {
                    Some(element) => {
                        at = element;
                        continue;
                    }
                    None => Right::Nothing,
                },
                Node::Forwarded(to) | Node::Qualified(to, _) | Node::Tagged(to, _) => {
                    at = *to;
                    continue;
                }
                Node::Pointer(to) | Node::Reference(to, _) | Node::MemberPointer(_, to) => {
                    is_behind_pointer = true;
                    at = *to;
                    continue;
                }
                Node::Array(..) => Right::Array,
                Node::FunctionType(_) | Node::Encoding(..) => Right::Function,
                _ => Right::Nothing,
            };
            return Some(if is_behind_pointer && found != Right::Nothing { Right::Other } else { found });
        }
    }

    /// References to references are one: of the left kind where either is.
    fn collapsed(&mut self, id: Id) -> Option<(Id, Reference)> {
        let mut at = id;
        let mut kind = Reference::Right;
        loop {
            self.step()?;
            match self.node(at) {
                Node::Reference(to, one) => {
                    if *one == Reference::Left {
                        kind = Reference::Left;
                    }
                    at = *to;
                }
                Node::Forwarded(to) => at = *to,
                Node::Pack(elements) => match self.element(elements) {
                    Some(element) => at = element,
                    None => return Some((at, kind)),
                },
                _ => return Some((at, kind)),
            }
        }
    }

    /// The pattern once for each element of the pack in it.
    fn expansion(&mut self, inner: Id) -> Option<()> {
        let before = self.pack.replace(Turn::Unknown);
        let start = self.out.len();
        self.print(inner)?;
        match self.pack {
            // It contains no pack.
            Some(Turn::Unknown) | None => self.put("...")?,
            Some(Turn::Element(_, 0)) => self.out.truncate(start),
            Some(Turn::Element(_, count)) => {
                for at in 1..count {
                    self.put(", ")?;
                    self.pack = Some(Turn::Element(at, count));
                    self.print(inner)?;
                }
            }
        }
        self.pack = before;
        Some(())
    }

    fn part(&mut self, part: &'n Part) -> Option<()> {
        match part {
            Part::Word(word) => self.put(word),
            Part::One(id) => self.print(*id),
            Part::List(ids) => self.list(ids),
            Part::Elements(id) => self.expansion(*id),
        }
    }

    /// The class's own name, for its constructors.
    fn base_name(&mut self, id: Id) -> Option<Id> {
        let mut at = id;
        loop {
            self.step()?;
            at = match self.node(at) {
                Node::Nested(_, name) | Node::Template(name, _) | Node::Tagged(name, _) | Node::Forwarded(name) => {
                    *name
                }
                Node::Pack(elements) => match self.element(elements) {
                    Some(element) => element,
                    None => return Some(at),
                },
                _ => return Some(at),
            };
        }
    }

    fn number(&mut self, number: &str) -> Option<()> {
        match number.strip_prefix('n') {
            Some(digits) => {
                self.put("-")?;
                self.put(digits)
            }
            None => self.put(number),
        }
    }

    fn integer(&mut self, of: &str, number: &str) -> Option<()> {
        // Short names are suffixes.
        if of.len() <= 3 {
            self.number(number)?;
            return self.put(of);
        }
        self.put("(")?;
        self.put(of)?;
        self.put(")")?;
        self.number(number)
    }

    fn float(&mut self, digits: &str, count: usize) -> Option<()> {
        let text = match count {
            8 => u32::from_str_radix(digits, 16)
                .ok()
                .map(|bits| format!("{}f", scientific(f64::from(f32::from_bits(bits))))),
            16 => u64::from_str_radix(digits, 16).ok().map(|bits| scientific(f64::from_bits(bits))),
            _ => None,
        };
        // Of the long ones the bits are shown.
        self.put(text.as_deref().unwrap_or(digits))
    }
}

/// As C's `%a`: `0x1.8p+1`.
fn scientific(value: f64) -> String {
    let bits = value.to_bits();
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let (exponent, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
    match (exponent, fraction) {
        (0x7ff, 0) => format!("{sign}inf"),
        (0x7ff, _) => format!("{sign}nan"),
        (0, 0) => format!("{sign}0x0p+0"),
        _ => {
            let digits = format!("{fraction:013x}");
            let digits = digits.trim_end_matches('0');
            let (lead, power) =
                if exponent == 0 { (0, -1022) } else { (1, i64::try_from(exponent).unwrap_or(0) - 1023) };
            let point = if digits.is_empty() { "" } else { "." };
            format!("{sign}0x{lead}{point}{digits}p{power:+}")
        }
    }
}
