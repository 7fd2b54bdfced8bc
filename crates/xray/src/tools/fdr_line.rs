//! The lines of `llvm-xray fdr-dump`: one per record, in its grammar.

use anytrace_core::text::{push_dec, push_escaped, push_hex};

use crate::wire::record::{Body, CustomTime, Function, FunctionKind, Metadata, Orders};

/// How much is buffered before it is written.
pub(super) const FLUSH_BYTES: usize = 64 * 1024;

/// Longest line of a function record.
pub(super) const FUNCTION_LINE_BYTES: usize = 64;

/// Appends a function record, without the line's end. A call for each record costs a tenth of `fdr-dump`.
#[inline(always)]
pub(super) fn push_function(out: &mut Vec<u8>, function: &Function) {
    let word: &[u8] = match function.kind {
        FunctionKind::Enter => b"<Function Enter: #",
        FunctionKind::Exit => b"<Function Exit: #",
        FunctionKind::TailExit => b"<Function Tail Exit: #",
        FunctionKind::EnterArgs => b"<Function Enter With Arg: #",
    };
    out.extend_from_slice(word);
    push_dec(out, function.id);
    out.extend_from_slice(b" delta = +");
    push_dec(out, function.delta);
    out.push(b'>');
}

/// Appends a metadata record, without the line's end. Payloads are written unchanged or, with `escapes`, with the bytes
/// escaped that could control a terminal.
pub(super) fn push_metadata(out: &mut Vec<u8>, metadata: &Metadata<'_>, layout: Orders, escapes: bool) {
    match metadata.body {
        Body::NewBuffer { thread } => number(out, "<Thread ID: ", thread, ">"),
        Body::EndOfBuffer => out.extend_from_slice(b"<End of Buffer>"),
        Body::NewCpu { cpu, tsc } => {
            number(out, "<CPU: id = ", cpu, ", tsc = ");
            number(out, "", tsc, ">");
        }
        Body::TscWrap { tsc } => number(out, "<TSC Wrap: base = ", tsc, ">"),
        Body::WallTime { seconds, micros } => {
            number(out, "<Wall Time: seconds = ", seconds, ".");
            let digits = out.len();
            push_dec(out, micros);
            let missing = 6_usize.saturating_sub(out.len() - digits);
            out.splice(digits..digits, std::iter::repeat_n(b'0', missing));
            out.push(b'>');
        }
        Body::CallArgument { value } => {
            number(out, "<Call Argument: data = ", value, " (hex = ");
            push_hex(out, value);
            out.extend_from_slice(b")>");
        }
        Body::BufferExtents { bytes } => number(out, "<Buffer: size = ", bytes, " bytes>"),
        Body::Pid { process } => number(out, "<PID: ", process, ">"),
        Body::CustomEvent { time, data } => {
            match time {
                CustomTime::Delta { delta } => number(out, "<Custom Event: delta = +", delta, ""),
                CustomTime::OnCpu { tsc, cpu } => absolute(out, tsc, cpu),
                // Versions 1 to 3 have no processor: the peer shows the two bytes where version 4 has it.
                CustomTime::Absolute { tsc } => {
                    let cpu = metadata.reserved.first_chunk().map_or(0, |bytes| layout.endian.u16(*bytes));
                    absolute(out, tsc, cpu);
                }
            }
            payload(out, data, escapes);
            out.push(b'>');
        }
        Body::TypedEvent { delta, event_type, data } => {
            number(out, "<Typed Event: delta = +", delta, ", type = ");
            push_dec(out, event_type);
            // The peer omits the closing bracket.
            payload(out, data, escapes);
        }
    }
}

fn number(out: &mut Vec<u8>, before: &str, value: impl itoa::Integer, after: &str) {
    out.extend_from_slice(before.as_bytes());
    push_dec(out, value);
    out.extend_from_slice(after.as_bytes());
}

fn absolute(out: &mut Vec<u8>, tsc: u64, cpu: u16) {
    number(out, "<Custom Event: tsc = ", tsc, ", cpu = ");
    push_dec(out, cpu);
}

fn payload(out: &mut Vec<u8>, data: &[u8], escapes: bool) {
    number(out, ", size = ", data.len(), ", data = '");
    if escapes {
        push_escaped(out, data);
    } else {
        out.extend_from_slice(data);
    }
    out.push(b'\'');
}
