//! The form that the name of `convert`'s output asks for, where `--to` does not.

use std::path::Path;

use anytrace_core::Format;
use anytrace_export::{
    accesses::OUTPUTS as ACCESS_OUTPUTS, tables::OUTPUTS as TABLE_OUTPUTS, timeline::OUTPUTS as TIMELINE_OUTPUTS,
};

use super::forms::{form_names, is_own};
use crate::arguments::ConvertArguments;
use crate::extension::name_with_extension;
use crate::failure::Failure;
use crate::open::Opened;
use anytrace_export::tables::TableOutput;

/// Compression that a container of the format's own may have put around it.
const PACKED: [&str; 3] = ["gz", "zst", "br"];

/// What `--to` would have to be; `None` is the source's own form. Names without an extension, standard output and
/// devices ask for nothing.
pub(super) fn form(options: &ConvertArguments, opened: &Opened) -> Result<Option<String>, Failure> {
    if options.to.is_some() {
        return Ok(options.to.clone());
    }
    let path = options.output.output.as_path();
    let Some(name) = name_with_extension(path) else { return Ok(None) };
    let name = match PACKED.iter().find_map(|packed| name.strip_suffix(&format!(".{packed}"))) {
        Some(inner) if options.target.target(None).own.flag("container") => inner.to_owned(),
        _ => name,
    };
    let format = match opened {
        Opened::Trace(format, _) | Opened::Jsonl(format, _) => Some(*format),
        Opened::Empty(_) => None,
    };
    let forms = forms(format);
    let fitting = forms.iter().filter(|(extension, _)| name.ends_with(&format!(".{extension}")));
    // The longest says most: `x.speedscope.json` is more than JSON. Of equals the first.
    let mut best: Option<&(&str, Option<&str>)> = None;
    for form in fitting {
        if best.is_none_or(|best| form.0.len() > best.0.len()) {
            best = Some(form);
        }
    }
    match (best, format) {
        (Some((_, form)), _) => Ok(form.map(str::to_owned)),
        // What is empty has no form yet.
        (None, None) => Ok(None),
        (None, Some(format)) => Err(unknown(path, format, &forms)),
    }
}

/// Extensions and what `--to` calls their forms: `None` is the source's own.
fn forms(format: Option<&'static dyn Format>) -> Vec<(&'static str, Option<&'static str>)> {
    let mut forms = Vec::new();
    if let Some(format) = format {
        forms.extend(format.extensions().iter().map(|extension| (*extension, None)));
        let has = |form: &str| is_own(format, form);
        let texts = [("jsonl", "jsonl"), ("yaml", "yaml"), ("yml", "yaml")];
        forms.extend(texts.into_iter().filter(|(_, form)| has(form)).map(|(extension, form)| (extension, Some(form))));
    }
    if format.is_none_or(|format| format.has_spans()) {
        forms.extend(TIMELINE_OUTPUTS.iter().map(|output| (output.extension, Some(output.name))));
    }
    if format.is_none_or(|format| format.has_accesses()) {
        forms.extend(ACCESS_OUTPUTS.iter().map(|output| (output.extension, Some(output.name))));
    }
    if format.is_none_or(|format| !anytrace_core::tables::all(format).is_empty()) {
        let of_output = |output: &'static TableOutput| output.extensions.iter().map(|one| (*one, Some(output.name)));
        forms.extend(TABLE_OUTPUTS.iter().flat_map(of_output));
    }
    forms
}

fn unknown(path: &Path, format: &dyn Format, forms: &[(&str, Option<&str>)]) -> Failure {
    let mut extensions: Vec<_> = forms.iter().map(|(extension, _)| format!(".{extension}")).collect();
    extensions.sort();
    extensions.dedup();
    Failure::usage(format!(
        "{}: no form of {} traces has this extension; known extensions: {}; --to accepts {}",
        path.display(),
        format.name(),
        extensions.join(", "),
        form_names(format).join(", ")
    ))
}
