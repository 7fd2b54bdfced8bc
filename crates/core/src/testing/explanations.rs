//! What a format explains.

use crate::{Collect, Error, Format, Input, Lines, OpenOptions};

struct Found(Vec<(String, Option<u64>)>);

impl Lines for Found {
    fn line(&mut self, text: &str, record: Option<u64>) -> Result<(), Error> {
        assert!(!text.contains('\n'), "{text}");
        self.0.push((text.to_owned(), record));
        Ok(())
    }
}

/// The lines of an explanation, each with the record that it is about.
///
/// # Errors
/// As [`Format::explain`].
pub fn explained(
    format: &dyn Format,
    bytes: &[u8],
    explanation: &str,
    at: Option<u64>,
) -> Result<Vec<(String, Option<u64>)>, Error> {
    let open = || Ok(Input::from_bytes("trace", bytes.to_vec()));
    let mut found = Found(Vec::new());
    format.explain(explanation, at, &open, &OpenOptions::default(), &mut found, &mut Collect::default())?;
    Ok(found.0)
}
