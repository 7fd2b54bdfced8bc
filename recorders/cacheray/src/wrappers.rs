//! Functions that allocate for others: what they return is named after their callers.
//!
//! Three ways to know one: it is on the list below, the user names it, or a rule recognizes it by what it does.

/// Callers that a name can have beside the place itself.
pub(crate) const CALLERS_MAX: usize = 16;

/// Names of C, as far as well-known programs and libraries have them; `*` ends a name of which more may follow.
const LISTED: &[&str] = &[
    // GNU programs, git, binutils, gcc.
    "xmalloc",
    "xcalloc",
    "xrealloc",
    "xreallocarray",
    "xnmalloc",
    "xnrealloc",
    "x2realloc",
    "x2nrealloc",
    "xzalloc",
    "xmallocz",
    "xmemdup",
    "xmemdupz",
    "xstrdup",
    "xstrndup",
    "ximalloc",
    "xicalloc",
    "xirealloc",
    "do_xmalloc",
    // GLib.
    "g_malloc",
    "g_malloc0",
    "g_malloc_n",
    "g_malloc0_n",
    "g_realloc",
    "g_realloc_n",
    "g_try_malloc",
    "g_try_malloc0",
    "g_try_realloc",
    "g_slice_alloc",
    "g_slice_alloc0",
    "g_strdup",
    "g_strndup",
    "g_memdup",
    "g_memdup2",
    // Lua.
    "l_alloc",
    "luaM_malloc_",
    "luaM_realloc_",
    "luaM_saferealloc_",
    "luaM_growaux_",
    "luaM_shrinkvector_",
    "luaM_toobig",
    "luaC_newobj",
    "luaC_newobjdt",
    "luaC_link",
    // SQLite.
    "sqlite3MemMalloc",
    "sqlite3MemRealloc",
    "sqlite3Malloc",
    "sqlite3MallocZero",
    "sqlite3Realloc",
    "sqlite3_malloc",
    "sqlite3_malloc64",
    "sqlite3_realloc",
    "sqlite3_realloc64",
    "sqlite3DbMallocRaw",
    "sqlite3DbMallocRawNN",
    "sqlite3DbMallocZero",
    "sqlite3DbRealloc",
    "sqlite3DbReallocOrFree",
    "sqlite3DbStrDup",
    "sqlite3DbStrNDup",
    "sqlite3DbSpanDup",
    "sqlite3ArrayAllocate",
    "mallocWithAlarm",
    "dbMallocRawFinish",
    "dbReallocFinish",
    "pcache1Alloc",
    // Compression.
    "ZSTD_customMalloc",
    "ZSTD_customCalloc",
    "ZSTD_malloc",
    "ZSTD_calloc",
    "zcalloc",
    "default_bzalloc",
    "mymalloc",
    "lzma_alloc",
    "lzma_alloc_zero",
    "BrotliDefaultAllocFunc",
    "BrotliAllocate",
    // Interpreters.
    "PyMem_Malloc",
    "PyMem_Calloc",
    "PyMem_Realloc",
    "PyMem_RawMalloc",
    "PyMem_RawCalloc",
    "PyMem_RawRealloc",
    "PyObject_Malloc",
    "PyObject_Calloc",
    "PyObject_Realloc",
    "_PyMem_Raw*",
    "_PyObject_Malloc",
    "_PyObject_Calloc",
    "_PyObject_Realloc",
    "ruby_xmalloc*",
    "ruby_xcalloc*",
    "ruby_xrealloc*",
    "Perl_safesys*",
    "lj_mem_*",
    "js_malloc*",
    "js_realloc*",
    "js_def_malloc",
    "js_def_realloc",
    // Servers, codecs, others.
    "zmalloc",
    "zrealloc",
    "ztrymalloc",
    "ngx_alloc",
    "ngx_calloc",
    "CRYPTO_malloc",
    "CRYPTO_zalloc",
    "CRYPTO_realloc",
    "av_malloc",
    "av_mallocz",
    "av_realloc",
    "av_calloc",
    "png_malloc*",
    "palloc",
    "palloc0",
    "safe_malloc",
    "safe_calloc",
    "safe_realloc",
    "emalloc",
    "erealloc",
    "talloc_*",
    "_talloc_*",
    "apr_palloc",
    "je_malloc",
    "je_calloc",
    "je_realloc",
    "mi_malloc",
    "mi_calloc",
    "mi_realloc",
];

/// Parts of mangled names of Rust's library between a program and the allocator, in which no type is named.
const OF_RUST: &[&str] =
    &["__rust_alloc", "__rust_realloc", "__rdl_alloc", "__rdl_realloc", "5alloc7raw_vec", "5alloc5alloc"];

/// Which functions the user named, and whether any are skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrappers {
    /// Names as the user wrote them.
    pub(crate) named: Vec<Vec<u8>>,
    /// False where every place keeps its own name.
    pub(crate) is_on: bool,
}

impl Default for Wrappers {
    fn default() -> Self {
        Self { named: Vec::new(), is_on: true }
    }
}

impl Wrappers {
    /// True for a function of this name, as the file has it and as people read it.
    pub(crate) fn has(&self, symbol: &[u8], readable: &[u8]) -> bool {
        let plain = without_arguments(readable);
        let is = |name: &[u8]| fits(name, symbol) || fits(name, plain);
        // The compiler's own copies: `f.constprop.0`, `f.isra.0`, `f.cold`.
        let copied = symbol.split(|byte| *byte == b'.').next().unwrap_or(symbol);
        self.is_on
            && (self.named.iter().any(|name| is(name))
                || LISTED.iter().any(|name| fits(name.as_bytes(), copied))
                || OF_RUST.iter().any(|part| symbol.starts_with(b"_") && contains(symbol, part.as_bytes())))
    }
}

/// True where a name is the pattern, or begins with what precedes its `*`.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [start @ .., b'*'] => name.starts_with(start),
        _ => name == pattern,
    }
}

fn contains(name: &[u8], part: &[u8]) -> bool {
    name.windows(part.len()).any(|window| window == part)
}

/// A C++ name without the list of its parameters' types.
fn without_arguments(name: &[u8]) -> &[u8] {
    let mut depth = 0_usize;
    for (at, byte) in name.iter().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth == 1 => return name.get(..at).unwrap_or(name),
            b'(' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    name
}

/// Different values that are told apart, of each kind.
const VALUES: usize = 4;
/// Allocations before a function is judged.
const FIRST_VERDICT: u32 = 16;
/// Allocations after which a function that is no wrapper is not watched any more.
const LAST_VERDICT: u32 = 1 << 16;

/// What is known of a function: whether it allocates for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    /// It does.
    Wrapper,
    /// It does not.
    Plain,
    /// That is not known yet.
    Watched(Watch),
}

/// What a function did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Watch {
    allocations: u32,
    sizes: [u64; VALUES],
    /// Where its callers go on.
    callers: [u64; VALUES],
    /// Where it allocates itself.
    places: [u64; VALUES],
}

/// Keeps a value among those seen, while there is room.
fn keep(seen: &mut [u64; VALUES], value: u64) {
    if let Some(slot) = seen.iter_mut().find(|slot| **slot == value || **slot == 0) {
        *slot = value;
    }
}

fn count(seen: &[u64; VALUES]) -> usize {
    seen.iter().filter(|value| **value != 0).count()
}

impl Watch {
    /// An allocation by the function; `all` is the number of the program's. A wrapper is a function through which most
    /// allocations go, of many sizes, for many callers, from one place or two of its own.
    pub(crate) fn allocated(&mut self, place: usize, caller: usize, bytes: u64, all: u64) -> Option<Function> {
        self.allocations += 1;
        keep(&mut self.sizes, bytes);
        keep(&mut self.callers, caller as u64);
        keep(&mut self.places, place as u64);
        if self.allocations < FIRST_VERDICT || !self.allocations.is_power_of_two() {
            return None;
        }
        let is_most = u64::from(self.allocations) * 2 >= all;
        let is_for_others = count(&self.sizes) == VALUES && count(&self.callers) == VALUES && count(&self.places) <= 2;
        match (is_most && is_for_others, self.allocations >= LAST_VERDICT) {
            (true, _) => Some(Function::Wrapper),
            (false, true) => Some(Function::Plain),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_file_and_those_people_read() {
        let named = ["pool::alloc", "grab*", "_ZN1a1bEm"].map(|name| name.as_bytes().to_vec()).to_vec();
        let wrappers = Wrappers { named, is_on: true };
        for (symbol, readable) in [
            ("xmalloc", "xmalloc"),
            ("l_alloc.constprop.0", "l_alloc.constprop.0"),
            ("_ZN4pool5allocEm", "pool::alloc(unsigned long)"),
            ("_ZN4pool5allocEPFvvE", "pool::alloc(void (*)())"),
            ("grabby", "grabby"),
            ("_ZN1a1bEm", "a::b(unsigned long)"),
            ("_ZN5alloc7raw_vec11finish_grow17h0E", "alloc::raw_vec::finish_grow"),
            ("ruby_xmalloc2", "ruby_xmalloc2"),
        ] {
            assert!(wrappers.has(symbol.as_bytes(), readable.as_bytes()), "{symbol}");
            assert!(!Wrappers { is_on: false, ..wrappers.clone() }.has(symbol.as_bytes(), readable.as_bytes()));
        }
        for (symbol, readable) in [("xmalloc_all", "xmalloc_all"), ("_ZN4pool6alloc2Em", "pool::alloc2(unsigned long)")]
        {
            assert!(!wrappers.has(symbol.as_bytes(), readable.as_bytes()), "{symbol}");
        }
    }

    /// The first verdict on a function whose allocation `n` this gives place, caller and size of.
    fn verdict(of: impl Fn(u64) -> (usize, usize, u64), share: u64) -> Option<(u64, Function)> {
        let mut watch = Watch::default();
        (1..=100_000).find_map(|n| {
            let (place, caller, bytes) = of(n);
            watch.allocated(place, caller, bytes, n * share).map(|function| (n, function))
        })
    }

    #[test]
    fn a_function_through_which_most_allocations_go_is_a_wrapper() {
        let n = |value: u64| value as usize;
        assert_eq!(verdict(|i| (1, n(1 + i % 5), 1 + i % 7), 2), Some((16, Function::Wrapper)));
        // One size: a constructor. One caller: a function that just allocates. Many places: that, too. A few of all.
        assert_eq!(verdict(|i| (1, n(1 + i % 5), 24), 1), Some((1 << 16, Function::Plain)));
        assert_eq!(verdict(|i| (1, 1, 1 + i % 7), 1), Some((1 << 16, Function::Plain)));
        assert_eq!(verdict(|i| (n(1 + i % 3), n(1 + i % 5), 1 + i % 7), 1), Some((1 << 16, Function::Plain)));
        assert_eq!(verdict(|i| (1, n(1 + i % 5), 1 + i % 7), 3), Some((1 << 16, Function::Plain)));
        // Callers come late.
        assert_eq!(verdict(|i| (1, n(1 + i / 100), 1 + i % 7), 1), Some((512, Function::Wrapper)));
    }
}
