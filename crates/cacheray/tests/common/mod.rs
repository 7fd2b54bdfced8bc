//! A labeled builder of traces that shares no code with the crate's writer, and lookups for tests.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panic, as tests do")]
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};

/// Builds test bytes field by field and remembers where each record starts.
#[derive(Clone)]
pub(crate) struct Trace {
    pub(crate) bytes: Vec<u8>,
    pub(crate) starts: Vec<usize>,
    pub(crate) is_big: bool,
    pub(crate) pointer: usize,
}

impl Trace {
    pub(crate) fn new() -> Self {
        Self::of(false, 8)
    }

    pub(crate) fn of(is_big: bool, pointer: usize) -> Self {
        Self { bytes: Vec::new(), starts: Vec::new(), is_big, pointer }
    }

    fn number(&mut self, value: u64, width: usize) {
        let little: Vec<u8> = (0..width).map(|n| (value >> (8 * n) & 0xff) as u8).collect();
        if self.is_big {
            self.bytes.extend(little.iter().rev());
        } else {
            self.bytes.extend(little);
        }
    }

    fn start(&mut self, tag: u8, address: u64) {
        self.starts.push(self.bytes.len());
        self.bytes.push(tag);
        self.number(address, self.pointer);
    }

    pub(crate) fn access(mut self, tag: u8, address: u64, size: u8, thread: u64) -> Self {
        self.start(tag, address);
        self.number(u64::from(size), 1);
        self.number(thread, 8);
        self
    }

    pub(crate) fn read(self, address: u64, size: u8) -> Self {
        self.access(0, address, size, 0)
    }

    pub(crate) fn write(self, address: u64, size: u8) -> Self {
        self.access(1, address, size, 0)
    }

    /// An add whose name length may be wrong.
    pub(crate) fn add_raw(
        mut self,
        tag: u8,
        address: u64,
        thread: u64,
        size: (u32, u32),
        length: u32,
        name: &[u8],
    ) -> Self {
        self.start(tag, address);
        self.number(thread, 8);
        self.number(u64::from(size.0), 4);
        self.number(u64::from(size.1), 4);
        self.number(u64::from(length), 4);
        self.bytes.extend(name);
        self
    }

    pub(crate) fn add(self, address: u64, elemsize: u32, elemcount: u32, name: &[u8]) -> Self {
        let length = u32::try_from(name.len()).unwrap();
        self.add_raw(2, address, 0, (elemsize, elemcount), length, name)
    }

    pub(crate) fn remove_raw(mut self, tag: u8, address: u64, thread: u64) -> Self {
        self.start(tag, address);
        self.number(thread, 8);
        self
    }

    pub(crate) fn remove(self, address: u64) -> Self {
        self.remove_raw(3, address, 0)
    }

    /// Bytes that are not a record.
    pub(crate) fn rubbish(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    /// `count` ordinary accesses from `HEAP` on.
    pub(crate) fn ordinary(mut self, count: u64) -> Self {
        for n in 0..count {
            let address = heap(self.pointer) + 0x100 + n % 32 * 8;
            self = self.access((n % 2) as u8, address, 8, 0);
        }
        self
    }
}

/// An address that a program of the pointer width can have.
pub(crate) fn heap(pointer: usize) -> u64 {
    if pointer == 8 { 0x5555_dead_b000 } else { 0x0849_b000 }
}

pub(crate) const HEAP: u64 = 0x5555_dead_b000;

/// All four layouts: big-endian, pointer width.
pub(crate) const LAYOUTS: [(bool, usize); 4] = [(false, 8), (true, 8), (false, 4), (true, 4)];

/// The crate's own copies of samples.
pub(crate) fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Every trace under a corpus folder, by name, in order.
pub(crate) fn traces(root: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for folder in ["traces", "broken"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "trace") {
                let stem = path.file_stem().unwrap().to_str().unwrap();
                found.push((format!("{folder}/{stem}"), path));
            }
        }
    }
    found.sort();
    found
}

/// Bytes of one of the crate's own samples.
pub(crate) fn sample(name: &str) -> Vec<u8> {
    std::fs::read(corpus().join(format!("{name}.trace"))).unwrap_or_else(|e| panic!("{name}: {e}"))
}
