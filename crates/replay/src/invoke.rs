//! Calls a function whose parameters are known only at run time.
//!
//! In the calling conventions of Unix on x86-64 and 64-bit Arm, integers and pointers have registers of their own, and so
//! have floating-point numbers; what finds none is on the stack, eight bytes each, in order. A function may be given more
//! than it takes. Thus one type of function serves all: the registers of both kinds, and some of the stack.
#![allow(unsafe_code, reason = "functions of the driver are called by address")]

use std::sync::OnceLock;

/// Registers for integers and pointers.
const INTEGERS: usize = if cfg!(target_arch = "x86_64") { 6 } else { 8 };

/// Registers for floating-point numbers, of both conventions.
const FLOATS: usize = 8;

/// Words on the stack: as many as 16 parameters can need.
const STACK: usize = 10;

/// Functions of the driver that draws nothing have numbers below, where no function is.
const NOTHING_MAX: usize = 1 << 15;

/// Answers calls of the driver that draws nothing.
static NOTHING: OnceLock<fn(usize, &Arguments) -> u64> = OnceLock::new();

/// Calls of functions that have numbers ([`Function::of_nothing`]) are answered by this one.
pub(crate) fn answer_with(answer: fn(usize, &Arguments) -> u64) {
    // There is only one.
    let _ = NOTHING.set(answer);
}

/// The address of a function of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Function(usize);

impl Function {
    /// A function of the driver that draws nothing.
    pub(crate) fn of_nothing(number: usize) -> Option<Self> {
        (number < NOTHING_MAX).then_some(Self(number + 1))
    }

    /// `address`: of a function with the C calling convention.
    pub(crate) fn new(address: usize) -> Option<Self> {
        (address != 0).then_some(Self(address))
    }
}

/// Arguments, each where the calling convention has it.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    integers: [u64; 8],
    floats: [f64; FLOATS],
    stack: [u64; STACK],
    counts: (usize, usize, usize),
}

impl Arguments {
    pub(crate) fn clear(&mut self) {
        self.counts = (0, 0, 0);
    }

    /// An integer of at most 64 bits, or a pointer.
    pub(crate) fn integer(&mut self, value: u64) {
        match self.integers.get_mut(self.counts.0).filter(|_| self.counts.0 < INTEGERS) {
            Some(place) => {
                *place = value;
                self.counts.0 += 1;
            }
            None => self.word(value),
        }
    }

    pub(crate) fn single(&mut self, value: f32) {
        // The lower half of a register is the 32-bit number.
        self.bits(u64::from(value.to_bits()));
    }

    pub(crate) fn double(&mut self, value: f64) {
        self.bits(value.to_bits());
    }

    fn bits(&mut self, bits: u64) {
        match self.floats.get_mut(self.counts.1) {
            Some(place) => {
                *place = f64::from_bits(bits);
                self.counts.1 += 1;
            }
            None => self.word(bits),
        }
    }

    /// The integer or pointer with this index among those in registers; 0 for others.
    pub(crate) fn at(&self, index: usize) -> u64 {
        self.integers.get(index).copied().filter(|_| index < self.counts.0).unwrap_or(0)
    }

    /// The integer or pointer with this index, where no floating-point numbers are on the stack.
    pub(crate) fn integer_at(&self, index: usize) -> u64 {
        match index.checked_sub(INTEGERS) {
            None => self.at(index),
            Some(index) => self.stack.get(index).copied().filter(|_| index < self.counts.2).unwrap_or(0),
        }
    }

    /// There are at most 16 parameters, so that the stack has room.
    fn word(&mut self, value: u64) {
        if let Some(place) = self.stack.get_mut(self.counts.2) {
            *place = value;
            self.counts.2 += 1;
        }
    }
}

#[cfg(target_arch = "x86_64")]
type Few = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64) -> u64;
#[cfg(target_arch = "x86_64")]
type Many = unsafe extern "C" fn(
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
) -> u64;
#[cfg(not(target_arch = "x86_64"))]
type Few = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64) -> u64;
#[cfg(not(target_arch = "x86_64"))]
type Many = unsafe extern "C" fn(
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
) -> u64;

/// Calls a function and returns what is in the register of results; its upper bits mean nothing where the result is
/// shorter.
///
/// # Safety
/// The arguments fit the function's parameters, and pointers among them point to what the function reads or writes.
pub(crate) unsafe fn call(function: Function, arguments: &Arguments) -> u64 {
    if let Some(number) = function.0.checked_sub(1).filter(|number| *number < NOTHING_MAX) {
        return NOTHING.get().map_or(0, |answer| answer(number, arguments));
    }
    let [a, b, c, d, e, f, g, h] = arguments.integers;
    let [k, l, m, n, o, p, q, r] = arguments.floats;
    let [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9] = arguments.stack;
    let is_plain = arguments.counts.1 == 0 && arguments.counts.2 == 0;
    #[cfg(target_arch = "x86_64")]
    let _ = (g, h);
    // SAFETY: the address is that of a function (`Function::new`), whose parameters are among these by the convention
    // that the module describes; the rest is the caller's promise.
    unsafe {
        if is_plain {
            let few: Few = std::mem::transmute::<usize, Few>(function.0);
            #[cfg(target_arch = "x86_64")]
            return few(a, b, c, d, e, f);
            #[cfg(not(target_arch = "x86_64"))]
            return few(a, b, c, d, e, f, g, h);
        }
        let many: Many = std::mem::transmute::<usize, Many>(function.0);
        #[cfg(target_arch = "x86_64")]
        return many(a, b, c, d, e, f, k, l, m, n, o, p, q, r, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9);
        #[cfg(not(target_arch = "x86_64"))]
        return many(a, b, c, d, e, f, g, h, k, l, m, n, o, p, q, r, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn mixed(a: i32, b: f32, c: u8, d: f64, e: i64) -> i32 {
        a + b as i32 * 10 + i32::from(c) * 100 + d as i32 * 1000 + e as i32 * 10_000
    }

    extern "C" fn integers(a: u32, b: u32, c: u32, d: u32, e: u32, f: u32, g: u32, h: i32, i: i64, j: u32) -> i64 {
        [a, b, c, d, e, f, g, j].iter().map(|number| i64::from(*number)).sum::<i64>() + i64::from(h) * 100 + i * 1000
    }

    extern "C" fn floats(
        a: f32,
        b: f32,
        c: f32,
        d: f32,
        e: f32,
        f: f32,
        g: f32,
        h: f32,
        i: f32,
        x: i32,
        j: f32,
    ) -> i32 {
        [a, b, c, d, e, f, g, h].iter().map(|number| *number as i32).sum::<i32>() + i as i32 * 100 + x + j as i32 * 1000
    }

    /// The result of a function of the test's own.
    fn result(address: usize, fill: impl Fn(&mut Arguments)) -> u64 {
        let mut arguments = Arguments::default();
        fill(&mut arguments);
        // SAFETY: each test passes what its function takes.
        Function::new(address).map_or(0, |function| unsafe { call(function, &arguments) })
    }

    #[test]
    fn each_kind_of_number_arrives_whatever_is_between() {
        let found = result(mixed as *const () as usize, |to| {
            to.integer(1);
            to.single(2.0);
            to.integer(3);
            to.double(4.0);
            to.integer(5);
        });
        assert_eq!(found as i32, 54_321);
        assert_eq!(Function::new(0), None);
    }

    #[test]
    fn what_finds_no_register_is_on_the_stack_in_order() {
        let found = result(integers as *const () as usize, |to| {
            for number in 1..=7 {
                to.integer(number);
            }
            to.integer((-2_i64) as u64);
            to.integer(3);
            to.integer(8);
        });
        assert_eq!(found as i64, 36 - 200 + 3000);
        let found = result(floats as *const () as usize, |to| {
            for number in 1..=8_u8 {
                to.single(f32::from(number));
            }
            to.single(5.0);
            to.integer(7);
            to.single(6.0);
        });
        assert_eq!(found as i32, 36 + 500 + 7 + 6000);
    }
}
