//! The initial contents of memory, as far as the name of its type states them. The recorder names allocations of
//! unknown type by their place, and appends in parentheses what a reader must know: `make+0x1f (calloc)`, `grow+0x2c
//! (realloc)`, `open+0x9 (in libz.so.1)`, or two of them separated by a comma.

use crate::site_name::{SiteName, is_static};

/// What memory begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// All bytes are written by the allocation itself.
    pub(super) is_zeroed: bool,
    /// It begins with the contents of the region that its thread removed last.
    pub(super) is_resized: bool,
    /// Nobody allocates it: a variable, or a stack.
    pub(super) is_static: bool,
    /// It belongs to code whose accesses are not in the trace.
    pub(super) is_foreign: bool,
}

impl Origin {
    /// Reads the remarks of a name.
    pub(super) fn of(name: &[u8]) -> Self {
        let mut origin = Self { is_static: is_static(name), ..Self::default() };
        for remark in SiteName::of(name).into_iter().flat_map(SiteName::remarks) {
            origin.is_zeroed |= remark == b"calloc";
            origin.is_resized |= remark == b"realloc";
            origin.is_foreign |= remark.starts_with(b"in ");
        }
        origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_are_recognized_only_after_a_place() {
        let words = |name: &str| {
            let Origin { is_zeroed, is_resized, is_foreign, .. } = Origin::of(name.as_bytes());
            (is_zeroed, is_resized, is_foreign)
        };
        assert_eq!(words("main+0x1f (calloc)"), (true, false, false));
        assert_eq!(words("a::b(int)+0x2c (realloc)"), (false, true, false));
        assert_eq!(words("opendir+0x9 (in libc.so.6)"), (false, false, true));
        assert_eq!(words("f(int) (.cold)+0x9 (realloc, in libx (1).so)"), (false, false, false));
        assert_eq!(words("f+0x9 (realloc, in libx.so)"), (false, true, true));
        for name in ["", ")", " ()", "main+0x1f", "f (calloc)", "f+0x (calloc)", "f+0xg (calloc)", "f+0x1 (callocs)"] {
            assert_eq!(words(name), (false, false, false), "{name}");
        }
    }
}
