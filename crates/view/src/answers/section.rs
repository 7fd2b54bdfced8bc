//! Pages besides the timeline: what a trace contains, what is wrong with it.

use anytrace_core::span::TimeUnit;
use anytrace_core::{Diagnostic, Error, Format, Info};
use serde_json::{Value, json};

use super::page::{Page, text};
use super::{Problem, Reply, Work, explain, memory, pictures, tables};
use crate::view::{File, View};

/// Rows of a table of kinds or threads.
const ROWS_MAX: usize = 1000;

/// The pages of what is shown.
pub(super) fn names(view: &View) -> Vec<&'static str> {
    let formats = || view.files.iter().filter_map(|file| file.state().format);
    let mut names = vec!["Summary", "Check"];
    names.extend(formats().any(Format::has_accesses).then_some("memory"));
    let pages = tables::PAGES.iter().map(|(name, _)| *name);
    names.extend(pages.filter(|name| formats().any(|format| !tables::on(name, format).is_empty())));
    names.extend(explain::titles(view));
    names.retain(|_| formats().next().is_some() && view.files.iter().all(File::can_be_read_again));
    names
}

/// `api/section/NAME`.
pub(super) fn section(work: &Work<'_>, name: &str) -> Result<Reply, Problem> {
    let name = names(work.view).into_iter().find(|known| *known == name).ok_or_else(Problem::missing)?;
    let (axes, mut blocks) = (work.axes(), Vec::new());
    for (file, axis) in work.view.files.iter().zip(axes) {
        if work.view.files.len() > 1 {
            blocks.push(text(&file.title()));
        }
        let page = Page { work, file, axis };
        let made = match name {
            "Summary" => page.summary(),
            "Check" => page.check(),
            "memory" => memory::page(&page),
            "Frames" => page.frames(),
            name if tables::PAGES.iter().any(|(page, _)| *page == name) => tables::page(&page, name),
            name => explain::page(&page, name),
        };
        blocks.extend(made.unwrap_or_else(|error| vec![text(&error.to_string())]));
        work.check()?;
    }
    let title = if name == "memory" { "Memory accesses" } else { name };
    Ok(Reply::Json(json!({"title": title, "blocks": blocks})))
}

/// A table of names and numbers.
fn counts(title: &str, column: &str, rows: &[(String, u64)]) -> Value {
    let all: u64 = rows.iter().map(|(_, count)| count).sum();
    let row = |(name, count): &(String, u64)| {
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let share = *count as f64 * 100.0 / all.max(1) as f64;
        json!([name, count, format!("{share:.1} %")])
    };
    let columns = [(column, "left"), ("records", "right"), ("share", "right")];
    json!({
        "kind": "table",
        "title": title,
        "columns": columns.map(|(name, align)| json!({"name": name, "align": align})),
        "rows": rows.iter().take(ROWS_MAX).map(row).collect::<Vec<_>>(),
    })
}

impl Page<'_> {
    fn summary(&self) -> Result<Vec<Value>, Error> {
        let Some((format, trace)) = self.open()? else { return Ok(vec![text("The file is empty.")]) };
        let mut findings = self.findings();
        let info = trace.info(&mut findings)?;
        let mut blocks = vec![facts(format, &info, findings.count)];
        blocks.push(counts("Kinds", "kind", &info.kinds));
        if !info.threads.is_empty() {
            blocks.push(counts("Threads", "thread", &info.threads));
        }
        Ok(blocks)
    }

    fn frames(&self) -> Result<Vec<Value>, Error> {
        let mut blocks: Vec<Value> = pictures::block(self).into_iter().collect();
        blocks.extend(tables::page(self, "Frames")?);
        Ok(blocks)
    }

    fn check(&self) -> Result<Vec<Value>, Error> {
        let Some((format, trace)) = self.open()? else { return Ok(vec![text("The file is empty.")]) };
        let mut findings = self.findings();
        let summary = trace.check(&mut findings)?;
        let noun = format.noun();
        let records = summary.records;
        if findings.count == 0 {
            return Ok(vec![text(&format!("No rule is broken in {records} {noun}s."))]);
        }
        let is_by_order = self.file.shelf().read().unit() == TimeUnit::Order;
        let link = |found: &Diagnostic| found.record.filter(|_| is_by_order).map(|record| self.link(record));
        let row = |found: &Diagnostic| {
            let severity = format!("{:?}", found.severity).to_lowercase();
            json!([severity, found.code(), found.record, found.to_string()])
        };
        let columns = [("severity", "left"), ("rule", "left"), (noun, "right"), ("finding", "left")];
        Ok(vec![
            text(&format!("{} findings in {records} {noun}s.", findings.count)),
            json!({
                "kind": "table",
                "title": "Findings",
                "columns": columns.map(|(name, align)| json!({"name": name, "align": align})),
                "rows": findings.first.iter().map(row).collect::<Vec<_>>(),
                "links": findings.first.iter().map(link).collect::<Vec<_>>(),
            }),
        ])
    }
}

/// What is known of the trace as a whole.
fn facts(format: &dyn Format, info: &Info, diagnostics: u64) -> Value {
    let mut rows = vec![json!(["format", format.title()])];
    let mut row = |name: &str, value: Option<String>| rows.extend(value.map(|value| json!([name, value])));
    row("version", info.format_version.clone());
    row("container", info.container.clone());
    row("dialect", info.dialect.clone());
    row("bytes", Some(info.bytes.to_string()));
    row("records", Some(info.records.to_string()));
    row("diagnostics", Some(diagnostics.to_string()));
    for (name, value) in &info.details {
        row(&name.replace('_', " "), Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
    }
    json!({
        "kind": "table",
        "title": "Facts",
        "columns": [{"name": "", "align": "left"}, {"name": "", "align": "left"}],
        "rows": rows,
    })
}
