//! The form that the name of `convert`'s output asks for, where `--to` does not.

use anytrace_core::Format;
use anytrace_export::forms::{extensions, of_extension, unknown_extension};
use anytrace_export::timeline::TimelineOutput;
use anytrace_export::{accesses, timeline};

use crate::arguments::ConvertArguments;
use crate::extension::{name_with_extension, timeline_of};
use crate::failure::Failure;
use crate::open::Opened;
use crate::output::is_packed;

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
    let forms = extensions(format.map(|format| format as &dyn Format));
    let packed: Vec<_> = forms.iter().copied().filter(|(_, form)| form.is_some_and(may_be_packed)).collect();
    let inner = name.strip_suffix(".gz").filter(|_| is_packed(path));
    let best = of_extension(&name, &forms).or_else(|| of_extension(inner?, &packed));
    match (best, format) {
        (Some((_, form)), _) => Ok(form.map(str::to_owned)),
        // What is empty has no form yet.
        (None, None) => Ok(None),
        (None, Some(format)) => Err(Failure::bare(&unknown_extension(path, format, &forms))),
    }
}

/// The timeline output that is asked for, where that is a folder: known before the input is.
pub(super) fn folder(options: &ConvertArguments) -> Option<&'static TimelineOutput> {
    let output = match &options.to {
        Some(to) => timeline::by_name(to),
        None => timeline_of(&options.output.output),
    };
    output.filter(|output| output.folder.is_some())
}

/// True for a form that is for other programs and written once and for all: most of them read gzip.
fn may_be_packed(form: &str) -> bool {
    timeline::by_name(form).is_some() || accesses::by_name(form).is_some()
}
