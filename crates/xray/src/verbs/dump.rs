//! Prints one record per line: text for people, JSON lines that can be converted back.

use std::io::Write;

use anytrace_core::text::{push_dec, push_hex, push_quoted};
use anytrace_core::{Diagnostic, DumpForm, Error, Place, Selection, Sink};

use crate::verbs::jsonl;
use crate::verbs::pick::Picker;
use crate::wire::basic::BasicVisitor;
use crate::wire::fdr::{GapKind, Run, Visitor};
use crate::wire::marks::Known;
use crate::wire::moment::MomentKind;
use crate::wire::record::{BasicBody, BasicRecord, Body, CustomTime, Function, FunctionKind, Metadata};
use crate::wire::yaml::{YamlEntry, YamlHeader, YamlVisitor};

/// How much is buffered before it is written.
const FLUSH_BYTES: usize = 64 * 1024;

/// Longest line of a function record.
const LINE_BYTES: usize = 96;

/// What to print.
#[derive(Clone, Copy)]
pub(crate) struct Print<'a> {
    pub(crate) form: DumpForm,
    pub(crate) offsets: bool,
    pub(crate) selection: &'a Selection,
    /// Earliest time of the trace, where the selection counts from it.
    pub(crate) start: Option<u64>,
}

/// Prints one trace, whatever its form.
pub(crate) struct Printer<'a> {
    out: &'a mut dyn Write,
    sink: &'a mut dyn Sink,
    options: Print<'a>,
    pick: Picker<'a>,
    buffer: Vec<u8>,
    /// Thread and time of the record at hand.
    pub(crate) known: Known,
    version: u16,
    buffers: u64,
    printed: u64,
    /// Whether the function record that precedes an argument was selected.
    is_owner_wanted: bool,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(
        options: Print<'a>,
        cycle_frequency: u64,
        version: u16,
        has_buffers: bool,
        out: &'a mut dyn Write,
        sink: &'a mut dyn Sink,
    ) -> Result<Self, Error> {
        let pick = Picker::new(options.selection, options.start, cycle_frequency, has_buffers)?;
        let (buffer, known) = (Vec::with_capacity(2 * FLUSH_BYTES), Known::new(version));
        Ok(Self { out, sink, options, pick, buffer, known, version, buffers: 0, printed: 0, is_owner_wanted: false })
    }

    pub(crate) fn is_jsonl(&self) -> bool {
        self.options.form == DumpForm::Jsonl
    }

    /// The buffer to which a header line may be appended.
    pub(crate) fn text(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Error> {
        if self.buffer.len() >= FLUSH_BYTES { self.finish() } else { Ok(()) }
    }

    /// Records printed.
    pub(crate) fn printed(&self) -> u64 {
        self.printed
    }

    fn shows_offsets(&self) -> bool {
        self.options.offsets
    }

    fn begin(&mut self, at: Place) {
        if self.shows_offsets() && !self.is_jsonl() {
            push_hex(&mut self.buffer, at.offset);
            self.buffer.push(b' ');
        }
    }

    /// Ends a line; JSON objects get the offset as their first field.
    fn end(&mut self, at: Place) -> Result<(), Error> {
        if self.is_jsonl() {
            if self.shows_offsets() {
                self.buffer.extend_from_slice(b",\"offset\":");
                push_dec(&mut self.buffer, at.offset);
            }
            self.buffer.push(b'}');
        }
        self.buffer.push(b'\n');
        self.printed += 1;
        self.settle()
    }

    fn buffer_number(&self) -> u64 {
        self.buffers.saturating_sub(1)
    }

    fn all_functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        self.buffer.reserve(LINE_BYTES * 512);
        for (_, function) in run.records() {
            if self.buffer.len() >= FLUSH_BYTES {
                self.finish()?;
            }
            push_function(&mut self.buffer, &function);
        }
        self.printed += run.len();
        Ok(())
    }

    fn function(&mut self, function: &Function, at: Place) -> Result<(), Error> {
        self.begin(at);
        if self.is_jsonl() {
            jsonl::push_function(&mut self.buffer, function);
            return self.end(at);
        }
        push_function(&mut self.buffer, function);
        self.printed += 1;
        self.settle()
    }

    /// True when the selection includes the number, thread and buffer of a record. One whose thread is not known is of
    /// none.
    fn has_place(&self, at: Place) -> bool {
        let thread = self.known.thread;
        (thread.is_some() || self.options.selection.threads.is_empty())
            && self.pick.has_place(at.seq, thread.unwrap_or(0), self.buffer_number())
    }

    /// True when the selection includes the time of a function record, if it is known.
    fn has_time(&self, tsc: u64) -> bool {
        self.options.selection.time.is_none() || self.known.has_base && self.pick.has_time(tsc)
    }

    fn wants_metadata(&mut self, body: &Body<'_>, tsc: Option<u64>, at: Place) -> bool {
        if self.pick.is_all() {
            return true;
        }
        if matches!(body, Body::CallArgument { .. }) {
            return self.is_owner_wanted && self.options.selection.has_record(at.seq);
        }
        if self.pick.has_name_condition() || !self.has_place(at) {
            return false;
        }
        match tsc {
            Some(tsc) => self.pick.has_time(tsc),
            None => !self.pick.is_by_content(),
        }
    }
}

impl Visitor for Printer<'_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        let is_plain = !self.is_jsonl() && !self.shows_offsets();
        if self.pick.is_all() {
            if is_plain {
                return self.all_functions(run);
            }
            return run.records().try_for_each(|(at, function)| self.function(&function, at));
        }
        for (at, function) in run.records() {
            let tsc = self.known.clock.function(&function);
            self.is_owner_wanted = self.has_place(at) && self.has_time(tsc) && self.pick.has_name(function.id, &[]);
            if self.is_owner_wanted {
                self.function(&function, at)?;
            }
        }
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, _raw: &[u8], at: Place) -> Result<(), Error> {
        let tsc = self.known.metadata(&metadata.body);
        self.buffers += u64::from(matches!(metadata.body, Body::NewBuffer { .. }));
        self.is_owner_wanted &= matches!(metadata.body, Body::CallArgument { .. });
        if !self.wants_metadata(&metadata.body, tsc, at) {
            return Ok(());
        }
        self.begin(at);
        if self.is_jsonl() {
            jsonl::push_metadata(&mut self.buffer, metadata);
        } else {
            push_body(&mut self.buffer, &metadata.body);
        }
        self.end(at)
    }

    fn gap(&mut self, kind: GapKind, bytes: &[u8], at: Place) -> Result<(), Error> {
        self.is_owner_wanted &= kind != GapKind::Damage;
        if !self.is_jsonl() || !self.pick.is_all() || kind == GapKind::Damage {
            return Ok(());
        }
        jsonl::push_gap(&mut self.buffer, bytes);
        let printed = self.printed;
        self.end(at)?;
        self.printed = printed;
        Ok(())
    }

    fn buffer_end(&mut self, _at: Place) -> Result<(), Error> {
        self.known.buffer_end();
        self.is_owner_wanted = false;
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

impl BasicVisitor for Printer<'_> {
    fn record(&mut self, record: &BasicRecord, _raw: &[u8], at: Place) -> Result<(), Error> {
        let is_wanted = match record.body {
            BasicBody::Function { tsc, .. } => {
                self.is_owner_wanted = self.pick.has_place(at.seq, record.thread, 0)
                    && self.pick.has_time(tsc)
                    && self.pick.has_name(record.id.cast_unsigned(), &[]);
                self.is_owner_wanted
            }
            BasicBody::Argument { .. } => {
                self.pick.is_all() || (self.is_owner_wanted && self.options.selection.has_record(at.seq))
            }
        };
        if !is_wanted {
            return Ok(());
        }
        self.begin(at);
        if self.is_jsonl() {
            jsonl::push_basic(&mut self.buffer, record);
        } else {
            push_basic(&mut self.buffer, record, self.version);
        }
        self.end(at)
    }

    fn damage(&mut self, _bytes: &[u8]) -> Result<(), Error> {
        self.is_owner_wanted = false;
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

impl YamlVisitor for Printer<'_> {
    fn header(&mut self, header: &YamlHeader) -> Result<(), Error> {
        if self.is_jsonl() {
            jsonl::push_yaml_header(&mut self.buffer, header);
        }
        Ok(())
    }

    fn entry(&mut self, entry: &YamlEntry, at: Place, _line: u64) -> Result<(), Error> {
        let is_function = matches!(entry.kind, MomentKind::Function(_));
        let id = entry.function.cast_unsigned();
        let is_wanted = self.pick.has_place(at.seq, entry.thread, 0)
            && self.pick.has_time(entry.tsc)
            && (!self.pick.has_name_condition() || (is_function && self.pick.has_name(id, &entry.name)));
        if !is_wanted {
            return Ok(());
        }
        self.begin(at);
        if self.is_jsonl() {
            jsonl::push_entry(&mut self.buffer, entry);
        } else {
            push_entry(&mut self.buffer, entry);
        }
        self.end(at)
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

/// A complete line.
#[inline]
fn push_function(out: &mut Vec<u8>, function: &Function) {
    let name: &[u8] = match function.kind {
        FunctionKind::Enter => b"function-enter #",
        FunctionKind::Exit => b"function-exit #",
        FunctionKind::TailExit => b"function-tail-exit #",
        FunctionKind::EnterArgs => b"function-enter-arg #",
    };
    out.extend_from_slice(name);
    push_dec(out, function.id);
    out.extend_from_slice(b" +");
    push_dec(out, function.delta);
    out.push(b'\n');
}

fn push_field(out: &mut Vec<u8>, name: &str, value: impl Into<i128>) {
    out.push(b' ');
    out.extend_from_slice(name.as_bytes());
    out.push(b'=');
    push_dec(out, value.into());
}

fn push_delta(out: &mut Vec<u8>, delta: i32) {
    out.extend_from_slice(if delta < 0 { b" " } else { b" +" });
    push_dec(out, delta);
}

fn push_data(out: &mut Vec<u8>, data: &[u8]) {
    push_field(out, "size", data.len() as u64);
    out.push(b' ');
    push_quoted(out, data);
}

fn push_value(out: &mut Vec<u8>, value: u64) {
    out.push(b' ');
    push_dec(out, value);
    out.extend_from_slice(b" (");
    push_hex(out, value);
    out.push(b')');
}

/// A line without its line end.
fn push_body(out: &mut Vec<u8>, body: &Body<'_>) {
    out.extend_from_slice(body.name().as_bytes());
    match *body {
        Body::NewBuffer { thread } => push_field(out, "thread", thread),
        Body::EndOfBuffer => {}
        Body::NewCpu { cpu, tsc } => {
            push_field(out, "cpu", cpu);
            push_field(out, "tsc", tsc);
        }
        Body::TscWrap { tsc } => push_field(out, "tsc", tsc),
        Body::WallTime { seconds, micros } => {
            push_field(out, "seconds", seconds);
            push_field(out, "micros", micros);
        }
        Body::CustomEvent { time, data } => {
            match time {
                CustomTime::Delta { delta } => push_delta(out, delta),
                CustomTime::Absolute { tsc } => push_field(out, "tsc", tsc),
                CustomTime::OnCpu { tsc, cpu } => {
                    push_field(out, "cpu", cpu);
                    push_field(out, "tsc", tsc);
                }
            }
            push_data(out, data);
        }
        Body::CallArgument { value } => push_value(out, value),
        Body::BufferExtents { bytes } => push_field(out, "bytes", bytes),
        Body::TypedEvent { delta, event_type, data } => {
            push_delta(out, delta);
            push_field(out, "type", event_type);
            push_data(out, data);
        }
        Body::Pid { process } => push_field(out, "process", process),
    }
}

fn push_basic(out: &mut Vec<u8>, record: &BasicRecord, version: u16) {
    out.extend_from_slice(record.name().as_bytes());
    out.extend_from_slice(b" #");
    push_dec(out, record.id);
    if let BasicBody::Function { cpu, .. } = record.body {
        push_field(out, "cpu", cpu);
    }
    push_field(out, "thread", record.thread);
    if version >= 3 {
        push_field(out, "process", record.process);
    }
    match record.body {
        BasicBody::Function { tsc, .. } => push_field(out, "tsc", tsc),
        BasicBody::Argument { value, .. } => push_value(out, value),
    }
}

fn push_entry(out: &mut Vec<u8>, entry: &YamlEntry) {
    out.extend_from_slice(entry.kind.name().as_bytes());
    let is_function = matches!(entry.kind, MomentKind::Function(_));
    // Events have no function, but an entry of llvm-xray's names the last one.
    if is_function || entry.function != 0 || !entry.name.is_empty() {
        out.extend_from_slice(b" #");
        push_dec(out, entry.function);
        if !entry.name.is_empty() {
            out.push(b' ');
            push_quoted(out, &entry.name);
        }
    }
    if matches!(entry.kind, MomentKind::Typed(_)) || entry.event_type != 0 {
        push_field(out, "type", entry.event_type);
    }
    push_field(out, "cpu", entry.cpu);
    push_field(out, "thread", entry.thread);
    push_field(out, "process", entry.process);
    push_field(out, "tsc", entry.tsc);
    for value in &entry.arguments {
        push_value(out, *value);
    }
    if !entry.data.is_empty() {
        push_data(out, &entry.data);
    }
}
