//! The forms in which traces of a format can be written: its own, and the outputs for other programs.

use std::path::Path;

use anytrace_core::{Error, Format, tables};

use crate::tables::TableOutput;
use crate::{accesses, tables as of_tables, timeline};

/// True for a form that the format itself writes.
pub fn is_own(format: &dyn Format, to: &str) -> bool {
    format.targets().iter().any(|(name, _)| *name == to)
}

/// The names of all forms.
pub fn names(format: &dyn Format) -> Vec<&'static str> {
    let mut names: Vec<_> = format.targets().iter().map(|(name, _)| *name).collect();
    if format.has_spans() {
        names.extend(timeline::OUTPUTS.iter().map(|output| output.name));
    }
    if format.has_accesses() {
        names.extend(accesses::OUTPUTS.iter().map(|output| output.name).filter(|name| !is_own(format, name)));
    }
    if !tables::all(format).is_empty() {
        names.extend(of_tables::OUTPUTS.iter().map(|output| output.name));
    }
    names
}

/// Extensions and the names of their forms: `None` is the source's own. What is empty could be of any format.
pub fn extensions(format: Option<&dyn Format>) -> Vec<(&'static str, Option<&'static str>)> {
    let mut forms = Vec::new();
    if let Some(format) = format {
        forms.extend(format.extensions().iter().map(|extension| (*extension, None)));
        let texts = [("jsonl", "jsonl"), ("yaml", "yaml"), ("yml", "yaml")];
        let own = texts.into_iter().filter(|(_, form)| is_own(format, form));
        forms.extend(own.map(|(extension, form)| (extension, Some(form))));
    }
    if format.is_none_or(|format| format.has_spans()) {
        forms.extend(timeline::OUTPUTS.iter().map(|output| (output.extension, Some(output.name))));
    }
    if format.is_none_or(|format| format.has_accesses()) {
        forms.extend(accesses::OUTPUTS.iter().map(|output| (output.extension, Some(output.name))));
    }
    if format.is_none_or(|format| !tables::all(format).is_empty()) {
        let of_output = |output: &'static TableOutput| output.extensions.iter().map(|one| (*one, Some(output.name)));
        forms.extend(of_tables::OUTPUTS.iter().flat_map(of_output));
    }
    forms
}

/// The form whose extension a name (in lower case) has. The longest says most: `x.speedscope.json` is more than JSON. Of
/// equals the first.
pub fn of_extension<'a>(
    name: &str,
    forms: &'a [(&'static str, Option<&'static str>)],
) -> Option<&'a (&'static str, Option<&'static str>)> {
    let mut best: Option<&(&str, Option<&str>)> = None;
    for form in forms.iter().filter(|(extension, _)| name.ends_with(&format!(".{extension}"))) {
        if best.is_none_or(|best| form.0.len() > best.0.len()) {
            best = Some(form);
        }
    }
    best
}

/// The form that a file's name asks for; `None`, the source's own, where it has no extension.
///
/// # Errors
/// [`anytrace_core::Kind::Usage`] for an extension that no form of the format has.
pub fn of_name(format: &dyn Format, path: &Path) -> Result<Option<String>, Error> {
    let Some(name) = path.file_name().filter(|_| path.extension().is_some()) else { return Ok(None) };
    let (name, forms) = (name.to_string_lossy().to_lowercase(), extensions(Some(format)));
    match of_extension(&name, &forms) {
        Some((_, form)) => Ok(form.map(str::to_owned)),
        None => Err(unknown_extension(path, format, &forms)),
    }
}

/// The error for an extension that no form has.
pub fn unknown_extension(path: &Path, format: &dyn Format, forms: &[(&str, Option<&str>)]) -> Error {
    let mut extensions: Vec<_> = forms.iter().map(|(extension, _)| format!(".{extension}")).collect();
    extensions.sort();
    extensions.dedup();
    Error::usage(format!(
        "{}: no form of {} traces has this extension; known extensions: {}; --to accepts {}",
        path.display(),
        format.name(),
        extensions.join(", "),
        names(format).join(", ")
    ))
}
