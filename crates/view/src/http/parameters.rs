//! The parameters of an address.

use anytrace_core::hash::Map;

use crate::answers::Problem;

/// Most parameters.
const COUNT_MAX: usize = 32;

/// Parameters by name; of several with one name the last counts.
#[derive(Debug, Default)]
pub(crate) struct Parameters(Map<String, String>);

impl Parameters {
    /// Reads the part of an address behind the question mark.
    pub(crate) fn of(query: &str) -> Result<Self, Problem> {
        let mut all = Map::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            all.insert(decoded(name)?, decoded(value)?);
            if all.len() > COUNT_MAX {
                return Err(Problem::new(400, "too many parameters"));
            }
        }
        Ok(Self(all))
    }

    /// One parameter.
    pub(crate) fn one(name: &str, value: &str) -> Self {
        let mut all = Map::default();
        all.insert(name.to_owned(), value.to_owned());
        Self(all)
    }

    /// The value of a parameter.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A number.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Problem> {
        let read = |text: &str| text.parse().map_err(|_| Problem::new(400, format!("{name}: expected a number")));
        self.text(name).filter(|text| !text.is_empty()).map(read).transpose()
    }

    /// A number that must be there.
    pub(crate) fn required<T: std::str::FromStr>(&self, name: &str) -> Result<T, Problem> {
        self.number(name)?.ok_or_else(|| Problem::new(400, format!("{name}: missing")))
    }

    /// Numbers with commas between them; `None` where the parameter is missing or empty.
    pub(crate) fn numbers(&self, name: &str) -> Result<Option<Vec<u64>>, Problem> {
        let Some(text) = self.text(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        let read = |one: &str| one.parse().map_err(|_| Problem::new(400, format!("{name}: expected numbers")));
        text.split(',').map(read).collect::<Result<_, _>>().map(Some)
    }
}

/// A text without percent signs.
fn decoded(text: &str) -> Result<String, Problem> {
    let (mut out, mut bytes) = (Vec::with_capacity(text.len()), text.bytes());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                let (high, low) = (digit(bytes.next()), digit(bytes.next()));
                let value = high.zip(low).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
                value.ok_or_else(|| Problem::new(400, "the address is not encoded as it must be"))?
            }
            byte => byte,
        });
    }
    String::from_utf8(out).map_err(|_| Problem::new(400, "the address is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_once() {
        let all = Parameters::of("a=1%2C2&b=x+y%2525&&c").unwrap();
        assert_eq!((all.text("b"), all.text("c"), all.text("d")), (Some("x y%25"), Some(""), None));
        assert_eq!(all.numbers("a").unwrap(), Some(vec![1, 2]));
        assert_eq!(all.number::<u32>("c").unwrap(), None);
    }

    #[test]
    fn what_is_no_number_or_no_text_is_refused() {
        assert!(
            Parameters::of("a=%zz").is_err() && Parameters::of("a=%f").is_err() && Parameters::of("a=%ff").is_err()
        );
        let all = Parameters::of("a=x").unwrap();
        assert!(all.number::<u64>("a").is_err() && all.numbers("a").is_err() && all.required::<u64>("b").is_err());
        let many: String = (0..40).map(|n| format!("p{n}=1&")).collect();
        assert!(Parameters::of(&many).is_err());
    }
}
