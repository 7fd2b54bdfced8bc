//! Tasks for people.

use anytrace_core::text::{escaped, printable};
use anytrace_heph::tools::tasks::{HephTasks, Named, Task, TaskState, Warning};

use crate::paint::{self, heading};
use crate::table::{Align, Table};
use crate::units::{counted, grouped, nanoseconds};

/// Longest fields of a row.
const FIELDS_CHARS: usize = 60;

/// All tables, at most `top` rows each.
pub(super) fn page(name: &str, found: &HephTasks, top: usize) -> String {
    let (bold, name) = (paint::BOLD, printable(name));
    let mut out = format!("{bold}{name}{bold:#}: {}\n", counted(found.tasks, "task"));
    if found.tasks == 0 {
        out.push_str("  no spans with numbers, no runs of actors and no substreams: nothing here is a task\n");
        return out;
    }
    list(found, &mut out);
    names(found, top, &mut out);
    warnings(found, top, &mut out);
    if !found.has_lives {
        out.push_str("note: without lives of spans, a task lasts from its first poll to the end of its last\n");
    }
    if found.list.iter().any(|task| !task.has_runs) {
        out.push_str(
            "note: spans that say how long they existed but not when they ran: polls, busy and idle are not known\n",
        );
    } else if !found.has_wakes {
        out.push_str("note: without wake-ups (tokio_unstable), waiting to be polled counts as idle\n");
    }
    out
}

fn list(found: &HephTasks, out: &mut String) {
    out.push_str(&heading("Tasks"));
    let mut columns = vec![("id", Align::Right), ("state", Align::Left), ("polls", Align::Right)];
    columns.extend([("busy", Align::Right), ("idle", Align::Right)]);
    if found.has_wakes {
        columns.extend([("scheduled", Align::Right), ("wakes", Align::Right), ("own", Align::Right)]);
    }
    columns.extend([("life", Align::Right), ("longest", Align::Right), ("name", Align::Left)]);
    let has_places = found.list.iter().any(|task| task.location.is_some());
    if has_places {
        columns.push(("created", Align::Left));
    }
    columns.push(("fields", Align::Left));
    let mut table = Table::new(&columns);
    for task in &found.list {
        table.row(row(task, found.has_wakes, has_places));
    }
    out.push_str(&table.render());
    let rest = found.tasks.saturating_sub(found.list.len() as u64);
    if rest > 0 {
        out.push_str(&format!("  … and {} more (--top)\n", grouped(rest.into())));
    }
}

fn row(task: &Task, has_wakes: bool, has_places: bool) -> Vec<String> {
    let time = |ns: u64| nanoseconds(ns.into());
    let state = match task.state {
        TaskState::Unknown => "-",
        state => state.word(),
    };
    let mut cells = vec![task.id.to_string(), state.to_owned()];
    let runs = [grouped(task.polls.into()), time(task.busy_ns), time(task.idle_ns())];
    cells.extend(runs.map(|figure| if task.has_runs { figure } else { "-".to_owned() }));
    if has_wakes {
        let (wakes, own) = task.wakes.unwrap_or_default();
        cells.extend([time(task.scheduled_ns.unwrap_or(0)), grouped(wakes.into()), grouped(own.into())]);
    }
    cells.push(time(task.life_ns()));
    cells.push(task.longest.map_or_else(|| "-".to_owned(), |longest| time(longest.0)));
    cells.push(printable(&task.name));
    if has_places {
        cells.push(task.location.as_deref().map_or_else(|| "-".to_owned(), |place| escaped(place.as_bytes())));
    }
    cells.push(fields(task));
    cells
}

fn fields(task: &Task) -> String {
    // The name is in its own column.
    let shown = task.fields.iter().filter(|(name, value)| !value.is_empty() && name != "task.name");
    let all: Vec<String> = shown.map(|(name, value)| format!("{name}={}", escaped(value.as_bytes()))).collect();
    let all = all.join(" ");
    match all.char_indices().nth(FIELDS_CHARS) {
        Some((at, _)) => format!("{}…", all.get(..at).unwrap_or_default()),
        None => all,
    }
}

fn names(found: &HephTasks, top: usize, out: &mut String) {
    out.push_str(&heading("Names"));
    let mut columns = vec![("tasks", Align::Right), ("open", Align::Right), ("polls", Align::Right)];
    columns.extend(["busy", "idle"].map(|name| (name, Align::Right)));
    columns.extend(["poll p50", "p90", "p99", "max"].map(|name| (name, Align::Right)));
    columns.extend(["life p50", "p90", "p99", "max"].map(|name| (name, Align::Right)));
    columns.push(("name", Align::Left));
    let mut table = Table::new(&columns);
    for named in found.names.iter().take(top) {
        table.row(sums(named));
    }
    out.push_str(&table.render());
    let rest = found.names.len().saturating_sub(top);
    if rest > 0 {
        out.push_str(&format!("  … and {} more (--top)\n", grouped(rest as u128)));
    }
    if found.other_names > 0 {
        out.push_str(&format!("  … and {} of other names\n", counted(found.other_names, "task")));
    }
}

fn sums(named: &Named) -> Vec<String> {
    let mut cells = vec![grouped(named.tasks.into()), grouped(named.open.into())];
    let runs = [grouped(named.polls.count.into()), nanoseconds(named.busy_ns), nanoseconds(named.idle_ns)];
    cells.extend(runs.map(|figure| if named.run > 0 { figure } else { "-".to_owned() }));
    for lengths in [&named.polls, &named.lives] {
        let figures = [lengths.p50_ns, lengths.p90_ns, lengths.p99_ns, lengths.max_ns];
        cells.extend(figures.map(|ns| if lengths.count == 0 { "-".to_owned() } else { nanoseconds(ns.into()) }));
    }
    cells.push(printable(&named.name));
    cells
}

fn warnings(found: &HephTasks, top: usize, out: &mut String) {
    if found.warnings.is_empty() {
        return;
    }
    out.push_str(&heading("Warnings"));
    let yellow = paint::severity(anytrace_core::Severity::Warning);
    for (id, name, all) in found.warned.iter().take(top) {
        for warning in all {
            let (code, name) = (warning.code(), printable(name));
            out.push_str(&format!("  {yellow}{code}{yellow:#}: task {id} ({name}) {}\n", words(*warning)));
        }
    }
    let count = |(code, count): (&&str, &u64)| format!("{code} {}", grouped((*count).into()));
    let all: Vec<String> = found.warnings.iter().map(count).collect();
    out.push_str(&format!("  tasks by warning: {}\n", all.join(", ")));
}

fn words(warning: Warning) -> String {
    match warning {
        Warning::SelfWakes(percent) => format!("woke itself: {percent} % of its wake-ups"),
        Warning::LostWaker => "waits, and all its wakers are gone: nobody can wake it".to_owned(),
        Warning::NeverYields(ns) => format!("was polled once, for {}: it never yields", nanoseconds(ns.into())),
        Warning::LongPolls(count, ns) => {
            format!("was polled for long: {}, the longest {}", counted(count, "time"), nanoseconds(ns.into()))
        }
    }
}
