//! Runs of made-up programs, and their bytes in every form: what a reader must find is known from how they were made.

use super::made::{BUFFER_SIZE, Made};
use super::slow::What;

/// A step of a small generator (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, below: u64) -> u64 {
        self.next() % below
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

/// What a run may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Custom events; typed ones too in versions that have them.
    pub events: bool,
    pub arguments: bool,
    pub tails: bool,
    pub processes: bool,
    /// Steps of more than 32 bits.
    pub long_steps: bool,
}

impl Parts {
    /// All that a version of FDR has. Version 2 gives the thread's number as that of the process.
    pub fn of_fdr(version: u16) -> Self {
        Self { events: true, arguments: true, tails: true, processes: version >= 3, long_steps: true }
    }

    pub fn of_basic(version: u16) -> Self {
        Self { events: false, arguments: true, tails: version >= 2, processes: version >= 3, long_steps: true }
    }
}

/// Threads, each with its buffers: what they contain, in order of time.
pub struct Run {
    pub threads: Vec<Vec<Vec<What>>>,
}

impl Run {
    pub fn make(seed: u64, parts: Parts, has_typed: bool) -> Self {
        let mut random = Random(seed);
        let threads = 1 + random.below(4);
        let threads = (0..threads).map(|n| thread(&mut random, n as u32 + 20, parts, has_typed)).collect();
        Self { threads }
    }

    /// All of it: each thread's part in order of time, one thread after another.
    pub fn all(&self) -> Vec<What> {
        self.threads.iter().flatten().flatten().cloned().collect()
    }

    /// Buffers in any order.
    pub fn fdr(&self, version: u16, big: bool, seed: u64) -> Vec<u8> {
        let size = if version == 1 { BUFFER_SIZE as u64 } else { 4096 };
        let mut made = Made { garbage: 0x5f, ..Made::header_in(big, version, 1, size) };
        let mut buffers: Vec<&Vec<What>> = self.threads.iter().flatten().collect();
        Random(seed).shuffle(&mut buffers);
        for buffer in buffers {
            let first = &buffer[0];
            let process = (version >= 3).then_some(first.process.cast_signed());
            made = made.buffer(first.thread.cast_signed(), process, first.cpu, first.tsc, |made| body(made, buffer));
        }
        made.bytes
    }

    /// Records of all threads, mixed in blocks as threads write them out.
    pub fn basic(&self, version: u16, big: bool, seed: u64) -> Vec<u8> {
        let mut made = Made { garbage: 0x5f, ..Made::header_in(big, version, 0, 0) };
        for what in self.mixed(seed) {
            let kind = KINDS.iter().position(|kind| *kind == what.kind).unwrap() as u8;
            let process = if version >= 3 { what.process } else { 0x5f5f_5f5f };
            let at = made.bytes.len();
            made = made.basic_of(kind, what.id.cast_signed(), what.tsc, what.thread, process);
            made.bytes[at + 2] = u8::try_from(what.cpu).unwrap();
            for value in &what.arguments {
                made = made.basic_argument(what.id.cast_signed(), what.thread, process, *value);
            }
        }
        made.bytes
    }

    pub fn yaml(&self, version: u16, type_code: u16, seed: u64) -> Vec<u8> {
        let mut text = format!(
            "---\nheader:\n  version: {version}\n  type: {type_code}\n  constant-tsc: true\n  nonstop-tsc: true\n  \
             cycle-frequency: 1000000000\nrecords:\n"
        );
        for what in self.mixed(seed) {
            let What { thread, process, tsc, cpu, kind, id, event_type, .. } = &what;
            text += &format!("  - {{ type: {event_type}, func-id: {id}, function: '{id}', ");
            if !what.arguments.is_empty() {
                let values: Vec<String> = what.arguments.iter().map(u64::to_string).collect();
                text += &format!("args: [ {} ], ", values.join(", "));
            }
            text += &format!("cpu: {cpu}, thread: {thread}, ");
            if *process != 0 {
                text += &format!("process: {process}, ");
            }
            // A code in quotes is a character, so bytes that are no ASCII need another form.
            let data: String = what.data.iter().map(|byte| format!("\\x{byte:02X}")).collect();
            let data = if what.data.is_ascii() { format!("\"{data}\"") } else { base64(&what.data) };
            text += &format!("kind: {kind}, tsc: {tsc}, data: {data} }}\n");
        }
        text += "...\n";
        text.into_bytes()
    }

    /// All of it in an order that keeps that of each thread, in blocks.
    fn mixed(&self, seed: u64) -> Vec<What> {
        let mut random = Random(seed);
        let mut left: Vec<Vec<What>> = self.threads.iter().map(|thread| thread.concat()).collect();
        let mut all = Vec::new();
        while !left.is_empty() {
            let at = random.below(left.len() as u64) as usize;
            let block = (1 + random.below(8) as usize).min(left[at].len());
            all.extend(left[at].drain(..block));
            left.retain(|rest| !rest.is_empty());
        }
        all
    }
}

const KINDS: [&str; 4] = ["function-enter", "function-exit", "function-tail-exit", "function-enter-arg"];

fn thread(random: &mut Random, number: u32, parts: Parts, has_typed: bool) -> Vec<Vec<What>> {
    let process = if parts.processes { 700 + number % 2 } else { 0 };
    let (mut now, mut cpu, mut open) = (1_000_000 + random.below(1000), random.below(200) as u16, Vec::new());
    (0..1 + random.below(3))
        .map(|_| {
            (0..1 + random.below(12))
                .map(|_| {
                    now += 1 + random.below(40);
                    if parts.long_steps && random.below(20) == 0 {
                        now += random.below(1 << 40);
                    }
                    if random.below(6) == 0 {
                        cpu = random.below(200) as u16;
                    }
                    let plain = What {
                        thread: number,
                        process,
                        tsc: now,
                        cpu,
                        kind: String::new(),
                        id: 0,
                        arguments: vec![],
                        event_type: 0,
                        data: vec![],
                    };
                    one(random, plain, parts, has_typed, &mut open)
                })
                .collect()
        })
        .collect()
}

/// Entries, exits that mostly match, events.
fn one(random: &mut Random, mut what: What, parts: Parts, has_typed: bool, open: &mut Vec<u32>) -> What {
    if parts.events && random.below(6) == 0 {
        what.data = (0..1 + random.below(20)).map(|_| random.next() as u8).collect();
        what.kind = "custom-event".into();
        if has_typed && random.below(2) == 0 {
            what.kind = "typed-event".into();
            what.event_type = random.below(1 << 16) as u32;
        }
        return what;
    }
    let kind = match random.below(8) {
        _ if open.is_empty() => 0,
        0..=2 => 0,
        3 if parts.tails => 2,
        _ => 1,
    };
    let with_arguments = kind == 0 && parts.arguments && random.below(3) == 0;
    what.kind = KINDS[if with_arguments { 3 } else { kind }].into();
    if with_arguments {
        what.arguments = (0..1 + random.below(3)).map(|_| random.next() >> random.below(64)).collect();
    }
    what.id = match kind {
        0 => 1 + random.below(6) as u32,
        // The exit of the innermost call is missing, or nothing was entered.
        _ if random.below(12) == 0 => 1 + random.below(8) as u32,
        _ => open.pop().unwrap(),
    };
    if kind == 0 {
        open.push(what.id);
    }
    what
}

/// The records of a buffer after its preamble, which has the processor and the time of the first.
fn body(mut made: Made, buffer: &[What]) -> Made {
    let (mut base, mut cpu) = (buffer[0].tsc, buffer[0].cpu);
    for what in buffer {
        if what.cpu != cpu {
            cpu = what.cpu;
            base = what.tsc - 1;
            made = made.on_cpu(cpu, base);
        }
        let is_absolute = what.kind == "custom-event" && made.version < 5;
        if what.tsc - base > i32::MAX as u64 && !is_absolute {
            base = what.tsc;
            made = made.wrap(base);
        }
        let delta = what.tsc - base;
        if !is_absolute {
            base = what.tsc;
        }
        made = match KINDS.iter().position(|kind| *kind == what.kind) {
            Some(kind) => made.function(kind as u32, what.id, delta as u32),
            None if what.kind == "typed-event" => made.typed_at(delta as i32, what.event_type as u16, &what.data),
            // Where the time is absolute, the delta is not written.
            None => made.custom_at(delta as u32 as i32, what.tsc, what.cpu, &what.data),
        };
        for value in &what.arguments {
            made = made.value(*value);
        }
    }
    made
}

fn base64(bytes: &[u8]) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, n| bits << 8 | three.get(n).map_or(0, |byte| usize::from(*byte)));
        let digits = (0..4).map(|n| char::from(alphabet[bits >> (18 - 6 * n) & 63]));
        text.extend(digits.take(three.len() + 1));
        text.push_str(&"=="[..3 - three.len()]);
    }
    format!("!!binary \"{text}\"")
}
