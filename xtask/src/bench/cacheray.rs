//! A large cacheray trace for the benchmark: 57 % reads, 42 % writes, a few regions that come and go.
//!
//! Figures follow a recorded trace of 52.0 M records: 13 RTTA adds in ten thousand records, one remove
//! for eight adds. Accesses walk arrays and hop between heap objects. Same bytes for the same size, always.

use std::io::{self, Write};

/// Accesses of the trace are of these sizes; eight bytes most of the time.
const SIZES: [u8; 16] = [8, 8, 8, 8, 8, 8, 8, 4, 4, 4, 4, 4, 1, 1, 2, 16];

/// Types of the regions, with their sizes in bytes.
const TYPES: [(&str, u32); 6] = [
    ("struct.Node", 48),
    ("struct.Particle", 96),
    ("class.geo::Box", 104),
    ("struct.Ring", 264),
    ("double", 3872),
    ("struct.Item", 8),
];

/// Types of the trace with few lines: about as many regions, one element each.
const SMALL_TYPES: [(&str, u32); 6] = [
    ("struct.Node", 48),
    ("struct.Particle", 96),
    ("class.geo::Box", 104),
    ("struct.Ring", 264),
    ("struct.Link", 24),
    ("struct.Item", 8),
];

/// Start of the heap and of a thread's stack, as Linux on x86-64 places them.
const HEAP: u64 = 0x5555_5575_92a0;
const STACK: u64 = 0x7fff_ffff_e000;

/// Most regions that live at once.
const LIVE_MAX: usize = 60_000;

/// Writes about `bytes` bytes of a trace; at the usual size it touches 752,000 lines.
pub(crate) fn generate(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    Program::new(false).run(out, bytes, 0)
}

/// The same with smaller objects: 115,000 lines, about as many as the recorded trace that peers were measured on.
pub(crate) fn generate_narrow(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    Program::new(true).run(out, bytes, 0)
}

/// As [`generate`], with as many regions alive from the start as ever live.
pub(crate) fn generate_live(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let mut program = Program::new(false);
    let mut adds = Vec::new();
    while program.live.len() < LIVE_MAX {
        program.allocate(&mut adds);
    }
    out.write_all(&adds)?;
    program.run(out, bytes, adds.len() as u64)
}

/// The program that is traced.
struct Program {
    random: u64,
    heap_next: u64,
    live: Vec<(u64, u32)>,
    /// Where the current array walk is, and where its object ends.
    walk: (u64, u64),
    is_narrow: bool,
}

impl Program {
    fn new(is_narrow: bool) -> Self {
        Self { random: 0x2545_f491_4f6c_dd1d, heap_next: HEAP, live: Vec::new(), walk: (HEAP, HEAP + 64), is_narrow }
    }

    /// Writes up to `bytes` bytes, of which some are written already.
    fn run(mut self, out: &mut dyn Write, bytes: u64, mut written: u64) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(1 << 16);
        while written < bytes {
            buffer.clear();
            while buffer.len() < (1 << 16) - 128 && written + (buffer.len() as u64) < bytes {
                self.step(&mut buffer);
            }
            out.write_all(&buffer)?;
            written += buffer.len() as u64;
        }
        Ok(())
    }

    fn random(&mut self) -> u64 {
        // xorshift64 (Marsaglia 2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 11
    }

    fn step(&mut self, out: &mut Vec<u8>) {
        let draw = self.random() % 100_000;
        match draw {
            0..130 => self.allocate(out),
            130..146 => self.free(out),
            _ => self.access(draw, out),
        }
    }

    fn allocate(&mut self, out: &mut Vec<u8>) {
        if self.live.len() >= LIVE_MAX {
            return self.free(out);
        }
        let kind = (self.random() % TYPES.len() as u64) as usize;
        let (name, elemsize) = if self.is_narrow { SMALL_TYPES[kind] } else { TYPES[kind] };
        let elemcount = if elemsize < 100 && !self.is_narrow { 1 + (self.random() % 12) as u32 } else { 1 };
        let size = elemsize * elemcount;
        let address = self.heap_next;
        // Chunks are multiples of 16 bytes with a header of 16, as malloc places them.
        self.heap_next += u64::from(size.next_multiple_of(16)) + 16;
        self.live.push((address, size));
        out.push(2);
        out.extend(address.to_le_bytes());
        out.extend(0_u64.to_le_bytes());
        for number in [elemsize, elemcount, name.len() as u32] {
            out.extend(number.to_le_bytes());
        }
        out.extend(name.as_bytes());
    }

    fn free(&mut self, out: &mut Vec<u8>) {
        if self.live.is_empty() {
            return self.allocate(out);
        }
        let at = (self.random() % self.live.len() as u64) as usize;
        let (address, _) = self.live.swap_remove(at);
        out.push(3);
        out.extend(address.to_le_bytes());
        out.extend(0_u64.to_le_bytes());
    }

    fn access(&mut self, draw: u64, out: &mut Vec<u8>) {
        let mut size = SIZES[(self.random() % SIZES.len() as u64) as usize];
        let address = match draw % 8 {
            // Two in three accesses touch the line before: walks over arrays.
            0..5 => self.next_of_walk(&mut size),
            5 => (STACK - (self.random() % 512) * 8) & !(u64::from(size) - 1),
            _ => {
                let object = (self.random() % self.live.len().max(1) as u64) as usize;
                let (start, bytes) = self.live.get(object).copied().unwrap_or((HEAP, 64));
                self.walk = (start + ((self.random() % u64::from(bytes)) & !7), start + u64::from(bytes));
                self.next_of_walk(&mut size)
            }
        };
        out.push(u8::from(draw % 1000 < 427));
        out.extend(address.to_le_bytes());
        out.push(size);
        out.extend(0_u64.to_le_bytes());
    }

    /// The next element of the walk; at the object's end the walk starts there again with what fits.
    fn next_of_walk(&mut self, size: &mut u8) -> u64 {
        let (mut at, end) = self.walk;
        at &= !(u64::from(*size) - 1);
        if at + u64::from(*size) > end {
            (*size, at) = (8, (end - 8) & !7);
        }
        self.walk.0 = at + u64::from(*size);
        at
    }
}
