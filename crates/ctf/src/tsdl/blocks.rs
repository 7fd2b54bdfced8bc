//! The blocks of a description: trace, clocks, environment, streams and events.

use anytrace_core::Endian;

use super::Fault;
use super::attributes::{Value, order};
use super::parser::Parser;
use super::types::Type;

/// Most faults that are reported.
const FAULTS_MAX: usize = 100;

/// A clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clock {
    pub(crate) name: String,
    /// Ticks in a second.
    pub(crate) frequency: u64,
    pub(crate) offset_s: i128,
    /// In ticks, beyond the seconds.
    pub(crate) offset: i128,
}

#[derive(Debug, Default)]
pub(crate) struct StreamDeclaration {
    pub(crate) at: usize,
    pub(crate) to: usize,
    pub(crate) id: u64,
    pub(crate) packet_context: Option<Type>,
    pub(crate) event_header: Option<Type>,
    pub(crate) event_context: Option<Type>,
}

#[derive(Debug, Default)]
pub(crate) struct EventDeclaration {
    pub(crate) at: usize,
    pub(crate) to: usize,
    pub(crate) id: Option<u64>,
    pub(crate) stream_id: Option<u64>,
    pub(crate) name: String,
    pub(crate) context: Option<Type>,
    pub(crate) fields: Option<Type>,
}

/// Everything that a description declares.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    /// Version, where there is a block `trace`.
    pub(crate) version: Option<(i128, i128)>,
    pub(crate) order: Option<Endian>,
    pub(crate) uuid: Option<String>,
    pub(crate) packet_header: Option<Type>,
    pub(crate) clocks: Vec<Clock>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) streams: Vec<StreamDeclaration>,
    pub(crate) events: Vec<EventDeclaration>,
    pub(crate) faults: Vec<Fault>,
}

/// Reads a description. What is wrong costs the declaration that it is in.
pub(crate) fn parse(text: &[u8]) -> Declarations {
    let mut parser = Parser::new(text);
    let mut found = Declarations::default();
    loop {
        let from = parser.at();
        let (streams, events) = (found.streams.len(), found.events.len());
        let fault = match block(&mut parser, &mut found) {
            Ok(true) => {
                found.streams.iter_mut().skip(streams).for_each(|own| own.to = parser.passed());
                found.events.iter_mut().skip(events).for_each(|own| own.to = parser.passed());
                continue;
            }
            Ok(false) => return found,
            Err(fault) => fault,
        };
        // A declaration that was read to its end and means nothing needs no search for the end.
        let has_more = (parser.is_ended() && parser.at() > from) || parser.recover();
        if found.faults.len() < FAULTS_MAX {
            found.faults.push(Fault { from: from.min(fault.at), to: parser.passed(), ..fault });
        }
        if !has_more {
            return found;
        }
    }
}

/// One declaration; false at the end.
fn block(parser: &mut Parser<'_>, found: &mut Declarations) -> Result<bool, Fault> {
    if parser.take_if(";")? || parser.declaration()? {
        return Ok(true);
    }
    let at = parser.at();
    let Some(word) = parser.word() else {
        return match parser.peek()? {
            super::lex::Token::End => Ok(false),
            _ => Err(parser.wrong("metadata", "a declaration")),
        };
    };
    match word {
        "struct" | "variant" | "enum" => {
            parser.ty(false)?;
            return parser.expect(";", word).map(|()| true);
        }
        "trace" | "stream" | "event" | "clock" | "env" | "callsite" => parser.take()?,
        _ => return Err(parser.wrong("metadata", "a declaration")),
    };
    let statements = statements(parser, word)?;
    match word {
        "trace" => trace(found, statements)?,
        "stream" => found.streams.push(stream(statements, at)?),
        "event" => found.events.push(event(statements, at)?),
        "clock" => found.clocks.push(clock(statements)?),
        "env" => found.environment.extend(statements.into_iter().filter_map(|own| Some((own.key, own.value?.shown())))),
        _ => {}
    }
    Ok(true)
}

/// `key = value;` or `key := type;`.
struct Statement {
    key: String,
    at: usize,
    value: Option<Value>,
    ty: Option<Type>,
}

impl Statement {
    #[cold]
    fn wrong(&self, expected: &str) -> Fault {
        let found = self.value.as_ref().map_or_else(|| "a type".to_owned(), Value::shown);
        Fault::new(self.at, self.key.clone(), expected, found)
    }

    fn number(&self) -> Result<u64, Fault> {
        let value = self.value.as_ref().and_then(Value::integer).and_then(|value| u64::try_from(value).ok());
        value.ok_or_else(|| self.wrong("an integer"))
    }

    fn integer(&self) -> Result<i128, Fault> {
        self.value.as_ref().and_then(Value::integer).ok_or_else(|| self.wrong("an integer"))
    }

    fn text(&self) -> Result<String, Fault> {
        self.value.as_ref().and_then(Value::text).ok_or_else(|| self.wrong("a string"))
    }

    /// A structure.
    fn structure(self) -> Result<Type, Fault> {
        match self.ty {
            Some(ty @ Type::Structure(..)) => Ok(ty),
            Some(_) => Err(Fault::new(self.at, self.key, "a struct", "another type")),
            None => Err(self.wrong("a struct, after :=")),
        }
    }
}

fn statements(parser: &mut Parser<'_>, what: &str) -> Result<Vec<Statement>, Fault> {
    parser.enter(what)?;
    parser.expect("{", what)?;
    let mut found = Vec::new();
    while !parser.take_if("}")? {
        if parser.take_if(";")? || parser.declaration()? {
            continue;
        }
        if matches!(parser.word(), Some("struct" | "variant" | "enum")) {
            parser.ty(false)?;
            parser.expect(";", what)?;
            continue;
        }
        let at = parser.at();
        let key = parser.path(what)?.join(".");
        let (mut value, mut ty) = (None, None);
        if parser.take_if(":=")? {
            ty = Some(parser.ty(false)?.0);
        } else {
            parser.expect("=", &key)?;
            value = Some(parser.value()?);
        }
        parser.expect(";", &key)?;
        found.push(Statement { key, at, value, ty });
    }
    parser.leave();
    parser.expect(";", what)?;
    Ok(found)
}

fn trace(found: &mut Declarations, statements: Vec<Statement>) -> Result<(), Fault> {
    let (mut major, mut minor) = (1, 8);
    for own in statements {
        match own.key.as_str() {
            "major" => major = own.integer()?,
            "minor" => minor = own.integer()?,
            "uuid" => found.uuid = Some(own.text()?),
            "byte_order" => {
                let known = order(&own.text()?).flatten();
                found.order = Some(known.ok_or_else(|| own.wrong("le or be"))?);
            }
            "packet.header" => found.packet_header = Some(own.structure()?),
            _ => {}
        }
    }
    found.version = Some((major, minor));
    Ok(())
}

fn stream(statements: Vec<Statement>, at: usize) -> Result<StreamDeclaration, Fault> {
    let mut stream = StreamDeclaration { at, ..StreamDeclaration::default() };
    for own in statements {
        match own.key.as_str() {
            "id" => stream.id = own.number()?,
            "packet.context" => stream.packet_context = Some(own.structure()?),
            "event.header" => stream.event_header = Some(own.structure()?),
            "event.context" => stream.event_context = Some(own.structure()?),
            _ => {}
        }
    }
    Ok(stream)
}

fn event(statements: Vec<Statement>, at: usize) -> Result<EventDeclaration, Fault> {
    let mut event = EventDeclaration { at, ..EventDeclaration::default() };
    for own in statements {
        match own.key.as_str() {
            "id" => event.id = Some(own.number()?),
            "stream_id" => event.stream_id = Some(own.number()?),
            "name" => event.name = own.text()?,
            "context" => event.context = Some(own.structure()?),
            "fields" => event.fields = Some(own.structure()?),
            _ => {}
        }
    }
    if event.name.is_empty() {
        event.name = event.id.map_or_else(|| "event".to_owned(), |id| format!("event {id}"));
    }
    Ok(event)
}

fn clock(statements: Vec<Statement>) -> Result<Clock, Fault> {
    let mut clock = Clock { name: String::new(), frequency: 1_000_000_000, offset_s: 0, offset: 0 };
    for own in statements {
        match own.key.as_str() {
            "name" => clock.name = own.text()?,
            "freq" => {
                clock.frequency = own.number()?;
                if clock.frequency == 0 {
                    return Err(own.wrong("ticks in a second"));
                }
            }
            "offset_s" => clock.offset_s = own.integer()?,
            "offset" => clock.offset = own.integer()?,
            _ => {}
        }
    }
    Ok(clock)
}
