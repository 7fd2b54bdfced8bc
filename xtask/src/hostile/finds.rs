//! What a campaign found: one of a class, with its files and its command.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::case::Case;
use super::judge::Breach;

/// Classes that are known and not mended yet: a verb (or `*`), a kind, a part of the message, and why it is open.
const KNOWN: &str = include_str!("known.tsv");

/// Finds of one class.
struct Class {
    runs: u64,
    /// The run whose files are kept: the first, whichever was found first.
    first: u64,
    is_known: bool,
}

/// All finds of a campaign.
pub(super) struct Finds {
    folder: PathBuf,
    classes: Mutex<BTreeMap<(String, &'static str, String), Class>>,
}

impl Finds {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), classes: Mutex::default() }
    }

    /// Counts a find, and keeps its files where it is the first of its class; whether it is.
    pub(super) fn add(&self, run: u64, case: &Case, breach: &Breach, stderr: &str) -> Result<bool, String> {
        let shape = shape(&breach.what);
        let is_known = is_known(&case.verb, breach.kind, &breach.what);
        let mut classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        let class = classes.entry((case.verb.clone(), breach.kind, shape.clone())).or_insert(Class {
            runs: 0,
            first: u64::MAX,
            is_known,
        });
        class.runs += 1;
        let is_first = run < class.first;
        if is_first {
            class.first = run;
            self.keep(&self.folder_of(case, breach), run, case, breach, stderr)?;
        }
        Ok(is_first)
    }

    /// Keeps a smaller case beside the one that was found.
    pub(super) fn add_smaller(&self, run: u64, case: &Case, breach: &Breach) -> Result<(), String> {
        self.keep(&self.folder_of(case, breach).join("small"), run, case, breach, "")
    }

    fn folder_of(&self, case: &Case, breach: &Breach) -> PathBuf {
        let name = format!("{}-{}-{:08x}", case.verb.replace(' ', "-"), breach.kind, hash(&shape(&breach.what)));
        self.folder.join(name)
    }

    fn keep(&self, folder: &Path, run: u64, case: &Case, breach: &Breach, stderr: &str) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(failed)?;
        for (name, bytes) in &case.files {
            fs::write(folder.join(name), bytes).map_err(failed)?;
        }
        let mut json = case.to_json();
        json["run"] = run.into();
        json["kind"] = breach.kind.into();
        json["what"] = breach.what.clone().into();
        json["stderr"] = stderr.chars().take(4000).collect::<String>().into();
        fs::write(folder.join("find.json"), format!("{json:#}\n")).map_err(failed)?;
        let command: Vec<String> = case.arguments.iter().map(|argument| quoted(argument)).collect();
        let from = case.stdin.and_then(|number| case.files.get(number));
        let from = from.map(|(name, _)| format!("cat {name} | ")).unwrap_or_default();
        fs::write(folder.join("command"), format!("{from}anytrace {}\n", command.join(" "))).map_err(failed)
    }

    /// Prints the classes; the number of those that nobody knew.
    pub(super) fn report(&self) -> usize {
        let classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        for ((verb, kind, shape), class) in classes.iter() {
            let state = if class.is_known { "known" } else { "FOUND" };
            println!("{state} {verb}: {kind}: {shape} ({} runs, first {})", class.runs, class.first);
        }
        classes.values().filter(|class| !class.is_known).count()
    }
}

fn is_known(verb: &str, kind: &str, what: &str) -> bool {
    let rows = KNOWN.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.map(|line| line.split('\t').collect::<Vec<_>>()).any(|row| match row.as_slice() {
        [v, k, part, _] => (*v == "*" || *v == verb) && *k == kind && what.contains(part),
        _ => false,
    })
}

/// A message without what is of one input: its name, numbers and quoted words.
pub(super) fn shape(what: &str) -> String {
    let mut shape = String::new();
    let mut quote = None;
    for c in what.chars().take(400) {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => continue,
            None if c == '"' || c == '`' => quote = Some(c),
            None => {}
        }
        let is_digit = c.is_ascii_digit();
        if !(is_digit && shape.ends_with('#')) {
            shape.push(if is_digit { '#' } else { c });
        }
    }
    let words = shape.split(' ').map(|word| if word.starts_with("in#") { "INPUT" } else { word });
    words.collect::<Vec<_>>().join(" ").chars().take(160).collect()
}

/// FNV-1a, for names of folders.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// An argument as a shell takes it.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:%@+".contains(c);
    if argument.chars().all(is_plain) { argument.to_owned() } else { format!("'{}'", argument.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_of_one_class_have_one_shape() {
        assert_eq!(shape("byte 0x1f40 of \"a.heph\": 17 left"), "byte #x#f# of \"\": # left");
        assert_eq!(shape("in0.heph: none of 3"), shape("in12.trace: none of 40"));
        assert_eq!(shape("byte 0x2f99 of \"b\": 3 left"), shape("byte 0x1f1 of \"a.heph\": 17 left"));
    }

    #[test]
    fn every_row_of_the_known_classes_can_match() {
        for line in KNOWN.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let cells: Vec<_> = line.split('\t').collect();
            assert_eq!(cells.len(), 4, "{line}");
            assert!(cells.iter().all(|cell| !cell.is_empty()), "{line}");
        }
    }
}
