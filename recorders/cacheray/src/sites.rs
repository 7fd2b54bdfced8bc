//! Names for allocations of unknown type: the function that allocates, and where in it.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::elf::Symbols;
use crate::sys;

/// What kind of call allocated: it decides whether memory begins with something in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// `malloc`, `new` and the like.
    Plain,
    /// `calloc`.
    Zeroed,
    /// `realloc` of a block.
    Resized,
}

/// A place that allocates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site {
    /// Where the call returns to.
    pub(crate) at: usize,
    pub(crate) call: Call,
}

/// What the files in memory have about a return address.
#[derive(Debug, Default)]
pub(crate) struct Described {
    /// Where its function begins; 0 where that is unknown.
    pub(crate) function: usize,
    /// The function's name in the file, and as people read it; the file's own where the function is unknown.
    pub(crate) symbol: Vec<u8>,
    pub(crate) readable: Vec<u8>,
    /// From the function's begin.
    pub(crate) offset: u64,
    /// `in file.so` where the code there is not instrumented; empty otherwise.
    pub(crate) foreign: Vec<u8>,
}

impl Described {
    /// `function+0x1f`; the bare address where no file has it.
    pub(crate) fn place(&self) -> Vec<u8> {
        if self.readable.is_empty() {
            return format!("{:#x}", self.offset).into_bytes();
        }
        let mut name = short(self.readable.clone());
        name.extend_from_slice(format!("+{:#x}", self.offset).as_bytes());
        name
    }
}

/// Symbol tables by where their file is loaded; made when the first one is asked for.
type Modules = Option<HashMap<usize, Option<Symbols>>>;

static MODULES: Mutex<Modules> = Mutex::new(None);

/// Who reads them: process and thread; 0 for a moment before that is known.
static READER: AtomicU64 = AtomicU64::new(0);

/// They were waited for in vain: a fork may have left their reader behind in that moment.
static HAS_GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// How long they are waited for: about a second. The largest tables are read in a tenth of that.
const ROUNDS_MAX: u32 = 20_000;

/// Describes a return address: `function+0x1f`; `file.so+0x1234` where the file names no function.
///
/// Called without holding the log: the loader's lock, which `dladdr` takes, is also held while constructors run,
/// and those record.
pub(crate) fn describe(address: usize) -> Described {
    let mut info = sys::Dl_info {
        fname: std::ptr::null(),
        fbase: std::ptr::null_mut(),
        sname: std::ptr::null(),
        saddr: std::ptr::null_mut(),
    };
    // The call itself precedes the address it returns to, maybe as the last instruction of its function.
    let call = address.saturating_sub(1);
    // SAFETY: any address may be asked for; `info` is valid for writing.
    if unsafe { sys::dladdr(call as *const c_void, &mut info) } == 0 || info.fname.is_null() {
        return Described { offset: address as u64, ..Described::default() };
    }
    // SAFETY: `dladdr` succeeded, so `fname` is a string that lives as long as the file is loaded; the file that
    // just called us is.
    let path = unsafe { CStr::from_ptr(info.fname) };
    let base = info.fbase as usize;
    let foreign = if is_instrumented(path, base) { Vec::new() } else { [b"in ", file_name(path)].concat() };
    let (symbol, function) = match function(path, base, call) {
        Some((symbol, offset)) => (symbol.to_vec(), call - offset as usize),
        None if !info.sname.is_null() => {
            // SAFETY: as for `fname`.
            let symbol = unsafe { CStr::from_ptr(info.sname) };
            (symbol.to_bytes().to_vec(), info.saddr as usize)
        }
        None => {
            let file = file_name(path).to_vec();
            let offset = address.wrapping_sub(base) as u64;
            return Described { function: 0, symbol: file.clone(), readable: file, offset, foreign };
        }
    };
    let readable = readable(&symbol);
    Described { function, symbol, readable, offset: (address - function) as u64, foreign }
}

/// A name with the remarks that readers need to judge the memory's contents, in parentheses: `(calloc)` is zero,
/// `(realloc)` begins with the contents of the block removed before, `(in file.so)` belongs to code that is not
/// instrumented, whose writes are not in the trace. `call` is a [`Call`].
pub(crate) fn with_remarks(mut name: Vec<u8>, call: usize, foreign: &[u8]) -> Vec<u8> {
    let call: &[u8] = match call {
        call if call == Call::Zeroed as usize => b"calloc",
        call if call == Call::Resized as usize => b"realloc",
        _ => b"",
    };
    let remarks: Vec<&[u8]> = [call, foreign].into_iter().filter(|remark| !remark.is_empty()).collect();
    if !remarks.is_empty() {
        name.extend_from_slice(&[b" (", remarks.join(&b", "[..]).as_slice(), b")"].concat());
    }
    name
}

/// The path's last part.
pub(crate) fn file_name(path: &CStr) -> &[u8] {
    path.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or(b"?")
}

/// True for the program itself, and for libraries whose code calls the hooks.
fn is_instrumented(path: &CStr, base: usize) -> bool {
    is_main(base) || symbols(path, base, |symbols| symbols.is_some_and(Symbols::is_instrumented)).unwrap_or(true)
}

/// Names of templates can be thousands of bytes long, and would be most of the trace; upstream's checker takes 256.
const NAME_BYTES_MAX: usize = 200;

/// A name without the contents of its brackets if it is too long, and cut if that does not suffice.
pub(crate) fn short(name: Vec<u8>) -> Vec<u8> {
    if name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let mut kept = Vec::new();
    let mut depth = 0_usize;
    for (at, byte) in name.iter().enumerate() {
        // The brackets of `operator<`, `operator->` and `operator()` do not count as brackets.
        let is_operator = name.get(..at).is_some_and(|before| before.ends_with(b"operator") || before.ends_with(b"-"));
        match byte {
            b'<' | b'(' if !is_operator => {
                if depth == 0 {
                    kept.push(*byte);
                }
                depth += 1;
            }
            b'>' | b')' if !is_operator && depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    kept.push(*byte);
                }
            }
            _ if depth == 0 => kept.push(*byte),
            _ => {}
        }
    }
    if kept.len() > NAME_BYTES_MAX {
        kept.truncate(NAME_BYTES_MAX - 3);
        kept.extend_from_slice(b"...");
    }
    kept
}

/// The function in the file's own symbol table.
fn function(path: &CStr, base: usize, at: usize) -> Option<(&'static [u8], u64)> {
    symbols(path, base, |symbols| symbols?.find(at, base))?
}

/// Asks the file's symbol table; `None` where it cannot be had now.
pub(crate) fn symbols<R>(path: &CStr, base: usize, ask: impl FnOnce(Option<&Symbols>) -> R) -> Option<R> {
    let mut modules = modules()?;
    READER.store(this_thread(), Relaxed);
    let symbols = modules.get_or_insert_default().entry(base).or_insert_with(|| {
        // The main program's name is empty, or one that need not lead anywhere from here.
        let is_main = is_main(base);
        Symbols::read(if is_main { c"/proc/self/exe" } else { path })
    });
    let answer = ask(symbols.as_ref());
    READER.store(0, Relaxed);
    Some(answer)
}

/// The symbol tables. Waits for a thread that is reading them: without, whoever allocates at the same time would have the
/// file's name for good. But neither for a thread that a fork left behind, which never ends, nor for this one, which a
/// signal may have interrupted.
fn modules() -> Option<MutexGuard<'static, Modules>> {
    let mut rounds = 0;
    loop {
        match MODULES.try_lock() {
            Ok(modules) => return Some(modules),
            Err(TryLockError::Poisoned(_)) => return None,
            Err(TryLockError::WouldBlock) => {}
        }
        let (reader, me) = (READER.load(Relaxed), this_thread());
        let is_gone = reader != 0 && reader >> 32 != me >> 32;
        if is_gone || reader == me || HAS_GIVEN_UP.load(Relaxed) {
            return None;
        }
        if rounds > ROUNDS_MAX {
            HAS_GIVEN_UP.store(true, Relaxed);
            return None;
        }
        sys::pause(&mut rounds);
    }
}

/// Process and thread.
fn this_thread() -> u64 {
    // SAFETY: asks for a number.
    let process = unsafe { sys::getpid() };
    u64::from(process.cast_unsigned()) << 32 | u64::from(u32::try_from(sys::thread_id()).unwrap_or(0))
}

/// True for the base of the main program: the file that the kernel's table of headers belongs to.
pub(crate) fn is_main(base: usize) -> bool {
    const AT_PHDR: u64 = 3;
    // SAFETY: asks for a number.
    let headers = unsafe { sys::getauxval(AT_PHDR) };
    // The headers are in the first page of the file.
    headers.wrapping_sub(base) < 4096
}

/// C++ names are written as in the source, if the C++ library is loaded to demangle them.
pub(crate) fn readable(name: &[u8]) -> Vec<u8> {
    type Demangle = unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;
    let plain = name.to_vec();
    let Ok(mangled) = std::ffi::CString::new(name) else { return plain };
    if !name.starts_with(b"_Z") {
        return plain;
    }
    // SAFETY: the name ends in a zero byte.
    let demangle = unsafe { sys::dlsym(sys::RTLD_DEFAULT, c"__cxa_demangle".as_ptr()) };
    if demangle.is_null() {
        return plain;
    }
    // SAFETY: the symbol of this name has this type, by the C++ ABI.
    let demangle: Demangle = unsafe { std::mem::transmute(demangle) };
    let mut status = 0;
    // SAFETY: the name is a string, null asks for a fresh buffer, `status` is valid for writing.
    let made = unsafe { demangle(mangled.as_ptr(), std::ptr::null_mut(), std::ptr::null_mut(), &mut status) };
    if made.is_null() {
        return plain;
    }
    // SAFETY: `made` is a string from malloc, which belongs to us until it is freed.
    unsafe {
        let text = CStr::from_ptr(made).to_bytes().to_vec();
        crate::real::free(made.cast());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_by_its_function_and_how_far_in_it() {
        let here = a_place_is_named_by_its_function_and_how_far_in_it as fn() as usize;
        let site = |at, call| {
            let described = describe(at);
            let name = with_remarks(described.place(), call as usize, &described.foreign);
            String::from_utf8_lossy(&name).into_owned()
        };
        let name = site(here + 5, Call::Plain);
        assert!(name.contains("named_by_its_function") && name.ends_with("+0x5"), "{name}");
        assert!(site(here + 5, Call::Zeroed).ends_with("+0x5 (calloc)"));
        assert!(site(here + 5, Call::Resized).ends_with("+0x5 (realloc)"));
        assert_eq!(site(8, Call::Plain), "0x8");
        // SAFETY: the name ends in a zero byte.
        let library = unsafe { sys::dlsym(sys::RTLD_DEFAULT, c"getenv".as_ptr()) } as usize;
        let name = site(library + 9, Call::Resized);
        assert!(name.ends_with(" (realloc, in libc.so.6)"), "{name}");
        assert_eq!(describe(here + 5).function, here);
    }

    #[test]
    fn long_names_lose_the_contents_of_their_brackets() {
        let long = format!("a::b<{}>::operator<(c<d> const&, {})", "x<y>, ".repeat(50), "z".repeat(100));
        assert_eq!(short(long.into_bytes()), b"a::b<>::operator<()");
        let plain = b"f(int, std::vector<int>)".to_vec();
        assert_eq!(short(plain.clone()), plain);
        let endless = short("n".repeat(1000).into_bytes());
        assert_eq!(endless.len(), NAME_BYTES_MAX);
        assert!(endless.ends_with(b"n..."));
    }
}
