//! The replacements of `apitrace sed`: `s/SEARCH/REPLACE/`, and what it means for each type.

use std::collections::HashMap;

use crate::wire::record::Signed;
use crate::wire::scan::Scan;

/// A value to search for, and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    search: Vec<u8>,
    replace: Vec<u8>,
    /// Both as pointers.
    pointers: Option<(u64, u64)>,
}

impl Replacement {
    /// Reads `s/SEARCH/REPLACE/`. Any character may replace the slash. `@file(PATH)` as either part is the content that
    /// `read` returns for the path. There are no escapes. A search of the form `0x10` also matches pointers, and its
    /// replacement must be a hexadecimal number.
    ///
    /// ```
    /// use anytrace_apitrace::tools::sed::Replacement;
    ///
    /// let mut no_files = |_: &str| Err(std::io::Error::other("no files here"));
    /// assert!(Replacement::parse("s,GL_LINES,GL_TRIANGLES,", &mut no_files).is_ok());
    /// assert_eq!(Replacement::parse("s/a/b", &mut no_files).unwrap_err(), "s/a/b: no / after the replacement");
    /// ```
    ///
    /// # Errors
    /// A readable message.
    pub fn parse(text: &str, read: &mut dyn FnMut(&str) -> std::io::Result<Vec<u8>>) -> Result<Self, String> {
        let wrong = |what: String| format!("{text}: {what}");
        let mut rest = text.strip_prefix('s').ok_or_else(|| wrong("expected s/SEARCH/REPLACE/".to_owned()))?.chars();
        let separator = rest.next().ok_or_else(|| wrong("expected s/SEARCH/REPLACE/".to_owned()))?;
        let (search, rest) = part(rest.as_str(), separator, "search", read).map_err(wrong)?;
        let (replace, rest) = part(rest, separator, "replacement", read).map_err(wrong)?;
        if !rest.is_empty() {
            return Err(wrong(format!("unexpected {rest} after the last {separator}")));
        }
        let mut pointers = None;
        if let Some(from) = hexadecimal(&search).filter(|_| search.starts_with(b"0x")) {
            let to =
                hexadecimal(&replace).ok_or_else(|| wrong("a pointer can only be replaced by a pointer".to_owned()))?;
            pointers = Some((from, to));
        }
        Ok(Self { search, replace, pointers })
    }
}

/// One part of an expression and what follows its separator.
fn part<'t>(
    text: &'t str,
    separator: char,
    name: &str,
    read: &mut dyn FnMut(&str) -> std::io::Result<Vec<u8>>,
) -> Result<(Vec<u8>, &'t str), String> {
    if let Some(file) = text.strip_prefix("@file(") {
        // The separator may occur in the path.
        let end = format!("){separator}");
        let (path, rest) = file.split_once(&end).ok_or_else(|| format!("no {end} after the {name}"))?;
        let content = read(path).map_err(|error| format!("{path}: {error}"))?;
        return Ok((content, rest));
    }
    let (part, rest) = text.split_once(separator).ok_or_else(|| format!("no {separator} after the {name}"))?;
    Ok((part.as_bytes().to_vec(), rest))
}

/// A hexadecimal number with or without `0x`.
fn hexadecimal(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The outcome of the replacements, for notes.
#[derive(Debug, Clone, Copy, Default)]
struct Success {
    has_matched: bool,
    /// An enumeration or bit mask contains the search, but not the replacement.
    has_failed: bool,
}

/// Most values of an enumeration that one name may have. Real names have one, or a few that differ in sign.
const SEARCHED_MAX: usize = 4096;

/// New values for an enumeration, by value.
type EnumEdits = HashMap<i128, EnumEdit>;

/// What a value becomes, and which replacements match it.
struct EnumEdit {
    becomes: Signed,
    steps: Vec<(usize, Success)>,
}

/// What happens to one flag: its bits, and their replacement unless it is unknown.
struct MaskEdit {
    at: usize,
    bits: u64,
    becomes: Option<u64>,
}

/// The replacements as applied to values. Each applies to the result of those before it.
pub(super) struct Values<'a> {
    replacements: &'a [Replacement],
    success: Vec<Success>,
    enums: HashMap<u32, EnumEdits>,
    masks: HashMap<u32, Vec<MaskEdit>>,
    has_pointers: bool,
}

impl<'a> Values<'a> {
    pub(super) fn new(replacements: &'a [Replacement]) -> Self {
        Self {
            replacements,
            success: vec![Success::default(); replacements.len()],
            enums: HashMap::new(),
            masks: HashMap::new(),
            has_pointers: replacements.iter().any(|one| one.pointers.is_some()),
        }
    }

    /// True when no value can change.
    pub(super) fn is_empty(&self) -> bool {
        self.replacements.is_empty()
    }

    /// True when a string of this many bytes may be replaced.
    pub(super) fn has_text_of(&self, length: u64) -> bool {
        self.replacements.iter().any(|one| one.search.len() as u64 == length)
    }

    /// The replacement of a string. What follows a NUL counts only if the search contains one too: the dump does not
    /// show it.
    pub(super) fn text(&mut self, text: &[u8]) -> Option<&'a [u8]> {
        let mut new: Option<&'a [u8]> = None;
        for (one, success) in self.replacements.iter().zip(&mut self.success) {
            // Each replacement sees the result of those before it.
            let rest = new.unwrap_or(text).strip_prefix(one.search.as_slice());
            if matches!(rest, Some([] | [0, ..])) {
                success.has_matched = true;
                new = Some(&one.replace);
            }
        }
        new.filter(|new| *new != text)
    }

    /// The replacement of a pointer.
    pub(super) fn pointer(&mut self, pointer: u64) -> Option<u64> {
        if !self.has_pointers {
            return None;
        }
        let mut new = pointer;
        for (one, success) in self.replacements.iter().zip(&mut self.success) {
            if let Some((from, to)) = one.pointers
                && from == new
            {
                success.has_matched = true;
                new = to;
            }
        }
        (new != pointer).then_some(new)
    }

    /// The replacement of a value of the enumeration in a slot, from version 3 on.
    pub(super) fn enumeration(&mut self, slot: u32, definition: &[u8], value: Signed) -> Option<Signed> {
        let replacements = self.replacements;
        let edits = self.enums.entry(slot).or_insert_with(|| enum_edits(definition, replacements));
        let edit = edits.get(&value.value())?;
        for (at, step) in &edit.steps {
            if let Some(success) = self.success.get_mut(*at) {
                success.has_matched |= step.has_matched;
                success.has_failed |= step.has_failed;
            }
        }
        (edit.becomes.value() != value.value()).then_some(edit.becomes)
    }

    /// The replacement of a name: enumerations before version 3. `is_known` returns whether some enumeration has it.
    pub(super) fn name(&mut self, name: &[u8], is_known: impl Fn(&[u8]) -> bool) -> Option<&'a [u8]> {
        let mut new: Option<&'a [u8]> = None;
        for (one, success) in self.replacements.iter().zip(&mut self.success) {
            if new.unwrap_or(name) == one.search {
                success.has_matched = true;
                if is_known(&one.replace) {
                    new = Some(&one.replace);
                } else {
                    success.has_failed = true;
                }
            }
        }
        new.filter(|new| *new != name)
    }

    /// True when a name may replace another.
    pub(super) fn may_become(&self, name: &[u8]) -> bool {
        self.replacements.iter().any(|one| one.replace == name)
    }

    /// The replacement of a value of the bit mask in a slot.
    pub(super) fn bitmask(&mut self, slot: u32, definition: &[u8], value: u64) -> Option<u64> {
        let replacements = self.replacements;
        let edits = self.masks.entry(slot).or_insert_with(|| mask_edits(definition, replacements));
        let mut new = value;
        for edit in edits.iter().filter(|edit| edit.bits != 0) {
            // A flag of several bits is set only if all of them are.
            if new & edit.bits != edit.bits {
                continue;
            }
            let Some(success) = self.success.get_mut(edit.at) else { continue };
            success.has_matched = true;
            match edit.becomes {
                Some(bits) => new = new & !edit.bits | bits,
                None => success.has_failed = true,
            }
        }
        (new != value).then_some(new)
    }

    /// Notes about replacements that had no effect.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (one, success) in self.replacements.iter().zip(&self.success) {
            let (search, replace) = (shown(&one.search), shown(&one.replace));
            if success.has_failed {
                notes.push(format!("{search} is unchanged where its enumeration or bit mask has no {replace}."));
            } else if !success.has_matched {
                notes.push(format!("{search} was not found."));
            }
        }
        notes
    }
}

/// The start of a text, on one line.
fn shown(text: &[u8]) -> String {
    let short = text.get(..60).unwrap_or(text);
    let dots = if short.len() < text.len() { "..." } else { "" };
    format!("{}{dots}", anytrace_core::text::escaped(short))
}

/// The names and values of an enumeration.
fn enum_names(definition: &[u8]) -> impl Iterator<Item = (&[u8], Signed)> {
    let mut scan = Scan::new(definition);
    let count = scan.uint().unwrap_or(0);
    (0..count).map_while(move |_| Some((scan.string().ok()?, scan.signed().ok()?)))
}

fn enum_edits(definition: &[u8], replacements: &[Replacement]) -> EnumEdits {
    let mut becomes: Vec<Option<Signed>> = vec![None; replacements.len()];
    // The first name of a value is the one that is shown, so it is the one that counts.
    let mut shown: HashMap<i128, Option<&[u8]>> = HashMap::new();
    let mut searched: Vec<Signed> = Vec::new();
    for (name, value) in enum_names(definition) {
        for (one, new) in replacements.iter().zip(&mut becomes) {
            if one.replace == name && new.is_none() {
                *new = Some(value);
                shown.insert(value.value(), None);
            }
            if one.search == name && searched.len() < SEARCHED_MAX {
                searched.push(value);
                shown.insert(value.value(), None);
            }
        }
    }
    for (name, value) in enum_names(definition) {
        // A second walk, because a value's first name may come before the name that is searched.
        if let Some(first) = shown.get_mut(&value.value()) {
            first.get_or_insert(name);
        }
    }
    let shown = |value: Signed| shown.get(&value.value()).copied().flatten();
    let mut edits = EnumEdits::new();
    for value in searched {
        let (mut new, mut steps) = (value, Vec::new());
        for (at, (one, becomes)) in replacements.iter().zip(&becomes).enumerate() {
            if shown(new) == Some(&one.search) {
                steps.push((at, Success { has_matched: true, has_failed: becomes.is_none() }));
                new = becomes.unwrap_or(new);
            }
        }
        if !steps.is_empty() {
            edits.insert(value.value(), EnumEdit { becomes: new, steps });
        }
    }
    edits
}

fn mask_edits(definition: &[u8], replacements: &[Replacement]) -> Vec<MaskEdit> {
    let mut flags: Vec<(&[u8], u64)> = Vec::new();
    let mut scan = Scan::new(definition);
    let count = scan.uint().unwrap_or(0);
    for _ in 0..count {
        let (Ok(name), Ok(value)) = (scan.string(), scan.uint()) else { break };
        flags.push((name, value));
    }
    let bits_of = |name: &[u8]| flags.iter().find(|(known, _)| *known == name).map(|(_, bits)| *bits);
    let of_replacement = |(at, one): (usize, &Replacement)| {
        Some(MaskEdit { at, bits: bits_of(&one.search)?, becomes: mask(&one.replace, &bits_of) })
    };
    replacements.iter().enumerate().filter_map(of_replacement).collect()
}

/// The bits of a flag, of a number, or of several joined by `|`; none for an empty text.
fn mask(text: &[u8], bits_of: &impl Fn(&[u8]) -> Option<u64>) -> Option<u64> {
    if text.is_empty() {
        return Some(0);
    }
    let parts = text.split(|byte| *byte == b'|').map(<[u8]>::trim_ascii);
    parts.map(|part| bits_of(part).or_else(|| number(part))).try_fold(0, |all, bits| bits.map(|bits| all | bits))
}

fn number(text: &[u8]) -> Option<u64> {
    match text.strip_prefix(b"0x") {
        Some(_) => hexadecimal(text),
        None => std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Replacement, String> {
        Replacement::parse(text, &mut |path| match path {
            "a/b" => Ok(b"x/y\n".to_vec()),
            _ => Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
        })
    }

    #[test]
    fn expressions_are_read_with_any_separator_and_from_files() {
        let parts = |text| parse(text).map(|one| (one.search, one.replace));
        let both = |search: &str, replace: &str| Ok((search.into(), replace.into()));
        assert_eq!(parts("s/a/b/"), both("a", "b"));
        assert_eq!(parts("s|a/b||"), both("a/b", ""));
        assert_eq!(parts("séaébé"), both("a", "b"));
        assert_eq!(parts("s/@file(a/b)/@file(a/b)/"), both("x/y\n", "x/y\n"));
        assert_eq!(parts("s,a\\,@file,"), both("a\\", "@file"));
        for (text, message) in [
            ("", ": expected s/SEARCH/REPLACE/"),
            ("y/a/b/", "y/a/b/: expected s/SEARCH/REPLACE/"),
            ("s/a/b", "s/a/b: no / after the replacement"),
            ("s/a", "s/a: no / after the search"),
            ("s/a/b/g", "s/a/b/g: unexpected g after the last /"),
            ("s/@file(a", "s/@file(a: no )/ after the search"),
            ("s/@file(none)/x/", "s/@file(none)/x/: none: entity not found"),
            ("s/0x1/NULL/", "s/0x1/NULL/: a pointer can only be replaced by a pointer"),
        ] {
            assert_eq!(parts(text), Err(message.to_owned()));
        }
    }

    #[test]
    fn masks_are_names_and_numbers() {
        let bits_of = |name: &[u8]| (name == b"A").then_some(4);
        for (text, bits) in [
            ("", Some(0)),
            ("A", Some(4)),
            ("A | 0x10|1", Some(21)),
            ("B", None),
            ("A|", None),
            ("-1", None),
            ("0x", None),
        ] {
            assert_eq!(mask(text.as_bytes(), &bits_of), bits, "{text}");
        }
    }
}
