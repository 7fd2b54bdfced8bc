//! JSON lines with every field of the wire format, and the conversion back to bytes.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use anytrace_core::jsonl::{Lines, Object, push_header_start};
use anytrace_core::text::{push_dec, push_hex_bytes, push_json_bytes, push_json_str};
use anytrace_core::{Endian, Error, Input, Limits};

use crate::wire::moment::MomentKind;
use crate::wire::put::{put_basic, put_function, put_header, put_metadata};
use crate::wire::record::{
    BasicBody, BasicRecord, BitOrder, Body, CustomTime, FDR_ID_MAX, FdrRecord, Function, FunctionKind, Header,
    KIND_NAMES, Metadata, Orders, TYPE_BASIC, kind,
};
use crate::wire::yaml::{YamlEntry, YamlHeader};
use crate::wire::yaml_write::{put_entry, put_yaml_end, put_yaml_header};

/// Most zero bytes that one gap line represents.
const ZEROS_MAX: usize = 1 << 16;

/// Appends the header line of a binary trace.
pub(crate) fn push_header(out: &mut Vec<u8>, header: &Header, layout: Orders) {
    let type_name = if header.type_code == TYPE_BASIC { "basic" } else { "fdr" };
    start(out, type_name, u64::from(header.version));
    push_str(out, "byte_order", layout.endian.name());
    out.extend_from_slice(b",\"pointer_width\":null");
    push_str(out, "bit_order", if layout.bits == BitOrder::Low { "low" } else { "high" });
    push_num(out, "flags", header.flags);
    // For people and for comparison: the positions of these bits depend on the byte order. Only `flags` is converted
    // back.
    for (key, is_set) in [("constant_tsc", header.constant_tsc(layout)), ("nonstop_tsc", header.nonstop_tsc(layout))] {
        push_key(out, key);
        out.extend_from_slice(if is_set { b"true" } else { b"false" });
    }
    push_num(out, "cycle_frequency", header.cycle_frequency);
    push_num(out, "buffer_size", header.buffer_size);
    push_num(out, "reserved", header.reserved);
    out.extend_from_slice(b"}\n");
}

/// Appends the header line of a YAML trace.
pub(crate) fn push_yaml_header(out: &mut Vec<u8>, header: &YamlHeader) {
    start(out, "yaml", u64::from(header.version));
    out.extend_from_slice(b",\"byte_order\":null,\"pointer_width\":null");
    push_num(out, "record_type", header.type_code);
    for (key, is_set) in [("constant_tsc", header.constant_tsc), ("nonstop_tsc", header.nonstop_tsc)] {
        push_key(out, key);
        out.extend_from_slice(if is_set { b"true" } else { b"false" });
    }
    push_num(out, "cycle_frequency", header.cycle_frequency);
    out.extend_from_slice(b"}\n");
}

/// Appends the header line of a trace that has no header.
pub(crate) fn push_no_header(out: &mut Vec<u8>) {
    start(out, "none", 0);
    out.extend_from_slice(b",\"byte_order\":null,\"pointer_width\":null}\n");
}

fn start(out: &mut Vec<u8>, type_name: &str, version: u64) {
    push_header_start(out, "xray");
    push_str(out, "type", type_name);
    push_num(out, "format_version", version);
}

fn push_key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

fn push_num(out: &mut Vec<u8>, key: &str, value: impl Into<i128>) {
    push_key(out, key);
    push_dec(out, value.into());
}

fn push_str(out: &mut Vec<u8>, key: &str, value: &str) {
    push_key(out, key);
    push_json_str(out, value);
}

/// A payload or a name.
fn push_json(out: &mut Vec<u8>, key: &str, bytes: &[u8]) {
    push_key(out, key);
    push_json_bytes(out, bytes);
}

/// Meaningless bytes are shown where they are not zero.
fn push_unused_bytes(out: &mut Vec<u8>, key: &str, bytes: &[u8]) {
    if bytes.iter().any(|&b| b != 0) {
        push_key(out, key);
        out.push(b'"');
        push_hex_bytes(out, bytes);
        out.push(b'"');
    }
}

fn push_kind(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(name.as_bytes());
    out.push(b'"');
}

/// Appends an object without its closing brace; so do the functions below.
pub(crate) fn push_function(out: &mut Vec<u8>, function: &Function) {
    push_kind(out, function.kind.name());
    push_function_fields(out, function);
}

/// Appends the fields after the kind, each behind a comma; so do the other functions of this name.
pub(crate) fn push_function_fields(out: &mut Vec<u8>, function: &Function) {
    push_key(out, "id");
    push_dec(out, function.id);
    push_key(out, "delta");
    push_dec(out, function.delta);
}

pub(crate) fn push_metadata(out: &mut Vec<u8>, metadata: &Metadata<'_>) {
    push_kind(out, metadata.body.name());
    if let Body::NewBuffer { thread } = metadata.body {
        push_num(out, "thread", thread);
    }
    push_metadata_fields(out, metadata);
}

/// All but the thread of a buffer.
pub(crate) fn push_metadata_fields(out: &mut Vec<u8>, metadata: &Metadata<'_>) {
    match metadata.body {
        Body::NewBuffer { .. } | Body::EndOfBuffer => {}
        Body::NewCpu { cpu, tsc } => {
            push_num(out, "cpu", cpu);
            push_num(out, "tsc", tsc);
        }
        Body::TscWrap { tsc } => push_num(out, "tsc", tsc),
        Body::WallTime { seconds, micros } => {
            push_num(out, "seconds", seconds);
            push_num(out, "micros", micros);
        }
        Body::CustomEvent { time, data } => {
            match time {
                CustomTime::Delta { delta } => push_num(out, "delta", delta),
                CustomTime::Absolute { tsc } => push_num(out, "tsc", tsc),
                CustomTime::OnCpu { tsc, cpu } => {
                    push_num(out, "cpu", cpu);
                    push_num(out, "tsc", tsc);
                }
            }
            push_json(out, "data", data);
        }
        Body::CallArgument { value } => push_num(out, "value", value),
        Body::BufferExtents { bytes } => push_num(out, "bytes", bytes),
        Body::TypedEvent { delta, event_type, data } => {
            push_num(out, "delta", delta);
            push_num(out, "type", event_type);
            push_json(out, "data", data);
        }
        Body::Pid { process } => push_num(out, "process", process),
    }
    push_unused_bytes(out, "reserved", metadata.reserved);
}

/// Appends bytes that are not records: padding, filler, or bytes between buffers.
pub(crate) fn push_gap(out: &mut Vec<u8>, bytes: &[u8]) {
    push_kind(out, "gap");
    if bytes.iter().all(|&b| b == 0) {
        push_num(out, "zeros", bytes.len() as u64);
    } else {
        push_unused_bytes(out, "bytes", bytes);
    }
}

pub(crate) fn push_basic(out: &mut Vec<u8>, record: &BasicRecord) {
    push_kind(out, record.name());
    push_basic_fields(out, record, Some(record.thread));
}

/// The thread only if it is passed.
pub(crate) fn push_basic_fields(out: &mut Vec<u8>, record: &BasicRecord, thread: Option<u32>) {
    push_num(out, "id", record.id);
    if let Some(thread) = thread {
        push_num(out, "thread", thread);
    }
    push_num(out, "process", record.process);
    match record.body {
        BasicBody::Function { cpu, tsc, .. } => {
            push_num(out, "cpu", cpu);
            push_num(out, "tsc", tsc);
        }
        BasicBody::Argument { value, pad } => {
            push_num(out, "value", value);
            push_unused_bytes(out, "pad", &pad);
        }
    }
    push_unused_bytes(out, "padding", &record.padding);
}

/// A YAML entry. What an entry of its kind should not have (llvm-xray writes the function and the type of an earlier
/// entry) is there where it is not 0 or empty.
pub(crate) fn push_entry(out: &mut Vec<u8>, entry: &YamlEntry) {
    push_kind(out, entry.kind.name());
    push_entry_fields(out, entry, Some(entry.thread));
}

/// The thread only if it is passed.
pub(crate) fn push_entry_fields(out: &mut Vec<u8>, entry: &YamlEntry, thread: Option<u32>) {
    let is_function = matches!(entry.kind, MomentKind::Function(_));
    if is_function || entry.function != 0 {
        push_num(out, "id", entry.function);
    }
    if is_function || !entry.name.is_empty() {
        push_json(out, "function", &entry.name);
    }
    if !entry.arguments.is_empty() {
        push_key(out, "args");
        for (n, value) in entry.arguments.iter().enumerate() {
            out.push(if n == 0 { b'[' } else { b',' });
            push_dec(out, *value);
        }
        out.push(b']');
    }
    if matches!(entry.kind, MomentKind::Typed(_)) || entry.event_type != 0 {
        push_num(out, "type", entry.event_type);
    }
    push_num(out, "cpu", entry.cpu);
    if let Some(thread) = thread {
        push_num(out, "thread", thread);
    }
    push_num(out, "process", entry.process);
    push_num(out, "tsc", entry.tsc);
    push_json(out, "data", &entry.data);
}

/// What the header line states.
enum Form {
    None,
    Fdr(Orders, u16),
    Basic(Endian),
    Yaml,
}

/// The bytes of the trace that JSON lines describe, produced as they are read.
pub(crate) struct Bytes {
    lines: Lines,
    form: Option<Form>,
    made: Vec<u8>,
    given: usize,
    entries: u64,
    is_over: bool,
    /// An [`io::Error`] cannot carry an [`Error`], so the error is stored here.
    failed: Failed,
}

/// Where [`Bytes`] stores its error.
pub(crate) type Failed = Arc<Mutex<Option<Error>>>;

impl Bytes {
    pub(crate) fn new(input: Input, limits: Limits) -> (Self, Failed) {
        let failed = Failed::default();
        let lines = Lines::new(input, limits);
        let made = Self {
            lines,
            form: None,
            made: Vec::new(),
            given: 0,
            entries: 0,
            is_over: false,
            failed: Arc::clone(&failed),
        };
        (made, failed)
    }

    fn make(&mut self) -> Result<(), Error> {
        let Some(form) = &self.form else {
            let header = self.lines.header("xray")?;
            self.form = Some(read_header(&header, &mut self.made)?);
            return Ok(());
        };
        let Some(object) = self.lines.next()? else {
            self.is_over = true;
            if matches!(form, Form::Yaml) {
                put_yaml_end(&mut self.made, self.entries);
            }
            return Ok(());
        };
        self.entries += 1;
        match form {
            Form::None => Err(object.wrong("kind", "no records in a trace without a header", "a record")),
            Form::Basic(endian) => {
                put_basic(&mut self.made, &read_basic(&object)?, *endian);
                Ok(())
            }
            Form::Fdr(layout, version) => put_fdr(&mut self.made, &object, *layout, *version),
            Form::Yaml => put_yaml(&mut self.made, &object),
        }
    }
}

impl Read for Bytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.made.len() && !self.is_over {
            self.made.clear();
            self.given = 0;
            while self.made.len() < 64 * 1024 && !self.is_over {
                if let Err(error) = self.make() {
                    *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
        }
        let left = self.made.get(self.given..).unwrap_or_default();
        let n = left.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..n), left.get(..n)) {
            to.copy_from_slice(from);
        }
        self.given += n;
        Ok(n)
    }
}

fn read_header(object: &Object, out: &mut Vec<u8>) -> Result<Form, Error> {
    let type_name = object.str("type")?;
    match type_name {
        "none" => return Ok(Form::None),
        "yaml" => {
            let header = YamlHeader {
                version: object.uint("format_version")?,
                type_code: object.uint("record_type")?,
                constant_tsc: object.bool("constant_tsc")?,
                nonstop_tsc: object.bool("nonstop_tsc")?,
                cycle_frequency: object.u64("cycle_frequency")?,
            };
            put_yaml_header(out, &header);
            return Ok(Form::Yaml);
        }
        "basic" | "fdr" => {}
        other => return Err(object.wrong("type", "fdr, basic, yaml or none", other)),
    }
    let order = object.str("byte_order")?;
    let endian = Endian::from_name(order).ok_or_else(|| object.wrong("byte_order", "little or big", order))?;
    let bits = match object.str("bit_order")? {
        "low" => BitOrder::Low,
        "high" => BitOrder::High,
        other => return Err(object.wrong("bit_order", "low or high", other)),
    };
    let is_basic = type_name == "basic";
    let header = Header {
        version: object.uint("format_version")?,
        type_code: u16::from(!is_basic),
        flags: object.uint("flags")?,
        cycle_frequency: object.u64("cycle_frequency")?,
        buffer_size: object.u64("buffer_size")?,
        reserved: object.u64("reserved")?,
    };
    put_header(out, &header, endian);
    Ok(if is_basic { Form::Basic(endian) } else { Form::Fdr(Orders { endian, bits }, header.version) })
}

fn function_kind(object: &Object) -> Result<Option<FunctionKind>, Error> {
    let name = object.str("kind")?;
    let kinds = [FunctionKind::Enter, FunctionKind::Exit, FunctionKind::TailExit, FunctionKind::EnterArgs];
    Ok(kinds.into_iter().find(|kind| kind.name() == name))
}

fn unused_bytes<const N: usize>(object: &Object, field: &str) -> Result<[u8; N], Error> {
    if !object.has(field) {
        return Ok([0; N]);
    }
    let bytes = object.hex(field)?;
    <[u8; N]>::try_from(bytes)
        .map_err(|bytes| object.wrong(field, format!("{N} bytes"), format!("{} bytes", bytes.len())))
}

fn read_basic(object: &Object) -> Result<BasicRecord, Error> {
    let body = match function_kind(object)? {
        Some(kind) => BasicBody::Function { kind, cpu: object.uint("cpu")?, tsc: object.u64("tsc")? },
        None if object.str("kind")? == "call-argument" => {
            BasicBody::Argument { value: object.u64("value")?, pad: unused_bytes(object, "pad")? }
        }
        None => return Err(object.wrong("kind", "a kind of Basic record", object.str("kind")?)),
    };
    let (id, thread, process) = (object.int("id")?, object.uint("thread")?, object.uint("process")?);
    Ok(BasicRecord { body, id, thread, process, padding: unused_bytes(object, "padding")? })
}

fn put_fdr(out: &mut Vec<u8>, object: &Object, layout: Orders, version: u16) -> Result<(), Error> {
    if object.str("kind")? == "gap" {
        if object.has("zeros") {
            let zeros: usize = object.uint("zeros")?;
            if zeros > ZEROS_MAX {
                return Err(object.wrong("zeros", format!("at most {ZEROS_MAX}"), zeros.to_string()));
            }
            out.resize(out.len() + zeros, 0);
            return Ok(());
        }
        out.extend_from_slice(&object.hex("bytes")?);
        return Ok(());
    }
    let data = if object.has("data") { object.bytes("data")? } else { Vec::new() };
    let reserved = if object.has("reserved") { object.hex("reserved")? } else { Vec::new() };
    match read_record(object, &data, &reserved, version)? {
        FdrRecord::Function(function) => put_function(out, &function, layout),
        FdrRecord::Metadata(metadata) => {
            let is_event = matches!(metadata.body, Body::CustomEvent { .. } | Body::TypedEvent { .. });
            if is_event && data.is_empty() {
                return Err(object.wrong("data", "at least one byte", "nothing"));
            }
            let (need, given) = (metadata.body.reserved_bytes(), reserved.len());
            if object.has("reserved") && given != need {
                return Err(object.wrong("reserved", format!("{need} bytes"), format!("{given} bytes")));
            }
            put_metadata(out, &metadata, layout);
        }
    }
    Ok(())
}

fn read_record<'a>(object: &Object, data: &'a [u8], reserved: &'a [u8], version: u16) -> Result<FdrRecord<'a>, Error> {
    if let Some(kind) = function_kind(object)? {
        let id: u32 = object.uint("id")?;
        if id > FDR_ID_MAX {
            return Err(object.wrong("id", "28 bits", id.to_string()));
        }
        return Ok(FdrRecord::Function(Function { kind, id, delta: object.uint("delta")? }));
    }
    let name = object.str("kind")?;
    let number = KIND_NAMES.iter().skip(4).position(|known| *known == name).and_then(|n| u8::try_from(n).ok());
    let body = match number {
        Some(kind::NEW_BUFFER) => Body::NewBuffer { thread: object.int("thread")? },
        Some(kind::END_OF_BUFFER) => Body::EndOfBuffer,
        Some(kind::NEW_CPU) => Body::NewCpu { cpu: object.uint("cpu")?, tsc: object.u64("tsc")? },
        Some(kind::TSC_WRAP) => Body::TscWrap { tsc: object.u64("tsc")? },
        Some(kind::WALL_TIME) => Body::WallTime { seconds: object.u64("seconds")?, micros: object.uint("micros")? },
        Some(kind::CALL_ARGUMENT) => Body::CallArgument { value: object.u64("value")? },
        Some(kind::BUFFER_EXTENTS) => Body::BufferExtents { bytes: object.u64("bytes")? },
        Some(kind::PID) => Body::Pid { process: object.int("process")? },
        Some(kind::TYPED_EVENT) => {
            Body::TypedEvent { delta: object.int("delta")?, event_type: object.uint("type")?, data }
        }
        Some(_) => {
            let time = match version {
                0..=3 => CustomTime::Absolute { tsc: object.u64("tsc")? },
                4 => CustomTime::OnCpu { tsc: object.u64("tsc")?, cpu: object.uint("cpu")? },
                _ => CustomTime::Delta { delta: object.int("delta")? },
            };
            Body::CustomEvent { time, data }
        }
        None => return Err(object.wrong("kind", "a kind of FDR record", name)),
    };
    Ok(FdrRecord::Metadata(Metadata { body, reserved }))
}

fn put_yaml(out: &mut Vec<u8>, object: &Object) -> Result<(), Error> {
    let kind = match (function_kind(object)?, object.str("kind")?) {
        (Some(kind), _) => MomentKind::Function(kind),
        (None, "custom-event") => MomentKind::Custom,
        (None, "typed-event") => MomentKind::Typed(object.uint("type")?),
        (None, other) => return Err(object.wrong("kind", "a kind of YAML entry", other)),
    };
    let is_function = matches!(kind, MomentKind::Function(_));
    let mut entry = YamlEntry { kind, ..YamlEntry::default() };
    // Events may have these fields, too: see `push_entry`.
    if is_function || object.has("id") {
        entry.function = object.int("id")?;
    }
    if is_function || object.has("function") {
        entry.name = object.bytes("function")?;
    }
    if object.has("type") {
        entry.event_type = object.uint("type")?;
    }
    if object.has("args") {
        for value in object.array("args")? {
            let number = value.as_u64().ok_or_else(|| object.wrong("args", "unsigned numbers", value.to_string()))?;
            entry.arguments.push(number);
        }
    }
    entry.cpu = object.uint("cpu")?;
    entry.thread = object.uint("thread")?;
    entry.process = object.uint("process")?;
    entry.tsc = object.u64("tsc")?;
    entry.data = object.bytes("data")?;
    put_entry(out, &entry);
    Ok(())
}
