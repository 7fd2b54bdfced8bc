//! TSDL as tokens ("TSDL Grammar", section C.1 of the CTF 1.8.3 specification).

use super::Fault;

/// A token, borrowed where it can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Word(&'a str),
    Number(i128),
    Text(String),
    /// Punctuation: a single character, `:=` or `...`.
    Mark(&'static str),
    End,
}

const MARKS: [&str; 19] =
    ["...", ":=", "{", "}", "[", "]", "(", ")", "<", ">", ";", ",", ".", "=", ":", "*", "-", "+", "~"];

pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Where the last token ends.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next token, and where it begins.
    pub(crate) fn next(&mut self) -> Result<(Token<'a>, usize), Fault> {
        self.skip_blank()?;
        let (rest, at) = (self.rest(), self.at);
        let Some(first) = rest.first() else { return Ok((Token::End, at)) };
        if first.is_ascii_alphabetic() || *first == b'_' {
            let length = rest.iter().take_while(|c| c.is_ascii_alphanumeric() || **c == b'_').count();
            self.at += length;
            let word = rest.get(..length).and_then(|word| std::str::from_utf8(word).ok()).unwrap_or_default();
            return Ok((Token::Word(word), at));
        }
        if first.is_ascii_digit() {
            return Ok((Token::Number(self.number()?), at));
        }
        if matches!(first, b'"' | b'\'') {
            return Ok((Token::Text(self.quoted(*first)?), at));
        }
        for mark in MARKS {
            if rest.starts_with(mark.as_bytes()) {
                self.at += mark.len();
                return Ok((Token::Mark(mark), at));
            }
        }
        // Past what is no token, so that reading can go on.
        self.at += 1;
        Err(Fault::new(at, "metadata", "a token", format!("byte {first:#04x}")))
    }

    fn skip_blank(&mut self) -> Result<(), Fault> {
        loop {
            let rest = self.rest();
            let blank = rest.iter().take_while(|c| c.is_ascii_whitespace() || **c == 0).count();
            let (rest, start) = (rest.get(blank..).unwrap_or_default(), self.at + blank);
            self.at = start;
            if rest.starts_with(b"/*") {
                match rest.windows(2).skip(2).position(|two| two == b"*/") {
                    Some(length) => self.at += length + 4,
                    None => {
                        self.at = self.text.len();
                        return Err(Fault::new(start, "comment", "*/", "the end of the metadata"));
                    }
                }
            } else if rest.starts_with(b"//") || rest.starts_with(b"#") {
                self.at += rest.iter().position(|c| *c == b'\n').unwrap_or(rest.len());
            } else {
                return Ok(());
            }
        }
    }

    /// Decimal, hexadecimal, octal or binary, with the suffixes of C.
    fn number(&mut self) -> Result<i128, Fault> {
        let (rest, at) = (self.rest(), self.at);
        let length = rest.iter().take_while(|c| c.is_ascii_alphanumeric()).count();
        self.at += length;
        let word = rest.get(..length).and_then(|word| std::str::from_utf8(word).ok()).unwrap_or_default();
        let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
        let (radix, digits) = match digits.as_bytes() {
            [b'0', b'x' | b'X', ..] => (16, digits.get(2..)),
            [b'0', b'b' | b'B', ..] => (2, digits.get(2..)),
            [b'0', _, ..] => (8, digits.get(1..)),
            _ => (10, Some(digits)),
        };
        // Nothing in TSDL needs more than 64 bits.
        let value = digits.and_then(|digits| u64::from_str_radix(digits, radix).ok());
        value.map(i128::from).ok_or_else(|| Fault::new(at, "number", "an integer of 64 bits", word))
    }

    fn quoted(&mut self, quote: u8) -> Result<String, Fault> {
        let start = self.at;
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let Some(c) = self.text.get(self.at).copied() else {
                return Err(Fault::new(start, "string", "a closing quote", "the end of the metadata"));
            };
            self.at += 1;
            match c {
                c if c == quote => return Ok(String::from_utf8_lossy(&out).into_owned()),
                b'\\' => self.escape(&mut out),
                c => out.push(c),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) {
        let Some(c) = self.text.get(self.at).copied() else { return };
        self.at += 1;
        let digits = |from: usize, radix: u32, most: usize| {
            let digits = self.text.get(from..).unwrap_or_default().iter().take(most);
            let digits: Vec<u32> = digits.map_while(|c| char::from(*c).to_digit(radix)).collect();
            (digits.len(), digits.iter().fold(0, |value, digit| value * radix + digit) as u8)
        };
        match c {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'v' => out.push(11),
            b'x' => {
                let (count, value) = digits(self.at, 16, 2);
                self.at += count;
                out.push(value);
            }
            b'0'..=b'7' => {
                let (count, value) = digits(self.at - 1, 8, 3);
                self.at += count - 1;
                out.push(value);
            }
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut out = Vec::new();
        loop {
            match lexer.next().unwrap().0 {
                Token::End => return out,
                token => out.push(token),
            }
        }
    }

    #[test]
    fn text_becomes_tokens() {
        let found = tokens("a := 0x10u; // c\n/* x */ \"q\\\"\\x41\\101\\n\" 0...031 #p\n.");
        let expected = [
            Token::Word("a"),
            Token::Mark(":="),
            Token::Number(16),
            Token::Mark(";"),
            Token::Text("q\"AA\n".into()),
            Token::Number(0),
            Token::Mark("..."),
            Token::Number(25),
            Token::Mark("."),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_no_token_has_a_place() {
        for (text, at) in [("a @", 2), ("a /* b", 2), ("x = \"y", 4), ("1 99999999999999999999999", 2), ("0x", 0)] {
            let mut lexer = Lexer::new(text.as_bytes());
            let fault = loop {
                match lexer.next() {
                    Ok((Token::End, _)) => panic!("{text}"),
                    Ok(_) => {}
                    Err(fault) => break fault,
                }
            };
            assert_eq!(fault.at, at, "{text}");
        }
    }
}
