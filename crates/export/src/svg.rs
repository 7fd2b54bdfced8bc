//! A flame graph of a trace's self time as SVG: interactive and searchable in a browser.
//!
//! Counted as in [`crate::tally`] and drawn as in [`crate::flame`]; the verb `flame` has more options. Memory grows
//! with distinct stacks and the text of the folded lines.

use anytrace_core::Error;

use crate::flame::{self, SvgOptions};
use crate::tally::{Counted, Tally};
use crate::timeline::output::{Outlet, Timeline};

/// Begins a flame graph; all is written in [`Timeline::finish`].
pub(crate) fn open(outlet: Outlet<'_>) -> impl Timeline + '_ {
    let Outlet { out, title, .. } = outlet;
    let title = title.to_owned();
    Counted::new(move |tally| {
        let lines = lines(tally)?;
        let options = SvgOptions {
            title: title.clone(),
            subtitle: tally.note().unwrap_or_default(),
            unit: tally.unit().to_owned(),
            is_inverted: false,
        };
        flame::svg(&lines, &options, out).map_err(|error| Error::io("writing", error))
    })
}

/// The folded lines that are drawn.
fn lines(tally: &Tally) -> Result<String, Error> {
    let mut lines = String::new();
    let mut has_weight = false;
    tally.each_line(|line| {
        has_weight |= !line.ends_with(b" 0");
        lines.push_str(&String::from_utf8_lossy(line));
        lines.push('\n');
        Ok(())
    })?;
    // For an empty picture: the drawing needs a line with some weight.
    Ok(if has_weight { lines } else { "nothing took any time 1\n".to_owned() })
}
