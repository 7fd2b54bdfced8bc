//! The recorder's library: found, or built once with the user's own `rustc` from the sources in this program.

mod rust_compiler;
mod sources;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::paint;
use sources::{BUILTINS, SOURCES, fingerprint, hash};

pub(super) use sources::HEADER;

/// Names a folder with both libraries, before all other places.
const FOLDER: &str = "ANYTRACE_CACHERAY_RECORDER";
const ARCHIVE: &str = "libanytrace_cacheray_recorder.a";
const SHARED: &str = "libanytrace_cacheray_recorder.so";

/// The library's two forms.
#[derive(Debug)]
pub(super) struct Library {
    /// For linking into programs.
    pub(super) archive: PathBuf,
    /// For loading into programs that were linked without it, and for shared libraries that must have no holes.
    pub(super) shared: PathBuf,
}

/// Where that header is, for the compiler to include: in the cache, beside the libraries made there.
pub(super) fn builtins() -> Result<PathBuf, Failure> {
    let folder = cache()?;
    let parent = folder.parent().unwrap_or(Path::new("."));
    let path = parent.join(format!("cacheray_builtins-{:016x}.h", hash(BUILTINS.bytes())));
    if path.is_file() {
        return Ok(path);
    }
    let failed = |error: &dyn std::fmt::Display| Failure::usage(format!("cannot write {}: {error}", path.display()));
    fs::create_dir_all(parent).map_err(|error| failed(&error))?;
    // Several compilers may run at once: each sees all of it or nothing.
    let mut file = tempfile::NamedTempFile::new_in(parent).map_err(|error| failed(&error))?;
    file.write_all(BUILTINS.as_bytes()).map_err(|error| failed(&error))?;
    file.persist(&path).map_err(|error| failed(&error))?;
    Ok(path)
}

/// Finds the library: in the folder that the environment names, beside this program, in the `lib` beside its folder,
/// in the cache; else builds it into the cache.
pub(super) fn find() -> Result<Library, Failure> {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return library(Path::new(&folder)).ok_or_else(|| {
            let folder = folder.display();
            Failure::usage(format!("{FOLDER} is {folder}, which does not contain both {ARCHIVE} and {SHARED}"))
        });
    }
    let beside = std::env::current_exe().ok().and_then(|exe| fs::canonicalize(exe).ok());
    let folder = beside.as_deref().and_then(Path::parent);
    let near = folder
        .into_iter()
        .flat_map(|folder| [folder.to_owned(), folder.join("../lib"), folder.join("../lib/anytrace")]);
    if let Some(found) = near.into_iter().find_map(|folder| library(&folder)) {
        return Ok(found);
    }
    let cache = cache()?;
    match library(&cache) {
        Some(found) => Ok(found),
        None => build(&cache),
    }
}

fn library(folder: &Path) -> Option<Library> {
    let folder = fs::canonicalize(folder).ok()?;
    let (archive, shared) = (folder.join(ARCHIVE), folder.join(SHARED));
    (archive.is_file() && shared.is_file()).then_some(Library { archive, shared })
}

/// The folder for this very version of the sources.
fn cache() -> Result<PathBuf, Failure> {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| Path::new(&home).join(".cache"));
    let base = base.or_else(home).ok_or_else(|| {
        Failure::usage(format!("no folder for the recorder: neither XDG_CACHE_HOME nor HOME is set; set {FOLDER}"))
    })?;
    Ok(base.join("anytrace").join(format!("cacheray-recorder-{}-{:016x}", env!("CARGO_PKG_VERSION"), fingerprint())))
}

/// Builds both forms into a folder of their own, which gets its name when it is complete.
fn build(cache: &Path) -> Result<Library, Failure> {
    let parent = cache.parent().unwrap_or(Path::new("."));
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot build the recorder in {}: {what}: {error}", parent.display()))
    };
    paint::complain("note", format!("building the recorder (first use only) in {}", cache.display()));
    fs::create_dir_all(parent).map_err(|error| failed("folder", &error))?;
    let work =
        tempfile::Builder::new().prefix(".building-").tempdir_in(parent).map_err(|error| failed("folder", &error))?;
    let sources = work.path().join("src");
    for (name, text) in SOURCES {
        let path = sources.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&sources)).map_err(|error| failed("folder", &error))?;
        let mut file = fs::File::create(path).map_err(|error| failed(name, &error))?;
        file.write_all(text.as_bytes()).map_err(|error| failed(name, &error))?;
    }
    let done = work.path().join("lib");
    rust_compiler::compile(&sources.join("lib.rs"), &done)?;
    // Two may build at the same time: the first one's stays.
    if let Err(error) = fs::rename(&done, cache)
        && library(cache).is_none()
    {
        return Err(failed("name", &error));
    }
    library(cache).ok_or_else(|| failed("result", &"it is not there"))
}
