//! Workers: what they did with their time, and how long their queues were.

use anytrace_heph::tools::stats::{HephStats, Queue, Step};

use super::rest;
use crate::paint::heading;
use crate::table::{Align, Table};
use crate::units::{grouped, nanoseconds, percent};

/// Heights of a line that shows lengths over time.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(super) fn workers(stats: &HephStats, out: &mut String) {
    if stats.workers.is_empty() {
        return;
    }
    out.push_str(&heading("Workers"));
    let mut rows = Table::new(&[
        ("stream", Align::Right),
        ("lifetime", Align::Right),
        ("running", Align::Right),
        ("", Align::Right),
        ("scheduling", Align::Right),
        ("", Align::Right),
        ("polling", Align::Right),
        ("", Align::Right),
        ("rest", Align::Right),
        ("", Align::Right),
        ("runs", Align::Right),
    ]);
    for worker in &stats.workers {
        let mut cells = vec![worker.stream.to_string(), nanoseconds(worker.lifetime_ns.into())];
        for part in [worker.running_ns, worker.scheduling_ns, worker.polling_ns, worker.rest_ns()] {
            cells.push(nanoseconds(part.into()));
            cells.push(percent(part as f64, worker.lifetime_ns as f64));
        }
        cells.push(grouped(worker.runs.into()));
        rows.row(cells);
    }
    out.push_str(&rows.render());
}

pub(super) fn queues(stats: &HephStats, top: usize, out: &mut String) {
    // "Scheduling processes" has the lengths of the queues; what the other events moved is in the JSON.
    let of_queues = |queue: &&Queue| queue.attribute != "amount";
    let shown: Vec<&Queue> = stats.queues.iter().filter(of_queues).collect();
    if shown.is_empty() {
        return;
    }
    out.push_str(&heading("Queues: how many processes were ready"));
    let mut rows = Table::new(&[
        ("stream", Align::Right),
        ("queue", Align::Left),
        ("mean", Align::Right),
        ("max", Align::Right),
        ("over time, the greatest", Align::Left),
    ]);
    for queue in shown.iter().take(top) {
        rows.row(vec![
            queue.stream.to_string(),
            queue.attribute.trim_end_matches(" amount").to_owned(),
            format!("{:.2}", queue.all.mean()),
            grouped(queue.all.max.into()),
            line(&queue.steps, queue.all.max),
        ]);
    }
    out.push_str(&rows.render());
    rest(out, shown.len(), top);
}

/// The greatest of each step as a height; nothing where there is none.
fn line(steps: &[Step], most: u64) -> String {
    let top = LEVELS.len() as u64 - 1;
    let height = |step: &Step| match step.count {
        0 => ' ',
        _ => {
            let level = (u128::from(step.max) * u128::from(top)).div_ceil(u128::from(most.max(1)));
            LEVELS.get(usize::try_from(level).unwrap_or(0)).copied().unwrap_or('█')
        }
    };
    steps.iter().map(height).collect()
}
