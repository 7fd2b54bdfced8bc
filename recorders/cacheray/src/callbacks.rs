//! Annotations: upstream's four callbacks, by which a program or a compiler pass declares types.

use std::ffi::{c_char, c_long, c_void};
use std::sync::atomic::Ordering::Relaxed;

use crate::inner::Inner;
use crate::log::{Entry, Section};
use crate::real;
use crate::record::Add;
use crate::regions::Region;
use crate::thread::{self, Local};

/// Names are cut there; upstream's own checker takes 256.
const NAME_BYTES_MAX: usize = 65_535;

/// `malloc` returned `bytes` bytes at `at`, for objects of a type. Upstream records them as one element, arrays too.
///
/// # Safety
/// `name` is null or a string that lives during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __malloc_recorded(bytes: c_long, name: *const c_char, at: *mut c_void) {
    // SAFETY: as the caller's.
    annotate(at as usize, bytes as u64, 1, unsafe { text(name) });
}

/// `calloc` returned `count` elements of `bytes` bytes at `at`.
///
/// # Safety
/// `name` is null or a string that lives during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __calloc_recorded(count: c_long, bytes: c_long, name: *const c_char, at: *mut c_void) {
    // SAFETY: as the caller's.
    annotate(at as usize, bytes as u64, count as u64, unsafe { text(name) });
}

/// `realloc` returned `bytes` bytes at `at` in place of `old`: a remove of `old`, which may be null, and an add.
///
/// # Safety
/// `name` is null or a string that lives during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __realloc_recorded(old: *mut c_void, bytes: c_long, name: *const c_char, at: *mut c_void) {
    // SAFETY: as the caller's.
    record_typed(Some(old as usize), at as usize, bytes as u64, 1, unsafe { text(name) });
}

/// `free` is called, or was, with `at`; null is recorded too, as upstream does.
#[unsafe(no_mangle)]
pub extern "C" fn __free_recorded(at: *mut c_void) {
    let at = at as usize;
    thread::with(|me| {
        let Entry::Entered(mut section) = Section::enter(me) else { return };
        let log = section.log();
        // `free` itself has recorded it already, where the annotation follows it.
        if at != 0 && me.freed.compare_exchange(at, 0, Relaxed, Relaxed).is_ok() {
            return;
        }
        log.settle(me, at, 1);
        log.change(|regions| regions.remove(at));
        log.remove(me, at);
    });
}

/// Records a typed region, in place of the untyped one that `malloc` may have entered.
pub(crate) fn annotate(at: usize, element_bytes: u64, elements: u64, name: &[u8]) {
    record_typed(None, at, element_bytes, elements, name);
}

/// Records a typed region, after the end of the one that `realloc` replaced by it.
pub(crate) fn record_typed(old: Option<usize>, at: usize, element_bytes: u64, elements: u64, name: &[u8]) {
    thread::with(|me| {
        let Entry::Entered(mut section) = Section::enter(me) else { return };
        let log = section.log();
        let waited = log.change(|regions| regions.recall(at)).unwrap_or(false);
        if let Some(old) = old {
            end_of_old(log, me, old, at, waited);
        }
        if at == 0 {
            return;
        }
        if log.regions().is_none() {
            let region = Region::new(me.id(), element_bytes, elements, 0, true);
            let (element_bytes, elements) = (region.element_bytes, region.elements);
            return log.add(me, &Add { address: at as u64, thread: me.id(), element_bytes, elements, name });
        }
        log.settle(me, at, 1);
        let was = log.regions().and_then(|regions| regions.get(at));
        if !waited && was.is_some_and(|region| !region.is_typed || region.is_kept) {
            log.remove(me, at);
        }
        let thread = me.id();
        log.change(|regions| {
            let name = regions.intern(name);
            regions.insert(at, Region::new(thread, element_bytes, elements, name, true))
        });
        log.add_region(me, at);
    });
}

/// The remove of a `realloc`, unless `realloc` itself has recorded it: then the add of its new block waits, or its old
/// block is the one the thread freed last.
fn end_of_old(log: &mut Inner, me: &Local, old: usize, at: usize, waited: bool) {
    let is_recorded = old != 0 && (waited || (old != at && me.freed.load(Relaxed) == old));
    if !is_recorded {
        log.settle(me, old, 1);
        log.change(|regions| regions.remove(old));
        log.remove(me, old);
    }
}

/// A C string's bytes; `?` for null and for an empty string, as the format's readers need not accept an empty name.
unsafe fn text<'a>(name: *const c_char) -> &'a [u8] {
    if name.is_null() {
        return b"?";
    }
    // SAFETY: not null, and by the caller's contract a string that lives during the call. Not by `CStr`, whose `strlen`
    // is recorded.
    let bytes = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), real::strlen(name)) };
    match bytes {
        [] => b"?",
        _ => bytes.get(..NAME_BYTES_MAX).unwrap_or(bytes),
    }
}
