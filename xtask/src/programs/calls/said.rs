//! What the verbs say of a trace.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::model::Counts;
use crate::shell::output;

/// Count, and lengths in ticks: shortest, median, 90th and 99th percentile, longest, sum.
type Lengths = [u64; 7];

pub(super) struct Said {
    account: BTreeMap<u32, Lengths>,
    graph: BTreeMap<(Option<u32>, u32), u64>,
    stacks: BTreeMap<(u32, u32, Vec<u32>), (u64, u64)>,
}

/// Runs the three verbs.
pub(super) fn all(binary: &Path, trace: &Path, workers: &str, has_stacks: bool) -> Result<Said, String> {
    let run = |verb: &str| {
        let mut command = Command::new(binary);
        command.args(["xray", verb, "--format=json", "--threads", workers]).arg(trace);
        let printed = output(&mut command)?;
        serde_json::from_slice::<Value>(&printed).map_err(|error| format!("{verb}: {error}"))
    };
    let (account, graph, stack) =
        (run("account")?, run("graph")?, if has_stacks { run("stack")? } else { Value::Null });
    let rows = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let lengths = |row: &Value| {
        let keys = ["count", "min_ticks", "median_ticks", "p90_ticks", "p99_ticks", "max_ticks", "sum_ticks"];
        keys.map(|key| row[key].as_u64().unwrap_or(u64::MAX))
    };
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    let path = |row: &Value| -> Vec<u32> {
        let names = row["stack"].as_array().into_iter().flatten().filter_map(Value::as_str);
        names.filter_map(|name| name.strip_prefix('#')?.parse().ok()).collect()
    };
    let thread = |row: &Value, key: &str| id(&row[key]).unwrap_or(u32::MAX);
    let sums = |row: &Value| (row["count"].as_u64().unwrap_or(0), row["sum"].as_u64().unwrap_or(0));
    Ok(Said {
        account: rows(&account, "functions").iter().filter_map(|row| Some((id(&row["id"])?, lengths(row)))).collect(),
        graph: rows(&graph, "calls")
            .iter()
            .filter_map(|row| Some(((id(&row["caller"]), id(&row["callee"])?), row["count"].as_u64()?)))
            .collect(),
        stacks: rows(&stack, "stacks")
            .iter()
            .map(|row| ((thread(row, "process"), thread(row, "thread"), path(row)), sums(row)))
            .filter(|(_, (count, _))| *count > 0)
            .collect(),
    })
}

impl Said {
    /// The first difference.
    pub(super) fn compare(&self, model: &Counts) -> Result<(), String> {
        let account = model.account.iter().map(|(id, all)| (*id, of(all))).collect();
        same("account", &self.account, &account)?;
        let graph = model.graph.iter().map(|(pair, all)| (*pair, all.len() as u64)).collect();
        same("graph", &self.graph, &graph)?;
        same("stack", &self.stacks, &model.stacks)
    }
}

/// The lengths of sorted calls, by the elements that `llvm-xray` takes.
fn of(all: &[u64]) -> Lengths {
    let at = |numerator: usize, denominator: usize| all.get(all.len() * numerator / denominator).copied().unwrap_or(0);
    let last = all.last().copied().unwrap_or(0);
    [all.len() as u64, at(0, 1), at(1, 2), at(9, 10), at(99, 100), last, all.iter().sum()]
}

fn same<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    what: &str,
    said: &BTreeMap<K, V>,
    counted: &BTreeMap<K, V>,
) -> Result<(), String> {
    let differs = |(key, value): (&K, &V)| said.get(key).is_none_or(|said| said != value).then(|| format!("{key:?}"));
    let shown = |key: &str| key.chars().take(200).collect::<String>();
    if let Some(key) = counted.iter().find_map(differs) {
        let at =
            |map: &BTreeMap<K, V>| map.iter().find(|(one, _)| format!("{one:?}") == key).map(|(_, v)| format!("{v:?}"));
        return Err(format!("{what} of {}: {:?} in place of {:?}", shown(&key), at(said), at(counted)));
    }
    let extra = said.keys().find(|key| !counted.contains_key(key));
    extra.map_or(Ok(()), |key| Err(format!("{what} has {}, which is not in the trace", shown(&format!("{key:?}")))))
}

/// The names of functions in a table of `account`, by `llvm-xray` or by us.
pub(super) fn names(command: &mut Command, trace: &Path, app: &Path) -> Result<BTreeMap<u32, String>, String> {
    let done = command.args(["-f", "csv", "-m"]).arg(app).arg(trace).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&done.stdout);
    let mut names = BTreeMap::new();
    for line in text.lines().skip(1) {
        // funcid, seven numbers, the place and the name, both in quotes.
        let (id, name) = (line.split(',').next(), line.split("\",\"").nth(1));
        if let (Some(Ok(id)), Some(name)) = (id.map(str::parse), name) {
            names.insert(id, closed(name.trim_end_matches('"')));
        }
    }
    if names.is_empty() { Err(String::from_utf8_lossy(&done.stderr).chars().take(300).collect()) } else { Ok(names) }
}

/// Templates as LLVM writes them from 15 on: `>>`, and not `> >`.
fn closed(name: &str) -> String {
    let mut name = name.to_owned();
    while name.contains("> >") {
        name = name.replace("> >", ">>");
    }
    name
}
