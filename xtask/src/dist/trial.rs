//! The packages installed in temporary folders, and the programs used from there.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Release;
use super::contents::OTLP;
use crate::shell::{examples, has_program, output, root, skip};

/// Installs packages, the command's first, and uses what is in them.
pub(super) fn run(packages: &[&Path], release: &Release, work: &Path) -> Result<(), String> {
    let is_deb = |path: &&&Path| path.extension().is_some_and(|extension| extension == "deb");
    let folder = work.join("tarball");
    for tarball in packages.iter().filter(|path| !is_deb(path)) {
        let failed = |error: std::io::Error| format!("{}: {error}", tarball.display());
        let bytes = std::fs::File::open(tarball).map_err(failed)?;
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
        archive.unpack(&folder).map_err(failed)?;
    }
    let top = folder.join(release.name());
    let has_engine = packages.len() > 2;
    use_programs(&top.join("bin"), release, has_engine)?;
    use_documents(&top.join("share"), "anytrace.1")?;
    use_alone(&top.join("bin"), &work.join("alone"), has_engine)?;
    let debs: Vec<&Path> = packages.iter().filter(is_deb).copied().collect();
    try_debs(&debs, release, &work.join("deb"))
}

/// dpkg installs into a folder as it does into `/`, and removes the packages again; without the rights for that, the
/// packages are only unpacked.
fn try_debs(debs: &[&Path], release: &Release, folder: &Path) -> Result<(), String> {
    if !has_program("dpkg-deb") {
        return skip("dpkg-deb is not installed: the Debian packages were not tried");
    }
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let is_root = nix::unistd::geteuid().is_root();
    let dpkg = |arguments: &[&str]| {
        let mut command = Command::new("dpkg");
        command.arg("--root").arg(folder).args(arguments);
        command
    };
    if is_root {
        std::fs::create_dir_all(folder.join("var/lib/dpkg/updates")).map_err(failed)?;
        std::fs::create_dir_all(folder.join("var/lib/dpkg/info")).map_err(failed)?;
        std::fs::write(folder.join("var/lib/dpkg/status"), "").map_err(failed)?;
        output(dpkg(&["--install"]).args(debs))?;
    } else {
        debs.iter()
            .try_for_each(|deb| output(Command::new("dpkg-deb").arg("--extract").arg(deb).arg(folder)).map(drop))?;
    }
    let programs = folder.join("usr/bin");
    use_programs(&programs, release, debs.len() > 1)?;
    use_documents(&folder.join("usr/share"), "anytrace.1.gz")?;
    let trace = root().join("examples/traces/imm.trace");
    output(Command::new(folder.join("usr/lib/anytrace/apitrace")).args(["dump", "--calls=frame"]).arg(trace))?;
    if is_root {
        for package in ["anytrace-query", "anytrace"].iter().filter(|name| programs.join(name).exists()) {
            output(&mut dpkg(&["--remove", package]))?;
            let program = programs.join(package);
            if program.exists() {
                return Err(format!("{}: still there after the package was removed", program.display()));
            }
        }
    }
    Ok(())
}

/// What needs a dynamic loader is where the command looks for it, if the packages have it: the recorder of OpenGL, and the
/// program that replays.
fn use_loaded(program: &Path) -> Result<(), String> {
    let folder = program.parent().map(|bin| bin.join("../lib/anytrace")).unwrap_or_default();
    if !folder.join(super::contents::RECORDER).is_file() {
        return Ok(());
    }
    // A program that does not draw: the complaint is of that, not of the library.
    let output =
        Command::new(program).args(["apitrace", "trace", "-o"]).arg(folder.join("x")).args(["--", "true"]).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !said.contains("nothing was recorded") {
        return Err(format!("{}: {said}", program.display()));
    }
    // A driver is loaded by another program than the one that is called.
    if Command::new(program)
        .args(["apitrace", "replay", "--list-devices"])
        .output()
        .is_ok_and(|output| !output.status.success())
    {
        return skip("no EGL: the packages' replay was not tried");
    }
    let trace = root().join("examples/traces/imm.trace");
    let sums =
        output_of(Command::new(folder.join("glretrace")).args(["-s", "-", "--snapshot-format", "MD5"]).arg(trace))?;
    if sums.lines().count() == 4 {
        Ok(())
    } else {
        Err(format!("{}: sums of 4 frames expected:\n{sums}", program.display()))
    }
}

fn output_of(command: &mut Command) -> Result<String, String> {
    output(command.env("LIBGL_ALWAYS_SOFTWARE", "1")).map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// The main job of the README, a query where the engine is there, and the versions.
fn use_programs(folder: &Path, release: &Release, has_engine: bool) -> Result<(), String> {
    let names = [("anytrace", true), ("anytrace-query", has_engine), (OTLP, folder.join(OTLP).exists())];
    for (name, _) in names.iter().filter(|(_, is_there)| *is_there) {
        let program = folder.join(name);
        let version = output(Command::new(&program).arg("--version"))?;
        let version = String::from_utf8_lossy(&version).trim().to_owned();
        if version != format!("{name} {}", release.version) {
            return Err(format!("{}: --version prints {version}, expected {}", program.display(), release.version));
        }
    }
    let program = folder.join("anytrace");
    use_loaded(&program)?;
    for trace in examples()? {
        output(Command::new(&program).arg("info").arg(&trace))?;
        if has_engine {
            query(&mut Command::new(&program), &trace)?;
        }
    }
    Ok(())
}

/// A query of which the answer is known.
fn query(program: &mut Command, trace: &Path) -> Result<(), String> {
    let answer = output(program.arg("query").arg(trace).arg("SELECT count(*) > 0 AS has_events FROM events"))?;
    if answer == b"has_events\ntrue\n" {
        Ok(())
    } else {
        Err(format!("{}: query prints\n{}", trace.display(), String::from_utf8_lossy(&answer)))
    }
}

/// The programs in a root folder with nothing but themselves and the traces: no loader, no library, no `/proc`.
fn use_alone(programs: &Path, folder: &Path, has_engine: bool) -> Result<(), String> {
    if !has_program("chroot") || !nix::unistd::geteuid().is_root() {
        return skip("chroot needs root: the programs were not tried in an empty root folder");
    }
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder.join("bin")).map_err(failed)?;
    for name in ["anytrace", "anytrace-query"].iter().take(1 + usize::from(has_engine)) {
        std::fs::copy(programs.join(name), folder.join("bin").join(name)).map_err(failed)?;
    }
    for trace in examples()? {
        let name = trace.file_name().unwrap_or_default();
        std::fs::copy(&trace, folder.join(name)).map_err(failed)?;
        let inside = Path::new("/").join(name);
        let alone = || {
            let mut command = Command::new("chroot");
            // The command looks for its engine beside itself, which needs /proc, then here.
            command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").arg(folder).arg("/bin/anytrace");
            command
        };
        output(alone().arg("info").arg(&inside))?;
        output(alone().args(["dump", "--format", "jsonl"]).arg(&inside))?;
        if has_engine {
            query(&mut alone(), &inside)?;
        }
    }
    Ok(())
}

/// The manual page is formatted, and bash knows the completions.
fn use_documents(share: &Path, page: &str) -> Result<(), String> {
    let page = share.join("man/man1").join(page);
    if has_program("man") {
        let text = output(Command::new("man").arg("-l").arg(&page).env("MANPAGER", "cat").env("LC_ALL", "C.UTF-8"))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        if !text.contains("anytrace") || !text.contains("NAME") {
            return Err(format!("{}: man shows\n{text}", page.display()));
        }
    } else {
        skip("man is not installed: the manual page was not formatted")?;
    }
    let script = share.join("bash-completion/completions/anytrace");
    complete(&script)
}

fn complete(script: &PathBuf) -> Result<(), String> {
    if !has_program("bash") {
        return skip("bash is not installed: the completions were not loaded");
    }
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-e", "-c", ". \"$1\"; complete -p anytrace", "bash"]).arg(script);
    output(&mut bash).map(drop)
}
