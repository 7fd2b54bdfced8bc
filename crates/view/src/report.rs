//! A page for a mail: what a trace contains, its timeline, where time goes, what is wrong with it. It needs no server
//! and loads nothing.

mod page;
mod picture;
mod words;

use std::sync::atomic::AtomicBool;

use anytrace_core::{Diagnostic, Error, Info, Sink};
use serde_json::Value;

use crate::answers::{self, Reply, Work};
use crate::gather::gather;
use crate::http::Parameters;
use crate::reading::{open, span_options};
use crate::view::{Found, View};
use crate::{Options, Source};

/// What a report is made of.
pub(crate) struct Contents {
    /// The name of the file.
    pub(crate) title: String,
    /// The format, and what it counts.
    pub(crate) info: Option<(&'static str, Info)>,
    /// `api/trace`.
    pub(crate) trace: Value,
    /// `api/selection` of all.
    pub(crate) selection: Value,
    /// `api/flame` of all.
    pub(crate) flame: Value,
    /// The items of the timeline.
    pub(crate) tiles: Vec<u8>,
    /// The names, by number.
    pub(crate) names: Vec<String>,
    /// Texts of the first diagnostics, and how many there are.
    pub(crate) damage: (Vec<String>, u64),
}

/// Makes the report of the first of these files, as HTML. Diagnostics go to `sink`.
///
/// # Errors
/// Where the file cannot be opened or is no trace, and what the sink returns.
pub fn report(options: Options, sink: &mut dyn Sink) -> Result<String, Error> {
    let view = View::new(options);
    let Some(file) = view.files.first() else { return Err(Error::usage("a report is of a file")) };
    let mut both = Both { found: Found::default(), sink };
    let info = info(&file.current())?;
    if let Some((format, input)) = open(&file.current())? {
        let mut state = file.state();
        (state.format, state.bytes) = (Some(format), input.file_bytes());
        drop(state);
        let spans = if format.has_spans() { span_options(&view, file, format)? } else { Default::default() };
        let shelf = file.shelf();
        gather(format, input, &file.source.open, spans, (&*shelf, &view.names, view.stop_flag()), &mut both)?;
    }
    file.state().is_complete = true;
    let Both { found, .. } = both;
    let texts = found.damage.into_iter().map(|damage| damage.text).collect();
    let contents =
        contents(&view, file.title(), info, (texts, found.count)).map_err(|problem| Error::usage(problem.text))?;
    Ok(page::html(&contents))
}

/// What the trace contains, from a pass of its own; what is wrong with it is reported by the other.
fn info(source: &Source) -> Result<Option<(&'static str, Info)>, Error> {
    // What can be read only once is read for the timeline.
    if source.path.as_os_str() == "-" || !source.path.is_file() {
        return Ok(None);
    }
    let Some((format, input)) = open(source)? else { return Ok(None) };
    let info = format.open(input, &source.open)?.info(&mut Found::default())?;
    Ok(Some((format.title(), info)))
}

fn contents(
    view: &View,
    title: String,
    info: Option<(&'static str, Info)>,
    damage: (Vec<String>, u64),
) -> Result<Contents, answers::Problem> {
    let never = AtomicBool::new(false);
    let work = Work { view, cancelled: &never, offsets: Vec::new() };
    let json = |name: &str, query: &str| -> Result<Value, answers::Problem> {
        match answers::get(&work, name, &Parameters::of(query)?)? {
            Reply::Json(value) => Ok(value),
            _ => Ok(Value::Null),
        }
    };
    let trace = json("trace", "")?;
    let shown = picture::shown_tracks(&trace);
    let range = (trace["range"]["start"].as_f64(), trace["range"]["end"].as_f64());
    let tiles = match range {
        (Some(start), Some(end)) if !shown.is_empty() => {
            let tracks: Vec<String> = shown.iter().map(u64::to_string).collect();
            let query = format!("start={start}&end={end}&px={}&tracks={}", picture::PIXELS, tracks.join(","));
            match answers::get(&work, "tiles", &Parameters::of(&query)?)? {
                Reply::Bytes(_, bytes) => bytes,
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    };
    let names = view.names.texts_from(0).iter().map(|name| (**name).to_owned()).collect();
    Ok(Contents {
        title,
        info,
        selection: json("selection", "")?,
        flame: json("flame", "")?,
        tiles,
        names,
        damage,
        trace,
    })
}

/// Keeps the first diagnostics and passes all on.
struct Both<'a> {
    found: Found,
    sink: &'a mut dyn Sink,
}

impl Sink for Both<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.found.report(diagnostic.clone())?;
        self.sink.report(diagnostic)
    }
}
