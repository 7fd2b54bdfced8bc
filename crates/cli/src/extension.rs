//! The form that the name of an output asks for, where no option does.

use std::path::Path;

use anytrace_export::forms::of_extension;
use anytrace_export::timeline::{OUTPUTS, TimelineOutput, by_name};

use crate::failure::Failure;
use crate::output::is_packed;

/// The file's name in lower case, where it has an extension and is to be a regular file: names without one, standard
/// output and devices ask for nothing.
pub(crate) fn name_with_extension(path: &Path) -> Option<String> {
    path.extension()?;
    let is_device = std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
    if is_device { None } else { Some(path.file_name()?.to_string_lossy().to_lowercase()) }
}

/// The form whose extension a name has; `None` where it asks for nothing. `option` chooses one whatever the name is;
/// empty where there is nothing to choose.
pub(crate) fn form_of<T: Copy>(path: &Path, forms: &[(&str, T)], option: &str) -> Result<Option<T>, Failure> {
    let Some(name) = name_with_extension(path) else { return Ok(None) };
    if let Some((_, form)) = forms.iter().find(|(extension, _)| name.ends_with(&format!(".{extension}"))) {
        return Ok(Some(*form));
    }
    let extensions: Vec<_> = forms.iter().map(|(extension, _)| *extension).collect();
    let help = if option.is_empty() { String::new() } else { format!("; {option} takes {}", extensions.join(", ")) };
    Err(Failure::usage(format!(
        "{}: no form has this extension; those are .{}{help}",
        path.display(),
        extensions.join(", .")
    )))
}

/// The timeline whose extension a file has, compressed or not.
pub(crate) fn timeline_of(path: &Path) -> Option<&'static TimelineOutput> {
    let name = name_with_extension(path)?;
    let inner = name.strip_suffix(".gz").filter(|_| is_packed(path));
    let forms: Vec<_> = OUTPUTS.iter().map(|output| (output.extension, Some(output.name))).collect();
    let (_, form) = of_extension(&name, &forms).or_else(|| of_extension(inner?, &forms))?;
    by_name((*form)?)
}

/// Refuses a name whose extension says that a picture is anything but SVG.
pub(crate) fn must_be_svg(path: &Path) -> Result<(), Failure> {
    form_of(path, &[("svg", ())], "").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_one_of_the_forms_or_refused() {
        let form = |name: &str| form_of(Path::new(name), &[("folded", 1), ("svg", 2)], "--format");
        assert_eq!((form("a.SVG").ok(), form("a.b.folded").ok()), (Some(Some(2)), Some(Some(1))));
        assert_eq!((form("a").ok(), form("-").ok(), form("/dev/null").ok()), (Some(None), Some(None), Some(None)));
        assert!(form("a.pdf").is_err() && form("a.svg.gz").is_err());
        assert!(must_be_svg(Path::new("a.png")).is_err() && must_be_svg(Path::new("svg")).is_ok());
    }

    #[test]
    fn the_longest_extension_is_the_timeline() {
        let name = |path: &str| timeline_of(Path::new(path)).map(|output| output.name);
        assert_eq!((name("a.json"), name("a.speedscope.json")), (Some("chrome"), Some("speedscope")));
        assert_eq!((name("a.pftrace.gz"), name("A.PFTRACE")), (Some("perfetto"), Some("perfetto")));
        assert_eq!((name("a.xray"), name("a"), name("-")), (None, None, None));
    }
}
