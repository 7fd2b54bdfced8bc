//! Allocations: memory allocated and freed by the C library's functions, recorded as adds and removes.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;

use crate::inner::Inner;
use crate::log::{Entry, Section};
use crate::real;
use crate::regions::{Region, UNNAMED};
use crate::sites::{self, Call, Site};
use crate::sys;
use crate::thread::{self, Local};
use crate::wrappers::CALLERS_MAX;

/// The allocation that the program requested, as far as the call shows.
#[derive(Debug, Clone, Copy)]
struct Request {
    element_bytes: u64,
    elements: u64,
    /// Where the call returns to, and the kind of call.
    site: Site,
}

impl Request {
    fn bytes(bytes: usize, site: usize) -> Self {
        Self { element_bytes: bytes as u64, elements: 1, site: Site { at: site, call: Call::Plain } }
    }

    /// The same by another call.
    fn by(mut self, call: Call) -> Self {
        self.site.call = call;
        self
    }
}

pub(crate) unsafe extern "C" fn malloc(bytes: usize, site: usize) -> *mut c_void {
    // SAFETY: any size may be asked for.
    let at = unsafe { real::malloc(bytes) };
    allocated(at, Request::bytes(bytes, site));
    at
}

pub(crate) unsafe extern "C" fn calloc(count: usize, bytes: usize, site: usize) -> *mut c_void {
    // SAFETY: any product may be asked for.
    let at = unsafe { real::calloc(count, bytes) };
    let request = Request { elements: count as u64, ..Request::bytes(bytes, site) };
    allocated(at, request.by(Call::Zeroed));
    at
}

pub(crate) unsafe extern "C" fn free(at: *mut c_void) {
    if at.is_null() {
        return;
    }
    freed(at);
    // SAFETY: the caller's pointer, by the caller's contract.
    unsafe { real::free(at) };
}

pub(crate) unsafe extern "C" fn realloc(old: *mut c_void, bytes: usize, site: usize) -> *mut c_void {
    if old.is_null() {
        // SAFETY: as `malloc`; the real function does just that.
        let at = unsafe { real::malloc(bytes) };
        allocated(at, Request::bytes(bytes, site));
        return at;
    }
    if real::is_of_arena(old) {
        return leave_arena(old, bytes);
    }
    let was = freed(old);
    // SAFETY: the caller's pointer, by the caller's contract.
    let at = unsafe { real::realloc(old, bytes) };
    if at.is_null() && bytes > 0 {
        // It failed, and the old block is unchanged.
        if let Some(region) = was {
            restore(old, region);
        }
    } else {
        resized(at, was, Request::bytes(bytes, site).by(Call::Resized));
    }
    at
}

/// Gives a block of the arena a place in the real heap.
fn leave_arena(old: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: any size may be asked for. The old block's length is unknown; what follows it in the arena is mapped,
    // as far as `bytes` asked for by a caller who had less in the arena can be larger, so the copy is cut there.
    unsafe {
        let at = real::malloc(bytes);
        if !at.is_null() {
            let room = (0..bytes).take_while(|n| real::is_of_arena(old.wrapping_byte_add(*n))).count();
            at.copy_from_nonoverlapping(old, room);
        }
        at
    }
}

pub(crate) unsafe extern "C" fn reallocarray(old: *mut c_void, count: usize, bytes: usize, site: usize) -> *mut c_void {
    match count.checked_mul(bytes) {
        // SAFETY: as the caller's.
        Some(all) => unsafe { realloc(old, all, site) },
        None => {
            sys::set_errno(sys::ENOMEM);
            null_mut()
        }
    }
}

pub(crate) unsafe extern "C" fn posix_memalign(to: *mut *mut c_void, align: usize, bytes: usize, site: usize) -> c_int {
    // SAFETY: as the caller's.
    let failed = unsafe { real::posix_memalign(to, align, bytes) };
    if failed == 0 {
        // SAFETY: the call succeeded, so `to` was written to.
        allocated(unsafe { *to }, Request::bytes(bytes, site));
    }
    failed
}

pub(crate) unsafe extern "C" fn aligned_alloc(align: usize, bytes: usize, site: usize) -> *mut c_void {
    // SAFETY: as the caller's.
    let at = unsafe { real::aligned_alloc(align, bytes) };
    allocated(at, Request::bytes(bytes, site));
    at
}

pub(crate) unsafe extern "C" fn memalign(align: usize, bytes: usize, site: usize) -> *mut c_void {
    // SAFETY: as the caller's.
    let at = unsafe { real::memalign(align, bytes) };
    allocated(at, Request::bytes(bytes, site));
    at
}

pub(crate) unsafe extern "C" fn valloc(bytes: usize, site: usize) -> *mut c_void {
    // SAFETY: any size may be asked for.
    let at = unsafe { real::valloc(bytes) };
    allocated(at, Request::bytes(bytes, site));
    at
}

pub(crate) unsafe extern "C" fn pvalloc(bytes: usize, site: usize) -> *mut c_void {
    // SAFETY: any size may be asked for.
    let at = unsafe { real::pvalloc(bytes) };
    allocated(at, Request::bytes(bytes, site));
    at
}

/// Memory for C++'s `new`; null where there is none, and the entry then calls the library's own, which throws.
pub(crate) unsafe extern "C" fn new(bytes: usize, site: usize) -> *mut c_void {
    // SAFETY: any size may be asked for; C++ wants a pointer even for none.
    let at = unsafe { real::malloc(bytes.max(1)) };
    allocated(at, Request::bytes(bytes, site));
    at
}

/// The same with an alignment.
pub(crate) unsafe extern "C" fn new_aligned(bytes: usize, align: usize, site: usize) -> *mut c_void {
    let rounded = bytes.max(1).checked_next_multiple_of(align.max(1)).unwrap_or(usize::MAX);
    // SAFETY: the size is a multiple of the alignment.
    let at = unsafe { real::aligned_alloc(align, rounded) };
    allocated(at, Request::bytes(bytes, site));
    at
}

/// Records an allocation. Empty ones have no byte that could be accessed, and are left out.
fn allocated(at: *mut c_void, request: Request) {
    let Request { element_bytes, elements, site } = request;
    if at.is_null() || element_bytes == 0 || elements == 0 {
        return;
    }
    thread::with(|me| {
        enter_for_site(me, site, element_bytes.saturating_mul(elements), |log, me, name| {
            forget_stale(log, me, at as usize);
            me.freed.compare_exchange(at as usize, 0, Relaxed, Relaxed).ok();
            if let Some(region) = in_scope(log, me, element_bytes.saturating_mul(elements)) {
                log.settle(me, 0, 0);
                log.change(|regions| regions.insert(at as usize, region));
                log.add_region(me, at as usize);
                return;
            }
            log.settle(me, 0, 0);
            let region = Region::new(me.id(), element_bytes, elements, name, false);
            log.change(|regions| regions.insert(at as usize, region));
            log.add_later(me, at as usize, region);
        });
    });
}

/// Runs `then` with the log locked and the number of the name of what the site allocates. Addresses that the name needs
/// are described before, while the log is not locked.
fn enter_for_site(me: &Local, site: Site, bytes: u64, then: impl FnOnce(&mut Inner, &Local, u32)) {
    let mut described = None;
    // Each round describes one address: wrappers, callers, and functions of both.
    for _ in 0..4 * CALLERS_MAX {
        let Entry::Entered(mut section) = Section::enter(me) else { return };
        let log = section.log();
        if !log.follows_malloc() {
            return;
        }
        if let Some((address, described)) = described.take() {
            let has_room = log.change(|regions| regions.places.learn(address, &described)).unwrap_or(false);
            // While the log is locked, so that the recorder's own memory is not taken for the program's.
            drop(described);
            if !has_room {
                return then(log, me, UNNAMED);
            }
        }
        let Some(found) = log.change(|regions| regions.place(site, bytes, &me.calls)) else { return };
        match found {
            Ok(number) => return then(log, me, number),
            Err(address) => {
                drop(section);
                described = Some((address, me.outside(|| sites::describe(address))));
            }
        }
    }
    if let Entry::Entered(mut section) = Section::enter(me) {
        then(section.log(), me, UNNAMED);
        drop(described);
    }
}

/// The region of an allocation inside `of`, the Rust interface's word on a type.
fn in_scope(log: &mut Inner, me: &Local, bytes: u64) -> Option<Region> {
    let scope = me.scope.load(Relaxed);
    if scope.is_null() {
        return None;
    }
    // SAFETY: the pointer is to a value on this thread's stack, above this frame, and is taken back before that
    // value goes (`api::of`); its name is a `&'static str`.
    let (name, element) = unsafe {
        let scope = *scope;
        (std::slice::from_raw_parts(scope.name, scope.name_bytes), scope.element_bytes as u64)
    };
    let name = log.change(|regions| regions.intern(name))?;
    let is_array = element > 0 && bytes.is_multiple_of(element);
    let (element_bytes, elements) = if is_array { (element, bytes / element) } else { (bytes, 1) };
    Some(Region::new(me.id(), element_bytes, elements, name, true))
}

/// Removes a region that was freed without the recorder seeing it, since its address was allocated again.
fn forget_stale(log: &mut Inner, me: &Local, at: usize) {
    let stale = log.change(|regions| (regions.recall(at), regions.remove(at))).unwrap_or((false, None));
    if let (false, Some(_)) = stale {
        log.remove(me, at);
    }
}

/// Records that a block is freed, before it is: afterwards another thread may already have it.
fn freed(at: *mut c_void) -> Option<Region> {
    thread::with(|me| {
        let Entry::Entered(mut section) = Section::enter(me) else { return None };
        let log = section.log();
        if !log.follows_malloc() {
            return None;
        }
        log.settle(me, at as usize, 1);
        let was = log.change(|regions| regions.remove(at as usize)).flatten()?;
        log.remove(me, at as usize);
        me.freed.store(at as usize, Relaxed);
        Some(was)
    })
}

/// Takes back a remove, since the block is still there.
fn restore(at: *mut c_void, region: Region) {
    thread::with(|me| {
        if let Entry::Entered(mut section) = Section::enter(me) {
            let log = section.log();
            log.settle(me, 0, 0);
            log.change(|regions| regions.insert(at as usize, region));
            log.add_region(me, at as usize);
        }
    });
}

/// Records what `realloc` gave.
fn resized(at: *mut c_void, was: Option<Region>, request: Request) {
    let typed = was.filter(|region| region.is_typed && !at.is_null() && request.element_bytes > 0);
    let Some(was) = typed else { return allocated(at, request) };
    thread::with(|me| {
        if let Entry::Entered(mut section) = Section::enter(me) {
            let log = section.log();
            forget_stale(log, me, at as usize);
            if let Some(region) = was.resized(me.id(), request.element_bytes) {
                log.settle(me, 0, 0);
                log.change(|regions| regions.insert(at as usize, region));
                // An annotation may follow this one too.
                log.add_later(me, at as usize, region);
            }
        }
    });
}
