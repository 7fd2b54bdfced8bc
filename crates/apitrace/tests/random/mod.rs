//! Random valid traces: every kind of value, several threads, calls left late or never.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use crate::build::{Build, leb, text};

/// xorshift64 (Marsaglia 2003).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end.max(1)
    }
}

/// What was defined, by space: function, struct, enum, bit mask, frame.
#[derive(Default)]
struct Known([Vec<u64>; 5]);

impl Known {
    /// The id, and whether its definition must follow.
    fn id(&mut self, space: usize, random: &mut Random) -> (u64, bool) {
        let id = if random.below(9) == 0 { 5000 + random.below(3) } else { random.below(7) };
        let is_new = !self.0[space].contains(&id);
        if is_new {
            self.0[space].push(id);
        }
        (id, is_new)
    }
}

/// A raw stream of about this many calls.
pub fn random_stream(random: &mut Random, version: u64, calls: u64) -> Vec<u8> {
    let mut b = Build::version(version);
    if version >= 6 && random.below(2) == 0 {
        b.bytes.truncate(2);
        b.add(&text("process.name")).add(&text("/bin/x")).end();
    }
    let mut known = Known::default();
    let mut open: Vec<u64> = Vec::new();
    let threads = 1 + random.below(4);
    for call in 0..calls {
        enter(&mut b, random, &mut known, version, threads);
        open.push(call);
        // Some wait, a few forever.
        while !open.is_empty() && random.below(10) < 8 {
            let at = if random.below(4) > 0 { open.len() - 1 } else { random.below(open.len() as u64) as usize };
            let number = open.remove(at);
            if random.below(60) == 0 {
                continue;
            }
            b.leave(number);
            if random.below(3) == 0 {
                b.add(&[2]);
                let value = value(random, &mut known, version, 0);
                b.add(&value);
            }
            b.end();
        }
    }
    b.bytes
}

fn enter(b: &mut Build, random: &mut Random, known: &mut Known, version: u64, threads: u64) {
    b.add(&[0]);
    if version >= 4 {
        b.add(&leb(random.below(threads)));
    }
    let (id, is_new) = known.id(0, random);
    b.add(&leb(id));
    if is_new {
        let name = if id == 3 { "glXSwapBuffers".to_owned() } else { format!("glCall{id}") };
        b.add(&text(&name)).add(&leb(5));
        for name in ["a", "b", "c", "d", "e"] {
            b.add(&text(name));
        }
    }
    if version >= 5 && random.below(12) == 0 {
        let count = random.below(4);
        b.add(&[4]).add(&leb(count));
        for _ in 0..count {
            let (id, is_new) = known.id(4, random);
            b.add(&leb(id));
            if is_new {
                b.add(&[1]).add(&text("lib.so")).add(&[2]).add(&text("main")).add(&[4, 12, 0]);
            }
        }
    }
    for index in 0..random.below(5) {
        let value = value(random, known, version, 0);
        b.argument(index, &value);
    }
    b.end();
}

fn value(random: &mut Random, known: &mut Known, version: u64, depth: u32) -> Vec<u8> {
    match random.below(if depth > 2 { 8 } else { 11 }) {
        0 => vec![0],
        1 => [vec![4], leb(random.next() >> random.below(64))].concat(),
        2 => [vec![6], random.next().to_le_bytes().to_vec()].concat(),
        3 => [vec![7], text(&"text ".repeat(random.below(9) as usize))].concat(),
        4 => blob(random),
        5 => enumeration(random, known, version),
        6 => mask(random, known),
        7 => [vec![13], leb(random.below(1 << 40))].concat(),
        8 => {
            let count = random.below(4);
            let mut out = [vec![11], leb(count)].concat();
            (0..count).for_each(|_| out.extend(value(random, known, version, depth + 1)));
            out
        }
        9 => structure(random, known, version, depth),
        _ => [vec![3], leb(random.below(1000))].concat(),
    }
}

fn blob(random: &mut Random) -> Vec<u8> {
    // Occasionally one that comes in pieces.
    let length = if random.below(40) == 0 { 65_000 + random.below(3000) } else { random.below(50) };
    let mut out = [vec![8], leb(length)].concat();
    out.extend((0..length).map(|n| (n * 7 + length) as u8));
    out
}

fn enumeration(random: &mut Random, known: &mut Known, version: u64) -> Vec<u8> {
    let (id, is_new) = known.id(2, random);
    let mut out = [vec![9], leb(id)].concat();
    if version < 3 {
        if is_new {
            out.extend([text("GL_OLD"), vec![4], leb(id)].concat());
        }
        return out;
    }
    if is_new {
        out.extend([leb(2), text("GL_A"), vec![4, 0], text("GL_B"), vec![3, 5]].concat());
    }
    out.extend([vec![4], leb(random.below(3))].concat());
    out
}

fn mask(random: &mut Random, known: &mut Known) -> Vec<u8> {
    let (id, is_new) = known.id(3, random);
    let mut out = [vec![10], leb(id)].concat();
    if is_new {
        out.extend([leb(2), text("A_BIT"), vec![1], text("B_BIT"), vec![4]].concat());
    }
    out.extend(leb(random.below(8)));
    out
}

fn structure(random: &mut Random, known: &mut Known, version: u64, depth: u32) -> Vec<u8> {
    let (id, is_new) = known.id(1, random);
    let mut out = [vec![12], leb(id)].concat();
    if is_new {
        out.extend([text("Point"), leb(2), text("x"), text("y")].concat());
    }
    (0..2).for_each(|_| out.extend(value(random, known, version, depth + 1)));
    out
}
