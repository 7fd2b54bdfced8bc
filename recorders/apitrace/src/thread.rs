//! What each thread keeps to itself.

use std::cell::Cell;

thread_local! {
    /// The thread is in a call that is recorded.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// The thread's number in the trace.
    static NUMBER: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Whether the thread is in a call that is recorded: what is called meanwhile is the driver's, or the recorder's own.
pub(crate) fn is_inside() -> bool {
    INSIDE.get()
}

/// A call begins or ends.
pub(crate) fn set_inside(is_inside: bool) {
    INSIDE.set(is_inside);
}

/// The thread's number, which it gets now if it has none.
pub(crate) fn number(next: &mut u32) -> u32 {
    NUMBER.get().unwrap_or_else(|| {
        let number = *next;
        *next += 1;
        NUMBER.set(Some(number));
        number
    })
}

/// After a fork the thread has no number yet.
pub(crate) fn forget_number() {
    NUMBER.set(None);
}
