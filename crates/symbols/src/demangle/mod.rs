//! Names as people wrote them.

mod itanium;

use std::borrow::Cow;
use std::fmt::{self, Write};

use anytrace_core::span::Mangling;

/// Longest name that is demangled, and longest result: a few bytes can describe a name of gigabytes.
const NAME_BYTES_MAX: usize = 64 * 1024;

/// A linker's name as written in the source: C++ (Itanium) and Rust (both manglings, without the hash). Any other name,
/// and a damaged one, is returned unchanged.
pub fn demangle(name: &str, mangling: Mangling) -> Cow<'_, str> {
    if mangling == Mangling::AsIs || name.len() > NAME_BYTES_MAX {
        return Cow::Borrowed(name);
    }
    // Every mangling begins with an underscore. The library for Rust's takes names that Windows' dbghelp took it from,
    // too: no file has those, and a C function may be called so.
    if !name.starts_with('_') {
        return Cow::Borrowed(name);
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        // The library finds a name of no parts in `_ZNE`.
        let shown = written(format_args!("{rust:#}")).filter(|shown| !shown.is_empty());
        return shown.map_or(Cow::Borrowed(name), Cow::Owned);
    }
    itanium::demangle(name, NAME_BYTES_MAX).map_or(Cow::Borrowed(name), Cow::Owned)
}

fn written(arguments: fmt::Arguments<'_>) -> Option<String> {
    let mut out = Bounded(String::new());
    out.write_fmt(arguments).ok().map(|()| out.0)
}

/// Text that is abandoned when it grows too long.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > NAME_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}
