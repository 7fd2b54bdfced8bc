//! Convert, repair and trim: chooses the writer for a source, a target and a plan.

use std::collections::BTreeMap;

use anytrace_core::{Cursor, Diagnostic, Endian, Error, Limits, Outcome, Plan, Selection, Sink, Target};

use crate::assemble::{About, Assembler, Shape};
use crate::basic::walk_basic;
use crate::basic_rewrite::BasicRewriter;
use crate::faithful::Faithful;
use crate::moment::{BasicMoments, FdrMoments};
use crate::pick::Picker;
use crate::reader::{At, Reader};
use crate::record::{BASIC_VERSION_MAX, FDR_VERSION_MAX, Header, Layout, TYPE_BASIC, TYPE_FDR};
use crate::structured::{Purpose, Structured};
use crate::trace::{Form, Opened, end};
use crate::writer::{Out, put_header};
use crate::yaml::{YamlEntry, YamlHeader, YamlMoments, YamlVisitor, walk_yaml};
use crate::yaml_copy::YamlCopier;

/// The forms in which a trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetForm {
    Fdr,
    Basic,
    Yaml,
}

/// The job without its source and output.
struct RewriteJob<'p> {
    own: TargetForm,
    to: TargetForm,
    version: Option<u32>,
    endian: Option<Endian>,
    selection: &'p Selection,
    purpose: Purpose,
    limits: Limits,
}

/// Reads to the end of the data.
pub(crate) fn read_to_end(mut cursor: Cursor) -> Result<Cursor, Error> {
    cursor.skip(u64::MAX)?;
    Ok(cursor)
}

pub(crate) fn rewrite(
    opened: Opened,
    plan: &Plan,
    target: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let all = Selection::default();
    let (selection, purpose) = match plan {
        Plan::Convert(_) => (&all, Purpose::Convert),
        Plan::Repair(_) => (&all, Purpose::Repair),
        Plan::Trim(selection, _) => (selection, Purpose::Trim),
    };
    let options = plan.target();
    let Opened { cursor, form, limits } = opened;
    let own = match &form {
        Form::Binary(header, _) if header.type_code == TYPE_BASIC => TargetForm::Basic,
        Form::Yaml => TargetForm::Yaml,
        _ => TargetForm::Fdr,
    };
    let to = match options.to.as_deref() {
        None | Some("xray") => own,
        Some("fdr") => TargetForm::Fdr,
        Some("basic") => TargetForm::Basic,
        Some("yaml") => TargetForm::Yaml,
        Some(other) => return Err(Error::usage(format!("an xray trace cannot be written as {other}"))),
    };
    let job = RewriteJob { own, to, version: options.version, endian: options.endian, selection, purpose, limits };
    let mut out = Out::new(target);
    let (mut outcome, cursor) = match form {
        Form::Empty => (Outcome::default(), cursor),
        Form::Unreadable(_) => {
            let note = "Nothing could be read, so nothing was written.".to_owned();
            let cursor = read_to_end(cursor)?;
            (Outcome { bytes_lost: cursor.offset(), notes: vec![note], ..Outcome::default() }, cursor)
        }
        Form::Yaml if to == TargetForm::Yaml && job.version.is_none() => yaml_to_yaml(cursor, &job, &mut out, sink)?,
        Form::Yaml => yaml_to(cursor, &job, &mut out, sink)?,
        Form::Binary(header, layout) => match (header.type_code, to) {
            (TYPE_FDR, TargetForm::Fdr) => fdr_to_fdr(cursor, &header, layout, &job, &mut out, sink)?,
            (TYPE_BASIC, TargetForm::Basic) => basic_to_basic(cursor, &header, layout, &job, &mut out, sink)?,
            _ => binary_to(cursor, &header, layout, &job, &mut out, sink)?,
        },
    };
    if outcome.bytes_lost > 0 {
        let note = format!("{} bytes that are part of no whole record were left out.", outcome.bytes_lost);
        outcome.notes.insert(0, note);
    }
    end(&cursor, sink)?;
    Ok(outcome)
}

impl RewriteJob<'_> {
    /// The version to write: the requested one, or else the given one.
    fn version(&self, own: u16) -> Result<u16, Error> {
        let max = match self.to {
            TargetForm::Fdr => FDR_VERSION_MAX,
            TargetForm::Basic => BASIC_VERSION_MAX,
            TargetForm::Yaml => u16::MAX,
        };
        let asked = self.version.unwrap_or(u32::from(own));
        match u16::try_from(asked) {
            Ok(version) if (1..=max).contains(&version) || (self.to == TargetForm::Yaml && self.version.is_none()) => {
                Ok(version)
            }
            _ => Err(Error::usage(format!("--version {asked}: there are versions 1 to {max}"))),
        }
    }

    fn layout(&self, own: Layout) -> Layout {
        match self.endian {
            Some(endian) if endian != own.endian => Layout::of(endian),
            _ => own,
        }
    }

    fn picker(&self, cycle_frequency: u64, has_buffers: bool) -> Result<Picker<'_>, Error> {
        Picker::new(self.selection, cycle_frequency, has_buffers)
    }

    /// Starts a form that is made from moments.
    fn shape(&self, out: &mut Out<'_>, about: About, own: Layout, is_same_type: bool) -> Result<Shape, Error> {
        let (newest, type_code) = match self.to {
            TargetForm::Fdr => (FDR_VERSION_MAX, TYPE_FDR),
            TargetForm::Basic => (BASIC_VERSION_MAX, TYPE_BASIC),
            TargetForm::Yaml => (about.version, about.type_code),
        };
        let version = self.version(if is_same_type { about.version } else { newest })?;
        let about = About { version, type_code, ..about };
        let layout = self.layout(own);
        match self.to {
            TargetForm::Yaml if self.endian.is_some() => Err(Error::usage("--to-endian means nothing for YAML")),
            TargetForm::Yaml => Ok(Shape::yaml(out, &about, self.own != TargetForm::Yaml)),
            TargetForm::Basic => Ok(Shape::basic(out, &about, Layout::of(layout.endian))),
            TargetForm::Fdr => Ok(Shape::fdr(out, &about, Layout::of(layout.endian))),
        }
    }
}

/// Converts the flags to another bit order; they keep their meaning, and the other bits keep their positions.
fn header_for(header: &Header, version: u16, from: Layout, to: Layout) -> Header {
    let flags = if from.bits == to.bits { header.flags } else { header.flags.reverse_bits() };
    Header { version, flags, ..*header }
}

fn fdr_to_fdr(
    cursor: Cursor,
    header: &Header,
    from: Layout,
    job: &RewriteJob<'_>,
    out: &mut Out<'_>,
    sink: &mut dyn Sink,
) -> Result<(Outcome, Cursor), Error> {
    let (version, to) = (job.version(header.version)?, job.layout(from));
    let new = header_for(header, version, from, to);
    let pick = job.picker(header.cycle_frequency, true)?;
    put_header(&mut out.buffer, &new, to.endian);
    let reader = Reader::new(cursor, *header, from, &job.limits);
    if job.purpose == Purpose::Convert && version == header.version {
        let mut writer = Faithful::new(out, sink, from, to, version);
        let (_, cursor) = reader.walk(&mut writer)?;
        return Ok((writer.finish()?, cursor));
    }
    let mut writer = Structured::new(out, sink, pick, job.purpose, header.version, &new, to);
    let (_, cursor) = reader.walk(&mut writer)?;
    Ok((writer.finish()?, cursor))
}

fn basic_to_basic(
    cursor: Cursor,
    header: &Header,
    from: Layout,
    job: &RewriteJob<'_>,
    out: &mut Out<'_>,
    sink: &mut dyn Sink,
) -> Result<(Outcome, Cursor), Error> {
    let (version, to) = (job.version(header.version)?, job.layout(from));
    let pick = job.picker(header.cycle_frequency, false)?;
    put_header(&mut out.buffer, &header_for(header, version, from, to), to.endian);
    let mut writer = BasicRewriter {
        out,
        sink,
        pick,
        endian: to.endian,
        from_version: header.version,
        version,
        is_repair: job.purpose == Purpose::Repair,
        last: None,
        is_owner_wanted: false,
        outcome: Outcome::default(),
        notes: BTreeMap::new(),
    };
    let (_, cursor) = walk_basic(cursor, from, &mut writer)?;
    Ok((writer.finish()?, cursor))
}

fn binary_to(
    cursor: Cursor,
    header: &Header,
    layout: Layout,
    job: &RewriteJob<'_>,
    out: &mut Out<'_>,
    sink: &mut dyn Sink,
) -> Result<(Outcome, Cursor), Error> {
    let about = About {
        version: header.version,
        type_code: header.type_code,
        constant_tsc: header.constant_tsc(layout),
        nonstop_tsc: header.nonstop_tsc(layout),
        cycle_frequency: header.cycle_frequency,
    };
    let pick = job.picker(header.cycle_frequency, header.type_code == TYPE_FDR)?;
    let shape = job.shape(out, about, layout, job.to == TargetForm::Yaml)?;
    let mut assembler = Assembler::new(out, sink, pick, shape);
    let (records, cursor) = if header.type_code == TYPE_FDR {
        let mut moments = FdrMoments::new(&mut assembler, header.version);
        Reader::new(cursor, *header, layout, &job.limits).walk(&mut moments)?
    } else {
        let mut moments = BasicMoments::new(&mut assembler, header.version);
        let walked = walk_basic(cursor, layout, &mut moments)?;
        moments.finish()?;
        walked
    };
    let outcome = assembler.finish()?;
    Ok((Outcome { records_read: records, ..outcome }, cursor))
}

/// The frequency in the first lines of a YAML trace.
pub(crate) fn yaml_frequency(head: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(head);
    let value = text.lines().find_map(|line| line.trim().strip_prefix("cycle-frequency:").map(str::trim));
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// Converts entries into another form, or a YAML trace into another version.
fn yaml_to(
    mut cursor: Cursor,
    job: &RewriteJob<'_>,
    out: &mut Out<'_>,
    sink: &mut dyn Sink,
) -> Result<(Outcome, Cursor), Error> {
    cursor.fill(4096)?;
    let window = cursor.window();
    let mut early = HeaderOnly(YamlHeader::default());
    let head = window.get(..4096).unwrap_or(window).to_vec();
    let input = anytrace_core::Input::from_bytes("head", head);
    let _ = walk_yaml(Cursor::new(input), &job.limits, &mut early);
    let header = early.0;
    let about = About {
        version: u16::try_from(header.version).unwrap_or(u16::MAX),
        type_code: u16::try_from(header.type_code).unwrap_or(u16::MAX),
        constant_tsc: header.constant_tsc,
        nonstop_tsc: header.nonstop_tsc,
        cycle_frequency: header.cycle_frequency,
    };
    let is_same_type = match job.to {
        TargetForm::Yaml => true,
        TargetForm::Fdr => about.type_code == TYPE_FDR && (1..=FDR_VERSION_MAX).contains(&about.version),
        TargetForm::Basic => about.type_code == TYPE_BASIC && (1..=BASIC_VERSION_MAX).contains(&about.version),
    };
    let pick = job.picker(header.cycle_frequency, false)?;
    let shape = job.shape(out, about, Layout::default(), is_same_type)?;
    let mut assembler = Assembler::new(out, sink, pick, shape);
    let on_header = |_: &mut Assembler<'_, '_>, _: &YamlHeader| Ok(());
    let (records, cursor) = walk_yaml(cursor, &job.limits, &mut YamlMoments { moments: &mut assembler, on_header })?;
    let outcome = assembler.finish()?;
    Ok((Outcome { records_read: records, ..outcome }, cursor))
}

/// Takes the header and stops.
struct HeaderOnly(YamlHeader);

impl YamlVisitor for HeaderOnly {
    fn header(&mut self, header: &YamlHeader) -> Result<(), Error> {
        self.0 = *header;
        Err(Error::limit("the header is enough"))
    }

    fn entry(&mut self, _entry: &YamlEntry, _at: At, _line: u64) -> Result<(), Error> {
        Ok(())
    }

    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

fn yaml_to_yaml(
    mut cursor: Cursor,
    job: &RewriteJob<'_>,
    out: &mut Out<'_>,
    sink: &mut dyn Sink,
) -> Result<(Outcome, Cursor), Error> {
    if job.endian.is_some() {
        return Err(Error::usage("--to-endian means nothing for YAML"));
    }
    cursor.fill(4096)?;
    let window = cursor.window();
    let frequency = yaml_frequency(window.get(..4096).unwrap_or(window));
    let pick = job.picker(frequency, false)?;
    let mut copier = YamlCopier::new(out, sink, pick);
    let (records, cursor) = walk_yaml(cursor, &job.limits, &mut copier)?;
    copier.finish()?;
    let outcome = Outcome { records_read: records, ..copier.outcome };
    Ok((outcome, cursor))
}
