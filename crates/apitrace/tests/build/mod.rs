//! A builder of test traces, with labels for offsets. Shares no code with the crate.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;

/// Bytes with named places.
#[derive(Default, Clone)]
pub struct Build {
    pub bytes: Vec<u8>,
    labels: BTreeMap<&'static str, u64>,
}

/// A number in groups of seven bits, low first.
pub fn leb(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let low = u8::try_from(value % 128).unwrap();
        value /= 128;
        out.push(low + if value > 0 { 128 } else { 0 });
        if value == 0 {
            return out;
        }
    }
}

pub fn text(s: &str) -> Vec<u8> {
    let mut out = leb(s.len() as u64);
    out.extend(s.as_bytes());
    out
}

impl Build {
    /// A raw stream of a version, without properties.
    pub fn version(version: u64) -> Self {
        let mut build = Self::default();
        build.add(&leb(version));
        if version >= 6 {
            build.add(&leb(version)).add(&[0]);
        }
        build
    }

    pub fn add(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Names the place reached.
    pub fn label(&mut self, name: &'static str) -> &mut Self {
        self.labels.insert(name, self.bytes.len() as u64);
        self
    }

    pub fn at(&self, name: &str) -> u64 {
        self.labels[name]
    }

    /// Begins an enter event of a function defined here.
    pub fn enter_new(&mut self, thread: u64, id: u64, name: &str, arguments: &[&str]) -> &mut Self {
        self.enter(thread, id).add(&text(name)).add(&leb(arguments.len() as u64));
        for argument in arguments {
            self.add(&text(argument));
        }
        self
    }

    /// Begins an enter event, version 4 and later.
    pub fn enter(&mut self, thread: u64, id: u64) -> &mut Self {
        self.add(&[0]).add(&leb(thread)).add(&leb(id))
    }

    /// Begins a leave event.
    pub fn leave(&mut self, call: u64) -> &mut Self {
        self.add(&[1]).add(&leb(call))
    }

    pub fn argument(&mut self, index: u64, value: &[u8]) -> &mut Self {
        self.add(&[1]).add(&leb(index)).add(value)
    }

    pub fn end(&mut self) -> &mut Self {
        self.add(&[0])
    }

    /// `count` calls of function `id`, defined before, each left at once; the first has number `from`.
    pub fn calls(&mut self, id: u64, from: u64, count: u64) -> &mut Self {
        for call in from..from + count {
            self.enter(0, id).argument(0, &uint(call)).end();
            self.leave(call).end();
        }
        self
    }

    /// In Snappy, cut into chunks of a size.
    pub fn snappy(&self, chunk_bytes: usize) -> Vec<u8> {
        snappy(&self.bytes, chunk_bytes)
    }
}

pub fn snappy(raw: &[u8], chunk_bytes: usize) -> Vec<u8> {
    let mut out = b"at".to_vec();
    for chunk in raw.chunks(chunk_bytes) {
        let block = literal_block(chunk);
        out.extend(u32::try_from(block.len()).unwrap().to_le_bytes());
        out.extend(block);
    }
    out
}

/// In zstd, a frame for each so many bytes.
pub fn zstd_frames(raw: &[u8], frame_bytes: usize) -> Vec<u8> {
    raw.chunks(frame_bytes).flat_map(|chunk| zstd::bulk::compress(chunk, 1).unwrap()).collect()
}

/// A Snappy block of one literal: the raw length, a tag, the bytes.
fn literal_block(raw: &[u8]) -> Vec<u8> {
    let mut out = leb(raw.len() as u64);
    let last = u32::try_from(raw.len() - 1).unwrap().to_le_bytes();
    match raw.len() {
        1..=60 => out.push(last[0] << 2),
        61..=256 => out.extend([60 << 2, last[0]]),
        257..=65536 => out.extend([61 << 2, last[0], last[1]]),
        _ => out.extend([62 << 2, last[0], last[1], last[2]]),
    }
    out.extend(raw);
    out
}

/// A value: an unsigned number.
pub fn uint(value: u64) -> Vec<u8> {
    [vec![4], leb(value)].concat()
}

/// A value: a string.
pub fn string(s: &str) -> Vec<u8> {
    [vec![7], text(s)].concat()
}

/// A value: a blob.
pub fn blob(bytes: &[u8]) -> Vec<u8> {
    [vec![8], leb(bytes.len() as u64), bytes.to_vec()].concat()
}

/// A value: an enumeration defined here, version 3 and later.
pub fn enum_new(id: u64, names: &[(&str, u64)], value: u64) -> Vec<u8> {
    let mut out = [vec![9], leb(id), leb(names.len() as u64)].concat();
    for (name, value) in names {
        out.extend(text(name));
        out.extend(uint(*value));
    }
    out.extend(uint(value));
    out
}

pub fn enum_known(id: u64, value: u64) -> Vec<u8> {
    [vec![9], leb(id), uint(value)].concat()
}

/// A trace with many kinds of value, two threads and three frames, in version 6.
pub fn rich() -> Build {
    let mut b = Build::version(6);
    b.bytes.truncate(2);
    b.add(&text("process.name")).add(&text("/bin/x")).end();
    b.enter_new(0, 1, "glFirst", &["a", "b", "c"]).add(&[5, 1]);
    b.argument(0, &enum_new(3, &[("GL_ZERO", 0), ("GL_ONE", 1)], 1)).argument(1, &blob(&[0, 1, 0, 0, 1, 2, 0]));
    b.argument(2, &[10, 9, 2, 1, b'A', 1, 1, b'B', 2, 3]).end();
    b.enter_new(7, 2, "glSecond", &["s"]).argument(0, &[12, 4, 1, b'S', 2, 1, b'x', 1, b'y', 4, 1, 11, 2, 0, 2]).end();
    b.leave(1).add(&[2, 6, 1, 2, 3, 4, 5, 6, 7, 8]).end();
    b.leave(0).end();
    b.enter_new(0, 5, "glXSwapBuffers", &["d"]).argument(0, &[13, 0x80, 1]).end().leave(2).end();
    b.enter(0, 1).add(&[4, 2, 0, 1, 1, b'm', 4, 12, 0, 1, 5, 3, 0]).argument(2, &[10, 9, 1]).end();
    b.leave(3).argument(1, &[14, 7, 1, b'h', 4, 5]).add(&[2, 9, 3, 3, 1]).end();
    b.enter(7, 2).argument(0, &[15, 2, b'w', 0x80, 2]).end().leave(4).end();
    b.enter(0, 5).argument(0, &[13, 0]).end().leave(5).end();
    b.enter(0, 1).add(&[4, 2, 1, 0]).argument(0, &enum_known(3, 0)).argument(1, &[5, 0, 0, 192, 127]).end();
    b.enter(7, 2).argument(0, &[12, 4, 3, 9, 1]).end();
    b.leave(7).end().leave(6).end();
    b
}
