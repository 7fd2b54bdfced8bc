//! The user's Rust compiler, which makes the recorder's library.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::FOLDER;
use crate::failure::Failure;

/// Makes both forms of the library in a folder: one call of the compiler, as the recorder has no dependencies.
pub(super) fn compile(source: &Path, to: &Path) -> Result<(), Failure> {
    let named = std::env::var_os("RUSTC").filter(|name| !name.is_empty());
    let first = named.clone().unwrap_or_else(|| "rustc".into());
    let failure = match attempt(&first, source, to) {
        Ok(()) => return Ok(()),
        Err(failure) => failure,
    };
    // `rustc` may be rustup's, which finds nothing where HOME is not the user's. Toolchains lie beside it.
    let others = if named.is_some() { Vec::new() } else { toolchains(&folders()) };
    if others.iter().any(|other| attempt(other.as_os_str(), source, to).is_ok()) {
        return Ok(());
    }
    Err(failure)
}

fn attempt(rustc: &std::ffi::OsStr, source: &Path, to: &Path) -> Result<(), Failure> {
    let output = call(rustc, source, to).map_err(|error| {
        Failure::usage(format!(
            "cannot build the recorder: {} cannot be run: {error}; install Rust, or set RUSTC to the compiler or \
             {FOLDER} to the folder of a prebuilt library",
            rustc.display()
        ))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Failure::usage(format!("cannot build the recorder: {} failed:\n{said}", rustc.display())))
}

fn call(rustc: &std::ffi::OsStr, source: &Path, to: &Path) -> std::io::Result<Output> {
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "--cfg", "feature=\"engine\"", "--crate-name", "anytrace_cacheray_recorder"]);
    command.args(["--crate-type", "staticlib", "--crate-type", "cdylib", "--cap-lints", "allow"]);
    command.args(["-C", "opt-level=3", "-C", "codegen-units=1", "-C", "strip=debuginfo"]);
    // The compiler links by `cc`; where only the others exist, name one.
    let is_here = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    if let Some(linker) = ["cc", "gcc", "clang"].into_iter().find(is_here) {
        command.args(["-C", &format!("linker={linker}")]);
    }
    command.arg("--out-dir").arg(to).arg(source).stdin(Stdio::null());
    // What is meant for the user's own programs would instrument the recorder.
    command.env_remove("RUSTFLAGS").env_remove("LD_PRELOAD");
    command.output()
}

/// Folders where rustup may have put its own programs: those of `PATH`, and this program's.
fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
    std::env::split_paths(&path).chain(own).collect()
}

/// Compilers of the toolchains in `.rustup` beside `.cargo`, of whose `bin` there is one among the folders: the stable
/// one first, then the others, later names before earlier ones.
fn toolchains(folders: &[PathBuf]) -> Vec<OsString> {
    let homes = folders.iter().filter(|folder| folder.ends_with(".cargo/bin"));
    let places = homes.filter_map(|folder| folder.ancestors().nth(2)).map(|home| home.join(".rustup/toolchains"));
    let mut found: Vec<PathBuf> = places
        .flat_map(|place| fs::read_dir(place).into_iter().flatten().flatten())
        .map(|toolchain| toolchain.path().join("bin/rustc"))
        .filter(|rustc| rustc.is_file())
        .collect();
    let is_stable = |rustc: &PathBuf| rustc.to_string_lossy().contains("/stable-");
    found.sort_by(|a, b| is_stable(b).cmp(&is_stable(a)).then_with(|| b.cmp(a)));
    found.dedup();
    found.into_iter().map(PathBuf::into_os_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolchains_beside_a_cargo_folder_are_found_stable_first() {
        let home = tempfile::tempdir().unwrap();
        for name in ["1.90.0-x", "nightly-x", "stable-x"] {
            let bin = home.path().join(".rustup/toolchains").join(name).join("bin");
            fs::create_dir_all(&bin).unwrap();
            fs::write(bin.join("rustc"), "").unwrap();
        }
        fs::create_dir_all(home.path().join(".rustup/toolchains/empty")).unwrap();
        let found = toolchains(&["/usr/bin".into(), home.path().join(".cargo/bin"), home.path().join(".cargo/bin")]);
        let place = home.path().join(".rustup/toolchains");
        let names: Vec<_> = found
            .iter()
            .map(|rustc| Path::new(rustc).strip_prefix(&place).unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["stable-x/bin/rustc", "nightly-x/bin/rustc", "1.90.0-x/bin/rustc"]);
    }
}
