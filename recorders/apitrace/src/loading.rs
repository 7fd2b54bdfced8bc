//! Libraries of OpenGL that the program opens by itself: it gets this one instead, after the real one has been opened.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::{process, real, thread};

/// Beginnings of the names of libraries whose functions are recorded.
const LIBRARIES: [&[u8]; 6] =
    [b"libGL.so", b"libGLX.so", b"libOpenGL.so", b"libEGL.so", b"libGLESv1_CM.so", b"libGLESv2.so"];

/// `dlopen` as the program sees it. The C library looks at who calls, so what is not ours is passed on by a jump.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {ours}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jnz 2f",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {real}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        "2:",
        "ret",
        ours = sym ours,
        real = sym real_dlopen,
    )
}

extern "C" fn real_dlopen() -> usize {
    real::dlopen() as usize
}

/// A handle of this library if the program opens one of OpenGL; else null.
unsafe extern "C" fn ours(name: *const c_char, flags: c_int) -> *mut c_void {
    if name.is_null() || thread::is_inside() || process::is_off() {
        return std::ptr::null_mut();
    }
    // SAFETY: the program passes a text that ends with a zero.
    let path = unsafe { CStr::from_ptr(name) }.to_bytes();
    let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    if !LIBRARIES.iter().any(|library| base.starts_with(library)) {
        return std::ptr::null_mut();
    }
    // SAFETY: as the program asked.
    let opened = unsafe { real::dlopen()(name, flags) };
    if opened.is_null() {
        // The real one fails once more, and leaves its message.
        return std::ptr::null_mut();
    }
    real::opened(opened);
    own().unwrap_or(std::ptr::null_mut())
}

/// A handle of this library.
fn own() -> Option<*mut c_void> {
    // SAFETY: `info` is written to if the address is in a library, and this one is; its name ends with a zero.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(dlopen as *const c_void, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let handle = real::dlopen()(info.dli_fname, libc::RTLD_NOW);
        (!handle.is_null()).then_some(handle)
    }
}

/// The address of a function that this library exports.
pub(crate) fn symbol(name: &CStr) -> Option<usize> {
    static OWN: OnceLock<usize> = OnceLock::new();
    let handle = *OWN.get_or_init(|| own().map_or(0, |handle| handle as usize));
    if handle == 0 {
        return None;
    }
    // SAFETY: the handle is of this library, which stays, and the name ends with a zero.
    let address = unsafe { libc::dlsym(handle as *mut c_void, name.as_ptr()) };
    Some(address as usize).filter(|address| *address != 0)
}
