//! The variables of the program and of instrumented libraries, as regions: `graph (global)`, `table (global in libx.so)`.
//!
//! Readers take such memory for initialized and do not expect it to be freed.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::inner::Inner;
use crate::log::{Entry, Section};
use crate::regions::Region;
use crate::sites;
use crate::thread::{self, Local};

/// Most variables of a file; the largest are recorded.
const VARIABLES_MAX: usize = 1 << 16;

/// The head of what `dl_iterate_phdr` hands out (`struct dl_phdr_info`).
#[repr(C)]
struct Info {
    bias: usize,
    path: *const c_char,
    headers: *const Header,
    header_count: u16,
    /// How often files were loaded so far.
    loads: u64,
}

/// A program header (`Elf64_Phdr`).
#[repr(C)]
struct Header {
    kind: u32,
    flags: u32,
    offset: u64,
    address: usize,
    physical: usize,
    file_bytes: usize,
    bytes: usize,
    align: usize,
}

unsafe extern "C" {
    fn dl_iterate_phdr(each: unsafe extern "C" fn(*const Info, usize, *mut c_void) -> c_int, to: *mut c_void) -> c_int;
}

/// A file that is loaded.
pub(crate) struct Module {
    bias: usize,
    pub(crate) place: Place,
}

/// Where a file begins and ends in memory. Another one may follow at the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) range: std::ops::Range<usize>,
    pub(crate) path: std::ffi::CString,
}

/// A variable.
struct Variable {
    address: usize,
    bytes: u64,
    name: Vec<u8>,
}

/// The files whose variables are recorded already. Never waited for: after a fork another thread may have had it.
static KNOWN: Mutex<Vec<Place>> = Mutex::new(Vec::new());

/// How often files had been loaded at the last look.
static LOADS: AtomicU64 = AtomicU64::new(0);

/// Looks for instrumented files that are loaded since the last look, and records their variables. Called by each file's
/// constructor.
pub(crate) fn look() {
    let loads = loads();
    thread::with(|me| {
        {
            let Entry::Entered(mut section) = Section::enter(me) else { return };
            if !section.log().follows_statics() || LOADS.swap(loads, Relaxed) == loads {
                return;
            }
        }
        // Without the log: the loader's lock is also held while constructors run, and those record.
        let found = me.outside(|| {
            let modules = modules();
            let known = KNOWN.try_lock().map(|known| known.clone()).unwrap_or_default();
            let gone: Vec<Place> = known.iter().filter(|place| !is_among(place, &modules)).cloned().collect();
            let fresh = modules.iter().filter(|module| !known.contains(&module.place));
            let variables: Vec<Variable> = fresh.flat_map(variables).collect();
            (modules, gone, variables)
        });
        let Entry::Entered(mut section) = Section::enter(me) else { return };
        let (modules, gone, variables) = &found;
        gone.iter().for_each(|place| forget(section.log(), me, place));
        record(section.log(), me, variables);
        if let Ok(mut known) = KNOWN.try_lock() {
            *known = modules.iter().map(|module| module.place.clone()).collect();
        }
        // While the log is locked, so that the recorder's own memory is not taken for the program's.
        drop(found);
    });
}

/// How often files were loaded so far.
pub(crate) fn loads() -> u64 {
    let mut loads = 0_u64;
    // SAFETY: the function takes the first file's word and stops; `loads` lives during the call.
    unsafe { dl_iterate_phdr(count_loads, (&raw mut loads).cast()) };
    loads
}

fn is_among(place: &Place, modules: &[Module]) -> bool {
    modules.iter().any(|module| module.place == *place)
}

/// # Safety
/// As `dl_iterate_phdr` calls it; `to` is a number.
unsafe extern "C" fn count_loads(info: *const Info, _: usize, to: *mut c_void) -> c_int {
    // SAFETY: as the caller's.
    unsafe { *to.cast::<u64>() = (*info).loads };
    1
}

/// The files that are loaded.
pub(crate) fn modules() -> Vec<Module> {
    let mut all: Vec<Module> = Vec::new();
    // SAFETY: the function keeps to what it is handed; `all` lives during the call.
    unsafe { dl_iterate_phdr(take_module, (&raw mut all).cast()) };
    all
}

/// # Safety
/// As `dl_iterate_phdr` calls it; `to` is a list of modules.
unsafe extern "C" fn take_module(info: *const Info, _: usize, to: *mut c_void) -> c_int {
    const PT_LOAD: u32 = 1;
    // SAFETY: as the caller's: the headers and the path are those of a file that stays loaded during the call.
    let (info, all) = unsafe { (&*info, &mut *to.cast::<Vec<Module>>()) };
    // SAFETY: as above.
    let headers = unsafe { std::slice::from_raw_parts(info.headers, usize::from(info.header_count)) };
    let loaded = || headers.iter().filter(|header| header.kind == PT_LOAD);
    let start = loaded().map(|header| header.address & !4095).min();
    let end = loaded().map(|header| header.address.wrapping_add(header.bytes)).max();
    if let (Some(start), Some(end), false) = (start, end, info.path.is_null()) {
        // SAFETY: a string, as above.
        let path = unsafe { CStr::from_ptr(info.path) }.to_owned();
        let range = info.bias.wrapping_add(start)..info.bias.wrapping_add(end);
        all.push(Module { bias: info.bias, place: Place { range, path } });
    }
    0
}

/// The variables of a file, if its code is instrumented: the largest for each address.
fn variables(module: &Module) -> Vec<Variable> {
    let Place { range, path } = &module.place;
    let base = range.start;
    let is_main = sites::is_main(base);
    let place = if is_main { b"global".to_vec() } else { [b"global in ", sites::file_name(path)].concat() };
    let found = sites::symbols(path, base, |symbols| {
        let Some(symbols) = symbols.filter(|symbols| is_main || symbols.is_instrumented()) else { return Vec::new() };
        let mut all: Vec<(usize, u64, &[u8])> = symbols
            .variables()
            .filter(|(_, _, name)| !is_incidental(name))
            .map(|(start, bytes, name)| (module.bias.wrapping_add(start as usize), bytes, name))
            .filter(|(start, bytes, _)| range.contains(start) && start.saturating_add(*bytes as usize) <= range.end)
            .collect();
        all.sort_unstable_by_key(|(start, bytes, name)| (*start, std::cmp::Reverse(*bytes), *name));
        all.dedup_by_key(|(start, ..)| *start);
        if all.len() > VARIABLES_MAX {
            all.sort_by_key(|(_, bytes, _)| std::cmp::Reverse(*bytes));
            all.truncate(VARIABLES_MAX);
        }
        let named = |name: &[u8]| [&sites::short(sites::readable(name)), &b" ("[..], &place, b")"].concat();
        all.iter()
            .map(|(address, bytes, name)| Variable { address: *address, bytes: *bytes, name: named(name) })
            .collect()
    });
    found.unwrap_or_default()
}

/// True for what is no variable of the program's: the recorder's own, and what compilers and start files leave.
fn is_incidental(name: &[u8]) -> bool {
    /// Crates of the recorder and of what it is built with, as names have them: without their beginnings, which differ.
    const CRATES: &[&[u8]] = &[
        b"26anytrace_cacheray_recorder",
        b"3std",
        b"4core",
        b"5alloc",
        b"12panic_unwind",
        b"9hashbrown",
        b"5gimli",
        b"9addr2line",
        b"6object",
        b"14rustc_demangle",
        b"17compiler_builtins",
        b"10std_detect",
        b"6memchr",
    ];
    let starts = |start: &[u8]| name.starts_with(start);
    let is_rust = starts(b"_R") || starts(b"_ZN");
    let is_of = |of: &[u8]| {
        let mut places = name.windows(of.len()).enumerate().filter(|(_, part)| *part == of);
        // After `_ZN`, or after the underscore that ends what tells crates of a name apart.
        places.any(|(at, _)| at == 3 && starts(b"_ZN") || at.checked_sub(1).and_then(|at| name.get(at)) == Some(&b'_'))
    };
    name.is_empty()
        || is_rust && CRATES.iter().any(|of| is_of(of))
        || starts(b"anon.")
        || starts(b".L")
        || starts(b"completed.")
        || starts(b"DW.ref.")
        || starts(b"_rust_extern_with_linkage_")
        || [&b"_IO_stdin_used"[..], b"__dso_handle", b"__abi_tag", b"__TMC_END__", b"__rust_no_alloc_shim_is_unstable"]
            .contains(&name)
}

fn record(log: &mut Inner, me: &Local, variables: &[Variable]) {
    for variable in variables {
        let thread = me.id();
        log.change(|regions| {
            let name = regions.intern(&variable.name);
            let mut region = Region::new(thread, variable.bytes, 1, name, true);
            // An annotation may declare another type.
            region.is_kept = true;
            regions.insert(variable.address, region)
        });
        log.add_region(me, variable.address);
    }
}

/// A file is not loaded any more.
fn forget(log: &mut Inner, me: &Local, place: &Place) {
    let inside = |at: &usize| place.range.contains(at);
    let gone = log.change(|regions| regions.addresses().into_iter().filter(inside).collect::<Vec<_>>());
    for address in gone.into_iter().flatten() {
        log.change(|regions| regions.remove(address));
        log.remove(me, address);
    }
}
