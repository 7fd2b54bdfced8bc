//! Names as people wrote them.

use std::borrow::Cow;
use std::fmt::{self, Write};

use anytrace_core::span::Mangling;

/// Longest name that is demangled, and longest that comes of it: a few bytes can describe a name of gigabytes.
const NAME_BYTES_MAX: usize = 64 * 1024;

/// Deepest nesting of a C++ name.
const DEPTH_MAX: u32 = 128;

/// A linker's name as written in the source: C++ (Itanium) and Rust (both manglings, without the hash). Any other name,
/// and one that is damaged, is given back as it is.
pub fn demangle(name: &str, mangling: Mangling) -> Cow<'_, str> {
    if mangling == Mangling::AsIs || name.len() > NAME_BYTES_MAX {
        return Cow::Borrowed(name);
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return written(format_args!("{rust:#}")).map_or(Cow::Borrowed(name), Cow::Owned);
    }
    let is_cpp = ["_Z", "__Z", "___Z", "____Z"].iter().any(|prefix| name.starts_with(prefix));
    if !is_cpp {
        return Cow::Borrowed(name);
    }
    cpp(name).map_or(Cow::Borrowed(name), Cow::Owned)
}

fn cpp(name: &str) -> Option<String> {
    let parse = cpp_demangle::ParseOptions::default().recursion_limit(DEPTH_MAX);
    let symbol = cpp_demangle::Symbol::new_with_options(name, &parse).ok()?;
    let print = cpp_demangle::DemangleOptions::new().recursion_limit(DEPTH_MAX);
    let mut out = Bounded(String::new());
    symbol.structured_demangle(&mut out, &print).ok()?;
    Some(closed_up(&out.0))
}

/// Template arguments end as `>>` in C++11 and later, and in the peer's names; the library writes `> >`.
fn closed_up(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("> >") {
        let (before, behind) = rest.split_at(at + 1);
        out.push_str(before);
        // An operator's own name keeps its distance from the template arguments behind it.
        let is_operator = ["operator>", "operator>>", "operator->"].iter().any(|name| out.ends_with(name));
        rest = if is_operator { behind } else { behind.trim_start_matches(' ') };
    }
    out.push_str(rest);
    out
}

fn written(arguments: fmt::Arguments<'_>) -> Option<String> {
    let mut out = Bounded(String::new());
    out.write_fmt(arguments).ok().map(|()| out.0)
}

/// Text that is given up when it grows too long.
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
