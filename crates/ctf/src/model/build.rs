//! A description as a trace.

use super::clock::Clock;
use super::node::{Node, Role};
use super::resolve::{Builder, Roots, Unresolved};
use super::trace::{Event, Stream, Trace};
use crate::tsdl::{Declarations, EventDeclaration, Fault, StreamDeclaration};

/// Most faults that are reported.
const FAULTS_MAX: usize = 100;

/// Makes a trace of declarations. What cannot be resolved costs the stream or event that it is in.
pub(crate) fn build(declared: Declarations) -> (Trace, Vec<Fault>) {
    let Declarations { version, order, uuid, packet_header, clocks, environment, streams, events, mut faults } =
        declared;
    let order = order.unwrap_or_default();
    let names: Vec<String> = clocks.iter().map(|clock| clock.name.clone()).collect();
    let mut trace = Trace { version, order, environment, uuid: uuid.and_then(|uuid| bytes(&uuid)), ..Trace::default() };
    trace.clocks = clocks.iter().map(|c| Clock::new(&c.name, c.frequency, c.offset_s, c.offset)).collect();
    let mut builder = Builder::new(order, &names);
    if let Some(ty) = packet_header {
        match builder.scope(&ty, 0, &mut Roots::default()) {
            Ok(node) => trace.packet_header = Some(node),
            Err(why) => faults.push(fault((0, usize::MAX), &why)),
        }
    }
    trace.has_magic = trace.packet_header.as_ref().is_some_and(has_magic);
    trace.uuid_at = trace.packet_header.as_ref().and_then(uuid_at);
    // A trace without the block has one stream.
    let has_none = streams.is_empty() && !events.is_empty();
    for declared in streams.into_iter().chain(has_none.then(StreamDeclaration::default)) {
        builder.clock = None;
        match stream(&mut builder, &declared, &mut trace.packet_header) {
            Ok(mut stream) => {
                stream.clock = builder.clock.or((trace.clocks.len() == 1).then_some(0));
                trace.streams.push(stream);
            }
            Err(why) => faults.push(fault((declared.at, declared.to), &why)),
        }
    }
    for declared in events {
        if let Err(why) = event(&mut builder, &declared, &mut trace) {
            faults.push(fault((declared.at, declared.to), &why));
        }
    }
    trace.slots = builder.slots as usize;
    faults.truncate(FAULTS_MAX);
    (trace, faults)
}

fn stream(
    builder: &mut Builder<'_>,
    declared: &StreamDeclaration,
    header: &mut Option<Node>,
) -> Result<Stream, Unresolved> {
    let mut stream = Stream { id: declared.id, ..Stream::default() };
    if let Some(ty) = &declared.packet_context {
        let mut roots: Roots<'_> = [header.as_mut(), None, None, None, None, None];
        stream.packet_context = Some(builder.scope(ty, 1, &mut roots)?);
    }
    if let Some(ty) = &declared.event_header {
        let mut roots: Roots<'_> = [header.as_mut(), stream.packet_context.as_mut(), None, None, None, None];
        stream.event_header = Some(builder.scope(ty, 2, &mut roots)?);
    }
    if let Some(ty) = &declared.event_context {
        let (packet, event) = (stream.packet_context.as_mut(), stream.event_header.as_mut());
        let mut roots: Roots<'_> = [header.as_mut(), packet, event, None, None, None];
        stream.event_context = Some(builder.scope(ty, 3, &mut roots)?);
    }
    Ok(stream)
}

fn event(builder: &mut Builder<'_>, declared: &EventDeclaration, trace: &mut Trace) -> Result<(), Unresolved> {
    let missing = || Unresolved {
        field: "stream_id".to_owned(),
        expected: "a stream that is declared",
        found: declared.stream_id.map_or_else(|| "none".to_owned(), |id| id.to_string()),
    };
    let header = &mut trace.packet_header;
    let at = match declared.stream_id {
        Some(id) => trace.streams.iter().position(|stream| stream.id == id),
        None => (trace.streams.len() == 1).then_some(0),
    };
    let stream = at.and_then(|at| trace.streams.get_mut(at)).ok_or_else(missing)?;
    let Stream { packet_context, event_header, event_context, .. } = stream;
    let mut roots: Roots<'_> =
        [header.as_mut(), packet_context.as_mut(), event_header.as_mut(), event_context.as_mut(), None, None];
    let mut context = match &declared.context {
        Some(ty) => Some(builder.scope(ty, 4, &mut roots)?),
        None => None,
    };
    if let Some(root) = roots.get_mut(4) {
        *root = context.as_mut();
    }
    let fields = match &declared.fields {
        Some(ty) => Some(builder.scope(ty, 5, &mut roots)?),
        None => None,
    };
    let id = declared.id.unwrap_or(0);
    let at = stream.events.len();
    stream.events.push(Event { name: declared.name.clone(), context, fields });
    // Of several with one number the first counts, as for other readers.
    stream.by_id.entry(id).or_insert(at);
    Ok(())
}

#[cold]
fn fault((at, to): (usize, usize), why: &Unresolved) -> Fault {
    Fault { to, ..Fault::new(at, why.field.clone(), why.expected, why.found.clone()) }
}

fn has_magic(header: &Node) -> bool {
    let Node::Structure { fields, .. } = header else { return false };
    matches!(fields.first().map(|field| &field.node), Some(Node::Integer(first)) if first.role == Role::Magic)
}

/// Where the UUID is: after numbers of bytes.
fn uuid_at(header: &Node) -> Option<usize> {
    let Node::Structure { fields, .. } = header else { return None };
    let mut at = 0_u32;
    for field in fields {
        match &field.node {
            Node::Array { of, length: 16 } if *field.name == *"uuid" => {
                let is_bytes = matches!(&**of, Node::Integer(byte) if byte.size == 8 && byte.align == 8);
                return is_bytes.then_some(at as usize / 8);
            }
            Node::Integer(own) if own.size.is_multiple_of(8) => {
                at = at.checked_next_multiple_of(own.align)?.checked_add(own.size)?;
            }
            _ => return None,
        }
    }
    None
}

/// The bytes of a UUID.
fn bytes(uuid: &str) -> Option<[u8; 16]> {
    let digits: String = uuid.chars().filter(|c| *c != '-').collect();
    anytrace_core::text::parse_hex_bytes(&digits)?.try_into().ok()
}
