//! What is printed while it runs, each piece at once.

use std::io::Write;

use anytrace_casemate::tools::{Found, Report, render};
use anytrace_core::Error;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::{paint, terminal};

/// Prints text as `casemate check` does, or lines of JSON.
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) is_json: bool,
}

impl Shown {
    /// A violation.
    pub(super) fn found(&self, found: &Found) -> Result<(), Error> {
        let printed = match self.is_json {
            true => line("violation", render::violation_json(found)),
            false => {
                let mut text = String::new();
                // Writing to a String cannot fail.
                let _ = render::found_text(&self.name, found, &mut text);
                terminal::put(&text)
            }
        };
        printed.map_err(|error| Error::io("cannot write", error))
    }

    /// Something that happened to the source: a note on standard error, or a line of JSON.
    pub(super) fn event(&self, kind: &str, message: &str, address: Option<&str>) -> Result<(), Failure> {
        if self.is_json {
            return Ok(line(kind, json!({ "message": message, "address": address }))?);
        }
        paint::complain("note", anytrace_core::text::printable(message));
        Ok(())
    }

    /// The totals.
    pub(super) fn end(&self, report: &Report) -> Result<(), Failure> {
        if self.is_json {
            let mut object = render::report_json(report);
            if let Some(object) = object.as_object_mut() {
                object.remove("violations");
            }
            return Ok(line("summary", object)?);
        }
        let mut text = String::new();
        let _ = render::report_text(report, &mut text);
        Ok(terminal::put(&text)?)
    }
}

/// Prints an object on one line, with what it is.
fn line(kind: &str, mut object: Value) -> std::io::Result<()> {
    object["type"] = kind.into();
    object["version"] = render::VERSION.into();
    let mut out = terminal::stdout().json(true);
    writeln!(out, "{object}")?;
    out.flush()
}
