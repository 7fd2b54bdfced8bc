//! The exact output of all verbs that read, for a sample, as one text.

use std::fmt::Write as _;
use std::path::Path;

use super::examine;
use super::public::Sample;
use crate::span::{EdgeBatch, Location, NameId, SpanSource, Track, TrackId};
use crate::{Collect, Diagnostic, Error, Format, Input, OpenOptions, SpanOptions, SpanSink};

/// Most lines of `dump`, and most edges.
const LINES_MAX: usize = 60;

/// What `info`, `check`, `dump` and spans say of a sample.
///
/// # Panics
/// When a verb fails outright.
fn golden(format: &dyn Format, bytes: &[u8]) -> String {
    let exam = examine(format, bytes);
    let info = &exam.info.0;
    let mut text = format!("# info\n{} bytes, {} records\n", info.bytes, info.records);
    let mut line = |key: &str, value: String| text.push_str(&format!("{key} {value}\n"));
    info.kinds.iter().for_each(|(kind, count)| line("kind", format!("{kind} {count}")));
    info.threads.iter().for_each(|(thread, count)| line("thread", format!("{thread} {count}")));
    info.details.iter().for_each(|(key, value)| line(key, value.to_string()));
    if let Some(time) = &info.time {
        line("time", format!("{} to {} {}", time.start, time.end, time.unit));
    }
    text + &reports(format, &exam.info.1)
        + "# check\n"
        + &reports(format, &exam.check)
        + "# dump\n"
        + &head(&String::from_utf8_lossy(&exam.text))
        + "# spans\n"
        + &spans(format, bytes)
}

/// Compares every sample in these folders of a crate's `corpus` with its file in `tests/goldens`, and every message
/// about those in `bad` with `bad.txt`: place, field, what was expected and found, where reading goes on.
///
/// # Panics
/// When one differs, or a golden has no sample.
pub fn assert_goldens(format: &dyn Format, root: &Path, folders: &[&str], extension: &str) {
    let (corpus, goldens) = (root.join("corpus"), root.join("tests/goldens"));
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut names = vec!["bad".to_owned()];
    for sample in Sample::all(&corpus, folders, &[extension]) {
        let name = stem(&sample.path);
        assert_golden(&goldens.join(format!("{name}.txt")), &golden(format, &sample.bytes));
        assert!(!names.contains(&name), "{name} is the name of two samples");
        names.push(name);
    }
    let mut text = String::new();
    for sample in Sample::all(&corpus, &["bad"], &[extension]) {
        let exam = examine(format, &sample.bytes);
        let name = stem(&sample.path);
        text.push_str(&format!("# {name}\n{} records\n{}", exam.info.0.records, reports(format, &exam.check)));
    }
    assert_golden(&goldens.join("bad.txt"), &text);
    let entries = std::fs::read_dir(&goldens).unwrap_or_else(|error| panic!("{error}")).flatten();
    let left = entries.map(|entry| stem(&entry.path())).find(|name| !names.contains(name));
    assert!(left.is_none() && names.len() > 5, "no sample: {left:?}; {} samples", names.len());
}

/// Diagnostics as they are printed.
fn reports(format: &dyn Format, diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        diagnostic.render(format.noun(), &mut text).unwrap_or_else(|error| panic!("{error}"));
        text.push('\n');
    }
    text
}

fn head(text: &str) -> String {
    let mut lines: String = text.lines().take(LINES_MAX).map(|line| format!("{line}\n")).collect();
    let more = text.lines().count().saturating_sub(LINES_MAX);
    if more > 0 {
        lines.push_str(&format!("and {more} more\n"));
    }
    lines
}

fn spans(format: &dyn Format, bytes: &[u8]) -> String {
    let (mut lines, mut sink) = (Lines::default(), Collect::default());
    let trace = format.open(Input::from_bytes("sample", bytes.to_vec()), &OpenOptions::default());
    let trace = trace.unwrap_or_else(|error| panic!("open: {error}"));
    trace.spans(&SpanOptions::default(), &mut lines, &mut sink).unwrap_or_else(|error| panic!("spans: {error}"));
    lines.about + &head(&lines.edges) + &reports(format, &sink.0)
}

#[derive(Default)]
struct Lines {
    about: String,
    edges: String,
    names: Vec<String>,
}

impl SpanSink for Lines {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        let SpanSource { unit, origin, epoch_ns, .. } = source;
        self.about.push_str(&format!("{unit:?}, origin {origin}, epoch {epoch_ns:?}\n"));
        Ok(())
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        let Track { process, thread, lane, name, process_name, is_task } = track;
        let kind = if *is_task { "task" } else { "thread" };
        let (name, process_name) = (name.as_deref().unwrap_or("-"), process_name.as_deref().unwrap_or("-"));
        self.about.push_str(&format!("track {id}: {kind} {process} {process_name}, {thread} {name}, lane {lane}\n"));
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        let place = location.map_or_else(String::new, |place| format!(" at {}:{}", place.file, place.line));
        self.names.push(String::from_utf8_lossy(name).into_owned() + &place);
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        let unknown = "?".to_owned();
        for edge in batch.edges() {
            let name = self.names.get(edge.name as usize).unwrap_or(&unknown);
            let (track, time, kind, seq) = (edge.track, edge.time, edge.kind, edge.seq);
            let _ = write!(self.edges, "{track} {time} {kind:?} {name} #{seq}");
            for word in edge.flags.words() {
                let _ = write!(self.edges, " {word}");
            }
            for (key, value) in batch.attributes(edge) {
                let key = self.names.get(key as usize).unwrap_or(&unknown);
                let _ = match value {
                    crate::span::Value::Text(text) => write!(self.edges, " {key}={:?}", String::from_utf8_lossy(text)),
                    crate::span::Value::Array(items) => {
                        write!(self.edges, " {key}={:?}", items.collect::<Vec<_>>())
                    }
                    value => write!(self.edges, " {key}={value:?}"),
                };
            }
            self.edges.push('\n');
        }
        Ok(())
    }
}

/// Compares a text with a file; `UPDATE_GOLDENS=1` rewrites it.
///
/// # Panics
/// When they differ.
fn assert_golden(path: &Path, text: &str) {
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap_or_else(|error| panic!("{error}"));
        std::fs::write(path, text).unwrap_or_else(|error| panic!("{error}"));
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    let differs = golden.lines().zip(text.lines()).enumerate().find(|(_, (old, new))| old != new);
    let path = path.display();
    assert!(golden == text, "{path} differs; run with UPDATE_GOLDENS=1 and read the change: {differs:?}");
}
