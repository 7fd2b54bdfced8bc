//! What instruments a program and brings the recorder in: options for the compiler.

use std::ffi::OsString;
use std::path::Path;

use super::super::recorder_library::{self, Library};
use super::line::Line;
use crate::paint;

/// What instruments.
pub(super) fn compile_options(line: &Line, all_reads: bool, is_clang: bool) -> Vec<OsString> {
    let mut options = vec!["-fsanitize=thread".into(), "-DCACHERAY".into()];
    if !line.has_debug_option {
        options.push("-g".into());
    }
    if line.has_lto {
        // Code that is made while linking would have to be instrumented there, with the sanitizer's library.
        options.push("-fno-lto".into());
    }
    if is_clang {
        options.push("-Qunused-arguments".into());
    }
    if all_reads {
        options.extend(["-mllvm".into(), "-tsan-instrument-read-before-write=1".into()]);
    }
    options
}

/// Functions of the C library that gcc would expand in place or replace, behind the back of its own instrumentation. As
/// calls they reach the recorder. (clang instruments what it expands.)
const CALLS: [&str; 34] = [
    "memcpy",
    "memmove",
    "memset",
    "mempcpy",
    "memcmp",
    "memchr",
    "bcopy",
    "bzero",
    "bcmp",
    "strlen",
    "strnlen",
    "strcpy",
    "stpcpy",
    "strncpy",
    "stpncpy",
    "strcat",
    "strncat",
    "strcmp",
    "strncmp",
    "strcasecmp",
    "strncasecmp",
    "strchr",
    "strrchr",
    "index",
    "rindex",
    "strstr",
    "strspn",
    "strcspn",
    "strpbrk",
    "strdup",
    "strndup",
    "sprintf",
    "snprintf",
    "vsnprintf",
];

/// Keeps gcc from expanding the C library's functions, also under their names with `__builtin_`.
pub(super) fn library_calls() -> Vec<OsString> {
    let mut options: Vec<OsString> = CALLS.iter().map(|name| format!("-fno-builtin-{name}").into()).collect();
    match recorder_library::builtins() {
        Ok(header) => options.extend(["-include".into(), header.into_os_string()]),
        Err(failure) => {
            failure.print();
            paint::complain("note", "copies by __builtin_memcpy within a function may not be recorded");
        }
    }
    options
}

/// What brings the recorder in.
pub(super) fn link_options(line: &Line, library: &Library) -> Vec<OsString> {
    if line.is_shared {
        // Libraries that must have no holes get the shared recorder; the one of the program goes before it.
        let mut path = OsString::from("-Wl,-rpath,");
        path.push(library.shared.parent().unwrap_or(Path::new(".")));
        return vec![library.shared.clone().into_os_string(), path];
    }
    let mut options: Vec<OsString> = vec![library.archive.clone().into_os_string()];
    // Instrumented libraries that are loaded at run time find the recorder in the program.
    if line.is_gold {
        options.push("-rdynamic".into());
    } else {
        let names = ["__tsan_*", "__cacheray_*", "__malloc_recorded", "__calloc_recorded", "__realloc_recorded"];
        let names = names.into_iter().chain(["__free_recorded"]);
        options.extend(names.map(|name| format!("-Wl,--export-dynamic-symbol={name}").into()));
    }
    options.extend(["-lgcc_s", "-lpthread", "-ldl", "-lm"].map(OsString::from));
    options
}
