//! Where reading resumes after damage: at the first good event, without inventing events.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;

use std::collections::BTreeMap;

use anytrace_apitrace::Apitrace;
use anytrace_core::testing::{assert_repairs, examine};
use build::{Build, blob, leb, string, text, uint};

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

const FUNCTIONS: [(u64, &str, &[&str]); 5] = [
    (0, "glClear", &[]),
    (1, "glDrawArrays", &["mode"]),
    (2, "glXSwapBuffers", &["dpy", "drawable"]),
    (2000, "glTexImage2D", &["target", "level", "pixels"]),
    (5, "wglFoo", &["x"]),
];

fn value(dice: &mut Dice, seen: &mut Vec<u64>) -> Vec<u8> {
    match dice.below(8) {
        0 => vec![0],
        1 => uint([0, 1, 127, 128, u64::MAX][usize::try_from(dice.below(5)).unwrap()]),
        2 => string("hi"),
        3 => {
            let length = [0, 40, 300][usize::try_from(dice.below(3)).unwrap()];
            blob(&(0..length).map(|_| u8::try_from(dice.below(5)).unwrap()).collect::<Vec<_>>())
        }
        4 => [vec![11, 3], value(dice, seen), vec![0, 0]].concat(),
        5 => [vec![13], leb(dice.below(1 << 40))].concat(),
        6 => vec![5, 0, 0, 0, 0],
        // A structure with a member without a name, as in nested structures.
        _ => {
            let id = dice.below(40);
            let mut out = [vec![12], leb(id)].concat();
            if !seen.contains(&id) {
                seen.push(id);
                out.extend([text("S"), vec![2], text(""), text("member")].concat());
            }
            out.extend([value(dice, seen), vec![4, 0]].concat());
            out
        }
    }
}

/// A random trace and where its events start.
fn trace(version: u64, seed: u64, calls: u64) -> (Vec<u8>, Vec<usize>) {
    let mut dice = Dice(seed);
    let mut b = Build::version(version);
    let (mut starts, mut structures, mut functions, mut open) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for call in 0..calls {
        starts.push(b.bytes.len());
        let (id, name, arguments) = FUNCTIONS[usize::try_from(dice.below(5)).unwrap()];
        b.add(&[0]);
        if version >= 4 {
            b.add(&leb([0, 0, 1, 200][usize::try_from(dice.below(4)).unwrap()]));
        }
        b.add(&leb(id));
        if !functions.contains(&id) {
            functions.push(id);
            b.add(&text(name)).add(&leb(arguments.len() as u64));
            arguments.iter().for_each(|argument| {
                b.add(&text(argument));
            });
        }
        for index in 0..arguments.len() as u64 {
            b.argument(index, &value(&mut dice, &mut structures));
        }
        b.end();
        open.push(call);
        while open.len() > 2 || (!open.is_empty() && dice.below(10) < 7) {
            starts.push(b.bytes.len());
            let call = open.remove(usize::try_from(dice.below(open.len() as u64)).unwrap());
            b.leave(call);
            if dice.below(2) == 0 {
                b.add(&[2]).add(&value(&mut dice, &mut structures));
            }
            b.end();
        }
    }
    (b.bytes, starts)
}

/// How often each line of the dump occurs, without places and event numbers.
fn lines(bytes: &[u8]) -> BTreeMap<String, i64> {
    let dump = String::from_utf8(examine(&Apitrace, bytes).text).unwrap();
    let mut out = BTreeMap::new();
    for line in dump.lines() {
        *out.entry(line.splitn(3, ' ').nth(2).unwrap().to_owned()).or_default() += 1;
    }
    out
}

/// Events of `a` that `b` lacks.
fn missing(a: &BTreeMap<String, i64>, b: &BTreeMap<String, i64>) -> i64 {
    a.iter().map(|(line, n)| (n - b.get(line).unwrap_or(&0)).max(0)).sum()
}

/// Damages an event in the second half of random traces and compares what is read.
fn each(damage: impl Fn(&mut Dice, &mut Vec<u8>, usize), lost_max: i64) {
    for version in [1, 2, 4, 5, 6] {
        for seed in 0..12 {
            let (bytes, starts) = trace(version, seed, 150);
            let mut dice = Dice(seed + 99);
            let at = starts[starts.len() / 2 + usize::try_from(dice.below(starts.len() as u64 / 3)).unwrap()];
            let mut damaged = bytes.clone();
            damage(&mut dice, &mut damaged, at);
            let (entire, found) = (lines(&bytes), lines(&damaged));
            let what = format!("version {version}, seed {seed}, damage at {at:#x}");
            // The leave of a call whose enter is lost reads as one of an unknown function.
            let lost = missing(&entire, &found);
            assert!(lost <= lost_max, "{what}: {lost} events lost");
            assert!(missing(&found, &entire) <= lost_max / 2, "{what}: events that were never there");
            let exam = examine(&Apitrace, &damaged);
            assert_eq!(exam.errors()[0].offset, at as u64, "{what}");
            let repaired = lines(&assert_repairs(&Apitrace, &damaged, &what));
            let calls = |lines: &BTreeMap<String, i64>| lines.values().sum::<i64>();
            assert!(calls(&entire) - calls(&repaired) <= lost_max, "{what}: lost by repair");
        }
    }
}

#[test]
fn bytes_put_in_between_events_cost_no_event() {
    let junk = |dice: &mut Dice, bytes: &mut Vec<u8>, at: usize| {
        let junk: Vec<u8> = (0..20).map(|_| u8::try_from(3 + dice.below(253)).unwrap()).collect();
        bytes.splice(at..at, junk);
    };
    each(junk, 0);
}

#[test]
fn a_changed_first_byte_costs_its_call_and_nothing_else() {
    each(|_, bytes, at| bytes[at] = 0x42, 2);
}
