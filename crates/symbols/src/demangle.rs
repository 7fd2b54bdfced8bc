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
    // Every mangling begins with an underscore. The library takes names that Windows' dbghelp took it from, too: no file
    // has those, and a C function may be called so.
    if !name.starts_with('_') {
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
    let tidy = literals(&unnamed(&closed_up(&out.0)));
    Some(clones(&specials(name, &tidy)))
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
    // An empty list of arguments at the end leaves its comma.
    out.replace(", >", ">").replace("operator<< <", "operator<<<").replace("operator< <", "operator<<")
}

/// Lambdas and types without a name: `{lambda(int)#2}` is `'lambda0'(int)` in the peer's names.
fn unnamed(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('{') {
        let (before, behind) = rest.split_at(at);
        out.push_str(before);
        let lambda = behind.strip_prefix("{lambda(").map(|inner| ("lambda", inner));
        let typed = behind.strip_prefix("{unnamed type").map(|inner| ("unnamed", inner));
        let found = lambda.or(typed).and_then(|(word, inner)| {
            let (arguments, behind) = numbered(inner)?;
            Some((word, arguments, behind))
        });
        let Some((word, (arguments, number), behind)) = found else {
            out.push('{');
            rest = behind.get(1..).unwrap_or_default();
            continue;
        };
        out.push('\'');
        out.push_str(word);
        // The first has no number, the second is 0.
        if let Some(number) = number.checked_sub(2) {
            out.push_str(&number.to_string());
        }
        out.push('\'');
        if word == "lambda" {
            out.push('(');
            out.push_str(&unnamed(arguments));
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// Cuts `arguments#number}` at the brace that closes it.
fn numbered(text: &str) -> Option<((&str, u64), &str)> {
    let mut depth = 0_u32;
    let end = text.bytes().position(|byte| {
        let closes = byte == b'}' && depth == 0;
        depth = depth.saturating_add(u32::from(byte == b'{')).saturating_sub(u32::from(byte == b'}'));
        closes
    })?;
    let (inner, behind) = (text.get(..end)?, text.get(end + 1..)?);
    let (arguments, number) = inner.rsplit_once('#')?;
    Some(((arguments, number.parse().ok()?), behind))
}

/// Numbers in template arguments: `(unsigned int)4` is `4u` in the peer's names.
fn literals(name: &str) -> String {
    const TYPES: [(&str, &str); 6] = [
        ("(int)", ""),
        ("(unsigned int)", "u"),
        ("(long)", "l"),
        ("(unsigned long)", "ul"),
        ("(long long)", "ll"),
        ("(unsigned long long)", "ull"),
    ];
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('(') {
        let (before, behind) = rest.split_at(at);
        out.push_str(before);
        let literal = TYPES.iter().find_map(|(cast, suffix)| {
            let number = behind.strip_prefix(cast)?;
            let sign = usize::from(number.starts_with('-'));
            let digits = number.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
            (digits > 0).then(|| (number.split_at(sign + digits), *suffix))
        });
        match literal {
            Some(((number, behind), suffix)) => {
                out.push_str(number);
                out.push_str(suffix);
                rest = behind;
            }
            None => {
                out.push('(');
                rest = behind.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}

/// What compilers make besides functions, in the peer's words.
fn specials(mangled: &str, name: &str) -> String {
    const WORDS: [(&str, &str); 8] = [
        ("Tv", "virtual thunk to "),
        ("Th", "non-virtual thunk to "),
        ("Tc", "covariant return thunk to "),
        ("TV", "vtable for "),
        ("TT", "VTT for "),
        ("GV", "guard variable for "),
        ("GR", "reference temporary for "),
        ("GTt", "transaction clone for "),
    ];
    let kind = mangled.trim_start_matches('_').strip_prefix('Z').unwrap_or_default();
    let Some((_, word)) = WORDS.iter().find(|(prefix, _)| kind.starts_with(prefix)).filter(|_| name.starts_with('{'))
    else {
        return name.to_owned();
    };
    // `{kind({offset}, {offset}, function)}`: the offsets are left out.
    let mut inner = name.split_once('(').map_or(name, |(_, inner)| inner);
    while let Some((_, behind)) = inner.strip_prefix('{').and_then(|offset| offset.split_once("}, ")) {
        inner = behind;
    }
    let inner = inner.strip_suffix(")}").or_else(|| inner.strip_suffix('}')).unwrap_or(inner);
    format!("{word}{inner}")
}

/// Parts of functions that the compiler split off or copied: `f() [clone .cold]` is `f() (.cold)` in the peer's names.
fn clones(name: &str) -> String {
    let Some((function, suffixes)) = name.split_once(" [clone ") else { return name.to_owned() };
    let suffixes = suffixes.strip_suffix(']').unwrap_or(suffixes).replace("] [clone ", "");
    format!("{function} ({suffixes})")
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
