//! The driver's functions, found by name, and calls of them.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::registers::Registers;
use crate::table::{FUNCTIONS, Kind};

/// An address that says that there is no such function.
const MISSING: usize = 1;

static ADDRESSES: [AtomicUsize; FUNCTIONS.len()] = [const { AtomicUsize::new(0) }; FUNCTIONS.len()];

/// Libraries that have functions of OpenGL, those of the first that is loaded.
const LIBRARIES: [&std::ffi::CStr; 4] = [c"libGL.so.1", c"libOpenGL.so.0", c"libGLESv2.so.2", c"libGLESv1_CM.so.1"];

/// Libraries that the program has opened itself.
static OPENED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The program has opened a library of the driver's.
pub(crate) fn opened(handle: *mut c_void) {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if !opened.contains(&(handle as usize)) {
        opened.push(handle as usize);
    }
}

type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
type Find = unsafe extern "C" fn(*const c_char) -> *mut c_void;

/// The C library's `dlopen`: this crate has one of its own.
pub(crate) fn dlopen() -> Open {
    static REAL: OnceLock<Open> = OnceLock::new();
    *REAL.get_or_init(|| {
        // SAFETY: the name ends with a zero, and the C library has the function with this type.
        unsafe {
            let address = libc::dlsym(libc::RTLD_NEXT, c"dlopen".as_ptr());
            assert!(!address.is_null(), "the C library has dlopen");
            std::mem::transmute::<*mut c_void, Open>(address)
        }
    })
}

/// The address of the driver's function with this number; `None`: it has none.
pub(crate) fn address(number: usize) -> Option<usize> {
    let place = ADDRESSES.get(number)?;
    let mut address = place.load(Relaxed);
    if address == 0 {
        address = find(FUNCTIONS.get(number)?.name).unwrap_or(MISSING);
        place.store(address, Relaxed);
    }
    (address != MISSING).then_some(address)
}

fn find(name: &str) -> Option<usize> {
    let text = CString::new(name).ok()?;
    let symbol = |handle: *mut c_void| {
        // SAFETY: the handle is of a library that stays open, the name ends with a zero.
        Some(unsafe { libc::dlsym(handle, text.as_ptr()) } as usize).filter(|address| *address != 0)
    };
    let library = |name: &std::ffi::CStr, flags: c_int| {
        // SAFETY: the name ends with a zero. What is opened is never closed.
        let handle = unsafe { dlopen()(name.as_ptr(), libc::RTLD_LAZY | flags) };
        (!handle.is_null()).then_some(handle)
    };
    // A program may bring libraries of its own (ANGLE).
    let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(found) = opened.iter().find_map(|handle| symbol(*handle as *mut c_void)) {
        return Some(found);
    }
    if let Some(found) = symbol(libc::RTLD_NEXT) {
        return Some(found);
    }
    for handle in opened {
        let find = [c"glXGetProcAddressARB", c"eglGetProcAddress"]
            .into_iter()
            .find_map(|by| symbol_in(handle as *mut c_void, by));
        // Each knows functions of its own kind only.
        let is_of_kind = !name.starts_with("egl") && !name.starts_with("glX");
        if let Some(found) = find.filter(|_| is_of_kind).and_then(|find| asked(find, &text)) {
            return Some(found);
        }
    }
    if name.starts_with("egl") {
        let handle = library(c"libEGL.so.1", 0)?;
        return symbol(handle).or_else(|| asked(symbol_in(handle, c"eglGetProcAddress")?, &text));
    }
    if name.starts_with("glX") {
        let handle = library(c"libGL.so.1", 0).or_else(|| library(c"libGLX.so.0", 0))?;
        return symbol(handle).or_else(|| asked(symbol_in(handle, c"glXGetProcAddressARB")?, &text));
    }
    for flags in [libc::RTLD_NOLOAD, 0] {
        for candidate in LIBRARIES {
            if let Some(found) = library(candidate, flags).and_then(symbol) {
                return Some(found);
            }
        }
        // Extensions are in no library.
        for (candidate, by) in [(c"libGL.so.1", c"glXGetProcAddressARB"), (c"libEGL.so.1", c"eglGetProcAddress")] {
            let found = library(candidate, flags).and_then(|handle| symbol_in(handle, by));
            if let Some(found) = found.and_then(|find| asked(find, &text)) {
                return Some(found);
            }
        }
    }
    None
}

fn symbol_in(handle: *mut c_void, name: &std::ffi::CStr) -> Option<usize> {
    // SAFETY: the handle is of a library that stays open.
    Some(unsafe { libc::dlsym(handle, name.as_ptr()) } as usize).filter(|address| *address != 0)
}

/// Asks a driver's own search.
fn asked(by: usize, name: &CString) -> Option<usize> {
    // SAFETY: `by` is the address of `glXGetProcAddressARB` or `eglGetProcAddress`, which take a name.
    let address = unsafe { std::mem::transmute::<usize, Find>(by)(name.as_ptr()) };
    Some(address as usize).filter(|address| *address != 0)
}

/// Words of the caller's stack that are handed on: 16 parameters need no more.
const STACK: usize = 12;

type Few = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64) -> u64;
type Many<R> = unsafe extern "C" fn(
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
    u64,
    u64,
) -> R;

/// Calls the driver's function with what the program passed.
///
/// # Safety
/// The address is that of the function which the program called with these registers.
pub(crate) unsafe fn call(number: usize, address: usize, registers: &Registers) -> u64 {
    let function = &FUNCTIONS[number];
    let [a, b, c, d, e, f] = registers.integers;
    let is_plain = function.parameters.len() <= 6
        && !function.result.is_float()
        && !function.parameters.iter().any(|parameter| parameter.pointers == 0 && parameter.kind.is_float());
    if is_plain {
        // SAFETY: by the convention all of its parameters are in these registers.
        return unsafe { std::mem::transmute::<usize, Few>(address)(a, b, c, d, e, f) };
    }
    let [k, l, m, n, o, p, q, r] = registers.floats.map(f64::from_bits);
    let mut words = [0_u64; STACK];
    if function.parameters.len() > 6 {
        for (place, word) in words.iter_mut().enumerate().take(function.parameters.len().saturating_sub(6)) {
            // SAFETY: the caller's frame has at least as many words as parameters that find no register.
            *word = unsafe { registers.stack.add(place).read() };
        }
    }
    let [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11] = words;
    // SAFETY: as above; what is too much is not read.
    unsafe {
        if function.result == Kind::Float {
            let real: Many<f32> = std::mem::transmute::<usize, Many<f32>>(address);
            let result =
                real(a, b, c, d, e, f, k, l, m, n, o, p, q, r, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11);
            return u64::from(result.to_bits());
        }
        let real: Many<u64> = std::mem::transmute::<usize, Many<u64>>(address);
        real(a, b, c, d, e, f, k, l, m, n, o, p, q, r, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11)
    }
}
