//! Rewrites a trace: unchanged, repaired, in part, or in another version or container.

use anytrace_core::{DumpForm, DumpOptions, Error, Outcome, Plan, Sink, Target, TargetOptions};

use crate::options::OPTIONS;
use crate::verbs::dump;
use crate::verbs::events::CONDITIONS;
use crate::verbs::rewriter::{Purpose, Rewriter};
use crate::wire::container::Container;
use crate::wire::container_writer::ContainerWriter;
use crate::wire::reader::Reader;
use crate::wire::record::VERSION_MAX;

/// Options of a target that this format has.
pub(crate) const SHARED: [&str; 1] = ["version"];

/// Rewrites a trace according to a plan.
pub(crate) fn rewrite(
    mut reader: Reader,
    plan: &Plan,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let target = plan.target();
    target.only("apitrace", &SHARED, OPTIONS)?;
    let purpose = match plan {
        Plan::Convert(_) => Purpose::Convert,
        Plan::Repair(_) => Purpose::Repair,
        Plan::Trim(selection, _) => {
            selection.only("apitrace", &CONDITIONS, OPTIONS)?;
            Purpose::Trim(selection)
        }
    };
    match target.to.as_deref() {
        None | Some("apitrace") => {}
        Some("jsonl") => return to_jsonl(reader, plan, out, sink),
        Some(other) => return Err(Error::usage(format!("an apitrace trace cannot be written as {other}"))),
    }
    let container = container(target, reader.container())?;
    let target_version = version(target)?;
    let writer = ContainerWriter::<&mut dyn Target>::new(out, container, level(target)?)?;
    let event_bytes_max = usize::try_from(reader.limits.record_bytes_max).unwrap_or(usize::MAX);
    let mut rewriter = Rewriter::new(purpose, writer, target_version, event_bytes_max);
    let totals = reader.read(&mut rewriter, sink)?;
    let is_seekable = match target.own.word("container") {
        Some(_) => container == Container::ZstdSeekable,
        None => reader.stream.is_seekable(),
    };
    rewriter.finish(totals, is_seekable)
}

/// The container to write.
pub(crate) fn container(target: &TargetOptions, default: Container) -> Result<Container, Error> {
    let Some(name) = target.own.word("container") else { return Ok(default) };
    Container::from_name(name).ok_or_else(|| {
        let known: Vec<_> = Container::ALL.iter().map(|(_, name)| *name).collect();
        Error::usage(format!("--container {name}: the containers are {}", known.join(", ")))
    })
}

/// The compression level to write with, if one is given.
pub(crate) fn level(target: &TargetOptions) -> Result<Option<i32>, Error> {
    let number = target.own.number("level");
    number
        .map(|number| i32::try_from(number).map_err(|_| Error::usage(format!("--level {number}: no container has it"))))
        .transpose()
}

fn version(target: &TargetOptions) -> Result<Option<u64>, Error> {
    match target.version {
        Some(version) if u64::from(version) > VERSION_MAX => {
            Err(Error::usage(format!("--version {version}: the versions are 0 to {VERSION_MAX}")))
        }
        version => Ok(version.map(u64::from)),
    }
}

/// The JSON lines that `dump` prints.
fn to_jsonl(reader: Reader, plan: &Plan, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error> {
    let target = plan.target();
    if let Some(name) = [("version", target.version.is_some()), ("container", target.own.flag("container"))]
        .into_iter()
        .find_map(|(name, is_given)| is_given.then_some(name))
    {
        return Err(Error::usage(format!("--{name} does not apply to JSON lines: use it when converting back")));
    }
    if !matches!(plan, Plan::Convert(_)) {
        return Err(Error::usage("repair and trim write traces; convert the result to JSON lines"));
    }
    let options = DumpOptions { form: DumpForm::Jsonl, ..DumpOptions::default() };
    let mut out = out;
    let summary = dump::dump(reader, &options, &mut out, sink)?;
    Ok(Outcome { records_read: summary.records, records_written: summary.records, ..Outcome::default() })
}
