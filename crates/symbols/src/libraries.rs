//! The shared libraries of a program, in the order in which the dynamic linker starts them.
//!
//! Objects are loaded breadth first. Then each is started after those that it needs, which is a depth-first walk from the
//! last loaded one on: what `ld.so(8)` of the GNU C library does since version 2.35 (`glibc.rtld.dynamic_sort`, 2). Where
//! a library is: `ld.so(8)`, "DESCRIPTION"; what was started with another `LD_LIBRARY_PATH`, or loaded later, is known of a
//! process whose maps were kept ([`crate::Maps`]).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anytrace_core::{Error, InputOptions};
use object::Object;

use crate::{Binary, ObjectFile};

/// Most libraries of a program.
const LIBRARIES_MAX: usize = 1000;

/// Where libraries are installed, besides folders named for an architecture.
const USUAL_FOLDERS: [&str; 6] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib", "/usr/local/lib64"];

/// The longest path that is one.
pub(crate) const PATH_BYTES_MAX: usize = 4096;

/// Tags of the dynamic section (System V ABI, "Dynamic Section").
const DT_NEEDED: u64 = 1;
const DT_SONAME: u64 = 14;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// The libraries that a program needs, and that those need, as far as they are found: first what is started first.
///
/// # Errors
/// As [`Binary::open`] and [`ObjectFile::parse`], of the program itself.
pub fn libraries(program: &Path, options: InputOptions) -> Result<Vec<PathBuf>, Error> {
    let binary = Binary::open(program, options)?;
    let object = ObjectFile::parse(&binary, None)?;
    let mut loaded = Loaded { program, options, kind: Kind::of(&object), objects: Vec::new() };
    loaded.objects.push(Needs::of(program.to_owned(), &object));
    loaded.load();
    let order = start_order(&loaded.objects);
    Ok(order.into_iter().filter(|at| *at > 0).filter_map(|at| Some(loaded.objects.get(at)?.path.clone())).collect())
}

/// The objects of a process in the order in which they are started, out of that in which they were loaded, the program
/// first. What cannot be read is left out. Those that the program needs are started first; then, one group after the
/// other, each that was opened later with what it needs and nothing had loaded before.
pub fn started(objects: &[PathBuf], options: InputOptions) -> Vec<PathBuf> {
    let Some((program, _)) = objects.split_first() else { return Vec::new() };
    let open = |path: &PathBuf| {
        // A pipe would be waited for.
        let path = Some(path).filter(|path| path.is_file())?;
        let binary = Binary::open(path, options).ok()?;
        Some(Needs::of(path.clone(), &ObjectFile::parse(&binary, None).ok()?))
    };
    let mut left: Vec<Option<Needs>> = objects.iter().take(LIBRARIES_MAX).map(open).collect();
    let mut by_name = BTreeMap::new();
    for (at, needs) in left.iter().enumerate() {
        for name in needs.iter().flat_map(Needs::names) {
            by_name.entry(name).or_insert(at);
        }
    }
    let mut order = vec![program.clone()];
    for at in 0..left.len() {
        let Some(root) = left.get_mut(at).and_then(Option::take) else { continue };
        let group = group(root, &by_name, &mut left);
        let path = |at: usize| group.get(at).map(|object| object.path.clone());
        order.extend(start_order(&group).into_iter().filter_map(path).filter(|path| path != program));
    }
    order
}

/// What a library must have in common with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    architecture: object::Architecture,
    is_64: bool,
    is_little_endian: bool,
}

impl Kind {
    fn of(object: &ObjectFile<'_>) -> Self {
        let (is_64, is_little_endian) = (object.is_64(), object.is_little_endian());
        Self { architecture: object.file.architecture(), is_64, is_little_endian }
    }

    /// Folders that are named for it.
    fn folders(self) -> &'static [&'static str] {
        match self.architecture {
            object::Architecture::X86_64 => &["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"],
            object::Architecture::Aarch64 => &["/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu"],
            _ => &[],
        }
    }
}

/// An object, and what its dynamic section says.
#[derive(Debug)]
struct Needs {
    path: PathBuf,
    /// The name by which others need it.
    own_name: Option<String>,
    needed: Vec<String>,
    /// Where to search: `DT_RUNPATH`, or else `DT_RPATH`.
    folders: Vec<PathBuf>,
    /// Numbers of the objects that are needed.
    objects: Vec<usize>,
}

impl Needs {
    fn of(path: PathBuf, object: &ObjectFile<'_>) -> Self {
        let entries = entries(object).unwrap_or_default();
        let all = |wanted: u64| entries.iter().filter(move |(tag, _)| *tag == wanted).map(|(_, text)| text.clone());
        let paths: Vec<String> = match all(DT_RUNPATH).next() {
            Some(_) => all(DT_RUNPATH).collect(),
            None => all(DT_RPATH).collect(),
        };
        let origin = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let place = |folder: &str| {
            let origin = origin.to_string_lossy();
            PathBuf::from(folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
        };
        let folders = paths.iter().flat_map(|list| list.split(':')).filter(|one| !one.is_empty()).map(place).collect();
        let own_name = all(DT_SONAME).next();
        Self { own_name, needed: all(DT_NEEDED).collect(), folders, objects: Vec::new(), path }
    }

    /// The names by which others may need it.
    fn names(&self) -> impl Iterator<Item = String> {
        let file = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let path = self.path.to_string_lossy().into_owned();
        self.own_name.clone().into_iter().chain(file).chain([path])
    }
}

/// Entries of the dynamic section whose value is a text.
fn entries(object: &ObjectFile<'_>) -> Option<Vec<(u64, String)>> {
    let table = object.section(".dynamic").ok()??;
    let strings = object.section(".dynstr").ok()??;
    let word = if object.is_64() { 8 } else { 4 };
    let number = |bytes: &[u8]| {
        let mut wide = [0; 8];
        let bytes: Vec<u8> = match object.is_little_endian() {
            true => bytes.to_vec(),
            false => bytes.iter().rev().copied().collect(),
        };
        wide.get_mut(..word)?.copy_from_slice(bytes.get(..word)?);
        Some(u64::from_le_bytes(wide))
    };
    let mut entries = Vec::new();
    for entry in table.data.chunks_exact(2 * word) {
        let (tag, value) = (number(entry.get(..word)?)?, number(entry.get(word..)?)?);
        if tag == 0 || entries.len() > LIBRARIES_MAX {
            break;
        }
        if [DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH].contains(&tag) {
            let text = strings.data.get(usize::try_from(value).ok()?..)?;
            let text = text.split(|byte| *byte == 0).next()?;
            // No path is longer (PATH_MAX of Linux).
            if text.len() > PATH_BYTES_MAX {
                continue;
            }
            entries.push((tag, String::from_utf8_lossy(text).into_owned()));
        }
    }
    Some(entries)
}

/// Objects in the order in which they are loaded.
struct Loaded<'p> {
    program: &'p Path,
    options: InputOptions,
    kind: Kind,
    objects: Vec<Needs>,
}

impl Loaded<'_> {
    /// Loads what is needed, breadth first. What is not found is nothing.
    fn load(&mut self) {
        let mut by_name = BTreeMap::new();
        let mut at = 0;
        while let Some(names) = self.objects.get(at).map(|object| object.needed.clone()) {
            for name in names {
                let known = match by_name.get(&name) {
                    Some(known) => *known,
                    None => {
                        let known = self.find(&name, at).map(|found| {
                            self.objects.push(found);
                            self.objects.len() - 1
                        });
                        by_name.insert(name, known);
                        known
                    }
                };
                if let (Some(object), Some(needed)) = (self.objects.get_mut(at), known) {
                    object.objects.push(needed);
                }
            }
            at += 1;
        }
    }

    fn find(&self, name: &str, by: usize) -> Option<Needs> {
        if self.objects.len() > LIBRARIES_MAX {
            return None;
        }
        if name.contains('/') {
            return self.open(PathBuf::from(name));
        }
        let own = self.objects.get(by).map(|object| object.folders.as_slice()).unwrap_or_default();
        // Moved together with the program, libraries are beside it, whatever it was linked with.
        let beside = self.program.parent().map(Path::to_owned);
        let usual = self.kind.folders().iter().chain(&USUAL_FOLDERS).map(PathBuf::from);
        own.iter().cloned().chain(beside).chain(usual).find_map(|folder| self.open(folder.join(name)))
    }

    fn open(&self, path: PathBuf) -> Option<Needs> {
        if !path.is_file() {
            return None;
        }
        let binary = Binary::open(&path, self.options).ok()?;
        let object = ObjectFile::parse(&binary, None).ok()?;
        (Kind::of(&object) == self.kind).then(|| Needs::of(path, &object))
    }
}

/// An object, and what it needs of those that are left, which are taken: breadth first, as they are loaded.
fn group(root: Needs, by_name: &BTreeMap<String, usize>, left: &mut [Option<Needs>]) -> Vec<Needs> {
    let mut group = vec![root];
    // Where the objects are in the group that were taken from those left.
    let mut taken = BTreeMap::new();
    let mut at = 0;
    while let Some(names) = group.get(at).map(|object| object.needed.clone()) {
        for of_all in names.iter().filter_map(|name| by_name.get(name)) {
            if let Some(needed) = left.get_mut(*of_all).and_then(Option::take) {
                taken.insert(*of_all, group.len());
                group.push(needed);
            }
            if let (Some(object), Some(needed)) = (group.get_mut(at), taken.get(of_all)) {
                object.objects.push(*needed);
            }
        }
        at += 1;
    }
    group
}

/// Objects in the order in which they are started, by their places in that in which they were loaded.
fn start_order(objects: &[Needs]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut is_visited = vec![false; objects.len()];
    for last in (0..objects.len()).rev() {
        visit(objects, last, &mut is_visited, &mut order);
    }
    order
}

/// Those that an object needs, then the object. Without recursion: a chain may have as many as there are.
fn visit(objects: &[Needs], first: usize, is_visited: &mut [bool], order: &mut Vec<usize>) {
    let mut open = vec![(first, 0)];
    while let Some((at, next)) = open.last_mut() {
        let at = *at;
        if *next == 0 && std::mem::replace(&mut is_visited[at], true) {
            open.pop();
            continue;
        }
        let needed = objects.get(at).and_then(|object| object.objects.get(*next)).copied();
        *next += 1;
        match needed {
            Some(needed) if !is_visited[needed] => open.push((needed, 0)),
            Some(_) => {}
            None => {
                order.push(at);
                open.pop();
            }
        }
    }
}
