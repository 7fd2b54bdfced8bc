//! Memory from the caller's block.
//!
//! Sizes are rounded up to classes, four to each power of two. What is released goes to the list of its class and is
//! handed out again; what is in no list comes from the rest of the block. Nothing is ever split or joined, so that both
//! take constant time. A request that cannot be met returns null, and the engine notes that it lacked memory.

use core::alloc::Layout;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Alignment of everything.
pub(crate) const ALIGN: usize = 16;

/// Four for each power of two from 64 bytes to 2^48, and those below.
const CLASSES: usize = 4 * 43 + 4;

/// A released piece: the one released before it.
struct Free {
    next: *mut Free,
}

/// The state of a block; at its beginning.
pub(crate) struct Arena {
    free: [*mut Free; CLASSES],
    rest: *mut u8,
    rest_bytes: usize,
    bytes: usize,
    used_bytes: usize,
    peak_bytes: usize,
}

/// The arena of the call at work; null if there is none.
static CURRENT: AtomicPtr<Arena> = AtomicPtr::new(ptr::null_mut());

/// Makes an arena the one from which the program's memory comes, until another one is, or null.
#[inline]
pub(crate) fn set_current(arena: *mut Arena) {
    CURRENT.store(arena, Ordering::Relaxed);
}

/// The class of a size, and the bytes of its pieces; none for sizes past 2^48.
fn class(bytes: usize) -> Option<(usize, usize)> {
    let bytes = bytes.max(1);
    if bytes > 1 << 48 {
        return None;
    }
    if bytes <= 64 {
        let number = bytes.div_ceil(16);
        return Some((number - 1, 16 * number));
    }
    // 2^power < bytes <= 2^(power + 1), in quarters.
    let power = (bytes - 1).ilog2();
    let quarter = 1_usize << (power - 2);
    let number = (bytes - (1 << power)).div_ceil(quarter);
    Some((4 + 4 * (power as usize - 6) + number - 1, (1 << power) + quarter * number))
}

impl Arena {
    /// An arena of the memory from an address aligned to [`ALIGN`] on.
    pub(crate) fn new(rest: *mut u8, rest_bytes: usize) -> Self {
        let free = [ptr::null_mut(); CLASSES];
        Self { free, rest, rest_bytes, bytes: rest_bytes, used_bytes: 0, peak_bytes: 0 }
    }

    /// Bytes in all, in use, and in use at most.
    pub(crate) fn account(&self) -> (usize, usize, usize) {
        (self.bytes, self.used_bytes, self.peak_bytes)
    }

    /// A piece of memory, or null.
    pub(crate) fn allocate(&mut self, layout: Layout) -> *mut u8 {
        let Some((class, bytes)) = class(layout.size()).filter(|_| layout.align() <= ALIGN) else {
            return ptr::null_mut();
        };
        let piece = match self.released(class) {
            piece if !piece.is_null() => piece,
            _ if bytes <= self.rest_bytes => {
                let piece = self.rest;
                self.rest = piece.wrapping_add(bytes);
                self.rest_bytes -= bytes;
                piece
            }
            // A larger piece is better than none; its surplus is lost until it is released as what it became.
            _ => (class + 1..CLASSES)
                .map(|class| self.released(class))
                .find(|piece| !piece.is_null())
                .unwrap_or(ptr::null_mut()),
        };
        if !piece.is_null() {
            self.used_bytes = self.used_bytes.saturating_add(bytes);
            self.peak_bytes = self.peak_bytes.max(self.used_bytes);
        }
        piece
    }

    /// The piece of a class that was released last, or null.
    fn released(&mut self, class: usize) -> *mut u8 {
        let Some(list) = self.free.get_mut(class) else { return ptr::null_mut() };
        let piece = *list;
        if !piece.is_null() {
            // SAFETY: lists contain pieces that `release` put there: at least 16 bytes of the block, aligned to 16, of
            // which it wrote the first ones, and which nobody has used since.
            *list = unsafe { (*piece).next };
        }
        piece.cast()
    }

    /// Takes a piece back.
    ///
    /// # Safety
    ///
    /// The piece is from [`Self::allocate`] of this arena, for the same layout, and no longer used.
    pub(crate) unsafe fn release(&mut self, piece: *mut u8, layout: Layout) {
        let Some((class, bytes)) = class(layout.size()) else { return };
        let Some(list) = self.free.get_mut(class) else { return };
        let piece: *mut Free = piece.cast();
        // SAFETY: the piece has at least 16 bytes, is aligned to 16, and belongs to the arena again.
        unsafe { piece.write(Free { next: *list }) };
        *list = piece;
        self.used_bytes = self.used_bytes.saturating_sub(bytes);
    }
}

/// The program's allocator: the arena of the checker that is at work.
#[cfg(target_os = "none")]
mod global {
    use core::alloc::{GlobalAlloc, Layout};
    use core::ptr;
    use core::sync::atomic::Ordering;

    use super::{Arena, CURRENT, class};

    struct Current;

    #[global_allocator]
    static ALLOCATOR: Current = Current;

    fn current() -> *mut Arena {
        CURRENT.load(Ordering::Relaxed)
    }

    // SAFETY: pieces are aligned, are as long as their layout, and do not overlap. One call of the library is at work at
    // a time (`interface::enter`), so the arena has one user.
    unsafe impl GlobalAlloc for Current {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: null, or the arena of the checker at work.
            match unsafe { current().as_mut() } {
                Some(arena) => arena.allocate(layout),
                None => ptr::null_mut(),
            }
        }

        unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
            // SAFETY: as above; a checker's pieces are from its own arena.
            if let Some(arena) = unsafe { current().as_mut() } {
                // SAFETY: the caller's promise.
                unsafe { arena.release(piece, layout) };
            }
        }

        unsafe fn realloc(&self, piece: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
            if class(bytes) == class(layout.size()) {
                return piece;
            }
            let Ok(wanted) = Layout::from_size_align(bytes, layout.align()) else { return ptr::null_mut() };
            // SAFETY: `wanted` is a layout; the caller's promises for the piece.
            unsafe {
                let moved = self.alloc(wanted);
                if !moved.is_null() {
                    ptr::copy_nonoverlapping(piece, moved, layout.size().min(bytes));
                    self.dealloc(piece, layout);
                }
                moved
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(16))]
    struct Block([u8; 4096]);

    #[test]
    fn classes_are_at_most_a_quarter_too_large_and_in_order() {
        let mut before = (0, 0);
        for bytes in (1..5000).chain([1 << 20, (1 << 20) + 1, 1 << 47, 1 << 48]) {
            let (number, piece) = class(bytes).unwrap();
            assert!(piece >= bytes && piece % 16 == 0 && (piece - bytes) * 4 <= bytes.max(60), "{bytes}: {piece}");
            assert!((number, piece) >= before && number < CLASSES);
            assert_eq!(number == before.0, piece == before.1 || before == (0, 0));
            before = (number, piece);
        }
        assert_eq!(class((1 << 48) + 1), None);
        assert_eq!(class(4096).unwrap().1, 4096);
    }

    #[test]
    fn pieces_do_not_overlap_and_come_again() {
        let mut block = Block([0; 4096]);
        let mut arena = Arena::new(block.0.as_mut_ptr(), 4096);
        let layout = |bytes| Layout::from_size_align(bytes, 8).unwrap();
        let (a, b) = (arena.allocate(layout(100)), arena.allocate(layout(20)));
        assert_eq!(b as usize - a as usize, 112);
        assert_eq!(arena.account(), (4096, 144, 144));
        // SAFETY: both are from this arena, for these layouts.
        unsafe {
            arena.release(a, layout(100));
            assert_eq!(arena.allocate(layout(97)), a);
            arena.release(b, layout(20));
        }
        assert_eq!(arena.account(), (4096, 112, 144));
        assert!(arena.allocate(layout(4096)).is_null());
        assert!(arena.allocate(Layout::from_size_align(16, 32).unwrap()).is_null());
        while !arena.allocate(layout(112)).is_null() {}
        // A larger piece that was released serves a smaller request.
        assert!(arena.allocate(layout(16)) as usize - a as usize >= 112);
        // SAFETY: as above.
        unsafe { arena.release(a, layout(97)) };
        while arena.allocate(layout(16)) != a {}
        assert!(arena.allocate(layout(16)).is_null());
    }
}
