//! Names of types: as traces, compilers and debug data spell them.

/// The name without the kind of the type and without the number that compilers add: `Foo` for `struct.Foo.12`, `class
/// ns::Foo`, `union.Foo`.
pub fn bare_name(name: &str) -> &str {
    let mut bare = name.trim();
    for word in ["struct", "class", "union", "enum"] {
        let rest = bare.strip_prefix(word).and_then(|rest| rest.strip_prefix(['.', ' ']));
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            bare = rest.trim_start();
            break;
        }
    }
    match bare.rsplit_once('.') {
        Some((front, digits)) if !front.is_empty() && !digits.is_empty() && is_number(digits) => front,
        _ => bare,
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The name with spaces only where they separate words: compilers differ in `A<B<int> >` and `A<B<int>>`, `char *` and
/// `char*`.
pub fn canonical_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut is_spaced = false;
    for c in name.chars() {
        if c.is_whitespace() {
            is_spaced = true;
            continue;
        }
        if is_spaced && is_word(c) && out.chars().next_back().is_some_and(is_word) {
            out.push(' ');
        }
        is_spaced = false;
        out.push(c);
    }
    out
}

/// The name without template arguments, as compilers write it in their own tables: `ns::Vec` for `ns::Vec<int, 3>`,
/// `A::B` for `A<int>::B`. `None` when there are none.
pub fn without_arguments(name: &str) -> Option<String> {
    if !name.contains('<') || name.contains("operator") {
        return None;
    }
    let mut out = String::with_capacity(name.len());
    let mut depth = 0_u32;
    for c in name.chars() {
        match c {
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    Some(out.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_numbers_are_no_part_of_names() {
        for (written, bare) in [
            ("struct.Foo", "Foo"),
            ("struct Foo", "Foo"),
            ("class.ns::Foo.12", "ns::Foo"),
            ("union.U", "U"),
            ("double", "double"),
            ("structure", "structure"),
            ("struct.", "struct."),
            ("struct.Vec<1.5>", "Vec<1.5>"),
            (".12", ".12"),
            ("unsigned int", "unsigned int"),
        ] {
            assert_eq!(bare_name(written), bare, "{written}");
        }
    }

    #[test]
    fn spaces_only_part_words() {
        assert_eq!(canonical_name("A<B<unsigned  int> , 3 > *"), "A<B<unsigned int>,3>*");
        assert_eq!(canonical_name("char *"), canonical_name("char*"));
    }

    #[test]
    fn arguments_are_taken_away_at_every_level() {
        assert_eq!(without_arguments("std::map<int, std::less<int> >::Node").as_deref(), Some("std::map::Node"));
        assert_eq!(without_arguments("Plain"), None);
    }
}
