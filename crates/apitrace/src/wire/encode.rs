//! Encodes tokens, each number in as few bytes as possible.

use crate::wire::container::parse_header;
use crate::wire::record::{BytesKind, Header, SignatureRef, Space, Token, VERSION_ENUM_SETS, VERSION_PROPERTIES};
use crate::wire::scan::{Scan, push_signed, push_string, push_uint};

/// The header with its numbers as short as possible.
pub(crate) fn encode_header(header: &Header) -> Vec<u8> {
    let mut out = Vec::new();
    push_uint(&mut out, header.version);
    if header.version >= VERSION_PROPERTIES {
        push_uint(&mut out, header.semantic_version);
        for (name, value) in &header.properties {
            push_string(&mut out, name);
            push_string(&mut out, value);
        }
        out.push(0);
    }
    debug_assert!(
        header.properties.iter().any(|(name, _)| name.is_empty())
            || parse_header(&out, &anytrace_core::Limits::default()).is_ok()
    );
    out
}

/// Appends a token as the format's own writer would write it.
pub(crate) fn push_token(out: &mut Vec<u8>, token: &Token<'_>, version: u64) {
    match token {
        Token::Enter { thread } => {
            out.push(0);
            if let Some(thread) = thread {
                push_uint(out, *thread);
            }
        }
        Token::Leave { call } => tagged(out, 1, *call),
        Token::Function(signature) => push_signature(out, signature, Space::Function, version),
        Token::Frame(signature) => push_signature(out, signature, Space::Frame, version),
        Token::Argument(index) => tagged(out, 1, *index),
        Token::Return => out.push(2),
        Token::Thread(thread) => tagged(out, 3, *thread),
        Token::Backtrace(count) => tagged(out, 4, *count),
        Token::Flags(flags) => tagged(out, 5, *flags),
        Token::EndEvent | Token::Null => out.push(0),
        Token::Bool(value) => out.push(if *value { 2 } else { 1 }),
        Token::Integer(value) => push_signed(out, *value),
        Token::Float(bits) => {
            out.push(5);
            out.extend_from_slice(&bits.to_le_bytes());
        }
        Token::Double(bits) => {
            out.push(6);
            out.extend_from_slice(&bits.to_le_bytes());
        }
        Token::Bytes(kind, bytes) => {
            tagged(out, bytes_type(*kind), bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
        Token::BytesStart(kind, length) => tagged(out, bytes_type(*kind), *length),
        Token::BytesPiece(bytes) => out.extend_from_slice(bytes),
        Token::BytesEnd(_) | Token::EndLevel => {}
        Token::Enum(signature, value) => {
            out.push(9);
            push_signature(out, signature, Space::Enum, version);
            if let Some(value) = value {
                push_signed(out, *value);
            }
        }
        Token::Bitmask(signature, value) => {
            out.push(10);
            push_signature(out, signature, Space::Bitmask, version);
            push_uint(out, *value);
        }
        Token::Array(count) => tagged(out, 11, *count),
        Token::Struct(signature, _) => {
            out.push(12);
            push_signature(out, signature, Space::Struct, version);
        }
        Token::Pointer(value) => tagged(out, 13, *value),
        Token::Repr => out.push(14),
        Token::Wide(count, chars) => {
            tagged(out, 15, *count);
            let mut scan = Scan::new(chars);
            while let Ok(char) = scan.uint() {
                push_uint(out, char);
            }
        }
    }
}

fn tagged(out: &mut Vec<u8>, tag: u8, value: u64) {
    out.push(tag);
    push_uint(out, value);
}

fn bytes_type(kind: BytesKind) -> u8 {
    match kind {
        BytesKind::Text => 7,
        BytesKind::Blob => 8,
    }
}

fn push_signature(out: &mut Vec<u8>, signature: &SignatureRef<'_>, space: Space, version: u64) {
    push_uint(out, signature.id);
    if let Some(definition) = signature.definition {
        push_definition(out, definition, space, version);
    }
}

/// Appends a definition with its numbers as short as possible. Definitions were parsed before, so none is cut.
fn push_definition(out: &mut Vec<u8>, definition: &[u8], space: Space, version: u64) {
    let mut scan = Scan::new(definition);
    let copied = match space {
        Space::Function | Space::Struct => copy_string(&mut scan, out).and_then(|()| {
            let count = copy_uint(&mut scan, out)?;
            (0..count).try_for_each(|_| copy_string(&mut scan, out))
        }),
        Space::Enum if version < VERSION_ENUM_SETS => {
            copy_string(&mut scan, out).and_then(|()| copy_signed(&mut scan, out))
        }
        Space::Enum => copy_uint(&mut scan, out).and_then(|count| {
            (0..count).try_for_each(|_| copy_string(&mut scan, out).and_then(|()| copy_signed(&mut scan, out)))
        }),
        Space::Bitmask => copy_uint(&mut scan, out).and_then(|count| {
            (0..count).try_for_each(|_| copy_string(&mut scan, out).and_then(|()| copy_uint(&mut scan, out).map(drop)))
        }),
        Space::Frame => copy_frame(&mut scan, out),
    };
    debug_assert!(copied.is_some(), "a definition in the table was parsed before");
}

fn copy_uint(scan: &mut Scan<'_>, out: &mut Vec<u8>) -> Option<u64> {
    let value = scan.uint().ok()?;
    push_uint(out, value);
    Some(value)
}

fn copy_string(scan: &mut Scan<'_>, out: &mut Vec<u8>) -> Option<()> {
    push_string(out, scan.string().ok()?);
    Some(())
}

fn copy_signed(scan: &mut Scan<'_>, out: &mut Vec<u8>) -> Option<()> {
    push_signed(out, scan.signed().ok()?);
    Some(())
}

fn copy_frame(scan: &mut Scan<'_>, out: &mut Vec<u8>) -> Option<()> {
    loop {
        let tag = scan.byte().ok()?;
        out.push(tag);
        match tag {
            0 => return Some(()),
            1..=3 => copy_string(scan, out)?,
            _ => {
                copy_uint(scan, out)?;
            }
        }
    }
}

/// One detail of a stack frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameDetail<'a> {
    Module(&'a [u8]),
    Function(&'a [u8]),
    File(&'a [u8]),
    Line(u64),
    Offset(u64),
}

/// The details of a frame's definition, in wire order.
pub(crate) fn frame_details(definition: &[u8]) -> Vec<FrameDetail<'_>> {
    let mut scan = Scan::new(definition);
    let mut details = Vec::new();
    // Each detail takes a byte at least: the definition's length bounds the loop.
    while let Ok(tag) = scan.byte() {
        let detail = match tag {
            1 => scan.string().map(FrameDetail::Module),
            2 => scan.string().map(FrameDetail::Function),
            3 => scan.string().map(FrameDetail::File),
            4 => scan.uint().map(FrameDetail::Line),
            5 => scan.uint().map(FrameDetail::Offset),
            _ => break,
        };
        let Ok(detail) = detail else { break };
        details.push(detail);
    }
    details
}
