//! Keywords: every spelling a reader accepts, compared without case in one integer comparison.

/// The longest keyword; it does not fit into an integer of 16 bytes and is compared separately.
const LONG: &[u8] = b"set_pte_thread_owner";

/// A keyword as an integer: its bytes with bit 5 set, which lowers letters and leaves digits and `-` as they are.
///
/// Two different spellings of word characters (0x21 to 0x7e) that share a key differ by case only, as far as the
/// characters of keywords go: `_` becomes 0x7f, which no word contains.
pub type Key = u128;

/// Bit 5 of 16 bytes.
const LOWER: u128 = 0x2020_2020_2020_2020_2020_2020_2020_2020;

/// Never a keyword.
pub const NO_KEY: Key = 0;

/// The key of a keyword in this source.
pub const fn key_of(word: &str) -> Key {
    let word = word.as_bytes();
    if word.len() == LONG.len() {
        return Key::MAX;
    }
    assert!(word.len() <= 16, "a keyword is at most 16 bytes long, or the one long one");
    let mut key = 0;
    let mut at = 0;
    while at < word.len() {
        key |= ((word[at] | 0x20) as u128) << (8 * at);
        at += 1;
    }
    key
}

/// The key of the word `bytes[start..end]`.
#[inline(always)]
pub fn key_at(bytes: &[u8], start: usize, end: usize) -> Key {
    let length = end - start;
    if length > 16 || length == 0 {
        return long_key(&bytes[start..end]);
    }
    let unused_bits = 8 * (16 - length);
    match bytes[start..].first_chunk::<16>() {
        Some(chunk) => (u128::from_le_bytes(*chunk) | LOWER) << unused_bits >> unused_bits,
        None => short_key(&bytes[start..end]),
    }
}

#[cold]
fn long_key(word: &[u8]) -> Key {
    if word.eq_ignore_ascii_case(LONG) { Key::MAX } else { NO_KEY }
}

#[cold]
fn short_key(word: &[u8]) -> Key {
    word.iter().rev().fold(0, |key, byte| key << 8 | Key::from(byte | 0x20))
}

/// Declares an enum of keywords with the name a writer emits, then the synonyms a reader accepts.
#[doc(hidden)]
#[macro_export]
macro_rules! keywords {
    ($(#[$meta:meta])* $enum:ident { $($(#[$doc:meta])* $variant:ident = $name:literal $(| $other:literal)*,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $enum { $($(#[$doc])* $variant,)* }

        impl $enum {
            #[allow(dead_code, reason = "only some enums are named in complaints")]
            #[doc(hidden)]
            pub const ALL_NAMES: &'static str = concat!("one of:" $(, " ", $name)*);

            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The spelling a writer emits.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Reads any accepted spelling, in any case.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::from_key($crate::words::key_at(name.as_bytes(), 0, name.len()))
            }

            #[inline(always)]
            #[doc(hidden)]
            pub fn from_key(key: $crate::words::Key) -> Option<Self> {
                use $crate::words::key_of;
                $(if key == const { key_of($name) } $(|| key == const { key_of($other) })* {
                    return Some(Self::$variant);
                })*
                None
            }

            #[allow(dead_code, reason = "kinds have no use for it in every enum")]
            #[inline(always)]
            #[doc(hidden)]
            pub fn is_synonym(self, key: $crate::words::Key) -> bool {
                key != match self { $(Self::$variant => const { $crate::words::key_of($name) },)* }
            }
        }
    };
}
pub use keywords;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_ignores_case_and_nothing_else() {
        let key = |text: &str| key_at(text.as_bytes(), 0, text.len());
        for word in ["id", "mem-write", "vmalls12e1is", "inner_shareable", "set_pte_thread_owner", "set_owner_root"] {
            assert_eq!(key(word), key_of(word), "{word}");
            assert_eq!(key(&word.to_uppercase()), key_of(word), "{word}");
            assert_ne!(key(&format!("{word}x")), key_of(word));
        }
        assert_eq!(key(""), NO_KEY);
        assert_eq!(key("a_word_that_is_much_too_long"), NO_KEY);
    }

    #[test]
    fn a_key_does_not_depend_on_what_follows_the_word() {
        let text = b"(hint (id 5))";
        assert_eq!(key_at(text, 1, 5), key_of("hint"));
        assert_eq!(key_at(&text[..5], 1, 5), key_of("hint"));
    }

    #[test]
    fn no_word_character_folds_onto_another_kind_of_character() {
        for a in 0x21..0x7f_u8 {
            for b in 0x21..0x7f_u8 {
                let keyword = b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
                if keyword && a | 0x20 == b | 0x20 {
                    assert!(a.eq_ignore_ascii_case(&b), "{a} {b}");
                }
            }
        }
    }
}
