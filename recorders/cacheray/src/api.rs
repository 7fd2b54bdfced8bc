//! Recording by hand, for Rust programs. Everything here goes through the recorder's C interface, so that it reaches
//! the one recorder of the process wherever that was linked from.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;

use crate::layouts::TraceType;

/// A type in force for allocations, as the C interface has it.
#[repr(C)]
struct TypeInForce {
    name: *const u8,
    name_bytes: usize,
    element_bytes: usize,
}

unsafe extern "C" {
    fn __cacheray_access(at: *const c_void, bytes: usize, is_write: bool);
    fn __cacheray_add(at: *const c_void, element_bytes: usize, elements: usize, name: *const u8, name_bytes: usize);
    fn __cacheray_remove(at: *const c_void);
    fn __cacheray_allocated(at: *const c_void, bytes: usize);
    fn __cacheray_freed(at: *const c_void);
    fn __cacheray_moved(old: *const c_void, at: *const c_void, bytes: usize);
    fn __cacheray_scope(new: *const TypeInForce) -> *const TypeInForce;
    fn __cacheray_flush();
    fn __tsan_ignore_thread_begin();
    fn __tsan_ignore_thread_end();
}

/// Records a read of the entire value, and returns it: `*read(&particle.v)`.
#[inline]
pub fn read<T: ?Sized>(place: &T) -> &T {
    // SAFETY: the address and the length are only written down.
    unsafe { __cacheray_access(std::ptr::from_ref(place).cast(), size_of_val(place), false) };
    place
}

/// Records a write of the entire value, and returns it: `*write(&mut particle.x) = 1.0`.
#[inline]
pub fn write<T: ?Sized>(place: &mut T) -> &mut T {
    // SAFETY: the address and the length are only written down.
    unsafe { __cacheray_access(std::ptr::from_mut(place).cast(), size_of_val(place), true) };
    place
}

/// Records that values of a type are here: statics, stack variables, pools. [`removed`] ends it.
pub fn allocated_as<T: TraceType>(values: &[T]) {
    let name = T::name();
    // SAFETY: addresses and lengths are only written down; the name is copied.
    unsafe { __cacheray_add(values.as_ptr().cast(), size_of::<T>(), values.len(), name.as_ptr(), name.len()) };
}

/// Records the end of what [`allocated_as`] recorded.
pub fn removed<T>(values: &[T]) {
    // SAFETY: the address is only written down.
    unsafe { __cacheray_remove(values.as_ptr().cast()) };
}

/// Runs `make`; memory it allocates is recorded as values of type `T`. Growing keeps the type.
pub fn of<T: TraceType, R>(make: impl FnOnce() -> R) -> R {
    /// Puts the type back that was in force before, also when `make` panics.
    struct Before(*const TypeInForce);
    impl Drop for Before {
        fn drop(&mut self) {
            // SAFETY: the value that the pointer leads to belongs to a call of `of` further up this stack.
            unsafe { __cacheray_scope(self.0) };
        }
    }
    let name = T::name();
    let scope = TypeInForce { name: name.as_ptr(), name_bytes: name.len(), element_bytes: size_of::<T>() };
    // SAFETY: `scope` outlives `before`, whose end takes the pointer back, since locals go in reverse order.
    let before = Before(unsafe { __cacheray_scope(&scope) });
    let made = make();
    drop(before);
    made
}

/// A box whose memory is recorded with its type.
pub fn boxed<T: TraceType>(value: T) -> Box<T> {
    of::<T, _>(|| Box::new(value))
}

/// A vector whose memory is recorded with its type, with room for `capacity` values.
pub fn vec<T: TraceType>(capacity: usize) -> Vec<T> {
    of::<T, _>(|| Vec::with_capacity(capacity))
}

/// Runs `quietly` without recording what this thread reads and writes in it.
pub fn ignored<R>(quietly: impl FnOnce() -> R) -> R {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            // SAFETY: counts down what was counted up below.
            unsafe { __tsan_ignore_thread_end() };
        }
    }
    // SAFETY: counts only.
    unsafe { __tsan_ignore_thread_begin() };
    let _end = End;
    quietly()
}

/// Writes the contents of the recorder's buffer.
pub fn flush() {
    // SAFETY: takes nothing.
    unsafe { __cacheray_flush() };
}

/// An allocator that records the allocations of another one:
///
/// ```no_run
/// use anytrace_cacheray_recorder::Recorded;
///
/// #[global_allocator]
/// static ALLOCATOR: Recorded = Recorded::system();
/// ```
///
/// An allocation of unknown type is called `rust::alloc`; [`of`], [`boxed`] and [`vec()`] give types. Allocations that
/// the recorder already sees, since `malloc` is recorded too, are not recorded twice.
#[derive(Debug, Clone, Copy, Default)]
pub struct Recorded<A = System>(A);

impl Recorded<System> {
    /// Around the system's allocator.
    pub const fn system() -> Self {
        Self(System)
    }
}

impl<A> Recorded<A> {
    /// Around another allocator.
    pub const fn around(allocator: A) -> Self {
        Self(allocator)
    }
}

// SAFETY: all memory comes from the inner allocator and goes back to it, with the layouts as given; the recorder only
// writes addresses down.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Recorded<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller's.
        unsafe {
            let at = self.0.alloc(layout);
            __cacheray_allocated(at.cast(), layout.size());
            at
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller's.
        unsafe {
            let at = self.0.alloc_zeroed(layout);
            __cacheray_allocated(at.cast(), layout.size());
            at
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller's.
        unsafe {
            __cacheray_freed(at.cast());
            self.0.dealloc(at, layout);
        }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller's.
        unsafe {
            let at = self.0.realloc(old, layout, bytes);
            if !at.is_null() {
                __cacheray_moved(old.cast(), at.cast(), bytes);
            }
            at
        }
    }
}
