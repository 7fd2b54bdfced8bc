//! `apitrace gltrim` against a machine: random programs are run complete and trimmed, and must show the same.
//!
//! The machine implements a small part of OpenGL; every picture is a number computed from everything it depends on. It
//! knows nothing about nodes or what calls need.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod gl;

use std::collections::{BTreeMap, BTreeSet};

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::gltrim::{GltrimOptions, plan};
use anytrace_core::{Collect, Input, OpenOptions};
use gl::{Gl, V};
use proptest::prelude::*;

const CELLS: usize = 8;
const TEXTURE: u64 = 0xde1;
const FRAMEBUFFER: u64 = 0x8d40;
const SCISSOR: u64 = 0xc11;
const DEPTH: u64 = 0xb71;
const LIGHT: u64 = 0xb50;

/// One call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Op {
    Enable(u64, bool),
    Color(u64),
    ClearColor(u64),
    Generate(u64),
    Delete(u64),
    Bind(u64),
    Image(u64),
    Part(usize, usize, u64),
    Mipmaps,
    BindBuffer(u64),
    Data(u64),
    Bytes(usize, usize, u64),
    Framebuffer(u64),
    Attach(u64),
    Clear(bool, bool),
    Draw,
    CopyToTexture(usize, usize),
    Push,
    Pop,
    Identity,
    Rotate(u64),
    PushAttrib(u64),
    PopAttrib,
    NewList(u64),
    EndList,
    CallList(u64),
    Swap,
}

fn mix(parts: &[u64]) -> u64 {
    parts.iter().fold(0x1234_5678, |sum, part| (sum ^ part).wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(17) ^ part)
}

#[derive(Debug, Clone, Default)]
struct Texture {
    cells: [u64; CELLS],
    mipmaps: u64,
}

/// What `glPushAttrib` saves: switches, the color, the color to clear with, bindings.
type Saved = (u64, BTreeMap<u64, bool>, u64, u64, usize);

#[derive(Default)]
struct Machine {
    switches: BTreeMap<u64, bool>,
    color: u64,
    clear: u64,
    /// Objects; 0 is the unnamed one.
    textures: Vec<Texture>,
    names: BTreeMap<u64, usize>,
    bound: usize,
    buffers: BTreeMap<u64, [u64; CELLS]>,
    buffer: u64,
    attached: BTreeMap<u64, usize>,
    framebuffer: u64,
    window: u64,
    depth: BTreeMap<u64, u64>,
    matrices: Vec<u64>,
    saved: Vec<Saved>,
    lists: BTreeMap<u64, Vec<Op>>,
    list: Option<u64>,
    shown: Vec<u64>,
}

impl Machine {
    fn new() -> Self {
        Self { textures: vec![Texture::default()], matrices: vec![1], ..Self::default() }
    }

    fn run(ops: impl Iterator<Item = Op>) -> Vec<u64> {
        let mut machine = Self::new();
        ops.for_each(|op| machine.step(op));
        machine.shown
    }

    fn is_on(&self, switch: u64) -> bool {
        self.switches.get(&switch).copied().unwrap_or(false)
    }

    /// What drawing depends on.
    fn look(&self) -> u64 {
        let switches = self.switches.iter().filter(|(_, on)| **on).fold(0, |sum, (name, _)| mix(&[sum, *name]));
        let texture = &self.textures[self.bound];
        let buffer = self.buffers.get(&self.buffer).copied().unwrap_or_default();
        let (texture_sum, matrix) = (mix(&texture.cells) ^ texture.mipmaps, self.matrices[self.matrices.len() - 1]);
        mix(&[switches, self.color, texture_sum, mix(&buffer), matrix])
    }

    /// Changes every cell that is drawn to.
    fn paint(&mut self, how: impl Fn(u64) -> u64) {
        match self.framebuffer {
            0 => self.window = how(self.window),
            name => {
                if let Some(texture) = self.attached.get(&name) {
                    self.textures[*texture].cells.iter_mut().for_each(|cell| *cell = how(*cell));
                }
            }
        }
    }

    fn step(&mut self, op: Op) {
        if let Some(list) = self.list
            && matches!(op, Op::Enable(..) | Op::Color(_) | Op::Bind(_) | Op::Draw | Op::Rotate(_) | Op::CallList(_))
        {
            return self.lists.entry(list).or_default().push(op);
        }
        match op {
            Op::Enable(switch, is_on) => drop(self.switches.insert(switch, is_on)),
            Op::Color(color) => self.color = color,
            Op::ClearColor(color) => self.clear = color,
            Op::Push => self.matrices.push(self.matrices[self.matrices.len() - 1]),
            Op::Pop => drop((self.matrices.len() > 1).then(|| self.matrices.pop())),
            Op::Identity => *self.matrices.last_mut().unwrap() = 1,
            Op::Rotate(by) => {
                let top = self.matrices.last_mut().unwrap();
                *top = mix(&[*top, by]);
            }
            Op::PushAttrib(groups) => {
                self.saved.push((groups, self.switches.clone(), self.color, self.clear, self.bound));
            }
            Op::PopAttrib => {
                let Some((groups, switches, color, clear, bound)) = self.saved.pop() else { return };
                let has = |group: u64| groups & group != 0;
                for (switch, own) in [(SCISSOR, 0x8_0000), (DEPTH, 0x100), (LIGHT, 0x40)] {
                    if has(0x2000 | own) {
                        self.switches.insert(switch, switches.get(&switch).copied().unwrap_or(false));
                    }
                }
                self.color = if has(1) { color } else { self.color };
                self.clear = if has(0x4000) { clear } else { self.clear };
                self.bound = if has(0x4_0000) { bound } else { self.bound };
            }
            Op::NewList(list) => {
                self.lists.insert(list, Vec::new());
                self.list = Some(list);
            }
            Op::EndList => self.list = None,
            Op::CallList(list) => {
                for op in self.lists.get(&list).cloned().unwrap_or_default() {
                    self.step(op);
                }
            }
            Op::Swap => {
                self.shown.push(self.window);
                // Drivers may do anything with depths here.
                let depth = self.depth.entry(0).or_default();
                *depth = mix(&[*depth, 99]);
            }
            _ => self.step_stored(op),
        }
    }

    fn step_stored(&mut self, op: Op) {
        match op {
            Op::Generate(name) => {
                self.names.insert(name, self.textures.len());
                self.textures.push(Texture::default());
            }
            Op::Delete(name) => {
                let gone = self.names.remove(&name);
                self.bound = if gone == Some(self.bound) { 0 } else { self.bound };
            }
            Op::Bind(0) => self.bound = 0,
            Op::Bind(name) => {
                if !self.names.contains_key(&name) {
                    self.step_stored(Op::Generate(name));
                }
                self.bound = self.names[&name];
            }
            Op::Image(tag) => self.textures[self.bound].cells = [tag; CELLS],
            Op::Part(from, to, tag) => self.textures[self.bound].cells[from..to].fill(tag),
            Op::Mipmaps => {
                let texture = &mut self.textures[self.bound];
                texture.mipmaps = mix(&texture.cells);
            }
            Op::BindBuffer(name) => self.buffer = name,
            Op::Data(tag) => drop(self.buffers.insert(self.buffer, [tag; CELLS])),
            Op::Bytes(from, to, tag) => self.buffers.entry(self.buffer).or_default()[from..to].fill(tag),
            Op::Framebuffer(name) => self.framebuffer = name,
            Op::Attach(name) => {
                if let Some(texture) = self.names.get(&name) {
                    self.attached.insert(self.framebuffer, *texture);
                }
            }
            Op::Clear(color, depth) => {
                let (clear, is_part) = (self.clear, self.is_on(SCISSOR));
                if color {
                    self.paint(|cell| if is_part { mix(&[cell, clear]) } else { clear });
                }
                // Framebuffer objects have none.
                if depth && self.framebuffer == 0 {
                    let plane = self.depth.entry(self.framebuffer).or_default();
                    *plane = if is_part { mix(&[*plane, 5]) } else { 5 };
                }
            }
            Op::Draw => {
                let mut look = self.look();
                if self.is_on(DEPTH) && self.framebuffer == 0 {
                    let plane = self.depth.entry(self.framebuffer).or_default();
                    look = mix(&[look, *plane]);
                    *plane = mix(&[*plane, look]);
                }
                self.paint(|cell| mix(&[cell, look]));
            }
            Op::CopyToTexture(from, to) => {
                let seen = match self.framebuffer {
                    0 => self.window,
                    name => self.attached.get(&name).map_or(0, |texture| mix(&self.textures[*texture].cells)),
                };
                self.textures[self.bound].cells[from..to].fill(seen);
            }
            _ => {}
        }
    }
}

/// Writes a program as calls; the number of each is its index.
fn trace(ops: &[Op]) -> Vec<u8> {
    let mut gl = Gl::default();
    for op in ops {
        let part = |from: usize, to: usize| [from as u64, (to - from) as u64];
        match *op {
            Op::Enable(switch, true) => gl.numbers("glEnable", &[switch]),
            Op::Enable(switch, false) => gl.numbers("glDisable", &[switch]),
            Op::Color(color) => gl.numbers("glColor3ub", &[color, 0, 0]),
            Op::ClearColor(color) => gl.numbers("glClearColor", &[color, 0, 0, 0]),
            Op::Generate(name) => gl.generate("Textures", &[name]),
            Op::Delete(name) => gl.call("glDeleteTextures", &[V::N(1), V::A(vec![name])]),
            Op::Bind(name) => gl.numbers("glBindTexture", &[TEXTURE, name]),
            Op::Image(_) => gl.image(),
            Op::Part(from, to, _) => gl.part_of_image(part(from, to)[0], part(from, to)[1]),
            Op::Mipmaps => gl.numbers("glGenerateMipmap", &[TEXTURE]),
            Op::BindBuffer(name) => gl.numbers("glBindBufferBase", &[0x8a11, 0, name]),
            Op::Data(_) => gl.call("glBufferData", &[V::N(0x8a11), V::N(8), V::B(8), V::N(1)]),
            Op::Bytes(from, to, _) => {
                let [from, length] = part(from, to);
                gl.call("glBufferSubData", &[V::N(0x8a11), V::N(from), V::N(length), V::B(length as usize)])
            }
            Op::Framebuffer(name) => gl.numbers("glBindFramebuffer", &[FRAMEBUFFER, name]),
            Op::Attach(name) => gl.numbers("glFramebufferTexture2D", &[FRAMEBUFFER, 0x8ce0, TEXTURE, name, 0]),
            Op::Clear(color, depth) => gl.numbers("glClear", &[u64::from(color) << 14 | u64::from(depth) << 8]),
            Op::Draw => gl.numbers("glDrawArrays", &[4, 0, 3]),
            Op::CopyToTexture(from, to) => {
                let [from, length] = part(from, to);
                gl.numbers("glCopyTexSubImage2D", &[TEXTURE, 0, from, 0, 0, 0, length, 8])
            }
            Op::Push => gl.call("glPushMatrix", &[]),
            Op::Pop => gl.call("glPopMatrix", &[]),
            Op::Identity => gl.call("glLoadIdentity", &[]),
            Op::Rotate(by) => gl.numbers("glRotatef", &[by, 0, 0, 1]),
            Op::PushAttrib(groups) => gl.numbers("glPushAttrib", &[groups]),
            Op::PopAttrib => gl.call("glPopAttrib", &[]),
            Op::NewList(list) => gl.numbers("glNewList", &[list, 0x1300]),
            Op::EndList => gl.call("glEndList", &[]),
            Op::CallList(list) => gl.numbers("glCallList", &[list]),
            Op::Swap => gl.swap(),
        };
    }
    gl.build.bytes
}

/// Makes a valid program from random numbers: pops match pushes, and names are those of objects.
fn program(choices: &[(u8, u8, u8)]) -> Vec<Op> {
    let mut ops = vec![Op::BindBuffer(1), Op::Data(1)];
    let (mut pushes, mut attribs, mut list, mut names) = (0, 0, 0, BTreeSet::new());
    for (tag, (what, a, b)) in choices.iter().enumerate() {
        let (tag, from) = (tag as u64 + 100, usize::from(*b) % CELLS);
        let to = from + 1 + usize::from(*a) % (CELLS - from);
        let name = 1 + u64::from(*a % 4);
        let op = match what % 34 {
            0 | 1 => Op::Enable([SCISSOR, DEPTH, LIGHT][usize::from(*a) % 3], b % 2 == 0),
            2 => Op::Color(tag),
            3..=6 => Op::Draw,
            7 => Op::Rotate(tag),
            8 => Op::Bind(if names.contains(&name) { name } else { 0 }),
            // Lists call only earlier lists.
            9 if list == 0 => Op::CallList(1 + u64::from(*a % 2)),
            9 if list == 2 => Op::CallList(1),
            10 if list > 0 => Op::EndList,
            _ if list > 0 => continue,
            11 => Op::ClearColor(tag),
            12 if names.insert(name) => Op::Generate(name),
            13 if names.remove(&name) => Op::Delete(name),
            14 | 15 => Op::Image(tag),
            16 => Op::Part(from, to, tag),
            17 => Op::Mipmaps,
            18 => Op::BindBuffer(1 + u64::from(*a % 3)),
            19 => Op::Data(tag),
            20 | 21 => Op::Bytes(from, to, tag),
            22 | 23 => Op::Framebuffer(u64::from(*a % 3)),
            24 if names.contains(&name) && ops.iter().rev().any(|op| matches!(op, Op::Framebuffer(f) if *f > 0)) => {
                Op::Attach(name)
            }
            25 | 26 => Op::Clear(a % 4 != 0, b % 2 == 0),
            27 => Op::CopyToTexture(from, to),
            28 if pushes < 3 => Op::Push,
            29 if pushes > 0 => Op::Pop,
            30 => Op::Identity,
            31 if attribs < 3 => Op::PushAttrib([0xf_ffff, 0x2000, 0x4001, 0x4_0040, 0x8_0100][usize::from(*a) % 5]),
            32 if attribs > 0 => Op::PopAttrib,
            33 if a % 3 == 0 => Op::NewList(1 + u64::from(*b % 2)),
            _ => Op::Swap,
        };
        match op {
            Op::Push => pushes += 1,
            Op::Pop => pushes -= 1,
            Op::PushAttrib(_) => attribs += 1,
            Op::PopAttrib => attribs -= 1,
            Op::NewList(name) => list = name,
            Op::EndList => list = 0,
            // Attaching requires a framebuffer object.
            Op::Attach(_) => ops.push(Op::Framebuffer(1 + u64::from(*b % 2))),
            _ => {}
        }
        ops.push(op);
    }
    if list > 0 {
        ops.push(Op::EndList);
    }
    ops.extend([Op::Framebuffer(0), Op::Draw, Op::Swap]);
    ops
}

fn kept(ops: &[Op], frames: &str) -> Vec<bool> {
    let bytes = trace(ops);
    let mut reader = Reader::new(Input::from_bytes("x.trace", bytes), &OpenOptions::default()).unwrap();
    let frames = CallSet::parse([frames], &mut |_| Err(std::io::Error::other("no files here"))).unwrap();
    let options = GltrimOptions { frames: Some(frames), ..GltrimOptions::default() };
    let mut sink = Collect::default();
    let plan = plan(&mut reader, &options, &mut sink).unwrap();
    assert!(sink.0.is_empty());
    (0..ops.len() as u64).map(|call| plan.keeps(call)).collect()
}

fn check(ops: &[Op], frame: usize) {
    let entire = Machine::run(ops.iter().copied());
    let kept = kept(ops, &frame.to_string());
    let part = Machine::run(ops.iter().zip(&kept).filter(|(_, is_kept)| **is_kept).map(|(op, _)| *op));
    let rows: Vec<_> = ops.iter().zip(&kept).collect();
    assert_eq!(part.last(), Some(&entire[frame]), "frame {frame}: {rows:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn a_frame_shows_the_same_in_the_entire_and_the_trimmed_trace(
        choices in proptest::collection::vec((any::<u8>(), any::<u8>(), any::<u8>()), 1..120),
        frame in any::<prop::sample::Index>(),
    ) {
        let ops = program(&choices);
        let frames = ops.iter().filter(|op| **op == Op::Swap).count();
        check(&ops, frame.index(frames));
    }
}

#[test]
fn frames_that_begin_anew_need_little_of_those_before() {
    let mut ops = vec![Op::BindBuffer(1), Op::Data(1)];
    for frame in 0..200 {
        ops.extend([Op::ClearColor(frame), Op::Clear(true, true), Op::Identity, Op::Push, Op::Rotate(frame)]);
        ops.extend([
            Op::Enable(DEPTH, true),
            Op::Draw,
            Op::Pop,
            Op::Bytes(0, 4, frame),
            Op::Bytes(4, 8, frame),
            Op::Draw,
        ]);
        ops.push(Op::Swap);
    }
    let count = kept(&ops, "150").iter().filter(|is_kept| **is_kept).count();
    assert!(count < 24, "{count}");
    check(&ops, 150);
}

#[test]
fn a_switch_that_its_own_group_saved_comes_back() {
    for (switch, own) in [(SCISSOR, 0x8_0000), (DEPTH, 0x100), (LIGHT, 0x40), (LIGHT, 0x2000)] {
        let ops = [
            Op::Enable(switch, true),
            Op::PushAttrib(own),
            Op::Enable(switch, false),
            Op::Draw,
            Op::PopAttrib,
            Op::Swap,
            Op::ClearColor(7),
            Op::Clear(true, true),
            Op::Draw,
            Op::Swap,
        ];
        check(&ops, 0);
        check(&ops, 1);
    }
}
