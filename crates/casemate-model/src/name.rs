//! A word that a reader does not know, kept so that its record is written back.

use core::fmt;

/// The longest word that is kept.
const BYTES_MAX: usize = 23;

/// A name of a register or operation that is not in this crate's tables: lower case, at most 23 characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    length: u8,
    bytes: [u8; BYTES_MAX],
}

impl Name {
    /// A word of letters, digits and `_` that begins with a letter; `None` for other bytes and for longer words.
    pub fn new(word: &[u8]) -> Option<Self> {
        let is_word = word.first().is_some_and(u8::is_ascii_alphabetic)
            && word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let mut bytes = [0; BYTES_MAX];
        let place = bytes.get_mut(..word.len()).filter(|_| is_word)?;
        place.copy_from_slice(word);
        place.make_ascii_lowercase();
        Some(Self { length: u8::try_from(word.len()).ok()?, bytes })
    }

    /// The word, in lower case.
    pub fn as_str(&self) -> &str {
        self.bytes.get(..usize::from(self.length)).and_then(|word| core::str::from_utf8(word).ok()).unwrap_or_default()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_of_at_most_23_characters() {
        let name = |word: &str| Name::new(word.as_bytes()).map(|name| name.to_string());
        assert_eq!(name("S3_4_C2_C6_2").as_deref(), Some("s3_4_c2_c6_2"));
        assert_eq!(name("vmallws2e1isnxs").as_deref(), Some("vmallws2e1isnxs"));
        assert_eq!(name("abcdefghijklmnopqrstuvw").map(|name| name.len()), Some(23));
        for word in ["", "abcdefghijklmnopqrstuvwx", "1a", "a-b", "_a", "ä"] {
            assert_eq!(name(word), None, "{word}");
        }
    }
}
