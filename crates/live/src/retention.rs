//! Which closed files are still there, and which must go: by their number, their bytes or their age.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::SystemTime;

use anytrace_core::hash::Map;

use crate::options::StoreOptions;

/// Whose files are counted together: those of a recording over all its connections, else those of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Session(u128),
    Source(u32),
}

/// A closed file.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) owner: Owner,
    pub(crate) since: SystemTime,
}

/// The closed files, where there is a limit for any of them.
#[derive(Debug, Default)]
pub(crate) struct Retention {
    options: Option<StoreOptions>,
    /// By the order of closing.
    files: BTreeMap<u64, Kept>,
    owners: Map<Owner, VecDeque<u64>>,
    next: u64,
    bytes: u64,
    pub(crate) removed_files: u64,
    pub(crate) removed_bytes: u64,
}

impl Retention {
    /// With the files of earlier collections, oldest first.
    pub(crate) fn new(options: &StoreOptions, earlier: Vec<Kept>) -> Self {
        let is_limited = options.keep.is_some() || options.bytes_max.is_some() || options.age_max.is_some();
        let mut made = Self { options: is_limited.then(|| options.clone()), ..Self::default() };
        earlier.into_iter().for_each(|kept| made.add(kept));
        made
    }

    fn add(&mut self, kept: Kept) {
        if self.options.is_none() {
            return;
        }
        self.owners.entry(kept.owner).or_default().push_back(self.next);
        self.bytes += kept.bytes;
        self.files.insert(self.next, kept);
        self.next += 1;
    }

    /// Takes a file that is being closed; gives those that must go for it.
    pub(crate) fn close(&mut self, kept: Kept, open_bytes: u64) -> Vec<PathBuf> {
        let owner = kept.owner;
        self.add(kept);
        let mut gone = Vec::new();
        // Files are counted when they are closed, so the open one never counts against `keep`.
        let keep = self.options.as_ref().and_then(|options| options.keep).map_or(usize::MAX, |keep| keep.max(1));
        while let Some(files) = self.owners.get(&owner).filter(|files| files.len() > keep)
            && let Some(&oldest) = files.front()
        {
            gone.extend(self.remove(oldest));
        }
        gone.extend(self.expired(open_bytes, SystemTime::now()));
        gone
    }

    /// Files that are too old, and the oldest of too many bytes, those in open files included.
    pub(crate) fn expired(&mut self, open_bytes: u64, now: SystemTime) -> Vec<PathBuf> {
        let Some(options) = &self.options else { return Vec::new() };
        let bytes_max = options.bytes_max.unwrap_or(u64::MAX);
        let age_max = options.age_max;
        let mut gone = Vec::new();
        while let Some((&oldest, kept)) = self.files.first_key_value() {
            let age = now.duration_since(kept.since).unwrap_or_default();
            if self.bytes.saturating_add(open_bytes) <= bytes_max && age_max.is_none_or(|most| age <= most) {
                break;
            }
            gone.extend(self.remove(oldest));
        }
        gone
    }

    fn remove(&mut self, file: u64) -> Option<PathBuf> {
        let kept = self.files.remove(&file)?;
        self.bytes -= kept.bytes;
        self.removed_files += 1;
        self.removed_bytes += kept.bytes;
        if let Some(files) = self.owners.get_mut(&kept.owner) {
            files.retain(|other| *other != file);
            if files.is_empty() {
                self.owners.remove(&kept.owner);
            }
        }
        Some(kept.path)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_oldest_go_first_and_only_as_many_as_must() {
        let options = StoreOptions {
            keep: Some(3),
            bytes_max: Some(1000),
            age_max: Some(Duration::from_secs(100)),
            ..StoreOptions::new("x".into())
        };
        let start = SystemTime::now();
        let file = |name: &str, owner, bytes, ago| Kept {
            path: name.into(),
            bytes,
            owner,
            since: start - Duration::from_secs(ago),
        };
        let (one, two) = (Owner::Session(1), Owner::Source(1));
        let mut files = Retention::new(&options, vec![file("a", one, 100, 90), file("b", two, 100, 80)]);
        let none: [PathBuf; 0] = [];
        assert_eq!(files.close(file("c", one, 100, 0), 0), none);
        assert_eq!(files.close(file("d", one, 100, 0), 0), none);
        assert_eq!(files.close(file("e", one, 100, 0), 0), [PathBuf::from("a")], "the oldest of its owner");
        assert_eq!(
            files.close(file("f", two, 500, 0), 250),
            [PathBuf::from("b"), "c".into()],
            "1,150 bytes are too many"
        );
        assert_eq!(files.expired(0, start + Duration::from_secs(99)), none);
        assert_eq!(files.expired(0, start + Duration::from_secs(101)).len(), 3);
        assert_eq!((files.removed_files, files.removed_bytes, files.bytes), (6, 1000, 0));
        assert!(files.owners.is_empty());
    }
}
