//! The text that `perf script` prints of samples with stacks, for FlameGraph's `stackcollapse-perf.pl`, inferno,
//! speedscope and Firefox Profiler.
//!
//! A sample is an interval in which a track's stack did not change and something was open: its period is the length in
//! nanoseconds, its time the beginning of the interval. Periods of a stack thus add up to its self time. An interval
//! without a length has no sample: readers take a period of 0 for 1. Times are seconds, and begin as in
//! [`crate::chrome`], at most a day before the origin of the trace: JavaScript still expresses nanoseconds of them.
//!
//! A sample has at most [`STACK_MAX`] names, as perf's own have, counted from the outermost; what is open inside
//! them is the name `[deeper]`, one sample as long as it lasts: a deep recursion does not make a long output. Memory
//! grows with names, tracks and open spans.
//!
//! Form of a sample: `perf_sample__fprintf_start` and `sample__fprintf_callchain` of Linux, `tools/perf`, with `--ns`:
//! `COMM PID/TID [CPU] SECONDS: PERIOD EVENT: `, a line for each name, innermost first, and an empty line.

use anytrace_core::span::{Edge, EdgeBatch, EdgeKind, Location, NO_CPU, NameId, SpanSource, Track, TrackId};
use anytrace_core::{Error, SpanSink, text};

use crate::chrome::LEAD_NS;
use crate::pen::Pen;
use crate::timeline::clock::Clock;
use crate::timeline::numbers::Numbering;
use crate::timeline::output::{Outlet, Timeline};
use crate::timeline::words::{Fragments, cpu, label, shown};

/// Most names of a sample: what the kernel keeps by default (`kernel.perf_event_max_stack`).
pub(crate) const STACK_MAX: usize = 127;

/// The line of everything below [`STACK_MAX`] names.
const DEEPER: &[u8] = b"\t               0 [deeper] ([unknown])\n";

/// Samples being written.
pub(crate) struct PerfScript<'a> {
    pen: Pen<'a>,
    form: Form,
    numbering: Numbering,
    threads: Vec<Thread>,
}

/// What samples are written with.
#[derive(Default)]
struct Form {
    clock: Clock,
    /// The time of the origin in the output.
    lead_ns: i64,
    /// The first part of a sample of each track: comm, process and thread.
    heads: Fragments,
    /// The line of each name.
    lines: Fragments,
}

/// The state of a track. `since` and `cpu` are those of the sample that is not written yet.
struct Thread {
    open: Vec<NameId>,
    since: u64,
    cpu: u16,
}

impl<'a> PerfScript<'a> {
    pub(crate) fn new(outlet: Outlet<'a>) -> Self {
        let numbering = Numbering::default();
        Self { pen: Pen::new(outlet.out), form: Form::default(), numbering, threads: Vec::new() }
    }

    fn edge(&mut self, edge: &Edge) -> Result<(), Error> {
        let is_begin = match edge.kind {
            EdgeKind::Begin => true,
            EdgeKind::End => false,
            _ => return Ok(()),
        };
        let Some(thread) = self.threads.get_mut(edge.track as usize) else { return Ok(()) };
        let after = if is_begin { thread.open.len() + 1 } else { thread.open.len().saturating_sub(1) };
        // The sample stays the same where the stack changes among names that are not written.
        if thread.open.len().min(after) <= STACK_MAX {
            if !thread.open.is_empty() {
                self.form.sample(&mut self.pen.bytes, edge.track, thread, edge.time);
            }
            thread.since = thread.since.max(edge.time);
            thread.cpu = edge.cpu;
        }
        if is_begin {
            thread.open.push(edge.name);
        } else {
            thread.open.pop();
        }
        self.pen.rest()
    }
}

impl Form {
    /// Writes the sample of a track that ends at a time, unless it has no length.
    fn sample(&self, out: &mut Vec<u8>, track: TrackId, thread: &Thread, end: u64) {
        let start_ns = self.at(thread.since);
        let period = self.at(end).saturating_sub(start_ns);
        if period == 0 {
            return;
        }
        out.extend_from_slice(self.heads.get(track));
        if let Some(cpu) = cpu(thread.cpu) {
            out.push(b'[');
            push_padded(out, u64::from(cpu), 3, b'0');
            out.extend_from_slice(b"] ");
        }
        push_padded(out, start_ns / 1_000_000_000, 5, b' ');
        out.push(b'.');
        push_padded(out, start_ns % 1_000_000_000, 9, b'0');
        out.extend_from_slice(b": ");
        push_padded(out, period, 10, b' ');
        out.push(b' ');
        let event = if self.clock.is_real() { "time" } else { self.clock.word() };
        out.extend_from_slice(event.as_bytes());
        out.extend_from_slice(b": \n");
        if thread.open.len() > STACK_MAX {
            out.extend_from_slice(DEEPER);
        }
        for name in thread.open.iter().take(STACK_MAX).rev() {
            out.extend_from_slice(self.lines.get(*name));
        }
        out.push(b'\n');
    }

    fn at(&self, time: u64) -> u64 {
        u64::try_from(self.clock.since_origin(time).saturating_add(self.lead_ns)).unwrap_or(0)
    }
}

/// A number with leading fill, up to a width.
fn push_padded(out: &mut Vec<u8>, number: u64, width: usize, fill: u8) {
    let digits = number.checked_ilog10().map_or(1, |log| log as usize + 1);
    out.resize(out.len() + width.saturating_sub(digits), fill);
    text::push_dec(out, number);
}

/// The command name of a track, in one line. Readers end it at the first number that follows a space, so that there it
/// gets `_`; and they expect two characters or more.
fn comm(track: &Track) -> String {
    let name = match (&track.name, &track.process_name) {
        (Some(_), _) => label(track),
        (None, Some(process)) => label(&Track { name: Some(process.clone()), ..track.clone() }),
        // As perf calls a thread without a name.
        (None, None) => label(&Track { name: Some(format!(":{}", track.thread)), ..track.clone() }),
    };
    let mut comm = String::with_capacity(name.len());
    for c in name.trim().chars() {
        if c.is_ascii_digit() && comm.ends_with(' ') {
            comm.pop();
            comm.push('_');
        }
        comm.push(if c.is_whitespace() || c.is_control() { ' ' } else { c });
    }
    while comm.len() < 2 || comm.starts_with('#') {
        comm.insert(0, '_');
    }
    comm
}

impl SpanSink for PerfScript<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.form.clock = Clock::new(source);
        self.form.lead_ns = self.form.clock.length(source.origin).min(LEAD_NS).cast_signed();
        Ok(())
    }

    fn wants_lives(&self) -> bool {
        false
    }

    fn wants_attributes(&self) -> bool {
        false
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        let numbers = self.numbering.of(track);
        self.threads.push(Thread { open: Vec::new(), since: 0, cpu: NO_CPU });
        self.form.heads.add(|out| {
            out.extend_from_slice(comm(track).as_bytes());
            out.push(b' ');
            push_padded(out, u64::from(numbers.process), 7, b' ');
            out.push(b'/');
            out.extend_from_slice(format!("{:<7} ", numbers.thread).as_bytes());
        });
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], _location: Option<&Location>) -> Result<(), Error> {
        let name = shown(name);
        let name = name.trim();
        self.form.lines.add(|out| {
            // The address and the file are not known, which perf prints like this.
            out.extend_from_slice(b"\t               0 ");
            if name.is_empty() {
                out.extend_from_slice(b"[unknown]");
            }
            out.extend(name.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
            out.extend_from_slice(b" ([unknown])\n");
        });
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        batch.edges().iter().try_for_each(|edge| self.edge(edge))
    }
}

impl Timeline for PerfScript<'_> {
    fn finish(&mut self) -> Result<(), Error> {
        // Not in front, where programs look for the first sample.
        if let Some(note) = self.form.clock.note() {
            self.pen.push("# ");
            self.pen.push(&note);
            self.pen.push("\n");
        }
        self.pen.finish()
    }
}
