//! Tokens: what a sender must know.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use anytrace_core::Error;
use subtle::{Choice, ConstantTimeEq};

/// Shortest token, in bytes: shorter ones could be guessed. And the longest that a collector reads.
const BYTES_MIN: usize = 16;
const BYTES_MAX: usize = 1000;

/// The tokens of a file.
pub(super) struct Tokens {
    path: PathBuf,
    changed: Option<SystemTime>,
    known: Vec<Token>,
    /// Why the file could not be read again.
    fault: Option<String>,
}

struct Token {
    token: Vec<u8>,
    expires: Option<SystemTime>,
}

impl Tokens {
    /// Reads a file.
    pub(super) fn open(path: PathBuf) -> Result<Self, Error> {
        let mut this = Self { path, changed: None, known: Vec::new(), fault: None };
        this.read()?;
        if this.known.is_empty() {
            return Err(Error::usage(format!("{} has no token", this.path.display())));
        }
        Ok(this)
    }

    fn changed(&self) -> Option<SystemTime> {
        fs::metadata(&self.path).and_then(|meta| meta.modified()).ok()
    }

    fn read(&mut self) -> Result<(), Error> {
        let changed = self.changed();
        let text = fs::read_to_string(&self.path).map_err(|error| Error::io(self.path.display(), error))?;
        self.known = parse(&text).map_err(|fault| Error::usage(format!("{}: {fault}", self.path.display())))?;
        self.changed = changed;
        Ok(())
    }

    /// Whether a token is good now. A file that cannot be read again leaves what was known.
    pub(super) fn check(&mut self, token: &[u8]) -> Result<(), String> {
        if self.changed() != self.changed {
            self.fault = self.read().err().map(|error| error.to_string());
        }
        let refused = |why: &str| match &self.fault {
            Some(fault) => Err(format!("{why} (its file cannot be read again: {fault})")),
            None => Err(why.to_owned()),
        };
        if token.is_empty() {
            return refused("it showed no token");
        }
        // All are compared, so that the time says nothing about how much of one was right.
        let now = SystemTime::now();
        let (mut known, mut valid) = (Choice::from(0), Choice::from(0));
        for one in &self.known {
            let is_same = one.token.ct_eq(token);
            known |= is_same;
            valid |= is_same & Choice::from(u8::from(one.expires.is_none_or(|expires| now < expires)));
        }
        match (bool::from(known), bool::from(valid)) {
            (_, true) => Ok(()),
            (true, false) => refused("its token has expired"),
            (false, false) => refused("its token is not known"),
        }
    }
}

fn parse(text: &str) -> Result<Vec<Token>, String> {
    let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| token(line).map_err(|fault| format!("line {number}: {fault}"))).collect()
}

fn token(line: &str) -> Result<Token, String> {
    let mut words = line.split_ascii_whitespace();
    let token = words.next().unwrap_or_default().as_bytes().to_vec();
    if !(BYTES_MIN..=BYTES_MAX).contains(&token.len()) {
        return Err(format!("a token has {BYTES_MIN} to {BYTES_MAX} bytes"));
    }
    let expires = match words.next() {
        None | Some("-") => None,
        Some(time) => {
            let expected = "expected a time such as 2027-01-31T00:00:00Z, or -, after the token";
            // A day alone is its beginning.
            let time = if time.contains('T') { time.to_owned() } else { format!("{time}T00:00:00Z") };
            Some(humantime::parse_rfc3339(&time).map_err(|_| expected)?)
        }
    };
    Ok(Token { token, expires })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_until_it_expires_or_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        fs::write(
            &path,
            "# ours\nabcdefghijklmnop\n\nponmlkjihgfedcba 2001-01-01T00:00:00Z old\nqqqqqqqqqqqqqqqq - x\n",
        )
        .unwrap();
        let mut tokens = Tokens::open(path.clone()).unwrap();
        assert_eq!(tokens.check(b"abcdefghijklmnop"), Ok(()));
        assert_eq!(tokens.check(b"qqqqqqqqqqqqqqqq"), Ok(()));
        let refused = |why: &str| Err(why.to_owned());
        assert_eq!(tokens.check(b"ponmlkjihgfedcba"), refused("its token has expired"));
        for wrong in [&b"abcdefghijklmno"[..], b"abcdefghijklmnopq", b"# ours"] {
            assert_eq!(tokens.check(wrong), refused("its token is not known"));
        }
        assert_eq!(tokens.check(b""), refused("it showed no token"));
        // Replaced while the collector runs.
        fs::write(&path, "ponmlkjihgfedcba 2901-01-01\n").unwrap();
        fs::File::open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(tokens.check(b"abcdefghijklmnop"), refused("its token is not known"));
        assert_eq!(tokens.check(b"ponmlkjihgfedcba"), Ok(()));
        // A bad file changes nothing, and is told.
        fs::write(&path, "short\n").unwrap();
        assert!(tokens.check(b"abcdefghijklmnop").unwrap_err().contains("line 1: a token has 16 to 1000 bytes"));
        assert_eq!(tokens.check(b"ponmlkjihgfedcba"), Ok(()));
    }

    #[test]
    fn a_file_that_makes_no_sense_is_refused() {
        for (text, says) in [
            ("", "has no token"),
            ("# only this", "has no token"),
            ("short", "line 1: a token has 16 to 1000 bytes"),
            (&"x".repeat(1001), "a token has 16 to 1000 bytes"),
            ("\nabcdefghijklmnop tomorrow", "line 2: expected a time"),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            fs::write(file.path(), text).unwrap();
            let error = Tokens::open(file.path().to_owned()).err().unwrap().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(Tokens::open("/nowhere".into()).is_err());
    }
}
