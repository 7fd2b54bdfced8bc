//! Bugs: a few records of a good trace dropped, doubled, swapped or altered.

use anytrace_casemate::{AtomicOp, Barrier, Domain, HintKind, MemoryOrder, Operand, TlbiOp, Transition};

use super::Rng;
use crate::oracle::step::Step;

/// The trace with one to four bugs, most often one. Bugs prefer the second half, where trees are live.
pub(crate) fn mutate(rng: &mut Rng, mut steps: Vec<Step>) -> Vec<Step> {
    let bugs = if rng.chance(65) { 1 } else { 1 + rng.below(4) };
    for _ in 0..bugs {
        if steps.is_empty() {
            return steps;
        }
        let at = match rng.chance(60) {
            true => steps.len() / 2 + rng.index(steps.len() - steps.len() / 2),
            false => rng.index(steps.len()),
        };
        one(rng, &mut steps, at);
    }
    steps
}

fn one(rng: &mut Rng, steps: &mut Vec<Step>, at: usize) {
    match rng.below(100) {
        0..22 => {
            steps.remove(at);
        }
        22..30 => steps.insert(at, steps[at]),
        30..38 => {
            let next = (at + 1).min(steps.len() - 1);
            steps.swap(at, next);
        }
        38..42 => {
            let other = rng.index(steps.len());
            steps.swap(at, other);
        }
        42..50 => steps[at].thread = u32::try_from(rng.below(4)).unwrap_or(0),
        50..56 => {
            // The same step again, much later.
            let later = at + rng.index(steps.len() - at);
            steps.insert(later, steps[at]);
        }
        56..60 => {
            // All records of one kind are missing for a while.
            let kind = steps[at].action.kind();
            let end = (at + 12).min(steps.len());
            let tail = steps.split_off(end);
            let window = steps.split_off(at);
            steps.extend(window.into_iter().filter(|step| step.action.kind() != kind));
            steps.extend(tail);
        }
        60..64 => {
            let other = steps[rng.index(steps.len())];
            borrow_value(&mut steps[at], &other);
        }
        _ => {
            let near = steps[..at].iter().rev().take(12).map(|step| step.action);
            let address = near.filter_map(written).next().unwrap_or(0);
            steps[at].action = altered(rng, steps[at].action, address);
        }
    }
}

fn written(action: Transition) -> Option<u64> {
    match action {
        Transition::MemWrite { address, .. } => Some(address),
        _ => None,
    }
}

/// Takes the value or the address of another record.
fn borrow_value(step: &mut Step, other: &Step) {
    if let (Transition::MemWrite { value, .. }, Transition::MemWrite { value: theirs, .. }) =
        (&mut step.action, other.action)
    {
        *value = theirs;
    }
}

fn altered(rng: &mut Rng, action: Transition, near: u64) -> Transition {
    match action {
        Transition::MemWrite { order, address, value } => write(rng, order, address, value),
        Transition::MemInit { address, size } => {
            Transition::MemInit { address: address + 8 * rng.below(3), size: size.saturating_sub(8 * rng.below(600)) }
        }
        Transition::MemFree { address, .. } => Transition::MemFree { address: rng.pick(&[address, near]), size: 8 },
        Transition::MemSet { address, size, value } => match rng.below(4) {
            0 => Transition::MemSet { address: address + 8, size, value },
            1 => Transition::MemSet { address, size: size / 2, value },
            2 => Transition::MemSet { address, size, value: value ^ 0xff },
            _ => Transition::MemSet { address: near & !0xfff, size, value },
        },
        Transition::Barrier(_) => Transition::Barrier(match rng.below(5) {
            0 => Barrier::Isb,
            1 => Barrier::Dsb(Domain::Nsh),
            2 => Barrier::Dsb(rng.pick(&[Domain::Sy, Domain::Ishnxs, Domain::Synxs, Domain::Osh])),
            _ => Barrier::Dsb(Domain::Ishst),
        }),
        Transition::Tlbi { op, operand } => tlbi(rng, op, operand),
        Transition::SysregWrite { register, value } => {
            let value = match rng.below(5) {
                0 => value ^ 1 << 48,
                1 => value & ((1 << 48) - 1),
                2 => value ^ rng.pick(&[0x1000, 0x800, 2, 0x20, 3]),
                3 => rng.pick(&[0x4010, 0x8010, 0xc010, 12, 44, 24, 25, 16, 0, 1]),
                _ => value ^ 1,
            };
            Transition::SysregWrite { register, value }
        }
        Transition::Hint { hint, location, value } => hint_altered(rng, hint, location, value, near),
        Transition::Lock { address } => match rng.below(3) {
            0 => Transition::Trylock { address },
            1 => Transition::Unlock { address },
            _ => Transition::Lock { address: address + 8 },
        },
        Transition::Trylock { address } => Transition::Lock { address },
        Transition::Unlock { address } => match rng.below(2) {
            0 => Transition::Lock { address },
            _ => Transition::Unlock { address: address + 8 },
        },
        other => other,
    }
}

fn write(rng: &mut Rng, order: MemoryOrder, address: u64, value: u64) -> Transition {
    if rng.chance(8) {
        let order = rng.pick(&[MemoryOrder::Plain, MemoryOrder::Release, MemoryOrder::Acquire, MemoryOrder::AcqRel]);
        return Transition::MemAtomic { op: AtomicOp::Swp, order, address, value, read: rng.below(2) };
    }
    match rng.below(10) {
        0 | 1 => {
            let order = if order == MemoryOrder::Plain { MemoryOrder::Release } else { MemoryOrder::Plain };
            Transition::MemWrite { order, address, value }
        }
        2 => Transition::MemWrite { order, address: address ^ 8, value },
        3 => Transition::MemWrite { order, address: address + rng.pick(&[1, 4, 0x1000, 0x10_0000]), value },
        4 => Transition::MemWrite { order: MemoryOrder::Page, address, value },
        5 => Transition::MemWrite { order, address, value: value ^ 2 },
        6 => Transition::MemWrite { order, address, value: value ^ 1 << 10 },
        7 => Transition::MemWrite {
            order,
            address,
            value: value ^ rng.pick(&[0x1000, 1 << 54, 1 << 59, 1 << 55, 1 << 52, 0x80, 0x4, 0x100, 1 << 51, 1 << 63]),
        },
        _ => Transition::MemWrite { order, address, value: value ^ 1 },
    }
}

fn tlbi(rng: &mut Rng, op: TlbiOp, operand: Operand) -> Transition {
    let Some(value) = operand.value() else {
        return Transition::Tlbi { op: any_op(rng, false), operand };
    };
    let (mut op, mut value) = (op, value);
    match rng.below(8) {
        0 => value ^= 1,
        1 => value ^= 0x200,
        2 => value ^= rng.pick(&[4, 5, 6, 7, 8, 0xb]) << 44,
        3 => value ^= 1 << 48,
        4 => return Transition::Tlbi { op: TlbiOp::Vmalle1is, operand: Operand::None },
        5 => return Transition::Tlbi { op: TlbiOp::Vmalls12e1is, operand: Operand::None },
        _ => op = any_op(rng, true),
    }
    Transition::Tlbi { op, operand: Operand::Value(value) }
}

/// Any operation with or without an operand; most often one of those of the first document.
fn any_op(rng: &mut Rng, takes_operand: bool) -> TlbiOp {
    let is_common = rng.chance(50);
    loop {
        let op = TlbiOp::ALL[rng.index(TlbiOp::ALL.len())];
        let is_early = !op.is_range() && !op.is_nxs() && !op.name().ends_with("os");
        if op.takes_operand() == takes_operand && (is_early || !is_common) {
            return op;
        }
    }
}

fn hint_altered(rng: &mut Rng, hint: HintKind, location: u64, value: u64, near: u64) -> Transition {
    let hint = if rng.chance(40) { HintKind::ALL[rng.index(HintKind::ALL.len())] } else { hint };
    let location = match rng.below(4) {
        0 => near,
        1 => location + 8,
        _ => location,
    };
    let value = match rng.below(4) {
        0 => rng.below(4),
        1 => 0,
        _ => value,
    };
    Transition::Hint { hint, location, value }
}
