//! The functions that the recorder intercepts: the next ones with their name in the order of loading.

use std::arch::asm;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use crate::sys::{self, sigaction_t};

/// A thread's function, which may be left by unwinding.
pub(crate) type Run = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// Looks a function up once.
#[inline(always)]
fn find(cache: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = cache.load(Relaxed);
    if known.is_null() { look_up(cache, name) } else { known }
}

#[cold]
fn look_up(cache: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    LOOKING.fetch_add(1, Relaxed);
    // Conditions changed once, and some C libraries give the first version to who does not name one.
    let mut found = null_mut();
    if name.to_bytes().starts_with(b"pthread_cond_") {
        // SAFETY: both names end in a zero byte.
        found = unsafe { sys::dlvsym(sys::RTLD_NEXT, name.as_ptr(), c"GLIBC_2.3.2".as_ptr()) };
    }
    if found.is_null() {
        // SAFETY: the name ends in a zero byte.
        found = unsafe { sys::dlsym(sys::RTLD_NEXT, name.as_ptr()) };
    }
    LOOKING.fetch_sub(1, Relaxed);
    cache.store(found, Relaxed);
    found
}

/// Lookups in progress. The C library may allocate in them; that is served from the arena.
static LOOKING: AtomicUsize = AtomicUsize::new(0);

/// Defines a function that calls the real one of its name, and gives a value of its own where there is none.
macro_rules! real {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $result:ty, else $other:expr;)*) => {$(
        /// The C library's function of this name.
        pub(crate) unsafe fn $name($($arg: $kind),*) -> $result {
            static CACHE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            let found = find(&CACHE, NAME);
            if found.is_null() {
                return $other;
            }
            // SAFETY: the C library's function of this name has this type.
            let call: unsafe extern "C" fn($($kind),*) -> $result = unsafe { std::mem::transmute(found) };
            // SAFETY: the caller keeps the function's contract.
            unsafe { call($($arg),*) }
        }
    )*};
}

real! {
    sigaction(signal: c_int, new: *const sigaction_t, old: *mut sigaction_t) -> c_int, else -1;
    pthread_create(to: *mut c_void, attributes: *const c_void, run: Run, argument: *mut c_void) -> c_int,
        else sys::EAGAIN;
    realloc(old: *mut c_void, bytes: usize) -> *mut c_void, else no_memory();
    posix_memalign(to: *mut *mut c_void, align: usize, bytes: usize) -> c_int, else sys::ENOMEM;
    aligned_alloc(align: usize, bytes: usize) -> *mut c_void, else no_memory();
    memalign(align: usize, bytes: usize) -> *mut c_void, else no_memory();
    valloc(bytes: usize) -> *mut c_void, else no_memory();
    pvalloc(bytes: usize) -> *mut c_void, else no_memory();
}

/// The three that others are made of. They are called before the C library can be asked, by functions that choose
/// between implementations while the program is being loaded; simple ones serve there.
macro_rules! early {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $result:ty, early $other:block)*) => {$(
        /// The C library's function of this name.
        #[inline(always)]
        pub(crate) unsafe fn $name($($arg: $kind),*) -> $result {
            static CACHE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
            let mut found = CACHE.load(Relaxed);
            if found.is_null() {
                if is_up() {
                    // SAFETY: the text ends with a zero byte and has no other.
                    let name = unsafe { c_name(concat!(stringify!($name), "\0")) };
                    found = look_up(&CACHE, name);
                }
                if found.is_null() {
                    return $other;
                }
            }
            // SAFETY: the C library's function of this name has this type.
            let call: unsafe extern "C" fn($($kind),*) -> $result = unsafe { std::mem::transmute(found) };
            // SAFETY: the caller keeps the function's contract.
            unsafe { call($($arg),*) }
        }
    )*};
}

early! {
    memmove(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void, early {
        // SAFETY: by the contract of `memmove`; downward where the places overlap so, and the direction put back.
        unsafe {
            if (to as usize).wrapping_sub(from as usize) >= bytes {
                asm!("rep movsb", inout("rcx") bytes => _, inout("rdi") to => _, inout("rsi") from => _,
                    options(nostack, preserves_flags));
            } else {
                let last = bytes.wrapping_sub(1);
                asm!("std", "rep movsb", "cld", inout("rcx") bytes => _, inout("rdi") to.wrapping_byte_add(last) => _,
                    inout("rsi") from.wrapping_byte_add(last) => _, options(nostack));
            }
        }
        to
    }
    memset(to: *mut c_void, byte: c_int, bytes: usize) -> *mut c_void, early {
        // SAFETY: by the contract of `memset`.
        unsafe {
            asm!("rep stosb", inout("rcx") bytes => _, inout("rdi") to => _, in("al") byte as u8,
                options(nostack, preserves_flags));
        }
        to
    }
    strlen(text: *const c_char) -> usize, early {
        let mut n = 0;
        // SAFETY: by the contract of `strlen` there is a zero byte.
        while unsafe { text.add(n).read_volatile() } != 0 {
            n += 1;
        }
        n
    }
}

/// Looks the three up while no lock is held: their first call may otherwise be while another thread loads a library.
pub(crate) fn prepare() {
    let mut byte = 0_u8;
    let at: *mut c_void = (&raw mut byte).cast();
    // SAFETY: `byte` is valid for one byte, and is zero, an empty string.
    unsafe {
        memset(at, 0, 1);
        memmove(at, at, 1);
        strlen(at.cast());
    }
}

/// True once the C library can be asked for functions.
fn is_up() -> bool {
    // SAFETY: a variable of the C library, set before the first constructor; null before that.
    !unsafe { std::ptr::read_volatile(&raw const sys::environ) }.is_null()
}

/// A literal with its zero byte as a name.
///
/// # Safety
/// The text ends in a zero byte.
const unsafe fn c_name(text: &'static str) -> &'static CStr {
    // SAFETY: as the caller's.
    unsafe { CStr::from_bytes_with_nul_unchecked(text.as_bytes()) }
}

/// The function that an entry of `hooks::library` goes before; where there is none the program could not have been
/// linked, and ends.
#[inline(always)]
pub(crate) fn function(cache: &AtomicPtr<c_void>, name: &'static CStr) -> *mut c_void {
    let found = find(cache, name);
    if found.is_null() { missing(name) } else { found }
}

/// The same for functions that have a substitute.
pub(crate) fn optional(cache: &AtomicPtr<c_void>, name: &'static CStr) -> *mut c_void {
    find(cache, name)
}

#[cold]
fn missing(name: &CStr) -> ! {
    sys::complain(&[b"the C library has no ", name.to_bytes()]);
    loop {
        // SAFETY: ends the process.
        unsafe { sys::syscall(sys::SYS_EXIT_GROUP, 127 as std::ffi::c_long) };
    }
}

static MALLOC: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static CALLOC: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static FREE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The C library's `malloc`.
pub(crate) unsafe fn malloc(bytes: usize) -> *mut c_void {
    if MALLOC.load(Relaxed).is_null() && LOOKING.load(Relaxed) > 0 {
        return from_arena(bytes);
    }
    let found = find(&MALLOC, c"malloc");
    if found.is_null() {
        return no_memory();
    }
    // SAFETY: the C library's function of this name has this type.
    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(usize) -> *mut c_void>(found)(bytes) }
}

/// The C library's `calloc`.
pub(crate) unsafe fn calloc(count: usize, bytes: usize) -> *mut c_void {
    if CALLOC.load(Relaxed).is_null() && LOOKING.load(Relaxed) > 0 {
        // The arena is zero, and nothing in it is used twice.
        return from_arena(count.saturating_mul(bytes));
    }
    let found = find(&CALLOC, c"calloc");
    if found.is_null() {
        return no_memory();
    }
    // SAFETY: the C library's function of this name has this type.
    unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(usize, usize) -> *mut c_void>(found)(count, bytes)
    }
}

/// The C library's `free`; memory from the arena is kept.
pub(crate) unsafe fn free(at: *mut c_void) {
    // The C library may free the text of an error while it looks something up: that once, it stays.
    if is_of_arena(at) || (FREE.load(Relaxed).is_null() && LOOKING.load(Relaxed) > 0) {
        return;
    }
    let found = find(&FREE, c"free");
    if !found.is_null() {
        // SAFETY: the C library's function of this name has this type; the caller keeps its contract.
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(found)(at) }
    }
}

fn no_memory() -> *mut c_void {
    sys::set_errno(sys::ENOMEM);
    null_mut()
}

/// Memory for allocations made while the real allocator is being looked up.
const ARENA_BYTES: usize = 16 << 10;

#[repr(align(16))]
struct Arena(std::cell::UnsafeCell<[u8; ARENA_BYTES]>);

// SAFETY: parts are handed out once each, by an atomic counter.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(std::cell::UnsafeCell::new([0; ARENA_BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

#[cold]
fn from_arena(bytes: usize) -> *mut c_void {
    let rounded = bytes.max(1).saturating_add(15) & !15;
    if rounded > ARENA_BYTES {
        return no_memory();
    }
    let start = USED.fetch_add(rounded, Relaxed);
    if start.saturating_add(rounded) > ARENA_BYTES {
        return no_memory();
    }
    ARENA.0.get().cast::<u8>().wrapping_add(start).cast()
}

/// True for memory that the real allocator does not know.
pub(crate) fn is_of_arena(at: *mut c_void) -> bool {
    (at as usize).wrapping_sub(ARENA.0.get() as usize) < ARENA_BYTES
}

/// The address of a function that the recorder intercepts, for entries that jump to it. Each entry passes its name from
/// one place, by which it is recognized again: programs may jump often.
pub(crate) extern "C" fn address(name: *const c_char) -> *mut c_void {
    /// More than there are entries that ask.
    const SLOTS: usize = 32;
    static KNOWN: [(AtomicPtr<c_char>, AtomicPtr<c_void>); SLOTS] =
        [const { (AtomicPtr::new(null_mut()), AtomicPtr::new(null_mut())) }; SLOTS];
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    if let Some((_, found)) = KNOWN.iter().find(|(known, _)| known.load(Acquire).cast_const() == name) {
        return found.load(Relaxed);
    }
    // SAFETY: the entries give names that end in a zero byte.
    let found = unsafe { sys::dlsym(sys::RTLD_NEXT, name) };
    if let Some(slot) = KNOWN.get(TAKEN.fetch_add(1, Relaxed)) {
        slot.1.store(found, Relaxed);
        // Last: who finds the name finds the address too.
        slot.0.store(name.cast_mut(), Release);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arena_hands_out_aligned_parts_until_it_is_empty() {
        let mut last = null_mut();
        while let part @ 1.. = from_arena(100) as usize {
            assert_eq!(part % 16, 0);
            assert!(is_of_arena(part as *mut c_void) && part != last as usize);
            last = part as *mut c_void;
        }
        assert!(!is_of_arena(null_mut()));
        assert!(from_arena(usize::MAX).is_null());
    }
}
