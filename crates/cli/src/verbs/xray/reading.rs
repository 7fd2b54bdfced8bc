//! What the group's verbs share: opening traces, and reporting what was met in them.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anytrace_core::{Input, InputOptions, Layer, text};
use anytrace_formats::by_name;
use tempfile::NamedTempFile;

use crate::Verdict;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::open::must_be;
use crate::output::{Output, remove_on_signal};
use crate::paint;
use crate::report::{Reporter, Way};
use crate::terminal;

/// An XRay trace to read, and where its damage is reported.
pub(super) struct Opened {
    /// Without bytes where the file has none.
    pub(super) input: Input,
    pub(super) reporter: Reporter,
    pub(super) is_empty: bool,
    /// The bytes say that it is an XRay trace, or the user does.
    pub(super) has_evidence: bool,
    /// Keeps what was spooled until it is read.
    pub(super) spooled: Option<NamedTempFile>,
}

/// Opens a trace for one of the verbs. Only what is clearly another format's is refused: a file whose header is damaged
/// is read as XRay's, so that the damage is reported with its place.
pub(super) fn open(path: &Path, options: &InputArguments) -> Result<Opened, Failure> {
    let name = path.display().to_string();
    let input = Input::open(path, InputOptions { no_map: options.no_mmap }).map_err(|error| Failure::bare(&error))?;
    let has_evidence = must_be(&name, &input, options, "xray")?;
    let mut reporter = Reporter::new(&name, by_name("xray"), Way::Stderr, options.limit);
    let is_empty = input.head().bytes.is_empty();
    if is_empty {
        reporter.take(input.layers().iter().filter_map(Layer::damage).collect())?;
    }
    Ok(Opened { input, reporter, is_empty, has_evidence, spooled: None })
}

/// As [`open()`], with all bytes at hand: a stream, or a compressed file, is put into a temporary file first.
pub(super) fn open_at_hand(path: &Path, options: &InputArguments) -> Result<Opened, Failure> {
    let mut opened = open(path, options)?;
    if opened.is_empty || opened.input.is_file_or_memory() {
        return Ok(opened);
    }
    let failed = |error: std::io::Error| Failure::usage(format!("{}: cannot be read: {error}", path.display()));
    let layers = opened.input.layers().to_vec();
    let spool = NamedTempFile::new().map_err(failed)?;
    remove_on_signal(spool.path());
    let mut writer = BufWriter::with_capacity(1 << 18, spool.as_file());
    io::copy(&mut opened.input.into_read(), &mut writer).map_err(failed)?;
    writer.flush().map_err(failed)?;
    drop(writer);
    opened.reporter.take(layers.iter().filter_map(Layer::damage).collect())?;
    opened.input = Input::open(spool.path(), InputOptions::default()).map_err(|error| Failure::bare(&error))?;
    opened.spooled = Some(spool);
    Ok(opened)
}

/// The verdict on what was read into an output. Of bytes in which nothing is an XRay trace there is no result that a file
/// could be replaced by.
pub(super) fn judge(reporter: &Reporter, has_evidence: bool, output: &Path) -> Verdict {
    let verdict = reporter.verdict();
    if has_evidence || verdict == Verdict::Fine || output.as_os_str() == "-" {
        return verdict;
    }
    paint::complain("error", "nothing could be read; nothing was written");
    Verdict::NoResult
}

/// Reports on standard error what was met in a file and handled.
pub(super) fn say(file: &str, lines: &[String]) {
    for line in lines {
        paint::complain("note", format!("{}: {line}", text::printable(file)));
    }
}

/// The file a result goes to; `None` is standard output. Whether it can be written is checked here, before the trace is
/// read, which may take long.
pub(super) fn destination(path: &Path, force: bool) -> Result<Option<Output>, Failure> {
    if path.as_os_str() == "-" { Ok(None) } else { Output::create(path, force).map(Some) }
}

/// Writes a result to standard output, or to a file that is written completely or not at all.
pub(super) fn put_out(
    destination: Option<Output>,
    is_json: bool,
    verdict: Verdict,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Verdict, Failure> {
    let Some(mut output) = destination else {
        write(&mut terminal::stdout().json(is_json))?;
        return Ok(verdict);
    };
    write(&mut output)?;
    output.commit(verdict)
}
