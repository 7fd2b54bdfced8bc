//! Writes moments in another form: YAML, Basic, or FDR.

use std::collections::BTreeMap;

use anytrace_core::{Diagnostic, Endian, Error, Outcome, Sink};

use crate::verbs::pick::Picker;
use crate::wire::moment::{Moment, MomentKind, Moments};
use crate::wire::put::{Out, put_basic, put_function, put_header, put_metadata};
use crate::wire::record::{
    BasicBody, BasicRecord, Body, CustomTime, FDR_ID_MAX, Function, FunctionKind, Header, METADATA_BYTES, Metadata,
    Orders,
};
use crate::wire::yaml::YamlHeader;
use crate::wire::yaml_write::{put_moment, put_yaml_end, put_yaml_header};

/// Size of the buffers made for FDR: the runtime's default.
const BUFFER_BYTES: usize = 16 * 1024;

/// Most threads whose buffers are open at once.
const THREADS_MAX: usize = 512;

/// What is written after the header.
pub(crate) enum Shape {
    /// `is_always_named`: a function without a name is written with its id as its name, as the peer does.
    Yaml {
        is_always_named: bool,
    },
    Basic {
        endian: Endian,
        version: u16,
    },
    Fdr(Fdr),
}

/// Open buffers, by process and thread.
pub(crate) struct Fdr {
    layout: Orders,
    version: u16,
    cycle_frequency: u64,
    threads: BTreeMap<(u32, u32), Buffer>,
}

#[derive(Default)]
struct Buffer {
    body: Vec<u8>,
    records: u64,
    first: u64,
    base: u64,
    cpu: u16,
}

/// Writes one trace from moments.
pub(crate) struct Assembler<'a, 't> {
    out: &'a mut Out<'t>,
    sink: &'a mut dyn Sink,
    pick: Picker<'a>,
    shape: Shape,
    outcome: Outcome,
    names_lost: u64,
}

/// What the header of another form is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About {
    pub(crate) version: u16,
    pub(crate) type_code: u16,
    pub(crate) constant_tsc: bool,
    pub(crate) nonstop_tsc: bool,
    pub(crate) cycle_frequency: u64,
}

impl About {
    /// The 32-byte header for this form.
    fn header(&self, layout: Orders, buffer_size: u64) -> Header {
        let (constant, nonstop) = layout.flag_bits();
        let flags = if self.constant_tsc { constant } else { 0 } | if self.nonstop_tsc { nonstop } else { 0 };
        let (version, type_code, cycle_frequency) = (self.version, self.type_code, self.cycle_frequency);
        Header { version, type_code, flags, cycle_frequency, buffer_size, reserved: 0 }
    }
}

impl Shape {
    /// Starts the form and writes its header.
    pub(crate) fn yaml(out: &mut Out<'_>, about: &About, is_always_named: bool) -> Self {
        let header = YamlHeader {
            version: u32::from(about.version),
            type_code: u32::from(about.type_code),
            constant_tsc: about.constant_tsc,
            nonstop_tsc: about.nonstop_tsc,
            cycle_frequency: about.cycle_frequency,
        };
        put_yaml_header(&mut out.buffer, &header);
        Self::Yaml { is_always_named }
    }

    pub(crate) fn basic(out: &mut Out<'_>, about: &About, layout: Orders) -> Self {
        put_header(&mut out.buffer, &about.header(layout, 0), layout.endian);
        Self::Basic { endian: layout.endian, version: about.version }
    }

    pub(crate) fn fdr(out: &mut Out<'_>, about: &About, layout: Orders) -> Self {
        put_header(&mut out.buffer, &about.header(layout, BUFFER_BYTES as u64), layout.endian);
        let (version, cycle_frequency) = (about.version, about.cycle_frequency);
        Self::Fdr(Fdr { layout, version, cycle_frequency, threads: BTreeMap::new() })
    }
}

fn cannot(moment: &Moment<'_>, field: &str, why: &str) -> Error {
    Error::unsupported(format!("record {} ({}), field {field}: {why}", moment.at.seq, moment.kind.name()))
}

impl<'a, 't> Assembler<'a, 't> {
    pub(crate) fn new(out: &'a mut Out<'t>, sink: &'a mut dyn Sink, pick: Picker<'a>, shape: Shape) -> Self {
        Self { out, sink, pick, shape, outcome: Outcome::default(), names_lost: 0 }
    }

    pub(crate) fn finish(mut self) -> Result<Outcome, Error> {
        match &mut self.shape {
            Shape::Yaml { .. } => put_yaml_end(&mut self.out.buffer, self.outcome.records_written),
            Shape::Basic { .. } => {}
            Shape::Fdr(fdr) => fdr.flush_all(self.out, &mut self.outcome)?,
        }
        self.out.flush()?;
        if self.names_lost > 0 {
            let note = format!("{} function names were left out: the target form has ids only.", self.names_lost);
            self.outcome.notes.push(note);
        }
        if matches!(self.shape, Shape::Fdr(_)) && self.outcome.records_written > 0 {
            self.outcome
                .notes
                .push("Buffers and their wall times were reconstructed from the times of their records.".to_owned());
        }
        Ok(self.outcome)
    }

    fn wants(&mut self, moment: &Moment<'_>) -> bool {
        if self.pick.is_all() {
            return true;
        }
        let is_function = matches!(moment.kind, MomentKind::Function(_));
        self.pick.has_time(moment.tsc)
            && self.pick.has_place(moment.at.seq, moment.thread, moment.buffer)
            && (!self.pick.has_name_condition() || (is_function && self.pick.has_name(moment.function, moment.name)))
    }
}

impl Moments for Assembler<'_, '_> {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        self.outcome.records_read +=
            1 + if matches!(self.shape, Shape::Yaml { .. }) { 0 } else { moment.arguments.len() as u64 };
        if !self.wants(moment) {
            return Ok(());
        }
        let has_name = !moment.name.is_empty() && moment.name != moment.function.to_string().as_bytes();
        match &mut self.shape {
            Shape::Yaml { is_always_named } => {
                put_moment(&mut self.out.buffer, moment, *is_always_named);
                self.outcome.records_written += 1;
            }
            Shape::Basic { endian, version } => {
                self.outcome.records_written += put_as_basic(&mut self.out.buffer, moment, *endian, *version)?;
                self.names_lost += u64::from(has_name);
            }
            Shape::Fdr(fdr) => {
                fdr.put(moment, self.out, &mut self.outcome)?;
                self.names_lost += u64::from(has_name);
            }
        }
        self.out.settle()?;
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn lost(&mut self, bytes: u64) {
        self.outcome.bytes_lost += bytes;
    }
}

fn put_as_basic(out: &mut Vec<u8>, moment: &Moment<'_>, endian: Endian, version: u16) -> Result<u64, Error> {
    let MomentKind::Function(kind) = moment.kind else {
        return Err(cannot(moment, "kind", "a Basic trace has no events"));
    };
    let Ok(cpu) = u8::try_from(moment.cpu) else {
        return Err(cannot(moment, "cpu", &format!("a Basic trace has processors up to 255, found {}", moment.cpu)));
    };
    if kind == FunctionKind::TailExit && version < 2 {
        return Err(cannot(moment, "kind", "version 1 has no tail exits"));
    }
    if moment.process != 0 && version < 3 {
        return Err(cannot(
            moment,
            "process",
            &format!("version {version} has no process ids, found {}", moment.process),
        ));
    }
    let mut put = |body| {
        let (id, thread, process) = (moment.function.cast_signed(), moment.thread, moment.process);
        put_basic(out, &BasicRecord { body, id, thread, process, padding: [0; 8] }, endian);
    };
    put(BasicBody::Function { kind, cpu, tsc: moment.tsc });
    for value in moment.arguments {
        put(BasicBody::Argument { value: *value, pad: [0; 2] });
    }
    Ok(1 + moment.arguments.len() as u64)
}

impl Fdr {
    fn put(&mut self, moment: &Moment<'_>, out: &mut Out<'_>, outcome: &mut Outcome) -> Result<(), Error> {
        let key = (moment.process, moment.thread);
        self.fits(moment)?;
        let need = METADATA_BYTES * (8 + moment.arguments.len()) + moment.data.len();
        if self.version == 1 && need > BUFFER_BYTES {
            return Err(cannot(moment, "data", "the record does not fit in a version 1 buffer"));
        }
        let is_full = self.threads.get(&key).is_some_and(|buffer| buffer.body.len() + need > BUFFER_BYTES);
        if is_full && let Some(buffer) = self.threads.remove(&key) {
            self.flush(key, &buffer, out, outcome)?;
        }
        if self.threads.len() >= THREADS_MAX && !self.threads.contains_key(&key) {
            self.flush_all(out, outcome)?;
        }
        let (layout, version) = (self.layout, self.version);
        let buffer = self.threads.entry(key).or_insert_with(|| Buffer {
            first: moment.tsc,
            base: moment.tsc,
            cpu: moment.cpu,
            ..Buffer::default()
        });
        if buffer.records == 0 {
            buffer.metadata(Body::NewCpu { cpu: moment.cpu, tsc: moment.tsc }, layout);
        }
        buffer.moment(moment, layout, version)
    }

    fn fits(&self, moment: &Moment<'_>) -> Result<(), Error> {
        if moment.function > FDR_ID_MAX {
            return Err(cannot(
                moment,
                "func-id",
                &format!("an FDR trace has ids of 28 bits, found {}", moment.function),
            ));
        }
        let is_event = !matches!(moment.kind, MomentKind::Function(_));
        if is_event && moment.data.is_empty() {
            return Err(cannot(moment, "data", "an FDR trace has no events without data"));
        }
        if matches!(moment.kind, MomentKind::Typed(_)) && self.version < 3 {
            return Err(cannot(moment, "kind", &format!("version {} has no typed events", self.version)));
        }
        let is_lost = match self.version {
            1 => moment.process != 0,
            2 => moment.process != 0 && moment.process != moment.thread,
            _ => false,
        };
        if is_lost {
            let (version, process) = (self.version, moment.process);
            return Err(cannot(moment, "process", &format!("version {version} has no process ids, found {process}")));
        }
        Ok(())
    }

    fn flush_all(&mut self, out: &mut Out<'_>, outcome: &mut Outcome) -> Result<(), Error> {
        for (key, buffer) in std::mem::take(&mut self.threads) {
            self.flush(key, &buffer, out, outcome)?;
        }
        Ok(())
    }

    fn flush(&self, key: (u32, u32), buffer: &Buffer, out: &mut Out<'_>, outcome: &mut Outcome) -> Result<(), Error> {
        let (process, thread) = (key.0.cast_signed(), key.1.cast_signed());
        let layout = self.layout;
        let frequency = u128::from(self.cycle_frequency.max(1));
        let micros = u128::from(buffer.first) * 1_000_000 / frequency;
        let seconds = u64::try_from(micros / 1_000_000).unwrap_or(u64::MAX);
        let micros = u32::try_from(micros % 1_000_000).unwrap_or(0);
        let has_process = self.version >= 3 && process != 0;
        let preamble = METADATA_BYTES * (2 + usize::from(has_process));
        let put = |out: &mut Vec<u8>, body| put_metadata(out, &Metadata { body, reserved: &[] }, layout);
        let start = out.position();
        if self.version >= 2 {
            put(&mut out.buffer, Body::BufferExtents { bytes: (preamble + buffer.body.len()) as u64 });
        }
        put(&mut out.buffer, Body::NewBuffer { thread });
        put(&mut out.buffer, Body::WallTime { seconds, micros });
        if has_process {
            put(&mut out.buffer, Body::Pid { process });
        }
        out.put(&buffer.body)?;
        outcome.records_written += 3 + u64::from(has_process) + buffer.records;
        if self.version == 1 {
            put(&mut out.buffer, Body::EndOfBuffer);
            let used = usize::try_from(out.position() - start).unwrap_or(BUFFER_BYTES);
            out.put(&vec![0; BUFFER_BYTES.saturating_sub(used)])?;
        }
        Ok(())
    }
}

impl Buffer {
    fn metadata(&mut self, body: Body<'_>, layout: Orders) {
        put_metadata(&mut self.body, &Metadata { body, reserved: &[] }, layout);
        self.records += 1;
    }

    fn moment(&mut self, moment: &Moment<'_>, layout: Orders, version: u16) -> Result<(), Error> {
        if self.cpu != moment.cpu {
            (self.cpu, self.base) = (moment.cpu, moment.tsc);
            self.metadata(Body::NewCpu { cpu: moment.cpu, tsc: moment.tsc }, layout);
        }
        let data = moment.data;
        match moment.kind {
            MomentKind::Function(kind) => {
                let delta = match u32::try_from(moment.tsc.wrapping_sub(self.base)) {
                    Ok(delta) if delta <= i32::MAX.cast_unsigned() => delta,
                    _ => {
                        // What the runtime does where time goes backwards or jumps too far for a delta (page, section
                        // 1.3).
                        self.metadata(Body::TscWrap { tsc: moment.tsc }, layout);
                        0
                    }
                };
                self.base = moment.tsc;
                put_function(&mut self.body, &Function { kind, id: moment.function, delta }, layout);
                self.records += 1;
                for value in moment.arguments {
                    self.metadata(Body::CallArgument { value: *value }, layout);
                }
            }
            MomentKind::Custom if version < 4 => {
                self.metadata(Body::CustomEvent { time: CustomTime::Absolute { tsc: moment.tsc }, data }, layout);
            }
            MomentKind::Custom if version == 4 => {
                let time = CustomTime::OnCpu { tsc: moment.tsc, cpu: moment.cpu };
                self.metadata(Body::CustomEvent { time, data }, layout);
            }
            MomentKind::Custom => {
                let time = CustomTime::Delta { delta: self.event_delta(moment.tsc, layout) };
                self.metadata(Body::CustomEvent { time, data }, layout);
            }
            MomentKind::Typed(event_type) => {
                let delta = self.event_delta(moment.tsc, layout);
                self.metadata(Body::TypedEvent { delta, event_type, data }, layout);
            }
        }
        Ok(())
    }

    fn event_delta(&mut self, tsc: u64, layout: Orders) -> i32 {
        let delta = i32::try_from(tsc.wrapping_sub(self.base).cast_signed());
        self.base = tsc;
        delta.unwrap_or_else(|_| {
            self.metadata(Body::TscWrap { tsc }, layout);
            0
        })
    }
}
