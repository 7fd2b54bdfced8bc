//! A decoder that is slow, strict and simple: one record after the other, as the page defines them.

/// The meaning of a record, whatever its form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct What {
    pub thread: u32,
    pub process: u32,
    pub tsc: u64,
    pub cpu: u16,
    pub kind: String,
    pub id: u32,
    pub arguments: Vec<u64>,
    pub event_type: u32,
    pub data: Vec<u8>,
}

/// A record with a meaning of its own, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub what: What,
    /// Number among all records on the wire.
    pub seq: u64,
    pub buffer: u64,
    /// Offset after the record, and after each of its arguments.
    pub end: usize,
    pub argument_ends: Vec<usize>,
}

pub struct Slow<'a> {
    bytes: &'a [u8],
    big: bool,
    version: u64,
    pub entries: Vec<Entry>,
    /// Offset and end of every record on the wire.
    pub records: Vec<(usize, usize)>,
}

const FUNCTIONS: [&str; 4] = ["function-enter", "function-exit", "function-tail-exit", "function-enter-arg"];

/// Decodes a trace without damage.
pub fn decode(bytes: &[u8]) -> Slow<'_> {
    let mut slow = Slow { bytes, big: bytes[0] == 0, version: 0, entries: Vec::new(), records: Vec::new() };
    if bytes.starts_with(b"---") {
        slow.yaml();
        return slow;
    }
    slow.version = slow.uint(0, 2);
    if slow.uint(2, 2) == 1 {
        slow.fdr()
    } else {
        slow.basic()
    }
    slow
}

/// The meanings alone, in order.
pub fn meanings(bytes: &[u8]) -> Vec<What> {
    decode(bytes).entries.into_iter().map(|entry| entry.what).collect()
}

/// Grouped by thread, in order within each: forms with a buffer per thread preserve no other order.
pub fn by_thread(mut all: Vec<What>) -> Vec<What> {
    all.sort_by_key(|what| (what.thread, what.process));
    all
}

impl Slow<'_> {
    fn uint(&self, at: usize, length: usize) -> u64 {
        let bytes = &self.bytes[at..at + length];
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        if self.big { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
    }

    fn int(&self, at: usize) -> i64 {
        i64::from(u32::try_from(self.uint(at, 4)).unwrap().cast_signed())
    }

    fn kind(&self, at: usize) -> Option<u8> {
        let byte = self.bytes[at];
        if self.big { (byte >= 0x80).then_some(byte & 0x7f) } else { (byte % 2 == 1).then_some(byte / 2) }
    }

    fn fdr(&mut self) {
        let size = usize::try_from(self.uint(16, 8)).unwrap();
        let (mut at, mut buffer) = (32, 0);
        while at < self.bytes.len() {
            let start = at;
            let end = if self.version == 1 {
                self.bytes.len()
            } else {
                // Between buffers: up to extents that a new buffer follows.
                while at + 16 < self.bytes.len() && !(self.kind(at) == Some(7) && self.kind(at + 16) == Some(0)) {
                    at += 1;
                }
                if at + 16 >= self.bytes.len() {
                    return;
                }
                self.records.push((at, at + 16));
                at += 16;
                at + usize::try_from(self.uint(at - 15, 8)).unwrap()
            };
            at = self.buffer(at, end, buffer);
            if self.version == 1 && size > 0 {
                at = start + size;
            }
            buffer += 1;
        }
    }

    /// Reads one buffer; returns the offset after it.
    fn buffer(&mut self, mut at: usize, end: usize, buffer: u64) -> usize {
        let (mut thread, mut process, mut cpu, mut base) = (0, 0, 0, 0_u64);
        while at < end {
            let seq = self.records.len() as u64;
            let Some(kind) = self.kind(at) else {
                let word = u32::try_from(self.uint(at, 4)).unwrap();
                let (kind, id) = if self.big { (word >> 28, word & 0x0fff_ffff) } else { (word >> 1 & 7, word >> 4) };
                base = base.wrapping_add(self.uint(at + 4, 4));
                let kind = FUNCTIONS[kind as usize].to_owned();
                let what =
                    What { thread, process, tsc: base, cpu, kind, id, arguments: vec![], event_type: 0, data: vec![] };
                self.records.push((at, at + 8));
                at += 8;
                self.entries.push(Entry { what, seq, buffer, end: at, argument_ends: vec![] });
                continue;
            };
            let mut length = 16;
            if kind == 5 || kind == 8 {
                length += usize::try_from(self.int(at + 1)).unwrap();
                let is_own_time = kind == 5 && self.version < 5;
                let tsc = if is_own_time { self.uint(at + 5, 8) } else { base.wrapping_add_signed(self.int(at + 5)) };
                base = if is_own_time { base } else { tsc };
                let cpu = if kind == 5 && self.version == 4 { self.uint(at + 13, 2) as u16 } else { cpu };
                let event_type = if kind == 8 { self.uint(at + 9, 2) as u32 } else { 0 };
                let kind = if kind == 8 { "typed-event" } else { "custom-event" }.to_owned();
                let data = self.bytes[at + 16..at + length].to_vec();
                let what = What { thread, process, tsc, cpu, kind, id: 0, arguments: vec![], event_type, data };
                self.entries.push(Entry { what, seq, buffer, end: at + length, argument_ends: vec![] });
            }
            match kind {
                0 => {
                    thread = self.uint(at + 1, 4) as u32;
                    process = if self.version == 2 { thread } else { 0 };
                }
                2 => (cpu, base) = (self.uint(at + 1, 2) as u16, self.uint(at + 3, 8)),
                3 => base = self.uint(at + 1, 8),
                6 => {
                    let value = self.uint(at + 1, 8);
                    let owner = self.entries.last_mut().unwrap();
                    owner.what.arguments.push(value);
                    owner.argument_ends.push(at + 16);
                }
                9 => process = self.uint(at + 1, 4) as u32,
                1 | 4 | 5 | 8 => {}
                other => panic!("record of kind {other} at {at}"),
            }
            self.records.push((at, at + length));
            at += length;
            if kind == 1 {
                break;
            }
        }
        at
    }

    fn basic(&mut self) {
        for at in (32..self.bytes.len()).step_by(32) {
            self.records.push((at, at + 32));
            let id = self.uint(at + 4, 4) as u32;
            if self.uint(at, 2) == 1 {
                let (value, thread) = (self.uint(at + 16, 8), self.uint(at + 8, 4));
                let owner = self.entries.last_mut().unwrap();
                assert_eq!((owner.what.id, u64::from(owner.what.thread)), (id, thread));
                owner.what.arguments.push(value);
                owner.argument_ends.push(at + 32);
                continue;
            }
            let process = if self.version == 3 { self.uint(at + 20, 4) as u32 } else { 0 };
            let kind = FUNCTIONS[usize::from(self.bytes[at + 3])].to_owned();
            let (thread, tsc, cpu) =
                (self.uint(at + 16, 4) as u32, self.uint(at + 8, 8), u16::from(self.bytes[at + 2]));
            let what = What { thread, process, tsc, cpu, kind, id, arguments: vec![], event_type: 0, data: vec![] };
            let seq = self.records.len() as u64 - 1;
            self.entries.push(Entry { what, seq, buffer: 0, end: at + 32, argument_ends: vec![] });
        }
    }

    /// Entries of one line each, as the peer writes them.
    fn yaml(&mut self) {
        let mut at = 0;
        for line in self.bytes.split_inclusive(|&b| b == b'\n') {
            at += line.len();
            let Some(body) = line.strip_prefix(b"  - {") else { continue };
            let fields = fields(std::str::from_utf8(body).unwrap());
            let get = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
            let number = |name: &str| get(name).map_or(0, |v| String::from_utf8(v).unwrap().parse::<i128>().unwrap());
            let kind = String::from_utf8(get("kind").unwrap()).unwrap();
            let arguments = get("args").map_or(vec![], |list| {
                String::from_utf8(list).unwrap().split(',').map(|v| v.trim().parse().unwrap()).collect()
            });
            let is_event = kind.ends_with("-event");
            let argument_ends = vec![at; arguments.len()];
            let what = What {
                thread: number("thread") as u32,
                process: number("process") as u32,
                tsc: number("tsc") as u64,
                cpu: number("cpu") as u16,
                id: if is_event { 0 } else { number("func-id") as u32 },
                arguments,
                event_type: if kind == "typed-event" { number("type") as u32 } else { 0 },
                data: get("data").unwrap_or_default(),
                kind,
            };
            let seq = self.records.len() as u64;
            self.records.push((at - line.len(), at));
            self.entries.push(Entry { what, seq, buffer: 0, end: at, argument_ends });
        }
    }
}

/// Keys and values of a flow map on one line.
fn fields(text: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while let Some((key, behind)) = rest.split_once(':') {
        let key = key.trim_start_matches([',', ' ']).to_owned();
        let behind = behind.trim_start();
        let (value, length) = match behind.as_bytes()[0] {
            b'[' => {
                let end = behind.find(']').unwrap();
                (behind[1..end].trim().as_bytes().to_vec(), end + 1)
            }
            b'\'' => single(behind),
            b'"' => double(behind),
            b'!' => {
                let (start, end) = (behind.find('"').unwrap() + 1, behind.rfind('"').unwrap());
                (base64(&behind[start..end]), end + 1)
            }
            // Plain data, always the last, may contain commas.
            _ if key == "data" => (behind.as_bytes()[..behind.rfind(" }").unwrap()].to_vec(), behind.len()),
            _ => {
                let end = behind.find(',').or(behind.rfind(" }")).unwrap();
                (behind[..end].trim().as_bytes().to_vec(), end)
            }
        };
        found.push((key, value));
        rest = &behind[length..];
    }
    found
}

fn single(text: &str) -> (Vec<u8>, usize) {
    let (mut value, mut at) = (Vec::new(), 1);
    let bytes = text.as_bytes();
    loop {
        match (bytes[at], bytes.get(at + 1)) {
            (b'\'', Some(b'\'')) => at += 1,
            (b'\'', _) => return (value, at + 1),
            _ => {}
        }
        value.push(bytes[at]);
        at += 1;
    }
}

fn double(text: &str) -> (Vec<u8>, usize) {
    let (mut value, mut at) = (String::new(), 1);
    let chars: Vec<char> = text.chars().collect();
    let mut used = 1;
    while chars[at] != '"' {
        let mut c = chars[at];
        used += c.len_utf8();
        if c == '\\' {
            at += 1;
            used += 1;
            c = match chars[at] {
                '0' => '\0',
                'a' => '\x07',
                'b' => '\x08',
                't' => '\t',
                'n' => '\n',
                'v' => '\x0b',
                'f' => '\x0c',
                'r' => '\r',
                'e' => '\x1b',
                'x' => {
                    let digits: String = chars[at + 1..at + 3].iter().collect();
                    at += 2;
                    used += 2;
                    char::from(u8::from_str_radix(&digits, 16).unwrap())
                }
                other => other,
            };
        }
        value.push(c);
        at += 1;
    }
    (value.into_bytes(), used + 1)
}

fn base64(text: &str) -> Vec<u8> {
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.trim_end_matches('=').chars().map(|c| alphabet.find(c).unwrap());
    let bits: Vec<usize> = digits.flat_map(|digit| (0..6).rev().map(move |n| digit >> n & 1)).collect();
    bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | *bit as u8)).collect()
}
