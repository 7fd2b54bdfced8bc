//! `--type-of SITE=TYPE[N]`, and files of such lines.

use std::path::Path;

use anytrace_analysis::site_name::SiteName;
use anytrace_core::layout::{canonical_name, without_arguments};
use anytrace_core::span::{Location, Mangling};
use anytrace_core::text::printable;
use anytrace_symbols::demangle;

use crate::failure::Failure;

/// Largest file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What the user states of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Stated {
    /// The name of an allocation, its place alone, its function, or `FILE:LINE`.
    pub(super) site: String,
    pub(super) type_name: String,
    /// Elements in each block; `None` for as many as fit.
    pub(super) elements: Option<u64>,
}

/// All that the options say.
pub(in super::super) fn read_all(options: &[String]) -> Result<Vec<Stated>, Failure> {
    let mut all = Vec::new();
    for option in options {
        let Some(path) = option.strip_prefix('@') else {
            all.push(parse(option).map_err(|what| Failure::usage(format!("--type-of {}: {what}", printable(option))))?);
            continue;
        };
        let shown = printable(path);
        for (number, line) in (1..).zip(read(Path::new(path), &shown)?.lines()) {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let failed = |what| Failure::usage(format!("{shown}: line {number}: {what}"));
                all.push(parse(line).map_err(failed)?);
            }
        }
    }
    Ok(all)
}

fn read(path: &Path, shown: &str) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::usage(format!("cannot read {shown}: {error}"));
    if std::fs::metadata(path).map_err(failed)?.len() > FILE_BYTES_MAX {
        return Err(Failure::usage(format!("{shown}: expected at most {FILE_BYTES_MAX} bytes")));
    }
    std::fs::read_to_string(path).map_err(failed)
}

/// Reads `SITE=TYPE` or `SITE=TYPE[N]`.
fn parse(text: &str) -> Result<Stated, String> {
    const EXPECTED: &str = "expected SITE=TYPE or SITE=TYPE[N]";
    // Names of operators have the sign, types have not.
    let (site, named) = text.rsplit_once('=').ok_or(EXPECTED)?;
    let (site, named) = (site.trim(), named.trim());
    let (type_name, elements) = match named.strip_suffix(']').and_then(|inner| inner.rsplit_once('[')) {
        Some((name, count)) => {
            let count = count.trim().parse().ok().filter(|count: &u64| *count > 0);
            let count = count.ok_or_else(|| format!("{EXPECTED}, N a number of elements from 1"))?;
            (name.trim(), Some(count))
        }
        None => (named, None),
    };
    if site.is_empty() || type_name.is_empty() {
        return Err(EXPECTED.to_owned());
    }
    Ok(Stated { site: site.to_owned(), type_name: type_name.to_owned(), elements })
}

impl Stated {
    /// The line where `FILE:LINE` names the site.
    pub(super) fn line(&self) -> Option<(&str, u32)> {
        let (file, line) = self.site.rsplit_once(':')?;
        let line = line.parse().ok()?;
        (!file.is_empty() && !file.ends_with(':')).then_some((file, line))
    }

    /// True for the name of an allocation whose places are in `lines`.
    pub(super) fn is_of(&self, name: &str, lines: &[Location]) -> bool {
        if self.site == name {
            return true;
        }
        if let Some((file, line)) = self.line() {
            return lines.iter().any(|place| place.line == line && is_file(&place.file, file));
        }
        let Some(site) = SiteName::of(name.as_bytes()) else { return false };
        if site.places == self.site.as_bytes() {
            return true;
        }
        site.each().into_iter().any(|(function, at)| {
            let function = String::from_utf8_lossy(function);
            let function = canonical_name(&demangle(&function, Mangling::Demangled));
            let wanted = canonical_name(&self.site);
            wanted == function || wanted == format!("{function}+{at:#x}") || wanted == bare_function(&function)
        })
    }
}

/// `ns::f` for `ns::f<int>(long)`.
fn bare_function(function: &str) -> String {
    let plain = without_arguments(function);
    let plain = plain.as_deref().unwrap_or(function);
    let end = plain.find('(').filter(|at| *at > 0).unwrap_or(plain.len());
    plain.get(..end).unwrap_or_default().to_owned()
}

/// True for a path, or the end of it from a folder on.
fn is_file(path: &str, wanted: &str) -> bool {
    path.strip_suffix(wanted)
        .is_some_and(|before| before.is_empty() || before.ends_with('/') || wanted.starts_with('/'))
}

#[cfg(test)]
pub(super) fn parsed(text: &str) -> Result<Stated, String> {
    parse(text)
}
