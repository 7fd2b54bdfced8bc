//! Joins the events of each task.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anytrace_analysis::quantiles::Quantiles;
use anytrace_core::hash::Map;
use anytrace_core::text;

use super::super::stats::Lengths;
use super::task::{Open, is_life};
use super::{HephTasks, Named, Task, TaskState, TasksOptions, Which};
use crate::lanes::collect::Facts;
use crate::lanes::event::Sorted;
use crate::lanes::layer::Ids;
use crate::lanes::names::Names;
use crate::lanes::tasks::{ACTORS, SPANS};

/// Most lengths of one task's polls that are kept as they are.
const LENGTHS_MAX: usize = 1 << 16;

/// Most tasks with warnings that are named.
const WARNED_MAX: usize = 1000;

/// Most names that have sums.
const NAMES_MAX: usize = 16_384;

/// The span of a task of tokio.
const TOKIO_TASK: &[u8] = b"runtime.spawn";

/// Sums of a name.
#[derive(Default)]
struct Sums {
    named: Named,
    polls: Quantiles,
    lives: Quantiles,
}

/// A task in the list, by what it is sorted by.
struct Listed(u64, Reverse<u64>, Box<Task>);

impl PartialEq for Listed {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl Eq for Listed {}

impl PartialOrd for Listed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Listed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

pub(super) struct Gather<'a> {
    names: &'a Names,
    facts: &'a Facts,
    options: &'a TasksOptions,
    has_tokio: bool,
    home: Option<u32>,
    open: Option<Open>,
    lengths: Vec<u64>,
    /// Those beyond.
    more_lengths: Quantiles,
    list: BinaryHeap<Reverse<Listed>>,
    sums: Map<String, Sums>,
    found: HephTasks,
}

impl<'a> Gather<'a> {
    pub(super) fn new(names: &'a Names, facts: &'a Facts, options: &'a TasksOptions) -> Self {
        Self {
            names,
            facts,
            options,
            has_tokio: names.all().any(|name| name == TOKIO_TASK),
            home: None,
            open: None,
            lengths: Vec::new(),
            more_lengths: Quantiles::default(),
            list: BinaryHeap::new(),
            sums: Map::default(),
            found: HephTasks { has_wakes: facts.has_wakes, has_lives: facts.has_lives, ..HephTasks::default() },
        }
    }

    pub(super) fn event(&mut self, event: &Sorted<'_>) {
        if *self.home.get_or_insert(event.home) != event.home {
            return;
        }
        if self.open.as_ref().is_some_and(|open| open.id != event.lane) {
            self.end();
        }
        let open = self.open.get_or_insert_with(|| Open::new(event.lane));
        let ids = if event.home == SPANS { Ids::of(event.attributes()) } else { None };
        match ids {
            // A point: of a waker.
            None if event.home == SPANS => open.waker(event),
            Some(ids) if ids.span != event.lane => open.waker(event),
            _ => {
                open.parent = ids.map_or(0, |ids| ids.parent);
                if is_life(event) {
                    open.life(event);
                } else {
                    let length = open.poll(event, self.options.long_poll_ns);
                    match length {
                        Some(length) if self.lengths.len() >= LENGTHS_MAX => self.more_lengths.push(length),
                        length => self.lengths.extend(length),
                    }
                }
            }
        }
    }

    /// The task is complete.
    fn end(&mut self) {
        let Some(open) = self.open.take() else { return };
        let lengths = std::mem::take(&mut self.lengths);
        let more = std::mem::take(&mut self.more_lengths);
        // Wake-ups alone, of a span that is not in the trace.
        let Some(number) = open.name else { return };
        let name = self.names.get(number).unwrap_or(b"(other)");
        let is_wanted = match self.options.which {
            _ if self.home != Some(SPANS) => true,
            Which::Spans => true,
            Which::Tasks if self.has_tokio => name == TOKIO_TASK,
            Which::Tasks | Which::Roots => open.parent == 0,
        };
        if !is_wanted {
            return;
        }
        let mut task = open.finish(text::escaped(name), self.facts.has_wakes, self.facts.has_lives);
        if self.home == Some(ACTORS) {
            self.name_actor(&mut task);
        }
        if self.options.name.as_ref().is_some_and(|wanted| !task.name.contains(wanted)) {
            return;
        }
        self.add(task, &lengths, more);
    }

    /// An actor's name and id are attributes of its runs.
    fn name_actor(&self, task: &mut Task) {
        if let Some(name) = self.facts.actors.name_of(task.id) {
            name.clone_into(&mut task.name);
        }
        task.fields.retain(|(name, _)| name != "id" && name != "name");
    }

    fn add(&mut self, task: Task, lengths: &[u64], more: Quantiles) {
        self.found.tasks += 1;
        for warning in &task.warnings {
            *self.found.warnings.entry(warning.code()).or_default() += 1;
        }
        if !task.warnings.is_empty() && self.found.warned.len() < WARNED_MAX {
            self.found.warned.push((task.id, task.name.clone(), task.warnings.clone()));
        }
        if self.sums.len() < NAMES_MAX || self.sums.contains_key(&task.name) {
            let sums = self.sums.entry(task.name.clone()).or_default();
            sums.named.tasks += 1;
            sums.named.open += u64::from(matches!(task.state, TaskState::Idle | TaskState::Scheduled));
            sums.named.busy_ns += u128::from(task.busy_ns);
            if task.has_runs {
                sums.named.run += 1;
                sums.named.idle_ns += u128::from(task.idle_ns());
            }
            sums.named.scheduled_ns += u128::from(task.scheduled_ns.unwrap_or(0));
            lengths.iter().for_each(|length| sums.polls.push(*length));
            if more.count() > 0 {
                sums.polls.merge(more);
            }
            sums.lives.push(task.life_ns());
        } else {
            self.found.other_names += 1;
        }
        let listed = Listed(task.key(self.options.sort), Reverse(task.id), Box::new(task));
        self.list.push(Reverse(listed));
        if self.list.len() > self.options.top {
            self.list.pop();
        }
    }

    pub(super) fn finish(mut self) -> HephTasks {
        self.end();
        let mut list: Vec<Listed> = self.list.into_iter().map(|Reverse(listed)| listed).collect();
        list.sort_unstable_by(|a, b| b.cmp(a));
        let mut names: Vec<Named> = self.sums.into_iter().map(|(name, sums)| finished(name, sums)).collect();
        names.sort_by(|a, b| b.busy_ns.cmp(&a.busy_ns).then_with(|| a.name.cmp(&b.name)));
        HephTasks { list: list.into_iter().map(|listed| *listed.2).collect(), names, ..self.found }
    }
}

fn finished(name: String, sums: Sums) -> Named {
    Named { name, polls: Lengths::of(sums.polls).0, lives: Lengths::of(sums.lives).0, ..sums.named }
}
