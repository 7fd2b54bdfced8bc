//! Lines of a tree as JSON or text, and its figures.

use std::io::Write;

use anytrace_core::{Error, text};

use super::line::{About, Line};
use super::tree_options::{TreeForm, TreeOptions, TreeSummary};
use crate::lanes::runtime;
use crate::verbs::attribute_text::push_attributes;
use crate::verbs::select::Filter;

/// Text is written in pieces of this size.
const FLUSH_BYTES: usize = 1 << 16;

/// Deepest indentation drawn; deeper lines state their depth.
const INDENT_MAX: u32 = 60;

/// Prints lines.
pub(super) struct Printer<'a> {
    form: TreeForm,
    with_attributes: bool,
    filter: Filter<'a>,
    out: &'a mut dyn Write,
    bytes: Vec<u8>,
    /// The heading of the lane, until its first line is printed.
    heading: Option<String>,
    printed: u64,
    pub(super) summary: TreeSummary,
}

impl<'a> Printer<'a> {
    pub(super) fn new(options: &TreeOptions, filter: Filter<'a>, out: &'a mut dyn Write) -> Self {
        let (form, with_attributes) = (options.form, options.with_attributes);
        let summary = TreeSummary::default();
        let opening: &[u8] = if form == TreeForm::Json { b"{\"version\":1,\"spans\":[" } else { b"" };
        Self { form, with_attributes, filter, out, bytes: opening.to_vec(), heading: None, printed: 0, summary }
    }

    pub(super) fn wants_attributes(&self) -> bool {
        self.form.wants_attributes()
    }

    /// A lane begins; one that is emitted in pieces may begin again.
    pub(super) fn lane(&mut self, lane: (u32, u64), about: About<'_>) -> Result<(), Error> {
        let (stream, substream) = lane;
        if self.form == TreeForm::Text {
            let facts = about.facts;
            let is_runtime = !facts.workers.is_empty();
            let mut name = format!("stream {stream}");
            let role = runtime::stream_name(stream, facts.workers.contains(&stream), is_runtime);
            if role != name {
                name.push_str(&format!(" ({role})"));
            }
            if substream != 0 {
                name.push_str(&format!(", substream {substream}"));
            }
            self.heading = Some(name);
        }
        Ok(())
    }

    pub(super) fn line(&mut self, line: &Line<'_>) -> Result<(), Error> {
        let summary = &mut self.summary;
        summary.events += 1;
        summary.roots += u64::from(line.parent.is_none());
        summary.max_depth = summary.max_depth.max(line.depth.into());
        summary.partial_overlaps += u64::from(line.overlaps.is_some());
        summary.parents_unknown += u64::from(line.is_parent_unknown);
        let event = line.event;
        let times = event.start..event.end;
        if !self.filter.wants_span(event.seq, event.stream, &times, line.description) {
            return Ok(());
        }
        match self.form {
            TreeForm::Json => self.json(line),
            TreeForm::Text => self.text(line)?,
            TreeForm::SummaryJson | TreeForm::SummaryText => return Ok(()),
        }
        self.printed += 1;
        if self.bytes.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    fn json(&mut self, line: &Line<'_>) {
        let (out, event) = (&mut self.bytes, line.event);
        out.extend_from_slice(if self.printed == 0 { b"\n{\"description\":" } else { b",\n{\"description\":" });
        push_text(out, Some(line.description));
        let numbers = |out: &mut Vec<u8>, rows: &[(&str, u64)]| {
            for (key, number) in rows {
                out.extend_from_slice(key.as_bytes());
                text::push_dec(out, *number);
            }
        };
        numbers(out, &[(",\"start\":", event.start), (",\"end\":", event.wire_end())]);
        out.extend_from_slice(b",\"parent\":");
        push_text(out, line.parent.map(|parent| parent.0));
        out.extend_from_slice(b",\"overlaps\":");
        push_text(out, line.overlaps);
        numbers(
            out,
            &[(",\"seq\":", event.seq), (",\"stream\":", event.stream.into()), (",\"substream\":", event.substream)],
        );
        match line.parent {
            Some((_, seq)) => numbers(out, &[(",\"parent_seq\":", seq)]),
            None => out.extend_from_slice(b",\"parent_seq\":null"),
        }
        if line.is_parent_unknown {
            out.extend_from_slice(b",\"parent_unknown\":true");
        }
        out.push(b'}');
    }

    fn text(&mut self, line: &Line<'_>) -> Result<(), Error> {
        if let Some(heading) = self.heading.take() {
            if self.printed > 0 {
                self.bytes.push(b'\n');
            }
            let under = "          start µs       length µs  span";
            self.bytes.extend_from_slice(format!("{heading}\n{under}\n").as_bytes());
        }
        let (out, event) = (&mut self.bytes, line.event);
        push_us(out, event.start, 18);
        match event.backward {
            0 => push_us(out, event.end - event.start, 16),
            _ => out.extend_from_slice(format!("{:>16}", "backward").as_bytes()),
        }
        let indent = line.depth.min(INDENT_MAX) as usize;
        out.extend_from_slice(format!("  {:indent$}", "", indent = indent * 2).as_bytes());
        if line.depth > INDENT_MAX {
            out.extend_from_slice(format!("({} deep) ", line.depth).as_bytes());
        }
        text::push_escaped(out, line.description);
        if let Some(actor) = line.actor {
            out.extend_from_slice(b" [");
            text::push_escaped(out, actor.name.as_bytes());
            out.extend_from_slice(format!(" {}{}]", actor.id, if actor.is_certain { "" } else { "?" }).as_bytes());
        }
        if let Some(overlaps) = line.overlaps {
            out.extend_from_slice(b" (overlaps ");
            text::push_quoted(out, overlaps);
            out.push(b')');
        }
        if line.is_parent_unknown {
            out.extend_from_slice(b" (parent unknown)");
        }
        if self.with_attributes {
            push_attributes(out, event.attributes(), self.out)?;
        }
        out.push(b'\n');
        Ok(())
    }

    /// Writes the end of the output.
    pub(super) fn finish(mut self) -> Result<TreeSummary, Error> {
        let summary = self.summary;
        let mut figures = format!(
            "{{\"events\":{},\"lanes\":{},\"roots\":{},\"max_depth\":{},\"partial_overlaps\":{}",
            summary.events, summary.lanes, summary.roots, summary.max_depth, summary.partial_overlaps
        );
        if summary.parents_unknown + summary.late > 0 {
            figures.push_str(&format!(",\"parents_unknown\":{},\"late\":{}", summary.parents_unknown, summary.late));
        }
        figures.push('}');
        match self.form {
            TreeForm::Json => self.bytes.extend_from_slice(format!("\n],\"summary\":{figures}}}\n").as_bytes()),
            TreeForm::SummaryJson => {
                self.bytes.extend_from_slice(format!("{{\"version\":1,\"summary\":{figures}}}\n").as_bytes());
            }
            TreeForm::Text => {}
            TreeForm::SummaryText => {
                let rows = [
                    ("events", summary.events),
                    ("lanes", summary.lanes),
                    ("roots", summary.roots),
                    ("max depth", summary.max_depth),
                    ("partial overlaps", summary.partial_overlaps),
                ];
                for (what, number) in rows {
                    self.bytes.extend_from_slice(format!("{what:<18}{number:>12}\n").as_bytes());
                }
            }
        }
        self.flush()?;
        self.out.flush().map_err(|error| Error::io("writing", error))?;
        Ok(summary)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.out.write_all(&self.bytes).map_err(|error| Error::io("writing", error))?;
        self.bytes.clear();
        Ok(())
    }
}

fn push_text(out: &mut Vec<u8>, what: Option<&[u8]>) {
    match what.map(String::from_utf8_lossy) {
        Some(what) => text::push_json_str(out, &what),
        None => out.extend_from_slice(b"null"),
    }
}

/// Nanoseconds as microseconds with three decimals, right-aligned.
fn push_us(out: &mut Vec<u8>, ns: u64, width: usize) {
    out.extend_from_slice(format!("{:>width$}", format!("{}.{:03}", ns / 1000, ns % 1000)).as_bytes());
}
