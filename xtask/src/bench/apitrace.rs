//! A large apitrace trace: version 6 in Snappy, the calls of a drawing loop, half of the raw bytes buffer data.
//!
//! Deterministic; shares no code with the crate it measures.

use std::io::{self, Write};

/// The format's own writer cuts the raw stream into chunks of this size.
const CHUNK_BYTES: usize = 1 << 20;

/// Calls between two buffer swaps.
const FRAME_CALLS: u64 = 3000;

/// Writes a trace of about `bytes` raw bytes.
pub(crate) fn generate(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    out.write_all(b"at")?;
    let mut trace = Trace::new(out);
    trace.header()?;
    while trace.raw_bytes < bytes {
        trace.frame()?;
    }
    trace.flush()
}

struct Trace<'a> {
    out: &'a mut dyn Write,
    encoder: snap::raw::Encoder,
    buffer: Vec<u8>,
    raw_bytes: u64,
    call: u64,
    frame: u64,
    random: u64,
    /// Bit `id` is set once function `id` was defined.
    defined: u64,
    has_enum: bool,
    has_mask: bool,
}

/// Functions of the loop: name and arguments.
const FUNCTIONS: [(&str, &[&str]); 12] = [
    ("memcpy", &["dest", "src", "n"]),
    ("glClear", &["mask"]),
    ("glUseProgram", &["program"]),
    ("glBindBuffer", &["target", "buffer"]),
    ("glBufferSubData", &["target", "offset", "size", "data"]),
    ("glUniformMatrix4fv", &["location", "count", "transpose", "value"]),
    ("glBindTexture", &["target", "texture"]),
    ("glVertexAttribPointer", &["index", "size", "type", "normalized", "stride", "pointer"]),
    ("glEnable", &["cap"]),
    ("glDrawElements", &["mode", "count", "type", "indices"]),
    ("glGetError", &[]),
    ("glXSwapBuffers", &["dpy", "drawable"]),
];

/// Names of the enumeration; the real one has thousands and takes 100 kB.
const ENUM_VALUES: u64 = 3000;

/// Ids as in real traces: small, but not all below 128.
const ENUM_ID: u64 = 3;
const MASK_ID: u64 = 200;

impl<'a> Trace<'a> {
    fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out,
            encoder: snap::raw::Encoder::new(),
            buffer: Vec::with_capacity(CHUNK_BYTES * 2),
            raw_bytes: 0,
            call: 0,
            frame: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            defined: 0,
            has_enum: false,
            has_mask: false,
        }
    }

    fn header(&mut self) -> io::Result<()> {
        self.buffer.extend([6, 6]);
        self.string(b"process.name");
        self.string(b"/usr/bin/benchmark");
        self.string(b"seed");
        self.string(b"1");
        self.buffer.push(0);
        self.settle()
    }

    /// One frame: blocks of calls, then the swap.
    fn frame(&mut self) -> io::Result<()> {
        let end = (self.frame + 1) * FRAME_CALLS;
        self.call_with(1, |t| t.mask())?;
        while self.call + 1 < end {
            match self.next_random() % 8 {
                0 => self.call_with(2, |t| t.integer(0, t.call % 40))?,
                1 => self.call_with(3, |t| {
                    t.enumeration(0, 0x8892);
                    t.integer(1, t.call % 500);
                })?,
                2 => self.upload()?,
                3 => self.call_with(5, |t| {
                    t.integer(0, 4);
                    t.integer(1, 1);
                    t.enumeration(2, 0);
                    t.matrix(3);
                })?,
                4 => self.call_with(6, |t| {
                    t.enumeration(0, 0xde1);
                    t.integer(1, t.call % 90);
                })?,
                5 => self.call_with(7, |t| {
                    t.integer(0, t.call % 4);
                    t.integer(1, 3);
                    t.enumeration(2, 0x1406);
                    t.enumeration(3, 0);
                    t.integer(4, 24);
                    t.argument(5, 13);
                    t.uint(t.call % 100_000);
                })?,
                6 => self.call_with(8, |t| t.enumeration(0, 0xb71))?,
                _ => self.draw()?,
            }
        }
        self.frame += 1;
        self.call_with(11, |t| {
            t.argument(0, 13);
            t.uint(0x55d0_1234_5678);
            t.integer(1, 0x0360_0002);
        })
    }

    /// Buffer data nobody can compress.
    fn upload(&mut self) -> io::Result<()> {
        let size = 176 + self.next_random() % 176;
        self.call_with(4, |t| {
            t.enumeration(0, 0x8892);
            t.integer(1, t.call % 65_536);
            t.integer(2, size);
            t.argument(3, 8);
            t.uint(size);
            for _ in 0..size / 8 {
                let word = t.next_random();
                t.buffer.extend(word.to_le_bytes());
            }
            for _ in 0..size % 8 {
                t.buffer.push(0x55);
            }
        })
    }

    fn draw(&mut self) -> io::Result<()> {
        self.call_with(9, |t| {
            t.enumeration(0, 4);
            t.integer(1, 36 + t.call % 600);
            t.enumeration(2, 0x1405);
            t.argument(3, 0);
        })
    }

    /// Enter and leave of one call.
    fn call_with(&mut self, function: u8, arguments: impl FnOnce(&mut Self)) -> io::Result<()> {
        self.buffer.extend([0, 0, function]);
        if self.defined & 1 << function == 0 {
            self.defined |= 1 << function;
            let (name, names) = FUNCTIONS[usize::from(function)];
            self.string(name.as_bytes());
            self.uint(names.len() as u64);
            for name in names {
                self.string(name.as_bytes());
            }
        }
        arguments(self);
        self.buffer.extend([0, 1]);
        self.uint(self.call);
        self.buffer.push(0);
        self.call += 1;
        self.settle()
    }

    fn argument(&mut self, index: u8, kind: u8) {
        self.buffer.extend([1, index, kind]);
    }

    fn integer(&mut self, index: u8, value: u64) {
        self.argument(index, 4);
        self.uint(value);
    }

    /// An array of sixteen numbers, most of them round.
    fn matrix(&mut self, index: u8) {
        self.argument(index, 11);
        self.uint(16);
        for at in 0..16_u8 {
            self.buffer.push(5);
            let value = if at % 5 == 0 { (self.next_random() >> 40) as f32 / 65_536.0 } else { 0.0 };
            self.buffer.extend(value.to_le_bytes());
        }
    }

    fn enumeration(&mut self, index: u8, value: u64) {
        self.argument(index, 9);
        self.uint(ENUM_ID);
        if !self.has_enum {
            self.has_enum = true;
            self.uint(ENUM_VALUES);
            for value in 0..ENUM_VALUES {
                self.string(format!("GL_SOME_VALUE_NUMBER_{value}").as_bytes());
                self.buffer.push(4);
                self.uint(value * 11);
            }
        }
        self.buffer.push(4);
        self.uint(value);
    }

    fn mask(&mut self) {
        self.argument(0, 10);
        self.uint(MASK_ID);
        if !self.has_mask {
            self.has_mask = true;
            self.uint(2);
            self.string(b"GL_DEPTH_BUFFER_BIT");
            self.uint(0x100);
            self.string(b"GL_COLOR_BUFFER_BIT");
            self.uint(0x4000);
        }
        self.uint(0x4100);
    }

    fn string(&mut self, bytes: &[u8]) {
        self.uint(bytes.len() as u64);
        self.buffer.extend(bytes);
    }

    fn uint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.buffer.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.buffer.push(value as u8);
    }

    /// xorshift64 (Marsaglia 2003).
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Writes complete chunks.
    fn settle(&mut self) -> io::Result<()> {
        while self.buffer.len() >= CHUNK_BYTES {
            self.chunk(CHUNK_BYTES)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.settle()?;
        let rest = self.buffer.len();
        if rest > 0 {
            self.chunk(rest)?;
        }
        self.out.flush()
    }

    fn chunk(&mut self, length: usize) -> io::Result<()> {
        let block = self.encoder.compress_vec(&self.buffer[..length])?;
        let size = u32::try_from(block.len()).map_err(io::Error::other)?;
        self.out.write_all(&size.to_le_bytes())?;
        self.out.write_all(&block)?;
        self.buffer.drain(..length);
        self.raw_bytes += length as u64;
        Ok(())
    }
}
