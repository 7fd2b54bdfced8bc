//! What the program passed, by the function's parameters.

use crate::registers::Registers;
use crate::table::{FUNCTIONS, Function};

/// No function has more parameters.
pub(crate) const PARAMETERS_MAX: usize = 20;

/// A call's arguments: integers and pointers with bits above their type's unspecified, floating-point numbers as bits.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) function: &'static Function,
    values: [u64; PARAMETERS_MAX],
}

impl Arguments {
    /// # Safety
    /// The program called the function with this number with these registers.
    pub(crate) unsafe fn of(number: usize, registers: &Registers) -> Self {
        let function = &FUNCTIONS[number];
        let mut values = [0; PARAMETERS_MAX];
        let (mut integers, mut floats) = (registers.integers.iter(), registers.floats.iter());
        let mut on_stack = 0;
        for (value, parameter) in values.iter_mut().zip(function.parameters) {
            let is_float = parameter.pointers == 0 && parameter.kind.is_float();
            let register = if is_float { floats.next() } else { integers.next() };
            *value = match register {
                Some(register) => *register,
                None => {
                    // SAFETY: by the convention the parameter is the next word of the caller's frame.
                    let word = unsafe { registers.stack.add(on_stack).read() };
                    on_stack += 1;
                    word
                }
            };
        }
        Self { function, values }
    }

    pub(crate) fn raw(&self, at: usize) -> u64 {
        self.values.get(at).copied().unwrap_or(0)
    }

    /// A number of 32 bits, which may be below zero.
    pub(crate) fn int(&self, at: usize) -> i32 {
        self.raw(at) as u32 as i32
    }

    pub(crate) fn uint(&self, at: usize) -> u32 {
        self.raw(at) as u32
    }

    /// The place of the parameter with one of these names.
    pub(crate) fn place(&self, names: &[&str]) -> Option<usize> {
        self.function.parameters.iter().position(|parameter| names.contains(&parameter.name))
    }

    /// The number that the parameter with one of these names has.
    pub(crate) fn named(&self, names: &[&str]) -> Option<i64> {
        let at = self.place(names)?;
        let is_long = self.function.parameters[at].kind.bytes() == 8;
        Some(if is_long { self.raw(at) as i64 } else { i64::from(self.int(at)) })
    }
}
