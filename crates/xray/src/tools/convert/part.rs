//! Text that is written many times.

/// Parts up to this length are copied at a fixed size, which needs no call: longer ones are rare.
const SHORT: usize = 64;

/// A prepared piece of text.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Short([u8; SHORT], u8),
    Long(Box<[u8]>),
}

impl Part {
    pub(super) fn new(text: &[u8]) -> Self {
        match (text.len(), u8::try_from(text.len())) {
            (..=SHORT, Ok(length)) => {
                let mut bytes = [0; SHORT];
                bytes.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
                Self::Short(bytes, length)
            }
            _ => Self::Long(text.into()),
        }
    }

    /// Appends the text.
    #[inline]
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Short(bytes, length) => {
                let end = out.len() + usize::from(*length);
                out.extend_from_slice(bytes);
                out.truncate(end);
            }
            Self::Long(text) => out.extend_from_slice(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_its_text_whatever_its_length() {
        for length in [0, 1, 63, 64, 65, 300] {
            let text: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let mut out = b"before".to_vec();
            Part::new(&text).put(&mut out);
            assert_eq!(out, [b"before", &text[..]].concat());
        }
    }
}
