//! Functions that a program asks the driver for and that are not in the table: their calls are counted, and passed on.

use std::arch::naked_asm;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// How many there may be; of more, nothing is counted.
const MAX: usize = 128;

/// Where each leads.
static REAL: [AtomicUsize; MAX] = [const { AtomicUsize::new(0) }; MAX];
static CALLS: [AtomicU64; MAX] = [const { AtomicU64::new(0) }; MAX];
static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// A function that counts and goes on to the real one; no register with an argument is touched.
macro_rules! counters {
    ($($name:ident $number:literal)*) => {
        $(
            #[unsafe(naked)]
            unsafe extern "C" fn $name() {
                naked_asm!(
                    "lock inc qword ptr [rip + {calls} + 8 * {number}]",
                    "jmp qword ptr [rip + {real} + 8 * {number}]",
                    calls = sym CALLS,
                    real = sym REAL,
                    number = const $number,
                )
            }
        )*

        static COUNTERS: [unsafe extern "C" fn(); MAX] = [$($name),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/counters.rs"));

/// An address that leads to the real function and counts its calls.
pub(crate) fn counted(name: &str, real: usize) -> usize {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let at = names.iter().position(|known| *known == name).unwrap_or(names.len());
    let (Some(place), Some(counter)) = (REAL.get(at), COUNTERS.get(at)) else { return real };
    place.store(real, Relaxed);
    if at == names.len() {
        names.push(Box::leak(name.to_owned().into_boxed_str()));
    }
    *counter as usize
}

/// Those that were called, and how often. Skipped if another thread is just adding one: the process may be in any state.
pub(crate) fn each_called(mut take: impl FnMut(&str, u64)) {
    let Ok(names) = NAMES.try_lock() else { return };
    for (name, count) in names.iter().zip(&CALLS) {
        // Each is reported once.
        match count.swap(0, Relaxed) {
            0 => {}
            count => take(name, count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn product(a: i32, b: f64) -> i32 {
        a * b as i32
    }

    #[test]
    fn calls_are_counted_and_their_arguments_arrive() {
        let address = counted("glProductTEST", product as *const () as usize);
        // SAFETY: it leads to the function with this type.
        let function = unsafe { std::mem::transmute::<usize, extern "C" fn(i32, f64) -> i32>(address) };
        assert_eq!((function(6, 7.0), function(2, 3.0)), (42, 6));
        assert_eq!(counted("glProductTEST", product as *const () as usize), address);
        let mut called = Vec::new();
        each_called(|name, count| called.push((name.to_owned(), count)));
        assert_eq!(called, [("glProductTEST".to_owned(), 2)]);
    }
}
