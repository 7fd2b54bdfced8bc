//! Declared types to nodes: names of fields become slots, in which the decoder keeps their values.

use std::sync::Arc;

use anytrace_core::Endian;

use super::node::{Choice, Field, Integer, Label, NO_SLOT, Node, Role};
use crate::tsdl::types::{Integer as Declared, Member, Path, Type};

/// Most nodes of a trace: a declaration of a few lines can ask for any number of them.
const NODES_MAX: usize = 1 << 19;

/// The structures around events, outermost first, and how paths name them.
pub(super) const SCOPES: [&[&str]; 6] = [
    &["trace", "packet", "header"],
    &["stream", "packet", "context"],
    &["stream", "event", "header"],
    &["stream", "event", "context"],
    &["event", "context"],
    &["event", "fields"],
];

/// The slot of an integer, and its labels where it has some.
type Target = (u32, Option<Arc<[Label]>>);

/// Why a type cannot be built.
#[derive(Debug)]
pub(super) struct Unresolved {
    pub(super) field: String,
    pub(super) expected: &'static str,
    pub(super) found: String,
}

fn unresolved(field: &str, expected: &'static str, found: impl Into<String>) -> Unresolved {
    Unresolved { field: field.to_owned(), expected, found: found.into() }
}

/// What building needs: the byte order, the structures that are finished, those that are being built.
pub(super) struct Builder<'a> {
    pub(super) order: Endian,
    pub(super) clocks: &'a [String],
    /// Clocks that a field of the present structure is mapped to.
    pub(super) clock: Option<usize>,
    pub(super) slots: u32,
    nodes: usize,
    /// Fields of the structures around what is being built, outermost first.
    open: Vec<Vec<Field>>,
}

/// The structures of all scopes, as far as they are finished.
pub(super) type Roots<'a> = [Option<&'a mut Node>; 6];

impl<'a> Builder<'a> {
    pub(super) fn new(order: Endian, clocks: &'a [String]) -> Self {
        Self { order, clocks, clock: None, slots: 0, nodes: 0, open: Vec::new() }
    }

    /// Builds the structure of a scope.
    pub(super) fn scope(&mut self, ty: &Type, scope: usize, roots: &mut Roots<'_>) -> Result<Node, Unresolved> {
        self.open.clear();
        self.node("", ty, scope, 0, roots)
    }

    fn node(
        &mut self,
        name: &str,
        ty: &Type,
        scope: usize,
        depth: usize,
        roots: &mut Roots<'_>,
    ) -> Result<Node, Unresolved> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(unresolved(name, "a description of at most 524288 fields", "more"));
        }
        // Aliases of aliases nest deeper than any declaration.
        if depth > 64 {
            return Err(unresolved(name, "at most 64 types inside each other", "more"));
        }
        Ok(match ty {
            Type::Integer(of) => Node::Integer(self.integer(name, of, scope, depth)),
            Type::Enumeration(of, labels) => {
                let labels: Vec<Label> = labels.to_vec();
                self.nodes += labels.len();
                Node::Enumeration(self.integer(name, of, scope, depth), labels.into())
            }
            Type::Float { size, align, order } => {
                Node::Float { size: *size, align: *align, order: order.unwrap_or(self.order) }
            }
            Type::Text => Node::Text,
            Type::Structure(members, align) => {
                self.open.push(Vec::new());
                for member in members.iter() {
                    let node = self.node(&member.name, &member.ty, scope, depth + 1, roots)?;
                    if let Some(open) = self.open.last_mut() {
                        open.push(Field { name: shown(&member.name), node });
                    }
                }
                let fields = self.open.pop().unwrap_or_default();
                let align = fields.iter().map(|field| field.node.align()).fold(*align, u32::max);
                Node::Structure { fields, align }
            }
            Type::Variant(members, tag) => self.variant(name, members, tag.as_ref(), scope, depth, roots)?,
            Type::Array(of, length) => {
                Node::Array { of: Box::new(self.node(name, of, scope, depth + 1, roots)?), length: *length }
            }
            Type::Sequence(of, path) => {
                let slot = self.slot(name, path, scope, roots)?.0;
                Node::Sequence { of: Box::new(self.node(name, of, scope, depth + 1, roots)?), slot }
            }
        })
    }

    fn variant(
        &mut self,
        name: &str,
        members: &[Member],
        tag: Option<&Path>,
        scope: usize,
        depth: usize,
        roots: &mut Roots<'_>,
    ) -> Result<Node, Unresolved> {
        let tag = tag.ok_or_else(|| unresolved(name, "a variant with a tag", "none"))?;
        let (slot, labels) = self.slot(name, tag, scope, roots)?;
        let labels = labels.ok_or_else(|| unresolved(name, "the tag to be an enumeration", tag.join(".")))?;
        let mut options = Vec::with_capacity(members.len());
        for member in members {
            // An option's fields see those around the variant, not those of other options.
            let node = self.node(&member.name, &member.ty, scope, depth + 1, roots)?;
            options.push(Field { name: shown(&member.name), node });
        }
        let choices: Vec<Choice> = labels
            .iter()
            .filter_map(|label| {
                let option = options.iter().position(|option| *option.name == *shown(&label.name))?;
                Some((label.first, label.last, option))
            })
            .collect();
        Ok(Node::Variant { slot, choices, options })
    }

    fn integer(&mut self, name: &str, of: &Declared, scope: usize, depth: usize) -> Integer {
        let role = role(name, scope, depth);
        let mut clock = of.clock.as_ref().and_then(|name| self.clocks.iter().position(|own| *own == **name));
        // Small writers do not say what a time is measured by.
        if clock.is_none() && self.clocks.len() == 1 && of.clock.is_none() {
            let is_time = match scope {
                1 => matches!(role, Role::Begin | Role::End),
                2 => name == "timestamp",
                _ => false,
            };
            clock = is_time.then_some(0);
        }
        self.clock = self.clock.or(clock);
        Integer {
            size: of.size,
            align: of.align,
            is_signed: of.is_signed,
            base: of.base,
            order: of.order.unwrap_or(self.order),
            slot: NO_SLOT,
            role,
            // The end of a packet is no time that events begin from.
            is_time: clock.is_some() && role != Role::End,
            is_text: of.is_text,
        }
    }

    /// The slot of the integer that a path names, and its labels: of those before it, the innermost one counts.
    fn slot(&mut self, name: &str, path: &Path, scope: usize, roots: &mut Roots<'_>) -> Result<Target, Unresolved> {
        let missing = || unresolved(name, "the name of an integer before it", path.join("."));
        let slots = &mut self.slots;
        for (at, prefix) in SCOPES.iter().enumerate() {
            let is_prefix = path.len() > prefix.len() && prefix.iter().zip(path.iter()).all(|(a, b)| a == b);
            if let Some(rest) = path.get(prefix.len()..).filter(|_| is_prefix) {
                let found = if at == scope {
                    self.open.first_mut().and_then(|fields| find(fields, rest))
                } else {
                    roots.get_mut(at).and_then(|root| root.as_deref_mut()).and_then(|root| inside(root, rest))
                };
                return found.and_then(|node| take(node, slots)).ok_or_else(missing);
            }
        }
        if let Some(node) = self.open.iter_mut().rev().find_map(|fields| find(fields, path)) {
            return take(node, slots).ok_or_else(missing);
        }
        let before = roots.get_mut(..scope).unwrap_or_default().iter_mut().rev();
        let mut around = before.filter_map(|root| root.as_deref_mut());
        let node = around.find_map(|root| inside(root, path)).ok_or_else(missing)?;
        take(node, slots).ok_or_else(missing)
    }
}

/// A slot for the value of an integer.
fn take(node: &mut Node, slots: &mut u32) -> Option<Target> {
    let (integer, labels) = match node {
        Node::Integer(integer) => (integer, None),
        Node::Enumeration(integer, labels) => (integer, Some(Arc::clone(labels))),
        _ => return None,
    };
    if integer.slot == NO_SLOT {
        integer.slot = *slots;
        *slots += 1;
    }
    Some((integer.slot, labels))
}

fn find<'n>(fields: &'n mut [Field], path: &[String]) -> Option<&'n mut Node> {
    let (first, rest) = path.split_first()?;
    let wanted = shown(first);
    let field = fields.iter_mut().rev().find(|field| *field.name == *wanted)?;
    if rest.is_empty() { Some(&mut field.node) } else { inside(&mut field.node, rest) }
}

fn inside<'n>(node: &'n mut Node, path: &[String]) -> Option<&'n mut Node> {
    match node {
        Node::Structure { fields, .. } => find(fields, path),
        Node::Variant { options, .. } => find(options, path),
        _ => None,
    }
}

/// A name without the underscore that keeps it apart from the words of TSDL.
fn shown(name: &str) -> Arc<str> {
    name.strip_prefix('_').filter(|rest| !rest.is_empty()).unwrap_or(name).into()
}

fn role(name: &str, scope: usize, depth: usize) -> Role {
    match (scope, name) {
        (0, "magic") if depth == 1 => Role::Magic,
        (0, "stream_id") if depth == 1 => Role::StreamId,
        (1, "timestamp_begin") if depth == 1 => Role::Begin,
        (1, "timestamp_end") if depth == 1 => Role::End,
        (1, "content_size") if depth == 1 => Role::ContentSize,
        (1, "packet_size") if depth == 1 => Role::PacketSize,
        (1, "events_discarded") if depth == 1 => Role::Discarded,
        (1, "packet_seq_num") if depth == 1 => Role::PacketNumber,
        (1, "cpu_id") if depth == 1 => Role::Processor,
        // Also in the option of a variant, which an extended header is.
        (2, "id") => Role::EventId,
        _ => Role::None,
    }
}
