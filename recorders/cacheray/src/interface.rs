//! The recorder's own C interface (`include/cacheray.h`), which the Rust interface uses too.

use std::arch::naked_asm;
use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;

use crate::callbacks;
use crate::hooks::memory::range_in_order;
use crate::log::{Entry, Section, signals};
use crate::record::{READ, WRITE};
use crate::regions::Regions;
use crate::thread::{self, Scope};

/// Records an access of any length.
///
/// # Safety
/// None: address and length are only recorded.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cacheray_access() {
    extern "C" fn body(at: *const c_void, bytes: usize, is_write: bool, code: usize) {
        range_in_order(if is_write { WRITE } else { READ }, at as usize, bytes, code);
    }
    naked_asm!("mov rcx, [rsp]", "jmp {}", sym body)
}

/// Records a typed region, in place of an untyped one at its address.
///
/// # Safety
/// `name` is valid for reading `name_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cacheray_add(
    at: *const c_void,
    element_bytes: usize,
    elements: usize,
    name: *const u8,
    name_bytes: usize,
) {
    // SAFETY: as the caller's.
    callbacks::annotate(at as usize, element_bytes as u64, elements as u64, unsafe { text(name, name_bytes) });
}

/// A name, or `?` where it is missing.
unsafe fn text<'a>(name: *const u8, bytes: usize) -> &'a [u8] {
    if name.is_null() || bytes == 0 {
        return b"?";
    }
    // SAFETY: as the caller's.
    unsafe { std::slice::from_raw_parts(name, bytes) }
}

/// Records that `realloc` moved a region, or left it where it is with another length or type.
///
/// # Safety
/// `name` is valid for reading `name_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cacheray_move(
    old: *const c_void,
    at: *const c_void,
    element_bytes: usize,
    elements: usize,
    name: *const u8,
    name_bytes: usize,
) {
    let old = (!old.is_null()).then_some(old as usize);
    // SAFETY: as the caller's.
    let name = unsafe { text(name, name_bytes) };
    callbacks::record_typed(old, at as usize, element_bytes as u64, elements as u64, name);
}

/// Records the end of a region.
#[unsafe(no_mangle)]
pub extern "C" fn __cacheray_remove(at: *const c_void) {
    callbacks::__free_recorded(at.cast_mut());
}

/// An allocator returned memory; an allocation that `malloc` has already recorded is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn __cacheray_allocated(at: *const c_void, bytes: usize) {
    if at.is_null() || bytes == 0 || is_typed(at as usize) {
        return;
    }
    let scope = thread::with(|me| me.scope.load(Relaxed));
    if scope.is_null() {
        callbacks::annotate(at as usize, bytes as u64, 1, b"rust::alloc");
        return;
    }
    // SAFETY: the pointer is to a value further up this thread's stack (`__cacheray_scope`), its name is static.
    let (name, element) =
        unsafe { (std::slice::from_raw_parts((*scope).name, (*scope).name_bytes), (*scope).element_bytes) };
    let is_array = element > 0 && bytes.is_multiple_of(element);
    let (element, elements) = if is_array { (element, bytes / element) } else { (bytes, 1) };
    callbacks::annotate(at as usize, element as u64, elements as u64, name);
}

/// An allocator is about to take memory back.
#[unsafe(no_mangle)]
pub extern "C" fn __cacheray_freed(at: *const c_void) {
    // Where `malloc` is followed, `free` records it; but an allocator with memory of its own never calls `free`.
    thread::with(|me| {
        let Entry::Entered(mut section) = Section::enter(me) else { return };
        let log = section.log();
        let was = log.change(|regions| regions.get(at as usize)).flatten();
        if was.is_some() {
            log.settle(me, at as usize, 1);
            log.change(|regions| regions.remove(at as usize));
            log.remove(me, at as usize);
        }
    });
}

/// An allocator moved memory, or left it where it is with another length.
#[unsafe(no_mangle)]
pub extern "C" fn __cacheray_moved(old: *const c_void, at: *const c_void, bytes: usize) {
    let (from, to) = (old as usize, at as usize);
    let is_done = thread::with(|me| {
        let Entry::Entered(mut section) = Section::enter(me) else { return true };
        let log = section.log();
        // `realloc` itself records it, where `malloc` is followed: its add waits, or is written.
        let is_recorded = |regions: &mut Regions| regions.get(to).is_some() && (from != to || regions.waits_for(to));
        if log.change(is_recorded).unwrap_or(true) {
            return true;
        }
        log.settle(me, from, 1);
        let Some(was) = log.change(|regions| regions.remove(from)).flatten() else { return false };
        log.remove(me, from);
        let Some(region) = was.resized(me.id(), bytes as u64) else { return false };
        log.change(|regions| regions.insert(to, region));
        log.add_region(me, to);
        true
    });
    if !is_done {
        __cacheray_allocated(at, bytes);
    }
}

/// Puts a type in force for the thread's allocations, or none; gives the one before.
///
/// # Safety
/// `new` is null or leads to a value that stays where it is until it is replaced, with a name that stays for good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cacheray_scope(new: *const Scope) -> *const Scope {
    thread::with(|me| me.scope.swap(new.cast_mut(), Relaxed))
}

/// Writes the buffer.
#[unsafe(no_mangle)]
pub extern "C" fn __cacheray_flush() {
    signals::before_the_end();
}

/// True when the region is recorded with a type; true as well where nothing is recorded.
fn is_typed(at: usize) -> bool {
    thread::with(|me| match Section::enter(me) {
        Entry::Entered(mut section) => {
            let known = section.log().regions().map(|regions| regions.get(at));
            known.is_none_or(|region| region.is_some_and(|region| region.is_typed))
        }
        Entry::Nested | Entry::Off => true,
    })
}
