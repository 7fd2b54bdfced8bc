//! Counts records, functions, threads and times in one pass.

use std::collections::BTreeSet;

use anytrace_core::bytes::array_at;
use anytrace_core::{Diagnostic, Endian, Error, Info, Limits, Place, Sink, Tally, TimeRange};
use serde_json::Value;

use crate::wire::basic::BasicVisitor;
use crate::wire::fdr::{GapKind, Run, Visitor};
use crate::wire::moment::{Clock, Moment, Moments};
use crate::wire::record::{BasicBody, BasicRecord, BitOrder, Body, FUNCTION_BYTES, KIND_NAMES, Metadata, Orders, kind};

/// Most processes and processors listed by number.
const NAMED_MAX: usize = 1024;

/// Ids below this within an object are kept in a bitmap.
const BITMAP_IDS: usize = 1 << 16;

/// Distinct function ids: a bitmap for the small local ids of 16 objects, a bounded set for the rest.
struct Functions {
    bits: Box<[u64]>,
    others: BTreeSet<u32>,
    distinct_max: usize,
}

impl Functions {
    fn new(distinct_max: usize) -> Self {
        Self { bits: vec![0; 16 * BITMAP_IDS / 64].into_boxed_slice(), others: BTreeSet::new(), distinct_max }
    }

    #[inline(always)]
    fn add(&mut self, id: u32) {
        // Object in bits 24 to 27, local id below it (page, section 1.3, DSOs).
        let slot = ((id >> 24 & 15) as usize * BITMAP_IDS + (id as usize & (BITMAP_IDS - 1))) / 64;
        match self.bits.get_mut(slot) {
            Some(word) if id & 0xf0ff_0000 == 0 => *word |= 1 << (id & 63),
            _ => self.add_other(id),
        }
    }

    #[cold]
    fn add_other(&mut self, id: u32) {
        if self.others.len() < self.distinct_max {
            self.others.insert(id);
        }
    }

    fn count(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum::<u64>() + self.others.len() as u64
    }
}

/// Counts of one trace, whatever its form.
pub(crate) struct Counter<'s> {
    sink: &'s mut dyn Sink,
    layout: Orders,
    clock: Clock,
    kinds: [u64; KIND_NAMES.len()],
    threads: Tally,
    functions: Functions,
    processes: BTreeSet<u32>,
    processors: BTreeSet<u16>,
    time: Option<(u64, u64)>,
    buffers: u64,
    /// Records of this buffer, and whether its thread is known.
    in_buffer: u64,
    has_thread: bool,
    gap_bytes: u64,
    damaged_bytes: u64,
    payload_bytes: u64,
}

impl<'s> Counter<'s> {
    pub(crate) fn new(sink: &'s mut dyn Sink, layout: Orders, version: u16, limits: &Limits) -> Self {
        Self {
            sink,
            layout,
            clock: Clock::new(version),
            kinds: [0; KIND_NAMES.len()],
            threads: Tally::new(limits.distinct_max),
            functions: Functions::new(limits.distinct_max),
            processes: BTreeSet::new(),
            processors: BTreeSet::new(),
            time: None,
            buffers: 0,
            in_buffer: 0,
            has_thread: false,
            gap_bytes: 0,
            damaged_bytes: 0,
            payload_bytes: 0,
        }
    }

    fn time(&mut self, tsc: u64) {
        let (start, end) = self.time.unwrap_or((tsc, tsc));
        self.time = Some((start.min(tsc), end.max(tsc)));
    }

    fn count(&mut self, kind: usize) {
        if let Some(count) = self.kinds.get_mut(kind) {
            *count += 1;
        }
    }

    fn process(&mut self, process: u32) {
        if process != 0 && self.processes.len() < NAMED_MAX {
            self.processes.insert(process);
        }
    }

    fn processor(&mut self, cpu: u16) {
        if self.processors.len() < NAMED_MAX {
            self.processors.insert(cpu);
        }
    }

    /// Stores the counts into an [`Info`].
    pub(crate) fn fill(self, info: &mut Info, cycle_frequency: u64, has_buffers: bool) {
        info.set_kinds(KIND_NAMES.iter().copied().zip(self.kinds));
        info.threads = self.threads.into_rows(|thread| (thread as i64).to_string());
        info.time = self.time.map(|(start, end)| TimeRange {
            start,
            end,
            unit: "tick",
            per_second: (cycle_frequency > 0).then_some(cycle_frequency),
            epoch_ns: None,
        });
        let list = |values: Vec<u64>| Value::from(values);
        if has_buffers {
            info.details.push(("buffers", Value::from(self.buffers)));
        }
        info.details.push(("functions", Value::from(self.functions.count())));
        info.details.push(("processes", list(self.processes.iter().map(|&p| u64::from(p)).collect())));
        info.details.push(("cpus", list(self.processors.iter().map(|&p| u64::from(p)).collect())));
        if self.payload_bytes > 0 {
            info.details.push(("event_bytes", Value::from(self.payload_bytes)));
        }
        if self.gap_bytes > 0 {
            info.details.push(("gap_bytes", Value::from(self.gap_bytes)));
        }
        if self.damaged_bytes > 0 {
            info.details.push(("damaged_bytes", Value::from(self.damaged_bytes)));
        }
    }
}

impl Visitor for Counter<'_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        let first = match run.records().next() {
            Some((_, function)) => self.clock.tsc.wrapping_add(u64::from(function.delta)),
            None => return Ok(()),
        };
        let (packed, sum) = tally(run.bytes, self.layout, &mut self.functions);
        for (count, kind) in self.kinds.iter_mut().zip(0..4) {
            *count += packed >> (16 * kind) & 0xffff;
        }
        self.in_buffer += run.len();
        self.time(first);
        match self.clock.tsc.checked_add(sum) {
            Some(last) => {
                self.clock.tsc = last;
                self.time(last);
            }
            // The counter overflows: times within the run do not lie between the first and the last.
            None => run.records().for_each(|(_, function)| {
                let tsc = self.clock.function(&function);
                self.time(tsc);
            }),
        }
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, _raw: &[u8], _at: Place) -> Result<(), Error> {
        self.count(4 + usize::from(metadata.body.number()));
        self.in_buffer += 1;
        if let Some(tsc) = self.clock.metadata(&metadata.body) {
            self.time(tsc);
        }
        match metadata.body {
            Body::NewBuffer { .. } => {
                self.buffers += 1;
                self.has_thread = true;
            }
            Body::NewCpu { cpu, .. } => self.processor(cpu),
            Body::Pid { process } => self.process(process.cast_unsigned()),
            Body::CustomEvent { data, .. } | Body::TypedEvent { data, .. } => self.payload_bytes += data.len() as u64,
            _ => {}
        }
        Ok(())
    }

    fn gap(&mut self, kind: GapKind, bytes: &[u8], _at: Place) -> Result<(), Error> {
        match kind {
            GapKind::Damage => self.damaged_bytes += bytes.len() as u64,
            GapKind::Filler | GapKind::Between => self.gap_bytes += bytes.len() as u64,
        }
        Ok(())
    }

    fn buffer_end(&mut self, _at: Place) -> Result<(), Error> {
        if std::mem::take(&mut self.has_thread) {
            self.threads.add(i64::from(self.clock.thread).cast_unsigned(), self.in_buffer);
        }
        self.in_buffer = 0;
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

/// Four 16-bit counts by kind, and the sum of the deltas. A run has at most 2,048 records.
fn tally(bytes: &[u8], layout: Orders, functions: &mut Functions) -> (u64, u64) {
    let (mut packed, mut sum) = (0_u64, 0_u64);
    if layout.endian == Endian::Little && layout.bits == BitOrder::Low {
        for record in bytes.as_chunks::<FUNCTION_BYTES>().0 {
            let word = u64::from_le_bytes(*record);
            packed += 1 << (16 * (word >> 1 & 3));
            sum += word >> 32;
            functions.add(word as u32 >> 4);
        }
        return (packed, sum);
    }
    for record in bytes.as_chunks::<FUNCTION_BYTES>().0 {
        let (kind, id) = layout.function_word(array_at(record, 0).unwrap_or_default());
        packed += 1 << (16 * u64::from(kind & 3));
        sum += u64::from(layout.endian.u32(array_at(record, 4).unwrap_or_default()));
        functions.add(id);
    }
    (packed, sum)
}

impl BasicVisitor for Counter<'_> {
    fn record(&mut self, record: &BasicRecord, _raw: &[u8], _at: Place) -> Result<(), Error> {
        self.threads.add(u64::from(record.thread), 1);
        match record.body {
            BasicBody::Function { kind, cpu, tsc } => {
                self.count(kind as usize);
                self.functions.add(record.id.cast_unsigned());
                self.processor(u16::from(cpu));
                self.time(tsc);
            }
            BasicBody::Argument { .. } => self.count(4 + usize::from(kind::CALL_ARGUMENT)),
        }
        if self.clock.version() >= 3 {
            self.process(record.process);
        }
        Ok(())
    }

    fn damage(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.damaged_bytes += bytes.len() as u64;
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

impl Moments for Counter<'_> {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        use crate::wire::moment::MomentKind;
        self.threads.add(u64::from(moment.thread), 1);
        match moment.kind {
            MomentKind::Function(kind) => {
                self.count(kind as usize);
                self.functions.add(moment.function);
            }
            MomentKind::Custom => self.count(4 + usize::from(kind::CUSTOM_EVENT)),
            MomentKind::Typed(_) => self.count(4 + usize::from(kind::TYPED_EVENT)),
        }
        self.processor(moment.cpu);
        self.process(moment.process);
        self.payload_bytes += moment.data.len() as u64;
        self.time(moment.tsc);
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn lost(&mut self, bytes: u64) {
        self.damaged_bytes += bytes;
    }
}
