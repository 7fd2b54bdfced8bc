//! The files of the packages.

use std::path::Path;
use std::process::Command;

use super::archive::{Entry, ar, gzip, tar_gz};
use super::{Release, notices};
use crate::shell::{output, root};

/// The library that `anytrace apitrace trace` loads into programs.
pub(super) const RECORDER: &str = "libanytrace_apitrace_recorder.so";

/// The command that loads drivers: the other is linked statically.
const DYNAMIC: &str = "anytrace-dynamic";

/// The program for OpenTelemetry's protocol.
pub(super) const OTLP: &str = "anytrace-otlp";

/// What a dynamic loader is needed for.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) recorder: Option<Vec<u8>>,
    pub(super) program: Option<Vec<u8>>,
}

#[derive(Debug)]
pub(super) struct Contents {
    program: Vec<u8>,
    /// The program for OTLP, with the licenses of what is linked into it.
    otlp: Option<(Vec<u8>, String)>,
    loaded: Loaded,
    /// Name and text of each manual page.
    pages: Vec<(String, Vec<u8>)>,
    bash: Vec<u8>,
    fish: Vec<u8>,
    zsh: Vec<u8>,
    readme: Vec<u8>,
    changes: Vec<u8>,
    mit: Vec<u8>,
    apache: Vec<u8>,
    /// Names and licenses of the crates that are linked in.
    notices: String,
}

impl Contents {
    /// Has the program write its pages and scripts; reads the rest from the project.
    pub(super) fn gather(
        binary: &Path,
        (program, otlp): (Vec<u8>, Option<Vec<u8>>),
        loaded: Loaded,
        release: &Release,
        work: &Path,
    ) -> Result<Self, String> {
        let read = |name: &str| std::fs::read(root().join(name)).map_err(|error| format!("{name}: {error}"));
        let binary = std::path::absolute(binary).map_err(|error| format!("{}: {error}", binary.display()))?;
        let folder = work.join("pages");
        output(Command::new(&binary).args(["man", "--force", "--dir"]).arg(&folder))?;
        let script = |shell: &str| output(Command::new(&binary).args(["completions", shell]));
        let with_notices = |program| Ok::<_, String>((program, notices::of(OTLP, &release.target)?));
        Ok(Self {
            program,
            otlp: otlp.map(with_notices).transpose()?,
            loaded,
            pages: pages(&folder)?,
            bash: script("bash")?,
            fish: script("fish")?,
            zsh: script("zsh")?,
            // The one that needs no other file of the project.
            readme: read("crates/cli/README.md")?,
            changes: read("CHANGELOG.md")?,
            mit: read("LICENSE-MIT")?,
            apache: read("LICENSE-APACHE")?,
            notices: notices::of("anytrace", &release.target)?,
        })
    }

    fn program(&self, path: &str) -> Entry {
        Entry::program(path, self.program.clone())
    }

    /// The program for OTLP beside the command, which looks for it there; its licenses in another folder.
    fn otlp(&self, programs: &str, documents: &str) -> Vec<Entry> {
        let Some((program, notices)) = &self.otlp else { return Vec::new() };
        let notices = Entry::file(format!("{documents}LICENSES-DEPENDENCIES-{OTLP}"), notices.as_str());
        vec![Entry::program(format!("{programs}/{OTLP}"), program.clone()), notices]
    }

    /// What a dynamic loader is needed for, in a folder.
    fn loaded(&self, folder: &str) -> Vec<Entry> {
        let recorder =
            self.loaded.recorder.iter().map(|bytes| Entry::file(format!("{folder}/{RECORDER}"), bytes.clone()));
        let program = self.loaded.program.iter();
        recorder.chain(program.map(|bytes| Entry::program(format!("{folder}/{DYNAMIC}"), bytes.clone()))).collect()
    }

    /// One folder that can be unpacked anywhere; `bin` and `share` are laid out as in `/usr/local`.
    pub(super) fn tarball(&self, release: &Release) -> Result<Vec<u8>, String> {
        let mut entries = vec![
            self.program("bin/anytrace"),
            Entry::file("README.md", self.readme.clone()),
            Entry::file("CHANGELOG.md", self.changes.clone()),
            Entry::file("LICENSE-MIT", self.mit.clone()),
            Entry::file("LICENSE-APACHE", self.apache.clone()),
            Entry::file("LICENSES-DEPENDENCIES", self.notices.as_str()),
            Entry::file("share/bash-completion/completions/anytrace", self.bash.clone()),
            Entry::file("share/fish/vendor_completions.d/anytrace.fish", self.fish.clone()),
            Entry::file("share/zsh/site-functions/_anytrace", self.zsh.clone()),
        ];
        entries
            .extend(self.pages.iter().map(|(name, text)| Entry::file(format!("share/man/man1/{name}"), text.clone())));
        entries.extend(self.otlp("bin", ""));
        entries.extend(self.loaded("lib/anytrace"));
        entries.extend(links("lib/anytrace"));
        tar_gz(&release.name(), &entries, release.time_s)
    }

    pub(super) fn deb(&self, release: &Release) -> Result<Vec<u8>, String> {
        let doc = "usr/share/doc/anytrace";
        let mut entries = vec![
            self.program("usr/bin/anytrace"),
            Entry::file("usr/share/bash-completion/completions/anytrace", self.bash.clone()),
            Entry::file("usr/share/fish/vendor_completions.d/anytrace.fish", self.fish.clone()),
            Entry::file("usr/share/zsh/vendor-completions/_anytrace", self.zsh.clone()),
            Entry::file(format!("{doc}/README.md"), self.readme.clone()),
            Entry::file(format!("{doc}/changelog.gz"), gzip(&self.changes)?),
            Entry::file(format!("{doc}/copyright"), self.copyright(&self.notices)),
        ];
        for (name, text) in &self.pages {
            entries.push(Entry::file(format!("usr/share/man/man1/{name}.gz"), gzip(text)?));
        }
        entries.extend(self.otlp("usr/bin", &format!("{doc}/")));
        entries.extend(self.loaded("usr/lib/anytrace"));
        entries.extend(links("usr/lib/anytrace"));
        debian(&entries, &control(release)?, release)
    }

    /// The packages of the engine behind `anytrace query`. The verb's manual page and completions are the command's.
    pub(super) fn engine(&self, program: Vec<u8>, release: &Release) -> Result<Engine<'_>, String> {
        let readme = root().join("crates/query/README.md");
        let readme = std::fs::read(&readme).map_err(|error| format!("{}: {error}", readme.display()))?;
        Ok(Engine { of: self, program, readme, notices: notices::of("anytrace-query", &release.target)? })
    }

    /// What Debian wants in one file.
    fn copyright(&self, notices: &str) -> Vec<u8> {
        let mut text = b"anytrace is licensed under MIT or Apache-2.0, at your option.\n\n".to_vec();
        for part in [&self.mit, &self.apache, notices.as_bytes()] {
            text.extend(part);
            text.extend(b"\n");
        }
        text
    }
}

/// What the packages of `anytrace-query` have.
#[derive(Debug)]
pub(super) struct Engine<'a> {
    of: &'a Contents,
    program: Vec<u8>,
    readme: Vec<u8>,
    notices: String,
}

impl Engine<'_> {
    fn program(&self, path: &str) -> Entry {
        Entry::program(path, self.program.clone())
    }

    /// Unpacked where the command's was, it is beside the command, which looks for it there.
    pub(super) fn tarball(&self, release: &Release) -> Result<Vec<u8>, String> {
        let entries = [
            self.program("bin/anytrace-query"),
            Entry::file("README-anytrace-query.md", self.readme.clone()),
            Entry::file("LICENSE-MIT", self.of.mit.clone()),
            Entry::file("LICENSE-APACHE", self.of.apache.clone()),
            Entry::file("LICENSES-DEPENDENCIES-anytrace-query", self.notices.as_str()),
        ];
        tar_gz(&release.name(), &entries, release.time_s)
    }

    pub(super) fn deb(&self, release: &Release) -> Result<Vec<u8>, String> {
        let doc = "usr/share/doc/anytrace-query";
        let entries = [
            self.program("usr/bin/anytrace-query"),
            Entry::file(format!("{doc}/README.md"), self.readme.clone()),
            Entry::file(format!("{doc}/changelog.gz"), gzip(&self.of.changes)?),
            Entry::file(format!("{doc}/copyright"), self.of.copyright(&self.notices)),
        ];
        debian(&entries, &engine_control(release)?, release)
    }
}

/// The names of programs as which the command behaves, where they hide no other package's.
fn links(folder: &str) -> Vec<Entry> {
    let names = ["apitrace", "eglretrace", "glretrace"];
    names.into_iter().map(|name| Entry::link(format!("{folder}/{name}"), "../../bin/anytrace")).collect()
}

/// A Debian package.
fn debian(entries: &[Entry], control: &str, release: &Release) -> Result<Vec<u8>, String> {
    let installed_kib: usize = entries.iter().map(|entry| entry.bytes.len().div_ceil(1024)).sum();
    let control = [Entry::file("control", control.replace("INSTALLED", &installed_kib.to_string()))];
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tar_gz(".", &control, release.time_s)?),
        ("data.tar.gz", tar_gz(".", entries, release.time_s)?),
    ];
    Ok(ar(&members, release.time_s))
}

/// The manual pages in a folder, by name.
fn pages(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let text = std::fs::read(entry.path()).map_err(failed)?;
        pages.push((entry.file_name().to_string_lossy().into_owned(), text));
    }
    pages.sort();
    if pages.is_empty() { Err(format!("{}: no manual page was written", folder.display())) } else { Ok(pages) }
}

/// The file by which dpkg knows the package, with the installed size left open. A static program depends on no other
/// package.
fn control(release: &Release) -> Result<String, String> {
    let Release { version, description, maintainer, .. } = release;
    let architecture = release.architecture()?;
    Ok(format!(
        "Package: anytrace\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {maintainer}\n\
         Installed-Size: INSTALLED\nSection: devel\nPriority: optional\nSuggests: anytrace-query\n\
         Description: {description}\n \"anytrace formats\" lists the formats.\n",
    ))
}

/// The same of the engine, which works with the command of its own version only.
fn engine_control(release: &Release) -> Result<String, String> {
    let Release { version, maintainer, .. } = release;
    let architecture = release.architecture()?;
    Ok(format!(
        "Package: anytrace-query\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {maintainer}\n\
         Installed-Size: INSTALLED\nDepends: anytrace (= {version})\nSection: devel\nPriority: optional\n\
         Description: SQL on program traces\n The engine behind \"anytrace query\".\n",
    ))
}
