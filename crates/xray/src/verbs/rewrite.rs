//! Convert, repair and trim: chooses the writer for a source, a target and a plan.

use std::collections::BTreeMap;

use anytrace_core::{Cursor, Endian, Error, Limits, Outcome, Plan, Selection, Sink, Target};

use crate::verbs::assemble::{About, Assembler, Shape};
use crate::verbs::basic_rewrite::BasicRewriter;
use crate::verbs::faithful::Faithful;
use crate::verbs::pick::Picker;
use crate::verbs::structured::{Purpose, Structured};
use crate::verbs::yaml_copy::YamlCopier;
use crate::wire::basic::walk_basic;
use crate::wire::fdr::FdrWalk;
use crate::wire::moment::{BasicMoments, FdrMoments};
use crate::wire::open::{Form, Opened, end, read_to_end};
use crate::wire::put::{Out, put_header};
use crate::wire::record::{BASIC_VERSION_MAX, FDR_VERSION_MAX, Header, Orders, TYPE_BASIC, TYPE_FDR};
use crate::wire::yaml::{YamlHeader, YamlMoments, walk_yaml, yaml_header};

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
    /// Earliest time of the trace, where the selection counts from it.
    start: Option<u64>,
    purpose: Purpose,
    limits: Limits,
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
    let (start, Opened { cursor, form, limits }) = opened.find_start(selection, sink)?;
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
    let (version, endian) = (options.version, options.endian);
    let job = RewriteJob { own, to, version, endian, selection, start, purpose, limits };
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
        let note = format!("{} bytes that are not part of a complete record were left out.", outcome.bytes_lost);
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
            _ => Err(Error::usage(format!("--version {asked}: expected 1 to {max}"))),
        }
    }

    fn layout(&self, own: Orders) -> Orders {
        match self.endian {
            Some(endian) if endian != own.endian => Orders::of(endian),
            _ => own,
        }
    }

    fn picker(&self, cycle_frequency: u64, has_buffers: bool) -> Result<Picker<'_>, Error> {
        Picker::new(self.selection, self.start, cycle_frequency, has_buffers)
    }

    /// Starts a trace of the source's own type: writes its header, and returns it with the layout of what follows.
    fn header(&self, header: &Header, from: Orders, out: &mut Out<'_>) -> Result<(Header, Orders), Error> {
        let (version, to) = (self.version(header.version)?, self.layout(from));
        let new = header_for(header, version, from, to);
        put_header(&mut out.buffer, &new, to.endian);
        Ok((new, to))
    }

    /// Starts a form that is made from moments.
    fn shape(&self, out: &mut Out<'_>, about: About, own: Orders, is_same_type: bool) -> Result<Shape, Error> {
        let (newest, type_code) = match self.to {
            TargetForm::Fdr => (FDR_VERSION_MAX, TYPE_FDR),
            TargetForm::Basic => (BASIC_VERSION_MAX, TYPE_BASIC),
            TargetForm::Yaml => (about.version, about.type_code),
        };
        let version = self.version(if is_same_type { about.version } else { newest })?;
        let about = About { version, type_code, ..about };
        let layout = self.layout(own);
        match self.to {
            TargetForm::Yaml if self.endian.is_some() => Err(Error::usage("--to-endian does not apply to YAML")),
            TargetForm::Yaml => Ok(Shape::yaml(out, &about, self.own != TargetForm::Yaml)),
            TargetForm::Basic => Ok(Shape::basic(out, &about, Orders::of(layout.endian))),
            TargetForm::Fdr => Ok(Shape::fdr(out, &about, Orders::of(layout.endian))),
        }
    }
}

/// Converts the flags to another bit order; they keep their meaning, and the other bits keep their positions.
fn header_for(header: &Header, version: u16, from: Orders, to: Orders) -> Header {
    let flags = if from.bits == to.bits { header.flags } else { header.flags.reverse_bits() };
    Header { version, flags, ..*header }
}

fn fdr_to_fdr(
    cursor: Cursor,
    header: &Header,
    from: Orders,
    job: &RewriteJob<'_>,
    out: &mut Out<'_>,
    sink: &mut dyn Sink,
) -> Result<(Outcome, Cursor), Error> {
    let (new, to) = job.header(header, from, out)?;
    let pick = job.picker(header.cycle_frequency, true)?;
    let reader = FdrWalk::new(cursor, *header, from, &job.limits);
    if job.purpose == Purpose::Convert && new.version == header.version {
        let mut writer = Faithful::new(out, sink, from, to, new.version);
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
    from: Orders,
    job: &RewriteJob<'_>,
    out: &mut Out<'_>,
    sink: &mut dyn Sink,
) -> Result<(Outcome, Cursor), Error> {
    let (new, to) = job.header(header, from, out)?;
    let pick = job.picker(header.cycle_frequency, false)?;
    let mut writer = BasicRewriter {
        out,
        sink,
        pick,
        endian: to.endian,
        from_version: header.version,
        version: new.version,
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
    layout: Orders,
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
        FdrWalk::new(cursor, *header, layout, &job.limits).walk(&mut moments)?
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
    let header = yaml_header(&mut cursor, &job.limits)?;
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
    let shape = job.shape(out, about, Orders::default(), is_same_type)?;
    let mut assembler = Assembler::new(out, sink, pick, shape);
    let on_header = |_: &mut Assembler<'_, '_>, _: &YamlHeader| Ok(());
    let (records, cursor) = walk_yaml(cursor, &job.limits, &mut YamlMoments { moments: &mut assembler, on_header })?;
    let outcome = assembler.finish()?;
    Ok((Outcome { records_read: records, ..outcome }, cursor))
}

fn yaml_to_yaml(
    mut cursor: Cursor,
    job: &RewriteJob<'_>,
    out: &mut Out<'_>,
    sink: &mut dyn Sink,
) -> Result<(Outcome, Cursor), Error> {
    if job.endian.is_some() {
        return Err(Error::usage("--to-endian does not apply to YAML"));
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
