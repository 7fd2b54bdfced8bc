//! What formats explain in words: pages about a trace, and answers about a slice.

use anytrace_core::index::Open;
use anytrace_core::span::TimeUnit;
use anytrace_core::{Course, Error, Explanation, Format, Grid, Input, Lines, Spot, Subject};
use serde_json::{Value, json};

use super::page::{Page, text};
use super::{Problem, Reply, Work, call_pictures};
use crate::http::Parameters;
use crate::view::{File, View};

/// Lines that are shown, and the bytes of all of them.
const LINES_MAX: usize = 20_000;
const BYTES_MAX: usize = 4 << 20;

/// The titles of the pages that explain a trace as a whole.
pub(super) fn titles(view: &View) -> Vec<&'static str> {
    let mut titles = Vec::new();
    for format in view.files.iter().filter_map(|file| file.state().format) {
        for one in format.explanations().iter().filter(|one| one.subject == Subject::Trace) {
            if !titles.contains(&one.title) {
                titles.push(one.title);
            }
        }
    }
    titles
}

/// The page of this title, of one file.
pub(super) fn page(page: &Page<'_>, title: &str) -> Result<Vec<Value>, Error> {
    let Some((format, _)) = crate::reading::open(&page.file.current())? else { return Ok(Vec::new()) };
    let of = format.explanations().iter().find(|one| one.title == title && one.subject == Subject::Trace);
    of.map_or(Ok(Vec::new()), |one| blocks(page, format, one, None))
}

/// What can be asked about a slice that begins at this time of its trace, with these attributes.
pub(super) fn of_slice(view: &View, file: &File, start: u64, name: &str, attributes: Option<&Value>) -> Vec<Value> {
    let Some(format) = file.state().format else { return Vec::new() };
    if !file.can_be_read_again() {
        return Vec::new();
    }
    let is_record = !format.has_spans() && file.shelf().read().unit() == TimeUnit::Order;
    let ask = |one: &Explanation| {
        let at = match one.subject {
            Subject::Trace => None,
            Subject::Record => is_record.then_some(start),
            Subject::Attribute(key) => attributes.and_then(|all| all.get(key)?.as_u64()),
        };
        // As a text: the page's numbers have 53 bits.
        at.map(|at| json!({"name": one.name, "title": one.title, "at": at.to_string()}))
    };
    let asked = format.explanations().iter().filter(|one| format.explains(one.name, name.as_bytes()));
    let mut asked: Vec<Value> = asked.filter_map(ask).collect();
    // Whoever explains the state after a call can be shown what is in it.
    let call = attributes.and_then(|all| all.get("call")?.as_u64()).filter(|_| !asked.is_empty());
    if let Some(call) = call.filter(|_| call_pictures::are_of(view, file)) {
        asked.push(json!({"name": call_pictures::NAME, "title": call_pictures::TITLE, "at": call.to_string()}));
    }
    asked
}

/// `api/explain`: an explanation of a number of a track's trace.
pub(super) fn explain(work: &Work<'_>, parameters: &Parameters) -> Result<Reply, Problem> {
    let (track, at): (u64, u64) = (parameters.required("track")?, parameters.required("at")?);
    let name = parameters.text("name").unwrap_or_default();
    let (number, _) = work.view.track_of(track).ok_or_else(Problem::missing)?;
    let file = work.view.files.get(number).ok_or_else(Problem::missing)?;
    let format = file.state().format.filter(|_| file.can_be_read_again()).ok_or_else(Problem::missing)?;
    if name == call_pictures::NAME && call_pictures::are_of(work.view, file) {
        let blocks = call_pictures::blocks(work, file, at)?;
        return Ok(Reply::Json(json!({"title": call_pictures::TITLE, "blocks": blocks})));
    }
    let one = format.explanations().iter().find(|one| one.name == name && one.subject != Subject::Trace);
    let one = one.ok_or_else(Problem::missing)?;
    let axis = work.axes().get(number).copied().ok_or_else(Problem::missing)?;
    let made = blocks(&Page { work, file, axis }, format, one, Some(at));
    work.check()?;
    let blocks = made.unwrap_or_else(|error| vec![text(&error.to_string())]);
    Ok(Reply::Json(json!({"title": one.title, "blocks": blocks})))
}

fn blocks(page: &Page<'_>, format: &dyn Format, one: &Explanation, at: Option<u64>) -> Result<Vec<Value>, Error> {
    let open: Box<Open<'_>> = Box::new(|| {
        let again: Option<(_, Input)> = crate::reading::open(&page.file.current())?;
        again.map(|(_, input)| input).ok_or_else(|| Error::usage("the file is empty now"))
    });
    let is_by_order = page.file.shelf().read().unit() == TimeUnit::Order;
    let mut parts = Parts { page, is_by_order, blocks: Vec::new(), lines: Block::default(), bytes: 0, is_cut: false };
    let options = &page.file.source.open;
    match format.explain(one.name, at, &*open, options, &mut parts, &mut page.findings()) {
        Err(error) if !parts.is_cut => return Err(error),
        _ => {}
    }
    parts.end_lines();
    let Parts { mut blocks, is_cut, .. } = parts;
    if is_cut {
        blocks.push(text("More is not shown here: the command line has all of it."));
    }
    Ok(blocks)
}

/// Lines without anything between them.
#[derive(Default)]
struct Block {
    lines: Vec<String>,
    links: Vec<Value>,
}

/// The first parts.
struct Parts<'a> {
    page: &'a Page<'a>,
    /// Records are places on the axis.
    is_by_order: bool,
    blocks: Vec<Value>,
    lines: Block,
    bytes: usize,
    is_cut: bool,
}

impl Parts<'_> {
    /// The lines so far are a block.
    fn end_lines(&mut self) {
        let Block { lines, links } = std::mem::take(&mut self.lines);
        if !lines.is_empty() {
            self.blocks.push(json!({"kind": "lines", "title": "", "lines": lines, "links": links}));
        }
    }

    fn link(&self, spot: Spot) -> Value {
        match spot {
            Spot::Record(record) if self.is_by_order => self.page.link(record),
            Spot::Record(_) => Value::Null,
            Spot::Times(start, end) => {
                let (start, end) = (self.page.axis.place(start), self.page.axis.place(end));
                json!({"start": start, "end": end, "track": Value::Null})
            }
        }
    }
}

impl Lines for Parts<'_> {
    fn line(&mut self, text: &str, record: Option<u64>) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(text.len());
        self.is_cut = self.lines.lines.len() == LINES_MAX || self.bytes > BYTES_MAX;
        if self.is_cut {
            return Err(Error::usage("no more lines are shown"));
        }
        self.lines.lines.push(text.to_owned());
        let link = record.map_or(Value::Null, |record| self.link(Spot::Record(record)));
        self.lines.links.push(link);
        Ok(())
    }

    fn grid(&mut self, grid: Grid) -> Result<(), Error> {
        self.end_lines();
        let align = |is_number: bool| if is_number { "right" } else { "left" };
        let columns = grid.columns.iter().map(|(name, is_number)| json!({"name": name, "align": align(*is_number)}));
        let links = grid.spots.iter().map(|spot| spot.map_or(Value::Null, |spot| self.link(spot)));
        self.blocks.push(json!({
            "kind": "table",
            "title": grid.title,
            "columns": columns.collect::<Vec<_>>(),
            "links": links.collect::<Vec<_>>(),
            "rows": grid.rows,
        }));
        Ok(())
    }

    fn courses(&mut self, title: &str, courses: Vec<Course>) -> Result<(), Error> {
        self.end_lines();
        let axis = self.page.axis;
        let item = |(start, end, label): &(u64, u64, &str)| json!({"start": axis.place(*start), "end": axis.place(*end), "label": label});
        let lane = |one: &Course| json!({"name": one.name, "items": one.states.iter().map(item).collect::<Vec<_>>()});
        let lanes: Vec<Value> = courses.iter().map(lane).collect();
        self.blocks.push(json!({"kind": "lanes", "title": title, "lanes": lanes}));
        Ok(())
    }
}
