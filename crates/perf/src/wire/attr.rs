//! The description of an event: `struct perf_event_attr` of Linux, `include/uapi/linux/perf_event.h`.

use anytrace_core::Endian;
use anytrace_core::bytes::array_at;

/// Bits of `sample_type`.
pub(crate) mod has {
    pub(crate) const IP: u64 = 1;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const BRANCH_STACK: u64 = 1 << 11;
    pub(crate) const REGS_USER: u64 = 1 << 12;
    pub(crate) const STACK_USER: u64 = 1 << 13;
    pub(crate) const WEIGHT: u64 = 1 << 14;
    pub(crate) const DATA_SRC: u64 = 1 << 15;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
    pub(crate) const TRANSACTION: u64 = 1 << 17;
    pub(crate) const REGS_INTR: u64 = 1 << 18;
    pub(crate) const PHYS_ADDR: u64 = 1 << 19;
    pub(crate) const AUX: u64 = 1 << 20;
    pub(crate) const CGROUP: u64 = 1 << 21;
    pub(crate) const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub(crate) const CODE_PAGE_SIZE: u64 = 1 << 23;
    pub(crate) const WEIGHT_STRUCT: u64 = 1 << 24;
    /// All that are known.
    pub(crate) const ALL: u64 = (1 << 25) - 1;
}

/// Bit of the flags: every record ends with what samples begin with.
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// Types of events.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;

const HARDWARE_NAMES: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

const SOFTWARE_NAMES: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// The description of an event, as far as it says how to read records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Attr {
    pub(crate) kind: u32,
    pub(crate) config: u64,
    pub(crate) period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) branch_sample_type: u64,
    pub(crate) regs_user: u64,
    pub(crate) regs_intr: u64,
    /// The event's name, as the recording has it or as its numbers say.
    pub(crate) name: String,
}

impl Attr {
    /// Reads a description; `None` if it is too short for the fields of 2010.
    pub(crate) fn read(bytes: &[u8], endian: Endian) -> Option<Self> {
        let word = |at| array_at::<8>(bytes, at).map(|word| endian.u64(word));
        let half = |at| array_at::<4>(bytes, at).map(|half| endian.u32(half));
        // Fields behind the length of an old description are 0.
        let length = half(4)?.max(64) as usize;
        let later = |at: usize| word(at).filter(|_| at + 8 <= length).unwrap_or(0);
        let mut attr = Self {
            kind: half(0)?,
            config: word(8)?,
            period: word(16)?,
            sample_type: word(24)?,
            read_format: word(32)?,
            flags: word(40)?,
            branch_sample_type: later(72),
            regs_user: later(80),
            regs_intr: later(96),
            name: String::new(),
        };
        attr.name = attr.usual_name();
        Some(attr)
    }

    /// Length of a description in a record, which says it itself.
    pub(crate) fn bytes(body: &[u8], endian: Endian) -> Option<usize> {
        let length = endian.u32(array_at(body, 4)?) as usize;
        (64..=body.len()).contains(&length).then_some(length)
    }

    /// True when every record ends with what samples begin with.
    pub(crate) fn has_ids(&self) -> bool {
        self.flags & SAMPLE_ID_ALL != 0
    }

    fn usual_name(&self) -> String {
        let table: &[&str] = match self.kind {
            HARDWARE => &HARDWARE_NAMES,
            SOFTWARE => &SOFTWARE_NAMES,
            TRACEPOINT => return format!("tracepoint {}", self.config),
            _ => &[],
        };
        let name = usize::try_from(self.config).ok().and_then(|at| table.get(at));
        name.map_or_else(|| format!("event {}:{:#x}", self.kind, self.config), |name| (*name).to_owned())
    }
}
