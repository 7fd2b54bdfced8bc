//! Both packages installed in temporary folders, and the program used from there.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Release;
use crate::shell::{examples, has_program, output, skip};

pub(super) fn run(tarball: &Path, deb: &Path, release: &Release, work: &Path) -> Result<(), String> {
    let folder = work.join("tarball");
    let bytes = std::fs::File::open(tarball).map_err(|error| format!("{}: {error}", tarball.display()))?;
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
    archive.unpack(&folder).map_err(|error| format!("{}: {error}", tarball.display()))?;
    let top = folder.join(release.name());
    use_program(&top.join("bin/anytrace"), release)?;
    use_documents(&top.join("share"), "anytrace.1")?;
    try_deb(deb, release, &work.join("deb"))
}

/// dpkg installs into a folder as it does into `/`, and removes the package again; without the rights for that, the
/// package is only unpacked.
fn try_deb(deb: &Path, release: &Release, folder: &Path) -> Result<(), String> {
    if !has_program("dpkg-deb") {
        return skip("dpkg-deb is not installed: the Debian package was not tried");
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
        output(dpkg(&["--install"]).arg(deb))?;
    } else {
        output(Command::new("dpkg-deb").arg("--extract").arg(deb).arg(folder))?;
    }
    let program = folder.join("usr/bin/anytrace");
    use_program(&program, release)?;
    use_documents(&folder.join("usr/share"), "anytrace.1.gz")?;
    if is_root {
        output(&mut dpkg(&["--remove", "anytrace"]))?;
        if program.exists() {
            return Err(format!("{}: still there after the package was removed", program.display()));
        }
    }
    Ok(())
}

/// The main job of the README, and the version.
fn use_program(program: &Path, release: &Release) -> Result<(), String> {
    let version = output(Command::new(program).arg("--version"))?;
    let version = String::from_utf8_lossy(&version).trim().to_owned();
    if version != format!("anytrace {}", release.version) {
        return Err(format!("{}: --version prints {version}, expected {}", program.display(), release.version));
    }
    for trace in examples()? {
        output(Command::new(program).arg("info").arg(trace))?;
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
