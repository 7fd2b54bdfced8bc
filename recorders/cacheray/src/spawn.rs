//! Threads get their numbers where they are created: two runs of a program agree on them, whichever thread is faster.

use std::ffi::{c_int, c_void};

use crate::hooks::library::writes;
use crate::log::{Entry, Section};
use crate::real::{self, Run};
use crate::{order, thread};

/// What a new thread is to do.
struct Start {
    run: Run,
    argument: *mut c_void,
    id: u64,
}

/// `pthread_create` as the program sees it.
pub(crate) unsafe extern "C" fn pthread_create(
    to: *mut c_void,
    attributes: *const c_void,
    run: Run,
    argument: *mut c_void,
) -> c_int {
    let plain = |run: Run, argument: *mut c_void| {
        // SAFETY: as the caller's, or `begin` with the argument it asks for.
        unsafe { real::pthread_create(to, attributes, run, argument) }
    };
    order::look();
    let id = thread::with(|me| match Section::enter(me) {
        Entry::Entered(mut section) => Some(section.log().take_id()),
        Entry::Nested | Entry::Off => None,
    });
    let Some(id) = id else { return plain(run, argument) };
    // SAFETY: any size may be asked for. The C library's own function: this memory is not the program's.
    let start = unsafe { real::malloc(size_of::<Start>()) }.cast::<Start>();
    if start.is_null() {
        return plain(run, argument);
    }
    // SAFETY: `malloc` gave room for it, aligned for all types.
    unsafe { start.write(Start { run, argument, id }) };
    let failed = plain(begin, start.cast());
    if failed != 0 {
        // SAFETY: no thread was made, so nobody else has the pointer.
        unsafe { real::free(start.cast()) };
        thread::with(|me| {
            if let Entry::Entered(mut section) = Section::enter(me) {
                section.log().give_back_id(id);
            }
        });
    } else {
        created(to);
    }
    failed
}

/// Records that the library wrote the thread's handle.
fn created(to: *const c_void) {
    writes(to, size_of::<usize>());
}

/// The new thread's first function. Nothing in it is to be cleaned up, since a thread may end by unwinding.
unsafe extern "C-unwind" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` above wrote it there, for this thread alone.
    let Start { run, argument, id } = unsafe { start.cast::<Start>().read() };
    // SAFETY: `malloc` gave it, and it was read.
    unsafe { real::free(start) };
    thread::with(|me| me.give_id(id));
    // SAFETY: as the program asked for.
    unsafe { run(argument) }
}
