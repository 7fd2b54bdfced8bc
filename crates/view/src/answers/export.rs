//! A window of a trace as a file: in its own format, or for other programs.

mod window;

use std::fs::File as Disk;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;

use anytrace_core::span::TimeUnit;
use anytrace_core::{
    Collect, Diagnostic, Error, Format, Input, Plan, Selection, Sink, Target, TargetOptions, TimeBound,
};
use anytrace_export::cells::Cells;
use anytrace_export::timeline::{self, Outlet, TimelineOutput};

use super::{Problem, Reply, Work};
use crate::http::Parameters;
use crate::pyramid::Window;
use crate::reading::{open, span_options};
use crate::view::File;
use window::Windowed;

/// `api/export`.
pub(super) fn export(work: &Work<'_>, parameters: &Parameters) -> Result<Reply, Problem> {
    let form = parameters.text("form").unwrap_or("native");
    let number = parameters.number::<usize>("file")?.unwrap_or(0);
    let (file, axis) =
        work.view.files.get(number).zip(work.axes().get(number).copied()).ok_or_else(Problem::missing)?;
    let window = super::rows::window(parameters, axis)?;
    if !file.can_be_read_again() {
        return Err(Problem::new(400, "what comes through a pipe cannot be read again for an export"));
    }
    let opened = open(&file.current()).map_err(|error| refused(&error))?;
    let (format, input) = opened.ok_or_else(|| Problem::new(400, "the file is empty"))?;
    let disk = tempfile::tempfile()?;
    let is_own = matches!(form, "native" | "trim");
    let (disk, extension) = if is_own {
        (native(work, file, (format, input), window, disk)?, extension_of(file, format))
    } else {
        let output = timeline::by_name(form).filter(|output| output.folder.is_none());
        let output = output.ok_or_else(|| Problem::new(400, format!("form: {form} is unknown")))?;
        if !format.has_spans() {
            return Err(Problem::new(400, format!("{} traces have no spans: only native works", format.name())));
        }
        (spans(work, file, (format, input), window, (output, disk))?, output.extension.to_owned())
    };
    let title = file.title();
    let stem = title.split('.').next().unwrap_or("trace");
    Ok(Reply::Attachment { kind: "application/octet-stream", name: format!("{stem}-window.{extension}"), file: disk })
}

fn refused(error: &Error) -> Problem {
    Problem::new(400, error.to_string())
}

fn extension_of(file: &File, format: &dyn Format) -> String {
    let own = file.path().extension().map(|extension| extension.to_string_lossy().into_owned());
    own.unwrap_or_else(|| format.extensions().first().copied().unwrap_or("trace").to_owned())
}

/// The spans of a window for another program.
fn spans(
    work: &Work<'_>,
    file: &File,
    (format, input): (&'static dyn Format, Input),
    window: Window,
    (output, disk): (&'static TimelineOutput, Disk),
) -> Result<Disk, Problem> {
    let mut out = BufWriter::new(disk);
    let mut spool = tempfile::tempfile()?;
    let title = file.title();
    let outlet = Outlet { out: &mut out, spool: &mut spool, title: &title, cells: Cells::Guarded, threads: 1 };
    let made = || -> Result<(), Error> {
        let options = span_options(work.view, file, format)?;
        let trace = format.open(input, &file.source.open)?;
        let mut timeline = (output.open)(outlet);
        let mut windowed = Windowed::new(&mut *timeline, window, work);
        trace.spans(&options, &mut windowed, &mut Collect::default())?;
        windowed.finish()?;
        timeline.finish()
    };
    made().map_err(|error| refused(&error))?;
    finished(out)
}

/// The records of a window in the trace's own format.
fn native(
    work: &Work<'_>,
    file: &File,
    (format, input): (&'static dyn Format, Input),
    window: Window,
    disk: Disk,
) -> Result<Disk, Problem> {
    let is_all = window.start == 0 && window.end == u64::MAX;
    let unit = file.shelf().read().unit();
    let selection = match unit {
        TimeUnit::Order => Selection { records: Some(records(window)), ..Selection::default() },
        _ => {
            let bound = |time| if time == u64::MAX { TimeBound::Open } else { TimeBound::Native(time) };
            Selection { time: Some((bound(window.start), bound(window.end))), ..Selection::default() }
        }
    };
    let target = TargetOptions::default();
    let plan = if is_all { Plan::Convert(target) } else { Plan::Trim(selection, target) };
    let mut out = Patched { out: BufWriter::new(disk), position: 0 };
    let trace = format.open(input, &file.source.open).map_err(|error| refused(&error))?;
    let outcome = trace.rewrite(&plan, &mut out, &mut Watch { work }).map_err(|error| refused(&error))?;
    if outcome.records_written == 0 {
        return Err(Problem::new(404, "no records are in this window"));
    }
    finished(out.out)
}

fn records(window: Window) -> Range<u64> {
    window.start..window.end
}

/// The file, at its start.
fn finished(out: BufWriter<Disk>) -> Result<Disk, Problem> {
    let mut disk = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    disk.seek(SeekFrom::Start(0))?;
    Ok(disk)
}

/// Ends a rewriting that nobody waits for; damage is shown with the trace.
struct Watch<'a> {
    work: &'a Work<'a>,
}

impl Sink for Watch<'_> {
    fn report(&mut self, _: Diagnostic) -> Result<(), Error> {
        self.work.check().map_err(|problem| Error::usage(problem.text))
    }
}

/// A temporary file whose earlier bytes can be replaced.
struct Patched {
    out: BufWriter<Disk>,
    position: u64,
}

impl Write for Patched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.position += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Target for Patched {
    fn position(&self) -> u64 {
        self.position
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > self.position) {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        self.out.seek(SeekFrom::Start(offset))?;
        self.out.write_all(bytes)?;
        self.out.seek(SeekFrom::Start(self.position)).map(drop)
    }
}
