//! A driver that draws nothing: it hands out names and memory, and knows the little state that marshalling asks for.
//!
//! With [`Nothing::Reads`] it reads every byte that a driver would read of what it is given, and counts them: under an
//! address sanitizer the fuzz target `replay_apitrace` finds each argument that is shorter than its call says. What is read
//! is determined here anew, row by row and vertex by vertex.
#![allow(unsafe_code, reason = "it reads what drivers read: memory by its address")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anytrace_apitrace::tools::gl::lifecycle::stem;
use anytrace_apitrace::tools::program::{split_types, types_of};

use crate::bounds::{index_bytes, pixel_bytes};
use crate::invoke::{Arguments, Function, answer_with};

/// What the driver that draws nothing does with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nothing {
    /// It looks at nothing: what is left is the cost of reading the trace and of preparing its calls.
    Ignores,
    /// It reads what a driver would read.
    Reads,
}

/// Most bytes that are mapped at once.
const MAPPED_MAX: u64 = 1 << 24;

/// Bytes of a buffer, for all who ask.
const BUFFER_BYTES: u64 = 1 << 12;

/// Most elements, rows and instances that a call reads; drivers take their time, fuzzers have none.
const READS_MAX: u64 = 1 << 20;

/// An array: where it is, its vertices' bytes and distance; 0 is an offset into a buffer.
#[derive(Debug, Clone, Copy, Default)]
struct Array {
    address: u64,
    vertex: u64,
    stride: u64,
    divisor: u64,
}

/// What a function does here; found once, for there may be millions of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    AnswersString,
    AnswersFramebufferStatus,
    AnswersInteger,
    AnswersEnabled,
    AnswersAttribute,
    AnswersBufferParameter,
    /// Everything else that only asks.
    AnswersNothing,
    SetsPixelStore,
    BindsBuffer,
    Enables,
    Disables,
    EnablesArray,
    DisablesArray,
    SetsDivisor,
    Maps,
    MapsRange,
    Unmaps,
    /// Its arguments are a number and the place of so many names.
    Generates,
    /// The same, as its last arguments.
    Creates,
    Other,
}

impl Does {
    /// `stem`: the name without the suffix of its extension.
    fn of(stem: &str) -> Self {
        match stem {
            "glGetString" => Self::AnswersString,
            "glCheckFramebufferStatus" => Self::AnswersFramebufferStatus,
            "glGetIntegerv" => Self::AnswersInteger,
            "glIsEnabled" => Self::AnswersEnabled,
            "glGetVertexAttribiv" => Self::AnswersAttribute,
            "glGetBufferParameteriv" | "glGetNamedBufferParameteriv" => Self::AnswersBufferParameter,
            "glPixelStorei" => Self::SetsPixelStore,
            "glBindBuffer" => Self::BindsBuffer,
            "glEnable" | "glEnableClientState" => Self::Enables,
            "glDisable" | "glDisableClientState" => Self::Disables,
            "glEnableVertexAttribArray" => Self::EnablesArray,
            "glDisableVertexAttribArray" => Self::DisablesArray,
            "glVertexAttribDivisor" => Self::SetsDivisor,
            "glMapBuffer" | "glMapNamedBuffer" => Self::Maps,
            "glMapBufferRange" | "glMapNamedBufferRange" => Self::MapsRange,
            "glUnmapBuffer" | "glUnmapNamedBuffer" => Self::Unmaps,
            "glGenLists" | "glGenerateMipmap" | "glCreateShader" | "glCreateProgram" => Self::Other,
            _ if stem.starts_with("glGen") => Self::Generates,
            _ if stem.starts_with("glCreate") => Self::Creates,
            _ if stem.starts_with("glGet") || stem.starts_with("glIs") => Self::AnswersNothing,
            _ => Self::Other,
        }
    }
}

#[derive(Default)]
struct State {
    /// Names, and what the functions do.
    names: Vec<(Rc<str>, Does)>,
    reads: bool,
    next: u64,
    /// Integers by the name with which they are asked for.
    integers: BTreeMap<u64, u64>,
    /// By the name with which they are enabled, or an attribute plus [`ATTRIBUTES`].
    enabled: BTreeSet<u64>,
    arrays: BTreeMap<u64, Array>,
    /// By buffer target or name.
    mapped: BTreeMap<u64, Vec<u64>>,
    read: u64,
}

/// Attributes are told from capabilities by it.
const ATTRIBUTES: u64 = 1 << 40;

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Forgets everything.
pub(crate) fn begin(how: Nothing) {
    // GL_UNPACK_ALIGNMENT begins with 4.
    let integers = BTreeMap::from([(0x0cf5, 4)]);
    let reads = how == Nothing::Reads;
    answer_with(call);
    STATE.with_borrow_mut(|state| *state = State { reads, integers, next: 1, ..State::default() });
}

/// Bytes that were read since.
pub(crate) fn read_bytes() -> u64 {
    STATE.with_borrow(|state| state.read)
}

/// A function by its name, as something that [`call`] understands.
pub(crate) fn function(name: &str) -> Option<Function> {
    STATE.with_borrow_mut(|state| {
        let at = state.names.iter().position(|(known, _)| **known == *name).unwrap_or_else(|| {
            state.names.push((name.into(), Does::of(stem(name))));
            state.names.len() - 1
        });
        Function::of_nothing(at)
    })
}

/// Carries out a call.
fn call(number: usize, arguments: &Arguments) -> u64 {
    STATE.with_borrow_mut(|state| {
        let Some((name, does)) = state.names.get(number) else { return 0 };
        match *does {
            Does::Other if !state.reads => {
                state.next += 1;
                state.next
            }
            does => {
                let name = Rc::clone(name);
                state.call(&name, does, arguments)
            }
        }
    })
}

/// Writes a value where the caller has room for it.
fn write<T>(address: u64, value: T) {
    if address != 0 {
        // SAFETY: the address is that of room that marshalling or a question of the replayer's own made for this value.
        unsafe { (address as *mut T).write_unaligned(value) };
    }
}

impl State {
    fn call(&mut self, name: &str, does: Does, arguments: &Arguments) -> u64 {
        let of = |index: usize| arguments.integer_at(index);
        let (a, b, c) = (of(0), of(1), of(2));
        match does {
            Does::AnswersString => return c"no driver".as_ptr() as u64,
            Does::AnswersFramebufferStatus => return 0x8cd5,
            Does::AnswersInteger => {
                write(b, self.integers.get(&(a & 0xffff_ffff)).copied().unwrap_or(0) as u32);
                return 0;
            }
            Does::AnswersEnabled => return u64::from(self.enabled.contains(&(a & 0xffff_ffff))),
            Does::AnswersAttribute => {
                let known = self.enabled.contains(&(ATTRIBUTES + (a & 0xffff_ffff)));
                let divisor = self.arrays.get(&(ATTRIBUTES + (a & 0xffff_ffff))).map_or(0, |array| array.divisor);
                write(c, if b == 0x8622 { u32::from(known) } else { divisor as u32 });
                return 0;
            }
            Does::AnswersBufferParameter => {
                write(c, BUFFER_BYTES as u32);
                return 0;
            }
            Does::AnswersNothing => return 0,
            Does::SetsPixelStore => {
                self.integers.insert(a, b);
            }
            Does::BindsBuffer => {
                let binding =
                    [(0x8892, 0x8894), (0x8893, 0x8895), (0x88eb, 0x88ed), (0x88ec, 0x88ef), (0x8f3f, 0x8f43)];
                if let Some((_, binding)) = binding.iter().find(|(target, _)| *target == a & 0xffff_ffff) {
                    self.integers.insert(*binding, b & 0xffff_ffff);
                }
            }
            Does::Enables => {
                self.enabled.insert(a & 0xffff_ffff);
            }
            Does::Disables => {
                self.enabled.remove(&(a & 0xffff_ffff));
            }
            Does::EnablesArray => {
                self.enabled.insert(ATTRIBUTES + (a & 0xffff_ffff));
            }
            Does::DisablesArray => {
                self.enabled.remove(&(ATTRIBUTES + (a & 0xffff_ffff)));
            }
            Does::SetsDivisor => {
                self.arrays.entry(ATTRIBUTES + (a & 0xffff_ffff)).or_default().divisor = b & 0xffff_ffff;
            }
            Does::Maps => return self.map(a, BUFFER_BYTES),
            Does::MapsRange => return self.map(a, c),
            Does::Unmaps => {
                self.mapped.remove(&a);
                return 1;
            }
            Does::Generates => self.name_objects(a & 0xffff_ffff, b),
            Does::Creates => {
                // The number of objects and the place of their names are the last arguments.
                let last = types_of(name).map_or(0, |types| split_types(types).count().saturating_sub(2));
                self.name_objects(of(last.saturating_sub(1)) & 0xffff_ffff, of(last));
            }
            Does::Other if self.reads => self.read_call(name, arguments),
            Does::Other => {}
        }
        self.next += 1;
        self.next
    }

    fn name_objects(&mut self, count: u64, to: u64) {
        for at in 0..count.min(READS_MAX) {
            self.next += 1;
            write(to + at * 4, self.next as u32);
        }
    }

    fn map(&mut self, of: u64, length: u64) -> u64 {
        if length == 0 || length > MAPPED_MAX {
            return 0;
        }
        let room = self.mapped.entry(of).or_default();
        *room = vec![0; (length as usize).div_ceil(8)];
        room.as_mut_ptr() as u64
    }

    /// Reads memory as a driver would.
    fn read(&mut self, address: u64, bytes: u64) {
        if address == 0 {
            return;
        }
        for at in 0..bytes {
            // SAFETY: none: whether the address is right is what the fuzz target finds out. Only callers that ask for reads
            // come here.
            unsafe { ((address + at) as *const u8).read_volatile() };
            self.read += 1;
        }
    }

    /// Reads characters up to the null character.
    fn read_text(&mut self, address: u64) {
        for at in 0.. {
            if address == 0 {
                return;
            }
            // SAFETY: as for `read`.
            let byte = unsafe { ((address + at) as *const u8).read_volatile() };
            self.read += 1;
            if byte == 0 {
                return;
            }
        }
    }

    fn is_bound(&self, binding: u64) -> bool {
        self.integers.get(&binding).is_some_and(|buffer| *buffer != 0)
    }

    fn read_call(&mut self, name: &str, arguments: &Arguments) {
        let of = |index: usize| arguments.integer_at(index);
        let short = |index: usize| of(index) & 0xffff_ffff;
        match stem(name) {
            "glTexImage1D" => self.read_image([short(3), 1, 1], (short(5), short(6)), of(7)),
            "glTexImage2D" => self.read_image([short(3), short(4), 1], (short(6), short(7)), of(8)),
            "glTexImage3D" => self.read_image([short(3), short(4), short(5)], (short(7), short(8)), of(9)),
            "glTexSubImage1D" | "glTextureSubImage1D" => {
                self.read_image([short(3), 1, 1], (short(4), short(5)), of(6));
            }
            "glTexSubImage2D" | "glTextureSubImage2D" => {
                self.read_image([short(4), short(5), 1], (short(6), short(7)), of(8));
            }
            "glTexSubImage3D" | "glTextureSubImage3D" => {
                self.read_image([short(5), short(6), short(7)], (short(8), short(9)), of(10));
            }
            "glDrawPixels" => self.read_image([short(0), short(1), 1], (short(2), short(3)), of(4)),
            "glBufferData" | "glNamedBufferData" | "glBufferStorage" | "glNamedBufferStorage" => {
                self.read(of(2), of(1))
            }
            "glBufferSubData" | "glNamedBufferSubData" => self.read(of(3), of(2)),
            "glShaderSource" => {
                for at in 0..short(1).min(READS_MAX) {
                    self.read(of(2) + at * 8, 8);
                    // SAFETY: it was just read.
                    let text = unsafe { ((of(2) + at * 8) as *const u64).read_unaligned() };
                    self.read_text(text);
                }
            }
            "glVertexPointer" => self.set_array(0x8074, short(0), short(1), short(2), of(3)),
            "glColorPointer" => self.set_array(0x8076, short(0), short(1), short(2), of(3)),
            "glTexCoordPointer" => self.set_array(0x8078, short(0), short(1), short(2), of(3)),
            "glNormalPointer" => self.set_array(0x8075, 3, short(0), short(1), of(2)),
            "glVertexAttribPointer" => self.set_array(ATTRIBUTES + short(0), short(1), short(2), short(4), of(5)),
            "glVertexAttribIPointer" => self.set_array(ATTRIBUTES + short(0), short(1), short(2), short(3), of(4)),
            "glDrawArrays" => self.read_vertices(short(1), short(2), 1),
            "glDrawArraysInstanced" => self.read_vertices(short(1), short(2), short(3)),
            "glDrawElements" => self.read_indices(short(1), short(2), of(3), 0, 1),
            "glDrawElementsBaseVertex" => self.read_indices(short(1), short(2), of(3), of(4) as i32, 1),
            "glDrawElementsInstanced" => self.read_indices(short(1), short(2), of(3), 0, short(4)),
            "glDrawRangeElements" => self.read_indices(short(3), short(4), of(5), 0, 1),
            "glMultiDrawArrays" => {
                for at in 0..short(3).min(READS_MAX) {
                    self.read(of(1) + at * 4, 4);
                    self.read(of(2) + at * 4, 4);
                }
            }
            stem if stem.starts_with("glUniform") || stem.starts_with("glProgramUniform") => {
                self.read_uniform(stem, of)
            }
            stem if stem.contains("Compressed") && stem.contains("Image") => {
                // The size is before the data, which are last.
                let last = types_of(name).map_or(0, |types| split_types(types).count().saturating_sub(2));
                if !self.is_bound(0x88ef) && last > 0 && !stem.contains("Get") {
                    self.read(of(last), short(last - 1));
                }
            }
            _ => self.read_vectors(name, of),
        }
    }

    /// Functions with vectors of a fixed size, none of which is longer than a matrix of doubles.
    fn read_vectors(&mut self, name: &str, of: impl Fn(usize) -> u64) {
        let Some(types) = types_of(name) else { return };
        let is_vector = stem(name).ends_with('v') || stem(name).contains("Matrix");
        let (mut at, mut texts) = (0, Vec::new());
        for types in split_types(types).skip(1) {
            match types {
                [b'f' | b'd', ..] => continue,
                [b'p', b'a'] => texts.push(of(at)),
                [b'p', b'f' | b'i' | b'u' | b'e' | b'd', ..] if is_vector => self.read(of(at), 64),
                _ => {}
            }
            at += 1;
        }
        if stem(name).contains("Location") || stem(name) == "glBindAttribLocation" {
            texts.into_iter().for_each(|text| self.read_text(text));
        }
    }

    fn read_uniform(&mut self, stem: &str, of: impl Fn(usize) -> u64) {
        let first = if stem.starts_with("glProgram") { 2 } else { 1 };
        let digits: Vec<u64> = stem.chars().filter_map(|letter| letter.to_digit(10)).map(u64::from).collect();
        if !stem.ends_with('v') || stem.contains("Block") || stem.contains("Subroutine") {
            return;
        }
        let bytes = if stem.ends_with("dv") { 8 } else { 4 };
        let (values, at) = match digits[..] {
            [side] if stem.contains("Matrix") => (side * side, first + 2),
            [columns, rows] => (columns * rows, first + 2),
            [values] => (values, first + 1),
            _ => return,
        };
        self.read(of(at), (of(first) & 0xffff_ffff).min(READS_MAX) * values * bytes);
    }

    fn read_image(&mut self, [width, height, depth]: [u64; 3], (format, kind): (u64, u64), pixels: u64) {
        let of = |state: &Self, name: u64| state.integers.get(&name).copied().unwrap_or(0);
        let Some(pixel) = pixel_bytes(format, kind).filter(|_| !self.is_bound(0x88ef)) else { return };
        let fits = |side: u64| side > 0 && side <= 1 << 31;
        if pixels == 0 || ![width, height, depth].into_iter().all(fits) {
            return;
        }
        let alignment = of(self, 0x0cf5).max(1);
        let row = Some(of(self, 0x0cf2)).filter(|length| *length > 0).unwrap_or(width) * pixel;
        let row = row.div_ceil(alignment) * alignment;
        let image = Some(of(self, 0x806e)).filter(|rows| *rows > 0 && depth > 1).unwrap_or(height) * row;
        let skipped = of(self, 0x0cf4) * pixel + of(self, 0x0cf3) * row;
        for z in 0..depth.min(READS_MAX) {
            for y in 0..height.min(READS_MAX) {
                self.read(pixels + z * image + y * row + skipped, width * pixel);
            }
        }
    }

    fn set_array(&mut self, name: u64, size: u64, kind: u64, stride: u64, address: u64) {
        let value = match kind {
            0x1400 | 0x1401 => 1,
            0x1402 | 0x1403 | 0x140b => 2,
            0x1404..=0x1406 | 0x140c => 4,
            0x140a => 8,
            _ => 0,
        };
        let vertex = if size <= 4 { size * value } else { 0 };
        let address = if self.is_bound(0x8894) { 0 } else { address };
        let array = self.arrays.entry(name).or_default();
        (array.address, array.vertex) = (address, vertex);
        array.stride = if stride == 0 { vertex } else { stride };
    }

    fn read_vertex(&mut self, index: u64, of_instances: bool) {
        for (name, array) in self.arrays.clone() {
            if array.address != 0 && self.enabled.contains(&name) && (array.divisor > 0) == of_instances {
                let index = if of_instances { index / array.divisor } else { index };
                self.read(array.address + index * array.stride, array.vertex);
            }
        }
    }

    fn read_vertices(&mut self, first: u64, count: u64, instances: u64) {
        if first > 1 << 31 || count > 1 << 31 {
            return;
        }
        (first..first + count.min(READS_MAX)).for_each(|index| self.read_vertex(index, false));
        (0..instances.min(READS_MAX)).for_each(|index| self.read_vertex(index, true));
    }

    fn read_indices(&mut self, count: u64, kind: u64, indices: u64, base: i32, instances: u64) {
        let Some(bytes) = index_bytes(kind).filter(|_| !self.is_bound(0x8895) && count <= 1 << 31) else { return };
        for at in 0..count.min(READS_MAX) {
            self.read(indices + at * bytes, bytes);
            if indices == 0 {
                return;
            }
            let place = (indices + at * bytes) as *const u8;
            // SAFETY: these bytes were just read.
            let index = (0..bytes).fold(0, |index, byte| {
                index | u64::from(unsafe { place.wrapping_add(byte as usize).read() }) << (8 * byte)
            });
            self.read_vertex(index.wrapping_add_signed(i64::from(base)), false);
        }
        (0..instances.min(READS_MAX)).for_each(|index| self.read_vertex(index, true));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use anytrace_apitrace::Reader;
    use anytrace_core::{Collect, Input, OpenOptions};

    use super::*;
    use crate::{Options, Outlets, Replayed, Watch, drawable_sizes, replay};

    fn replayed(bytes: &[u8], how: Nothing) -> Result<Replayed, anytrace_core::Error> {
        let open = || Reader::new(Input::from_bytes("test", bytes.to_vec()), &OpenOptions::default());
        let options = Options { nothing: Some(how), ..Options::default() };
        let sizes = drawable_sizes(&mut open()?, &options.limits, &mut Collect::default())?;
        let outlets = Outlets { out: &mut std::io::sink(), spans: None };
        replay(&mut open()?, sizes, &options, &mut Watch::default(), outlets, &mut Collect::default())
    }

    fn sample(name: &str) -> Vec<u8> {
        std::fs::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).unwrap()
    }

    #[test]
    fn calls_are_prepared_without_a_driver() {
        let mut bytes_read = 0;
        for name in [
            "examples/traces/imm.trace",
            "crates/apitrace/corpus/peer/vbo.trace",
            "crates/apitrace/corpus/peer/fbo.trace",
        ] {
            let bytes = sample(name);
            let (ignored, read) =
                (replayed(&bytes, Nothing::Ignores).unwrap(), replayed(&bytes, Nothing::Reads).unwrap());
            assert_eq!((ignored.read_bytes, ignored.frames), (0, read.frames), "{name}");
            assert_eq!((ignored.repeated, &ignored.notes), (read.repeated, &read.notes), "{name}");
            assert!(read.frames > 0, "{name}: {read:?}");
            bytes_read += read.read_bytes;
        }
        assert!(bytes_read > 1000, "{bytes_read}");
    }

    /// What is damaged is refused before it is read: a driver that reads behind the end would end the test here.
    #[test]
    fn damage_never_makes_it_read_behind_the_end() {
        let bytes = sample("crates/apitrace/corpus/peer/vbo.trace");
        let mut flipped = bytes.clone();
        for at in (100..bytes.len()).step_by(173) {
            for bit in [0x01, 0x80] {
                flipped[at] ^= bit;
                let _ = replayed(&flipped, Nothing::Reads);
                flipped[at] ^= bit;
            }
        }
        for end in (0..bytes.len()).step_by(977) {
            let _ = replayed(&bytes[..end], Nothing::Reads);
        }
    }

    #[test]
    fn what_a_driver_reads_is_counted() {
        begin(Nothing::Reads);
        let words = [7_u32; 64];
        let address = words.as_ptr() as u64;
        let called = |name: &str, values: &[u64]| {
            let mut arguments = Arguments::default();
            values.iter().for_each(|value| arguments.integer(*value));
            let before = read_bytes();
            // SAFETY: the function is one of this module, and reads less than `words` has.
            unsafe { crate::invoke::call(function(name).unwrap(), &arguments) };
            read_bytes() - before
        };
        // RGB of bytes, 3 by 2: rows are padded to 12 bytes, which are not read.
        let image = [0x0de1, 0, 0, 3, 2, 0, 0x1907, 0x1401];
        assert_eq!(called("glTexImage2D", &[&image[..], &[address]].concat()), 18);
        assert_eq!(called("glUniformMatrix4fv", &[0, 2, 0, address]), 128);
        assert_eq!(called("glUniform3fvARB", &[0, 2, address]), 24);
        assert_eq!(called("glCompressedTexImage2D", &[0x0de1, 0, 0, 4, 4, 0, 16, address]), 16);
        called("glVertexPointer", &[2, 0x1406, 0, address]);
        assert_eq!(called("glDrawArrays", &[4, 0, 3]), 0);
        called("glEnableClientState", &[0x8074]);
        assert_eq!(called("glDrawArrays", &[4, 0, 3]), 24);
        assert_eq!(called("glDrawElements", &[4, 3, 0x1405, address]), 3 * (4 + 8));
        called("glBindBuffer", &[0x8893, 1]);
        assert_eq!(called("glDrawElements", &[4, 3, 0x1405, 64]), 0);
    }
}
