//! What a trace's highlights are: the verb `highlights` collects them from the groups of verbs.

use crate::Verdict;

/// One thing worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Highlight {
    /// A sentence.
    pub(crate) text: String,
    /// The command that shows more, without the program's name and the trace: `stats --sort self`.
    pub(crate) command: String,
}

impl Highlight {
    pub(crate) fn new(text: impl Into<String>, command: impl Into<String>) -> Self {
        Self { text: text.into(), command: command.into() }
    }
}

/// The highlights of one trace, the most important first, and whether it is damaged.
pub(crate) type Highlights = (Vec<Highlight>, Verdict);
