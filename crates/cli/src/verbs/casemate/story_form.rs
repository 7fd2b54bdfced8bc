//! The forms of `explain` and `timeline`: text, JSON, and a page with pictures.

use anytrace_casemate::tools::PAGE_STYLE;
use anytrace_core::text::xml;
use clap::ValueEnum;

use crate::failure::Failure;
use crate::page_style::begin;
use crate::terminal;

/// How a story is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum StoryForm {
    /// For people
    Text,
    /// For programs; has a version field
    Json,
    /// A page for a browser or a printer, which loads nothing and has no scripts
    Html,
}

impl StoryForm {
    /// The form, unless the option for a page is given.
    pub(super) fn or_html(self, is_html: bool) -> Self {
        if is_html { Self::Html } else { self }
    }
}

/// Prints a page with these parts.
pub(super) fn page(name: &str, verb: &str, parts: &str) -> Result<(), Failure> {
    let mut out = begin(&format!("{}: {verb}", xml(name)), PAGE_STYLE);
    let version = env!("CARGO_PKG_VERSION");
    out.push_str(parts);
    out.push_str(&format!("<p>Written by anytrace {version}, <code>casemate {verb}</code>.</p>\n</body>\n</html>\n"));
    Ok(terminal::put(&out)?)
}
