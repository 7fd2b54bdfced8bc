//! Records with their meaning: absolute time, processor, thread, process, arguments; the same for all three forms.

use anytrace_core::{Diagnostic, Error, Place};

use crate::rules;
use crate::wire::basic::BasicVisitor;
use crate::wire::fdr::{GapKind, Run, Visitor};
use crate::wire::record::{BasicBody, BasicRecord, Body, CustomTime, Function, FunctionKind, Metadata};

/// Most arguments of one function record that are converted.
pub(crate) const ARGUMENTS_MAX: usize = 4096;

/// What a [`Moment`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MomentKind {
    /// A function is entered or left.
    Function(FunctionKind),
    /// Bytes that the program defines.
    Custom,
    /// Bytes that the program defines, with a type.
    Typed(u16),
}

impl MomentKind {
    /// Name in every output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Function(kind) => kind.name(),
            Self::Custom => "custom-event",
            Self::Typed(_) => "typed-event",
        }
    }
}

/// One function record with its arguments, or one event, with time and place resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment<'a> {
    /// What it is.
    pub kind: MomentKind,
    /// Function id; 0 for events.
    pub function: u32,
    /// Name, where the trace has one (YAML).
    pub name: &'a [u8],
    /// Arguments.
    pub arguments: &'a [u64],
    /// Processor number.
    pub cpu: u16,
    /// Thread id.
    pub thread: u32,
    /// Process id; 0 where unknown.
    pub process: u32,
    /// Absolute ticks.
    pub tsc: u64,
    /// An event's payload.
    pub data: &'a [u8],
    /// Where it is stored.
    pub at: Place,
    /// Number of its buffer, from 0; 0 where there are no buffers.
    pub buffer: u64,
}

/// Receives moments in wire order.
pub trait Moments {
    /// One moment.
    ///
    /// # Errors
    /// Any error ends the walk; the same holds for the methods below.
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error>;
    /// Damage, and data that could not be converted.
    ///
    /// # Errors
    /// As [`Self::moment`].
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error>;
    /// Bytes lost to damage.
    fn lost(&mut self, _bytes: u64) {}
}

/// Time base and owner of the records of an FDR buffer (page, section 2, "TSC rule").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clock {
    /// Ticks of the last record that moves the base.
    pub tsc: u64,
    /// Processor of the last processor record.
    pub cpu: u16,
    /// Thread of the buffer.
    pub thread: i32,
    /// Process: from its record, or in version 2 the thread id.
    pub process: i32,
    version: u16,
}

impl Clock {
    /// Before the first buffer.
    pub fn new(version: u16) -> Self {
        Self { version, ..Self::default() }
    }

    /// Version of the trace.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// Returns the time of a function record.
    #[inline]
    pub fn function(&mut self, function: &Function) -> u64 {
        self.tsc = self.tsc.wrapping_add(u64::from(function.delta));
        self.tsc
    }

    /// Processes a metadata record; returns its time if it has one.
    pub fn metadata(&mut self, body: &Body<'_>) -> Option<u64> {
        match *body {
            Body::NewBuffer { thread } => {
                let process = if self.version == 2 { thread } else { 0 };
                *self = Self { thread, process, version: self.version, ..Self::default() };
                None
            }
            Body::Pid { process } => {
                self.process = process;
                None
            }
            Body::NewCpu { cpu, tsc } => {
                (self.cpu, self.tsc) = (cpu, tsc);
                Some(tsc)
            }
            Body::TscWrap { tsc } => {
                self.tsc = tsc;
                Some(tsc)
            }
            Body::CustomEvent { time: CustomTime::Delta { delta }, .. } | Body::TypedEvent { delta, .. } => {
                self.tsc = self.tsc.wrapping_add_signed(i64::from(delta));
                Some(self.tsc)
            }
            Body::CustomEvent { time: CustomTime::Absolute { tsc } | CustomTime::OnCpu { tsc, .. }, .. } => Some(tsc),
            _ => None,
        }
    }
}

/// A function record whose arguments may follow.
struct Pending {
    kind: FunctionKind,
    function: u32,
    cpu: u16,
    thread: u32,
    process: u32,
    tsc: u64,
    at: Place,
    buffer: u64,
    arguments: Vec<u64>,
    is_set: bool,
}

impl Pending {
    fn new() -> Self {
        let at = Place { offset: 0, seq: 0 };
        let (kind, arguments) = (FunctionKind::Enter, Vec::new());
        Self { kind, function: 0, cpu: 0, thread: 0, process: 0, tsc: 0, at, buffer: 0, arguments, is_set: false }
    }

    fn flush<M: Moments>(&mut self, moments: &mut M) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_set) {
            return Ok(());
        }
        moments.moment(&Moment {
            kind: MomentKind::Function(self.kind),
            function: self.function,
            name: &[],
            arguments: &self.arguments,
            cpu: self.cpu,
            thread: self.thread,
            process: self.process,
            tsc: self.tsc,
            data: &[],
            at: self.at,
            buffer: self.buffer,
        })
    }

    fn argument<M: Moments>(&mut self, value: u64, at: Place, moments: &mut M) -> Result<(), Error> {
        if !self.is_set {
            return moments.report(rules::BASIC_ARGUMENT.at(at.offset).record(at.seq).help("the argument was dropped"));
        }
        if self.arguments.len() == ARGUMENTS_MAX {
            let report = rules::ARGUMENTS_TOO_MANY.at(at.offset).record(at.seq);
            return moments.report(report.expected(format!("at most {ARGUMENTS_MAX}")));
        }
        self.arguments.push(value);
        Ok(())
    }
}

/// Turns an FDR trace into moments.
pub(crate) struct FdrMoments<'m, M> {
    moments: &'m mut M,
    clock: Clock,
    pending: Pending,
    buffers: u64,
}

impl<'m, M: Moments> FdrMoments<'m, M> {
    /// Starts.
    pub(crate) fn new(moments: &'m mut M, version: u16) -> Self {
        Self { moments, clock: Clock::new(version), pending: Pending::new(), buffers: 0 }
    }
}

impl<M: Moments> Visitor for FdrMoments<'_, M> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        for (at, function) in run.records() {
            self.pending.flush(self.moments)?;
            let tsc = self.clock.function(&function);
            let pending = &mut self.pending;
            (pending.kind, pending.function, pending.tsc, pending.at) = (function.kind, function.id, tsc, at);
            (pending.cpu, pending.thread, pending.process) =
                (self.clock.cpu, self.clock.thread.cast_unsigned(), self.clock.process.cast_unsigned());
            pending.arguments.clear();
            pending.is_set = true;
        }
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, _raw: &[u8], at: Place) -> Result<(), Error> {
        if let Body::CallArgument { value } = metadata.body {
            return self.pending.argument(value, at, self.moments);
        }
        self.pending.flush(self.moments)?;
        if let Body::NewBuffer { .. } = metadata.body {
            self.pending.buffer = self.buffers;
            self.buffers += 1;
        }
        let tsc = self.clock.metadata(&metadata.body);
        let (kind, cpu, data) = match metadata.body {
            Body::CustomEvent { time: CustomTime::OnCpu { cpu, .. }, data } => (MomentKind::Custom, cpu, data),
            Body::CustomEvent { data, .. } => (MomentKind::Custom, self.clock.cpu, data),
            Body::TypedEvent { event_type, data, .. } => (MomentKind::Typed(event_type), self.clock.cpu, data),
            _ => return Ok(()),
        };
        self.moments.moment(&Moment {
            kind,
            function: 0,
            name: &[],
            arguments: &[],
            cpu,
            thread: self.clock.thread.cast_unsigned(),
            process: self.clock.process.cast_unsigned(),
            tsc: tsc.unwrap_or(self.clock.tsc),
            data,
            at,
            buffer: self.pending.buffer,
        })
    }

    fn gap(&mut self, kind: GapKind, bytes: &[u8], _at: Place) -> Result<(), Error> {
        if kind == GapKind::Damage {
            self.moments.lost(bytes.len() as u64);
            // Arguments after it belong to a function that was lost.
            self.pending.flush(self.moments)?;
        }
        Ok(())
    }

    fn buffer_end(&mut self, _at: Place) -> Result<(), Error> {
        // A buffer that lost its first record belongs to no known thread.
        self.clock = Clock::new(self.clock.version());
        self.pending.flush(self.moments)
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.moments.report(diagnostic)
    }
}

/// Turns a Basic trace into moments; [`Self::finish`] emits the last one.
pub(crate) struct BasicMoments<'m, M> {
    moments: &'m mut M,
    version: u16,
    pending: Pending,
}

impl<'m, M: Moments> BasicMoments<'m, M> {
    /// Starts.
    pub(crate) fn new(moments: &'m mut M, version: u16) -> Self {
        Self { moments, version, pending: Pending::new() }
    }

    /// The receiver.
    #[cfg(feature = "lanes")]
    pub(crate) fn receiver(&mut self) -> &mut M {
        self.moments
    }

    /// Emits the last moment.
    ///
    /// # Errors
    /// Whatever the receiver returns.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.pending.flush(self.moments)
    }
}

impl<M: Moments> BasicVisitor for BasicMoments<'_, M> {
    fn record(&mut self, record: &BasicRecord, _raw: &[u8], at: Place) -> Result<(), Error> {
        // Process ids were added in version 3 (page, section 1.5).
        let process = if self.version >= 3 { record.process } else { 0 };
        match record.body {
            BasicBody::Function { kind, cpu, tsc } => {
                self.pending.flush(self.moments)?;
                let pending = &mut self.pending;
                (pending.kind, pending.function, pending.tsc, pending.at) = (kind, record.id.cast_unsigned(), tsc, at);
                (pending.cpu, pending.thread, pending.process) = (u16::from(cpu), record.thread, process);
                pending.arguments.clear();
                pending.is_set = true;
                Ok(())
            }
            BasicBody::Argument { value, .. } => {
                let pending = &mut self.pending;
                let fits = pending.function == record.id.cast_unsigned()
                    && pending.thread == record.thread
                    && pending.process == process;
                if !fits {
                    pending.flush(self.moments)?;
                }
                pending.argument(value, at, self.moments)
            }
        }
    }

    fn damage(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.moments.lost(bytes.len() as u64);
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.moments.report(diagnostic)
    }
}
