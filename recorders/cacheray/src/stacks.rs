//! The threads' stacks as regions: `main (stack)`, `threads (stack)`.
//!
//! Readers take such memory for initialized and do not expect it to be freed.

use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

use crate::inner::Inner;
use crate::regions::Region;
use crate::sys;
use crate::thread::Local;

unsafe extern "C" {
    fn getrlimit(what: c_int, to: *mut [usize; 2]) -> c_int;
    fn pthread_self() -> usize;
    fn pthread_getattr_np(thread: usize, to: *mut [u64; 8]) -> c_int;
    fn pthread_attr_getstack(of: *const [u64; 8], start: *mut usize, bytes: *mut usize) -> c_int;
    fn pthread_attr_destroy(of: *mut [u64; 8]) -> c_int;
}

/// Records the calling thread's stack.
pub(crate) fn begin(log: &mut Inner, me: &Local) {
    if !log.follows_statics() {
        return;
    }
    // SAFETY: asks for numbers.
    let is_main = i64::from(unsafe { sys::getpid() }) == sys::thread_id();
    let Some(range) = (if is_main { stack_of_main() } else { stack_of_thread() }) else { return };
    let name: &[u8] = if is_main { b"main (stack)" } else { b"threads (stack)" };
    // A forked process has that of its parent.
    if log.regions().is_none_or(|regions| regions.get(range.start).is_some()) {
        return;
    }
    me.stack_region.store(range.start, Relaxed);
    let thread = me.id();
    log.change(|regions| {
        let name = regions.intern(name);
        regions.insert(range.start, Region::new(thread, range.len() as u64, 1, name, true))
    });
    log.add_region(me, range.start);
}

/// The calling thread ends.
pub(crate) fn end(log: &mut Inner, me: &Local) {
    let at = me.stack_region.swap(0, Relaxed);
    if at != 0 && log.change(|regions| regions.remove(at)).flatten().is_some() {
        log.remove(me, at);
    }
}

/// As far as it may grow. Where it may grow without a limit, as far as usual.
fn stack_of_main() -> Option<std::ops::Range<usize>> {
    const AT_EXECFN: u64 = 31;
    const RLIMIT_STACK: c_int = 3;
    const USUAL: usize = 8 << 20;
    // SAFETY: asks for a number.
    let last = unsafe { sys::getauxval(AT_EXECFN) };
    let mut limits = [0; 2];
    // SAFETY: `limits` has room for both.
    let failed = unsafe { getrlimit(RLIMIT_STACK, &mut limits) };
    let bytes = limits.first().copied().filter(|bytes| failed == 0 && *bytes <= 1 << 30).unwrap_or(USUAL);
    // The program's name is among the last bytes of the stack.
    let end = last.checked_add(4096)? & !4095;
    (last != 0).then_some(end.checked_sub(bytes)?..end)
}

fn stack_of_thread() -> Option<std::ops::Range<usize>> {
    let mut attributes = [0_u64; 8];
    let (mut start, mut bytes) = (0, 0);
    // SAFETY: the attributes have as many bytes as the C library's (56), and are given back below.
    unsafe {
        if pthread_getattr_np(pthread_self(), &mut attributes) != 0 {
            return None;
        }
        pthread_attr_getstack(&attributes, &mut start, &mut bytes);
        pthread_attr_destroy(&mut attributes);
    }
    (start != 0 && bytes != 0).then_some(start..start.checked_add(bytes)?)
}
