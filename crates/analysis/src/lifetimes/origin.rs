//! The initial contents of memory, as far as the name of its type states them. The recorder names allocations of
//! unknown type by their place, and appends in parentheses what a reader must know: `make+0x1f (calloc)`, `grow+0x2c
//! (realloc)`, `open+0x9 (in libz.so.1)`, or two of them separated by a comma.

/// What memory begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// All bytes are written by the allocation itself.
    pub(super) is_zeroed: bool,
    /// It begins with the contents of the region that its thread removed last.
    pub(super) is_resized: bool,
    /// It belongs to code whose accesses are not in the trace.
    pub(super) is_foreign: bool,
}

impl Origin {
    /// Reads the remarks of a name.
    pub(super) fn of(name: &[u8]) -> Self {
        let mut origin = Self::default();
        let Some(inner) = name.strip_suffix(b")") else { return origin };
        let Some(open) = inner.windows(2).rposition(|pair| pair == b" (") else { return origin };
        let (place, remarks) = (inner.get(..open).unwrap_or(&[]), inner.get(open + 2..).unwrap_or(&[]));
        // Only after a place: types have names of their own with brackets in them.
        let is_place = place.iter().rposition(|byte| *byte == b'+').is_some_and(|plus| {
            let offset = place.get(plus..).and_then(|offset| offset.strip_prefix(b"+0x")).unwrap_or(&[]);
            !offset.is_empty() && offset.iter().all(u8::is_ascii_hexdigit)
        });
        if is_place {
            for remark in remarks.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                origin.is_zeroed |= remark == b"calloc";
                origin.is_resized |= remark == b"realloc";
                origin.is_foreign |= remark.starts_with(b"in ");
            }
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
            let Origin { is_zeroed, is_resized, is_foreign } = Origin::of(name.as_bytes());
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
