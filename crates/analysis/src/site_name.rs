//! Names that recorders give to allocations of unknown type: the place that allocates, and remarks.
//!
//! `make+0x1f (calloc)`, `grow+0x2c (realloc)`, `open+0x9 (in libz.so.1)`, or two remarks separated by a comma; callers
//! may follow the place: `make+0x1f<load+0x8<main+0x40`. Memory that is there without an allocation is named
//! `graph (global)`, `table (global in libx.so)`, `main (stack)`, `threads (stack)`.

/// A name of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteName<'a> {
    /// The place, and its callers.
    pub places: &'a [u8],
    /// What is in the parentheses; empty without.
    pub remarks: &'a [u8],
}

impl<'a> SiteName<'a> {
    /// The parts of a name; `None` for one that is not a place's.
    pub fn of(name: &'a [u8]) -> Option<Self> {
        if is_place(name) {
            return Some(Self { places: name, remarks: &[] });
        }
        let inner = name.strip_suffix(b")")?;
        let open = inner.windows(2).rposition(|pair| pair == b" (")?;
        let (places, remarks) = (inner.get(..open)?, inner.get(open + 2..)?);
        // Only after a place: types have names of their own with brackets in them.
        is_place(places).then_some(Self { places, remarks })
    }

    /// The remarks one by one.
    pub fn remarks(self) -> impl Iterator<Item = &'a [u8]> {
        self.remarks.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
    }
}

/// True for the name of memory that nobody allocates: it is initialized, and is not freed.
pub fn is_static(name: &[u8]) -> bool {
    let remark = name.strip_suffix(b")").and_then(|inner| {
        let open = inner.windows(2).rposition(|pair| pair == b" (")?;
        inner.get(open + 2..)
    });
    remark.is_some_and(|remark| remark == b"stack" || remark == b"global" || remark.starts_with(b"global in "))
}

/// True for `function+0x1f`.
fn is_place(name: &[u8]) -> bool {
    let plus = name.iter().rposition(|byte| *byte == b'+');
    let offset = plus.and_then(|plus| name.get(plus..)?.strip_prefix(b"+0x")).unwrap_or(&[]);
    !offset.is_empty() && offset.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_stacks_are_told_by_their_remark() {
        for name in ["graph (global)", "a<b>::c (global in libx.so.1)", "main (stack)", "threads (stack)"] {
            assert!(is_static(name.as_bytes()) && SiteName::of(name.as_bytes()).is_none(), "{name}");
        }
        for name in ["graph", "graph(global)", "f+0x1 (calloc)", "f (globally)", "(stack)", ""] {
            assert!(!is_static(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn places_have_remarks_and_types_do_not() {
        let parts = |name: &'static str| {
            SiteName::of(name.as_bytes()).map(|found| (found.places, found.remarks().collect::<Vec<_>>()))
        };
        assert_eq!(parts("main+0x1f"), Some((&b"main+0x1f"[..], vec![&b""[..]])));
        assert_eq!(parts("a<b>::c(int)+0x1f (calloc)"), Some((&b"a<b>::c(int)+0x1f"[..], vec![&b"calloc"[..]])));
        let two = parts("f+0x1<g+0x2 (realloc, in libx (1).so)");
        assert_eq!(two, None, "brackets in a file's name cannot be told from those of the remarks");
        let two = parts("f+0x1<g+0x2 (realloc, in libx.so)");
        assert_eq!(two, Some((&b"f+0x1<g+0x2"[..], vec![&b"realloc"[..], &b"in libx.so"[..]])));
        for name in ["", "struct Node", "std::map<int, long>", "f(int)", "f (calloc)", "f+0x", "f+0xg (calloc)", "+"] {
            assert_eq!(parts(name), None, "{name}");
        }
    }
}
