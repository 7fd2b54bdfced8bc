//! Whether each access is appended to the log at once.
//!
//! Threads may also be ordered by libraries that do so by themselves, by instructions and system calls of their own: the
//! runtimes of OpenMP, of TBB, GLib, Qt. Nothing of that is seen, so threads' buffers would be appended too late. What is
//! known to leave all that to the C library is listed here; with any other library that is not instrumented, no thread
//! has a buffer.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::log::{Entry, Section};
use crate::variables::{self, Place};
use crate::{sites, thread};

/// Libraries, up to `.so` or `-`, that order threads by functions of the C library only (`hooks::releases`).
const KNOWN: &[&[u8]] = &[
    b"ld",
    b"libc",
    b"libm",
    b"libdl",
    b"libpthread",
    b"librt",
    b"libresolv",
    b"libutil",
    b"libanl",
    b"libcrypt",
    b"libgcc_s",
    b"libstdc++",
    b"libc++",
    b"libc++abi",
    b"libunwind",
    b"libatomic",
    b"libquadmath",
    b"linux",
    b"libz",
    b"libbz2",
    b"liblzma",
    b"libzstd",
    b"liblz4",
    b"libsnappy",
    b"libsqlite3",
    b"libreadline",
    b"libtinfo",
    b"libncurses",
    b"libncursesw",
    b"libedit",
    b"libexpat",
    b"libpcre",
    b"libpcre2",
    b"libjpeg",
    b"libpng16",
    b"libgmp",
    b"libmpfr",
    b"libuuid",
    b"libcap",
    b"liblua5.4",
    b"libanytrace_cacheray_recorder",
];

/// How often files had been loaded at the last look.
static LOADS: AtomicU64 = AtomicU64::new(0);

/// Looks at what is loaded, before a thread is created.
pub(crate) fn look() {
    let loads = variables::loads();
    if LOADS.load(Relaxed) == loads {
        return;
    }
    thread::with(|me| {
        if me.is_inside() {
            return;
        }
        let is_strict = me.outside(|| variables::modules().iter().any(|module| has_own_ways(&module.place)));
        if let Entry::Entered(mut section) = Section::enter(me) {
            section.log().set_strict(is_strict);
            // Only now: where the log could not be had, the next thread that is created looks again.
            LOADS.store(loads, Relaxed);
        }
    });
}

/// True for a file whose code may order threads in ways that are not seen.
fn has_own_ways(place: &Place) -> bool {
    let start = place.range.start;
    let is_main = sites::is_main(start);
    let name = sites::file_name(&place.path);
    if !is_main && (name.is_empty() || is_known(name)) {
        return false;
    }
    sites::symbols(&place.path, start, |symbols| {
        symbols.is_none_or(|symbols| !(is_main || symbols.is_instrumented()) || symbols.has_function(is_of_a_runtime))
    })
    .unwrap_or(true)
}

/// True for functions of what may be linked into a file beside its own code, which is instrumented: Rust's library
/// (generic code of which the program's start has), the runtimes of OpenMP, GLib.
fn is_of_a_runtime(name: &[u8]) -> bool {
    let has = |part: &[u8]| name.windows(part.len()).any(|window| window == part);
    matches!(name, b"GOMP_parallel" | b"__kmpc_fork_call" | b"g_mutex_unlock") || has(b"2rt10lang_start")
}

fn is_known(name: &[u8]) -> bool {
    let is_end = |at: usize| matches!(name.get(at), Some(b'-')) || name.get(at..at + 3) == Some(b".so");
    KNOWN.iter().any(|known| name.starts_with(known) && is_end(known.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_their_names_without_versions() {
        for name in ["libc.so.6", "libstdc++.so.6.0.33", "ld-linux-x86-64.so.2", "libc-2.31.so", "linux-vdso.so.1"] {
            assert!(is_known(name.as_bytes()), "{name}");
        }
        for name in
            ["libgomp.so.1", "libcxx.so", "libc", "libtbb.so.12", "libglib-2.0.so.0", "liblzo2.so.2", "libmine.so"]
        {
            assert!(!is_known(name.as_bytes()), "{name}");
        }
    }
}
