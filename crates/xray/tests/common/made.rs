//! A builder of traces from labeled parts, in either byte order and any version.

use std::collections::BTreeMap;

/// Makes bytes and remembers where each labeled part begins.
#[derive(Default, Clone)]
pub struct Made {
    pub bytes: Vec<u8>,
    pub labels: BTreeMap<&'static str, usize>,
    pub big: bool,
    pub version: u16,
    /// The value of bytes that no field uses.
    pub garbage: u8,
}

impl Made {
    pub fn header(version: u16, type_code: u16, buffer_size: u64) -> Self {
        Self::header_in(false, version, type_code, buffer_size)
    }

    pub fn header_in(big: bool, version: u16, type_code: u16, buffer_size: u64) -> Self {
        let made = Self { big, version, ..Self::default() };
        let flags = if big { 0xc000_0000 } else { 3 };
        made.u16(version).u16(type_code).u32(flags).u64(1_000_000_000).u64(buffer_size).u64(0)
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn label(mut self, label: &'static str) -> Self {
        self.labels.insert(label, self.bytes.len());
        self
    }

    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.push(bytes);
        self
    }

    pub fn u16(self, value: u16) -> Self {
        let bytes = if self.big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.raw(&bytes)
    }

    pub fn u32(self, value: u32) -> Self {
        let bytes = if self.big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.raw(&bytes)
    }

    pub fn u64(self, value: u64) -> Self {
        let bytes = if self.big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.raw(&bytes)
    }

    fn i32(self, value: i32) -> Self {
        self.u32(value.cast_unsigned())
    }

    /// Sixteen bytes of metadata.
    pub fn meta(self, kind: u8, fields: impl FnOnce(Self) -> Self) -> Self {
        let end = self.bytes.len() + 16;
        let first = if self.big { 0x80 | kind } else { kind << 1 | 1 };
        let mut made = fields(self.raw(&[first]));
        assert!(made.bytes.len() <= end);
        let garbage = made.garbage;
        made.bytes.resize(end, garbage);
        made
    }

    pub fn extents(self, bytes: u64) -> Self {
        self.meta(7, |made| made.u64(bytes))
    }

    pub fn thread(self, thread: i32) -> Self {
        self.meta(0, |made| made.i32(thread))
    }

    pub fn end_of_buffer(self) -> Self {
        self.meta(1, |made| made)
    }

    pub fn wall(self) -> Self {
        self.meta(4, |made| made.u64(5).u32(6))
    }

    pub fn pid(self, process: i32) -> Self {
        self.meta(9, |made| made.i32(process))
    }

    pub fn cpu(self, tsc: u64) -> Self {
        self.on_cpu(1, tsc)
    }

    pub fn on_cpu(self, cpu: u16, tsc: u64) -> Self {
        self.meta(2, |made| made.u16(cpu).u64(tsc))
    }

    pub fn wrap(self, tsc: u64) -> Self {
        self.meta(3, |made| made.u64(tsc))
    }

    pub fn function(self, kind: u32, id: u32, delta: u32) -> Self {
        let word = if self.big { kind << 28 | id } else { id << 4 | kind << 1 };
        self.u32(word).u32(delta)
    }

    pub fn typed(self, data: &[u8]) -> Self {
        self.typed_at(1, 7, data)
    }

    pub fn typed_at(self, delta: i32, event_type: u16, data: &[u8]) -> Self {
        let size = i32::try_from(data.len()).unwrap();
        self.meta(8, |made| made.i32(size).i32(delta).u16(event_type)).raw(data)
    }

    /// Version 5, with any size.
    pub fn custom(self, size: i32, data: &[u8]) -> Self {
        self.meta(5, |made| made.i32(size).i32(1)).raw(data)
    }

    /// For any version: `delta` in version 5, `tsc` before, `cpu` in version 4.
    pub fn custom_at(self, delta: i32, tsc: u64, cpu: u16, data: &[u8]) -> Self {
        let (size, version) = (i32::try_from(data.len()).unwrap(), self.version);
        self.meta(5, |made| match version {
            0..=3 => made.i32(size).u64(tsc),
            4 => made.i32(size).u64(tsc).u16(cpu),
            _ => made.i32(size).i32(delta),
        })
        .raw(data)
    }

    pub fn argument(self) -> Self {
        self.value(77)
    }

    pub fn value(self, value: u64) -> Self {
        self.meta(6, |made| made.u64(value))
    }

    /// Preamble of 64 bytes after the extents record.
    pub fn preamble(self, thread: i32, tsc: u64) -> Self {
        self.thread(thread).wall().pid(9).cpu(tsc)
    }

    pub fn basic(self, kind: u8, id: i32, tsc: u64) -> Self {
        self.basic_of(kind, id, tsc, 4, 5)
    }

    pub fn basic_of(self, kind: u8, id: i32, tsc: u64, thread: u32, process: u32) -> Self {
        let garbage = self.garbage;
        self.raw(&[0, 0, 1, kind]).i32(id).u64(tsc).u32(thread).u32(process).raw(&[garbage; 8])
    }

    pub fn basic_argument(self, id: i32, thread: u32, process: u32, value: u64) -> Self {
        let garbage = self.garbage;
        self.u16(1).raw(&[0; 2]).i32(id).u32(thread).u32(process).u64(value).raw(&[garbage; 8])
    }

    pub fn pair(self) -> Self {
        self.function(0, 1, 5).function(1, 1, 5)
    }

    /// A buffer of any version: extents, preamble, body, and in version 1 end and filler up to `size`.
    pub fn buffer(self, thread: i32, process: Option<i32>, cpu: u16, tsc: u64, body: impl Fn(Self) -> Self) -> Self {
        let (version, start) = (self.version, self.bytes.len());
        let inside = |made: Self| {
            let made = made.thread(thread).wall();
            let made = if let Some(process) = process { made.pid(process) } else { made };
            body(made.on_cpu(cpu, tsc))
        };
        if version > 1 {
            let length = inside(self.clone()).bytes.len() - start;
            return inside(self.extents(length as u64));
        }
        let mut made = inside(self).end_of_buffer();
        assert!(made.bytes.len() - start <= BUFFER_SIZE);
        made.bytes.resize(start + BUFFER_SIZE, 0x55);
        made
    }
}

/// Buffer size of the version 1 traces made here.
pub const BUFFER_SIZE: usize = 640;

/// Which kinds of records a trace has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Everything that the version has.
    Rich,
    /// What every version has: no processes, no typed events.
    Plain,
}

/// Four buffers of three threads: all kinds of functions, arguments, events, processors, time that goes backwards and
/// jumps far.
pub fn fdr(version: u16, big: bool, content: Content) -> Made {
    let is_rich = content == Content::Rich && version >= 3;
    let process = |number| is_rich.then_some(number);
    let typed =
        move |made: Made, delta, kind, data: &[u8]| if is_rich { made.typed_at(delta, kind, data) } else { made };
    let size = if version == 1 { BUFFER_SIZE as u64 } else { 4096 };
    let made = Made { garbage: 0xaa, ..Made::header_in(big, version, 1, size) };
    let made = made.buffer(11, process(900), 3, 1_000_000, |made| {
        let made = made.function(3, 1, 0).value(42).value(u64::MAX).function(0, 2, 10);
        let made = typed(made.custom_at(5, 1_000_015, 3, b"custom"), 7, 300, b"\0typed\xff");
        let made = made.function(1, 2, 20).function(0, 3, 1).on_cpu(9, 1_000_100).function(2, 3, 4);
        made.wrap(5_000_000_000_000).function(1, 1, 6)
    });
    let made = made.buffer(12, process(900), 0, 2_000_000_000_000_000_000, |made| {
        let made = made.function(1, 7, 0).function(0, 3, u32::MAX).function(3, 0x0fff_ffff, 5).value(0);
        made.wrap(1_999_999_999_999_999_990).function(1, 0x0fff_ffff, 3).function(1, 3, 2)
    });
    let made = made.buffer(-5, process(901), 2, 500, |made| {
        let made = typed(made.function(0, 4, 1), -1, 1, b"x");
        made.custom_at(-1, 499, 2, b"back").function(1, 4, 100)
    });
    made.buffer(11, process(900), 1, 6_000_000_000_000, |made| made.function(0, 3, 0).function(1, 3, 9))
}

/// Functions of two threads, interleaved, with arguments; tail exits from version 2, processes from version 3.
pub fn basic(version: u16, big: bool, content: Content) -> Made {
    let is_rich = content == Content::Rich;
    let process = if is_rich && version >= 3 { 60 } else { 0 };
    let made = Made { garbage: 0xbb, ..Made::header_in(big, version, 0, 0) };
    let made =
        made.basic_of(3, 1, 100, 4, process).basic_argument(1, 4, process, 77).basic_argument(1, 4, process, 1 << 63);
    let made = made.basic_of(0, 3, 90, 8, process).basic_of(0, 2, 110, 4, process).basic_of(1, 2, 120, 4, process);
    let tail = if is_rich && version >= 2 { 2 } else { 1 };
    made.basic_of(tail, 1, 130, 4, process).basic_of(1, 3, 1 << 60, 8, process)
}

/// A version 5 trace without buffers.
pub fn v5() -> Made {
    Made::header(5, 1, 4096)
}

/// Appends a valid buffer.
pub fn with_buffer(made: Made) -> Made {
    made.extents(80).preamble(3, 100).pair()
}

const YAML: &str = "---\nheader:\n  version: 1\n  type: 0\n  constant-tsc: true\n  nonstop-tsc: true\n  cycle-frequency: 1\nrecords:\n";

/// A YAML trace whose list is `entries`; "here" is where the list begins.
pub fn yaml(entries: &str) -> Made {
    Made::default().raw(YAML.as_bytes()).label("here").raw(entries.as_bytes()).raw(b"...\n")
}
