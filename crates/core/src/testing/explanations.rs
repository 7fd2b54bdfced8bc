//! What a format explains.

use crate::{Collect, Course, Error, Format, Grid, Input, Lines, OpenOptions};

/// The parts of an explanation.
#[derive(Debug, Default)]
pub struct Explained {
    /// The lines, each with the record that it is about.
    pub lines: Vec<(String, Option<u64>)>,
    /// The tables.
    pub grids: Vec<Grid>,
    /// What things were in the course of the trace.
    pub courses: Vec<Course>,
}

impl Lines for Explained {
    fn line(&mut self, text: &str, record: Option<u64>) -> Result<(), Error> {
        assert!(!text.contains('\n'), "{text}");
        self.lines.push((text.to_owned(), record));
        Ok(())
    }

    fn grid(&mut self, grid: Grid) -> Result<(), Error> {
        self.grids.push(grid);
        Ok(())
    }

    fn courses(&mut self, _: &str, courses: Vec<Course>) -> Result<(), Error> {
        self.courses.extend(courses);
        Ok(())
    }
}

/// An explanation of a trace.
///
/// # Errors
/// As [`Format::explain`].
pub fn explained(format: &dyn Format, bytes: &[u8], explanation: &str, at: Option<u64>) -> Result<Explained, Error> {
    let open = || Ok(Input::from_bytes("trace", bytes.to_vec()));
    let mut found = Explained::default();
    format.explain(explanation, at, &open, &OpenOptions::default(), &mut found, &mut Collect::default())?;
    Ok(found)
}
