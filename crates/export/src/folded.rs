//! Folded stacks: one line per stack, its names separated by `;` and its self time, as `flamegraph.pl` reads them.
//!
//! Counted as in [`crate::tally`].

use std::io::Write;

use crate::pen::Pen;
use crate::tally::Counted;
use crate::timeline::output::Timeline;

/// Begins folded stacks; all is written in [`Timeline::finish`].
pub(crate) fn open<'a>(out: &'a mut (dyn Write + Send)) -> impl Timeline + 'a {
    let mut pen = Pen::new(out);
    Counted::new(move |tally| {
        tally.each_line(|line| {
            pen.bytes.extend_from_slice(line);
            pen.push("\n");
            pen.rest()
        })?;
        pen.finish()
    })
}
