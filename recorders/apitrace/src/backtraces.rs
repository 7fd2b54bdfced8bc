//! The stack at calls of functions that the user names (`APITRACE_BACKTRACE`), as modules, functions and offsets.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::table::FUNCTIONS;

/// Frames of a stack at most.
const FRAMES_MAX: usize = 64;

/// Names separated by blanks or commas, with `*` for any letters, as apitrace takes them.
const NAMES: &str = "APITRACE_BACKTRACE";

/// A place in the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The number of the place in the trace.
    pub(crate) id: u64,
    /// `None`: it was written before.
    pub(crate) about: Option<About>,
}

/// What is known of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) module: Vec<u8>,
    pub(crate) function: Option<Vec<u8>>,
    pub(crate) offset: u64,
}

/// Places that the trace has already, by address.
#[derive(Debug, Default)]
pub(crate) struct Places(HashMap<usize, u64>);

/// Whether the stack is wanted at calls of a function.
pub(crate) fn is_wanted(function: usize) -> bool {
    static WANTED: OnceLock<Vec<String>> = OnceLock::new();
    static KNOWN: [AtomicU8; FUNCTIONS.len()] = [const { AtomicU8::new(0) }; FUNCTIONS.len()];
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var(NAMES).unwrap_or_default();
        text.split([' ', ',', '\n']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    });
    if wanted.is_empty() {
        return false;
    }
    match KNOWN[function].load(Relaxed) {
        0 => {
            let name = FUNCTIONS[function].name;
            let is_wanted = wanted.iter().any(|pattern| matches(pattern.as_bytes(), name.as_bytes()));
            KNOWN[function].store(1 + u8::from(is_wanted), Relaxed);
            is_wanted
        }
        known => known == 2,
    }
}

/// Whether a name fits a pattern in which `*` matches any letters.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|at| matches(rest, &name[at..])),
        Some((letter, rest)) => name.first() == Some(letter) && matches(rest, &name[1..]),
    }
}

/// The addresses of the stack, from the call of OpenGL outwards.
pub(crate) fn addresses() -> Vec<usize> {
    let mut found = [std::ptr::null_mut::<c_void>(); FRAMES_MAX];
    // SAFETY: there is room for so many.
    let count = unsafe { libc::backtrace(found.as_mut_ptr(), FRAMES_MAX as i32) };
    let count = usize::try_from(count).unwrap_or(0).min(FRAMES_MAX);
    let own = module_of(addresses as *const () as usize);
    let all = found[..count].iter().map(|address| *address as usize);
    all.skip_while(|address| module_of(*address) == own).collect()
}

/// Where the module that has an address begins.
fn module_of(address: usize) -> usize {
    about(address).map_or(0, |info| info.dli_fbase as usize)
}

fn about(address: usize) -> Option<libc::Dl_info> {
    // SAFETY: the structure is written to if the address is in a module.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        (libc::dladdr(address as *const c_void, &mut info) != 0).then_some(info)
    }
}

impl Places {
    /// The frames of a stack.
    pub(crate) fn frames(&mut self, addresses: &[usize]) -> Vec<Frame> {
        addresses.iter().map(|address| self.frame(*address)).collect()
    }

    fn frame(&mut self, address: usize) -> Frame {
        let next = self.0.len() as u64;
        if let Some(id) = self.0.get(&address) {
            return Frame { id: *id, about: None };
        }
        self.0.insert(address, next);
        let text = |text: *const libc::c_char| {
            // SAFETY: names of modules and symbols end with a zero and stay while the module is loaded.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes().to_vec())
        };
        // The address is where the call returns to: the call is before it.
        let about = about(address - 1).map_or_else(
            || About { module: b"?".to_vec(), function: None, offset: address as u64 },
            |info| {
                let base = if info.dli_saddr.is_null() { info.dli_fbase } else { info.dli_saddr };
                let offset = (address as u64).wrapping_sub(base as u64);
                About { module: text(info.dli_fname).unwrap_or_default(), function: text(info.dli_sname), offset }
            },
        );
        Frame { id: next, about: Some(about) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, fits) in [
            ("glDraw*", "glDrawArrays", true),
            ("glDraw*", "glClear", false),
            ("*Swap*", "glXSwapBuffers", true),
            ("glClear", "glClearColor", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn a_place_is_described_once() {
        let mut places = Places::default();
        let address = libc::malloc as *const () as usize + 1;
        let first = places.frame(address);
        let about = first.about.expect("a place in the C library");
        assert_eq!((about.function.as_deref(), about.offset), (Some(b"malloc".as_slice()), 1));
        assert_eq!(places.frame(address), Frame { id: first.id, about: None });
    }
}
