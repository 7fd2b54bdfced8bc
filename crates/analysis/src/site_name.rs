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

    /// The places one by one: the one that allocates, then its callers. Each is a function, and how many bytes after its
    /// first one the call returns to.
    pub fn each(self) -> Vec<(&'a [u8], u64)> {
        let mut found = Vec::new();
        let mut rest = self.places;
        while !rest.is_empty() {
            // Names of templates have both signs, too, but not one after the other.
            let end = (0..rest.len()).find_map(|at| {
                let digits = rest.get(at..)?.strip_prefix(b"+0x")?;
                let count = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
                let is_end = count > 0 && matches!(digits.get(count), None | Some(b'<'));
                is_end.then_some((at, digits.get(..count)?, at + 3 + count))
            });
            let Some((function, digits, end)) = end else { break };
            let offset = std::str::from_utf8(digits).ok().and_then(|digits| u64::from_str_radix(digits, 16).ok());
            found.extend(offset.and_then(|offset| Some((rest.get(..function)?, offset))));
            rest = rest.get(end + 1..).unwrap_or(&[]);
        }
        found
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
    fn each_place_is_a_function_and_an_offset() {
        let each = |name: &'static str| {
            let found = SiteName::of(name.as_bytes()).map(SiteName::each).unwrap_or_default();
            found.into_iter().map(|(name, at)| (String::from_utf8_lossy(name).into_owned(), at)).collect::<Vec<_>>()
        };
        let of = |found: &[(&str, u64)]| found.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect::<Vec<_>>();
        assert_eq!(each("main+0x1f (calloc)"), of(&[("main", 31)]));
        assert_eq!(each("a<b>::c(int)+0x10<g+0x2<h+0xff"), of(&[("a<b>::c(int)", 16), ("g", 2), ("h", 255)]));
        assert_eq!(each("f<+0x1>()+0x2"), of(&[("f<+0x1>()", 2)]));
        assert_eq!(each("main"), of(&[]));
        assert_eq!(each("f+0xffffffffffffffffff"), of(&[]), "no program is that long");
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
