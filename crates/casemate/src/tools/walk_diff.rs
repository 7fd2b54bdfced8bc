//! `casemate walk --diff`: what changed in a translation or a tree between two records.

use std::collections::BTreeMap;
use std::fmt::Write;

use anytrace_core::Error;
use serde_json::{Value, json};

use super::StateAt;
use super::render::hex;
use super::walk::{Entry, Tree, entry_json, entry_text};
use crate::model::{Descriptor, Root};

/// An entry, or its absence, after the one record and after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryChange {
    /// After the first record.
    pub before: Option<Entry>,
    /// After the second.
    pub after: Option<Entry>,
}

/// The tree of a root, or the translation of an address, after two records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkDiff {
    /// The root after the first record, if it was registered then.
    pub root_before: Option<Root>,
    /// The root after the second.
    pub root_after: Option<Root>,
    /// The output address after each record, where an input address is given and maps to one.
    pub outputs: [Option<u64>; 2],
    /// What differs, in order of input addresses and levels.
    pub changes: Vec<EntryChange>,
}

/// Compares two states. Without an address, the entries of the complete tree that are valid or unclean.
///
/// # Errors
/// [`anytrace_core::Kind::Usage`] when neither state has the root.
pub fn walk_diff(before: &StateAt, after: &StateAt, base: u64, address: Option<u64>) -> Result<WalkDiff, Error> {
    let (first, second) = (Tree::new(&before.checker, base), Tree::new(&after.checker, base));
    let trees = match (first, second) {
        (Err(_), Err(error)) => return Err(error),
        (first, second) => [first.ok(), second.ok()],
    };
    let entries = trees.each_ref().map(|tree| match (tree, address) {
        (None, _) => Vec::new(),
        (Some(tree), Some(address)) => tree.walk(address),
        (Some(tree), None) => tree.entries(),
    });
    let outputs = trees.each_ref().map(|tree| tree.as_ref()?.translate(address?));
    let [root_before, root_after] = trees.map(|tree| tree.map(|tree| *tree.root()));
    let [before, after] = entries;
    Ok(WalkDiff { root_before, root_after, outputs, changes: differences(before, after) })
}

/// Entries are the same if they cover the same input addresses at the same level.
fn differences(before: Vec<Entry>, after: Vec<Entry>) -> Vec<EntryChange> {
    let mut all: BTreeMap<(u64, i8), EntryChange> = BTreeMap::new();
    for entry in before {
        all.insert((entry.input, entry.level), EntryChange { before: Some(entry), after: None });
    }
    for entry in after {
        let none = EntryChange { before: None, after: None };
        let key = (entry.input, entry.level);
        all.entry(key).or_insert(none).after = Some(entry);
    }
    all.into_values().filter(|change| change.before != change.after).collect()
}

impl EntryChange {
    /// The level, the first input address, and how many bytes of input addresses.
    fn place(&self) -> (i8, u64, u64) {
        let entry = self.after.as_ref().or(self.before.as_ref());
        entry.map_or((0, 0, 0), |entry| (entry.level, entry.input, entry.format.entry_bytes(entry.level)))
    }

    /// What differs: `added`, `removed`, or some of `location`, `value`, `kind`, `output`, `table`, `attributes`, `state`.
    pub fn words(&self) -> Vec<&'static str> {
        let (before, after) = match (&self.before, &self.after) {
            (None, _) => return vec!["added"],
            (_, None) => return vec!["removed"],
            (Some(before), Some(after)) => (before, after),
        };
        let (output, table, kind) = match (before.descriptor, after.descriptor) {
            (Descriptor::Map(old), Descriptor::Map(new)) => (old != new, false, false),
            (Descriptor::Table(old), Descriptor::Table(new)) => (false, old != new, false),
            (old, new) => (false, false, old != new),
        };
        let rows = [
            ("location", before.address != after.address),
            ("value", before.value != after.value),
            ("kind", kind),
            ("output", output),
            ("table", table),
            ("attributes", before.attributes != after.attributes),
            ("state", before.state != after.state),
        ];
        rows.into_iter().filter_map(|(word, differs)| differs.then_some(word)).collect()
    }
}

impl WalkDiff {
    /// For people; `address` as it was given to [`walk_diff`].
    pub fn text(&self, address: Option<u64>) -> String {
        let mut out = String::new();
        for change in &self.changes {
            let (level, input, bytes) = change.place();
            let last = input.wrapping_add(bytes.saturating_sub(1));
            // Writing to a String cannot fail.
            let _ = writeln!(out, "L{level} {input:#x}..{last:#x}: {}", change.words().join(", "));
            for (sign, entry) in [('-', &change.before), ('+', &change.after)] {
                if let Some(entry) = entry {
                    let _ = write!(out, "  {sign} ");
                    entry_text(entry, entry.level, &mut out);
                }
            }
        }
        if self.changes.is_empty() {
            out.push_str("nothing changed\n");
        }
        if let Some(address) = address {
            let [before, after] =
                self.outputs.map(|output| output.map_or_else(|| "nothing".to_owned(), |at| format!("{at:#x}")));
            let _ = match before == after {
                true => writeln!(out, "{address:#x} maps to {after}, as before"),
                false => writeln!(out, "{address:#x} mapped to {before} and maps to {after}"),
            };
        }
        out
    }

    /// For programs: the changes.
    pub fn json(&self) -> Value {
        let changes = self.changes.iter().map(|change| {
            let (level, input, bytes) = change.place();
            json!({
                "level": level,
                "input_start": hex(input),
                "input_bytes": bytes,
                "changed": change.words(),
                "before": change.before.as_ref().map(entry_json),
                "after": change.after.as_ref().map(entry_json),
            })
        });
        changes.collect()
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::{Collect, OpenOptions};

    use super::*;
    use crate::model::Options;
    use crate::tools::{At, Checkpoints};

    const LOG: &str = "(mem-init 0 0 1000 5000)(hint 1 0 set_root_lock 1000 90000)(mem-write 2 0 plain 1000 2003)\
                       (mem-write 3 0 plain 2000 3003)(mem-write 4 0 plain 3000 4003)(mem-write 5 0 plain 4000 507c3)\
                       (sysreg-write 6 0 vttbr_el2 1000000001000)(lock 7 0 90000)(mem-write 8 0 release 4000 0)\
                       (barrier 9 0 dsb ish)(tlbi 10 0 alle1is)(barrier 11 0 dsb ish)\
                       (mem-write 12 0 release 4000 51743)(mem-write 13 0 release 4008 52743)";

    fn diff(from: u64, to: u64, address: Option<u64>) -> Result<WalkDiff, Error> {
        let open = OpenOptions::default();
        let points = Checkpoints::new(LOG.as_bytes(), &open, Options::ARCHITECTURE, &mut Collect::default()).unwrap();
        let [from, to] = [from, to].map(|at| points.state(At::Index(at)).unwrap());
        walk_diff(&from, &to, 0x1000, address)
    }

    fn words(diff: &WalkDiff) -> Vec<(i8, u64, Vec<&'static str>)> {
        diff.changes.iter().map(|change| (change.place().0, change.place().1, change.words())).collect()
    }

    #[test]
    fn a_translation_differs_level_by_level() {
        let all = diff(7, 12, Some(0xabc)).unwrap();
        assert_eq!(words(&all), [(3, 0, vec!["value", "output", "attributes"])]);
        assert_eq!(all.outputs, [Some(0x50abc), Some(0x51abc)]);
        assert!(all.text(Some(0xabc)).ends_with("0xabc mapped to 0x50abc and maps to 0x51abc\n"));
        let broken = diff(7, 8, Some(0)).unwrap();
        assert_eq!(words(&broken), [(3, 0, vec!["value", "kind", "attributes", "state"])]);
        assert!(broken.text(Some(0)).contains("0x0 mapped to 0x50000 and maps to nothing"));
        let cleaned = diff(9, 11, Some(0)).unwrap();
        assert_eq!(words(&cleaned), [(3, 0, vec!["state"])]);
        assert_eq!(diff(12, 13, Some(0)).unwrap().text(Some(0)), "nothing changed\n0x0 maps to 0x51000, as before\n");
    }

    #[test]
    fn a_tree_differs_where_entries_came_and_went() {
        assert_eq!(words(&diff(12, 13, None).unwrap()), [(3, 0x1000, vec!["added"])]);
        // Back in time.
        assert_eq!(words(&diff(13, 12, None).unwrap()), [(3, 0x1000, vec!["removed"])]);
        let new = diff(5, 6, None).unwrap();
        assert_eq!((new.root_before, new.changes.len()), (None, 4));
        assert!(diff(1, 2, None).is_err(), "there is no root yet");
        let value = diff(7, 12, None).unwrap().json();
        assert_eq!(
            (&value[0]["before"]["target"], &value[0]["after"]["target"]),
            (&json!("0x50000"), &json!("0x51000"))
        );
    }
}
