//! Where the symbols and debug data of a stripped program are.
//!
//! The order and the places are those of gdb's manual, "Debugging Information in Separate Files", and of elfutils'
//! `debuginfod(8)` and `debuginfod-find(1)`; MiniDebugInfo is described in gdb's manual, too.

use std::ffi::OsStr;
use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anytrace_core::InputOptions;
use object::{Object, ObjectSection};

use crate::{Binary, ObjectFile};

/// Where distributions install debug files.
const USUAL_FOLDER: &str = "/usr/lib/debug";

/// Further folders of that kind, separated by colons.
const FOLDERS_VARIABLE: &str = "ANYTRACE_DEBUG_DIR";

/// Servers that may be asked for debug files, as for gdb and elfutils. Where it is not set, none is.
const SERVERS_VARIABLE: &str = "DEBUGINFOD_URLS";

/// The section of MiniDebugInfo.
const MINI: &str = ".gnu_debugdata";

/// Most bytes of MiniDebugInfo: symbols of functions alone. The window of the decompressor, which may be declared larger,
/// is only used as far as there are bytes for it.
const MINI_BYTES_MAX: u64 = 256 << 20;

/// The debug files of a program.
#[derive(Default)]
pub(crate) struct Separate {
    /// The one with its symbol table and debug data.
    pub(crate) debug: Option<Binary>,
    /// MiniDebugInfo: symbols of functions that it does not export.
    pub(crate) mini: Option<Binary>,
}

/// A search for the debug files of one program.
pub(super) struct Search<'s, 'a> {
    /// Where it is.
    pub(super) path: &'s Path,
    pub(super) object: &'s ObjectFile<'a>,
    pub(super) options: InputOptions,
}

impl Search<'_, '_> {
    /// What was found.
    pub(super) fn run(&self, notes: &mut Vec<String>) -> Separate {
        if self.object.has_section(".debug_info") {
            return Separate::default();
        }
        let (link, is_stripped) = (self.link(), !self.object.has_symbols());
        let debug = self.local(link.as_ref(), notes).or_else(|| {
            // A program with symbols was not stripped; nobody keeps debug data of what was compiled without.
            (is_stripped || link.is_some()).then(|| self.ask_servers(notes)).flatten()
        });
        if let (None, Some(link)) = (&debug, link) {
            let (name, missing) = (self.object.name(), link.name.display());
            let servers = if servers().is_some() { "" } else { "; no server is asked, as DEBUGINFOD_URLS is not set" };
            notes.push(format!("{name}: its debug data are in {missing}, which is missing{servers}"));
        }
        let needs_mini = is_stripped && debug.is_none();
        Separate { mini: needs_mini.then(|| self.mini(notes)).flatten(), debug }
    }

    /// The first file that fits, of those on this machine.
    fn local(&self, link: Option<&Link>, notes: &mut Vec<String>) -> Option<Binary> {
        for place in self.by_build_id() {
            if let Some(file) = self.fitting(&place, None, notes) {
                return Some(file);
            }
        }
        let link = link?;
        self.by_name(&link.name).iter().find_map(|place| self.fitting(place, Some(link.checksum), notes))
    }

    fn by_build_id(&self) -> Vec<PathBuf> {
        let Some(id) = self.object.build_id().map(hexadecimal) else { return Vec::new() };
        let Some((first, rest)) = id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty()) else {
            return Vec::new();
        };
        let below = Path::new(".build-id").join(first).join(format!("{rest}.debug"));
        let mut places: Vec<_> = folders().into_iter().map(|folder| folder.join(&below)).collect();
        // What debuggers have fetched before.
        places.extend(fetched().map(|folder| folder.join(id).join("debuginfo")));
        places
    }

    fn by_name(&self, name: &Path) -> Vec<PathBuf> {
        let path = self.path;
        // Links are followed: a program is often named by one, and its debug file is beside what that names.
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut places = Vec::new();
        for path in [path, &real] {
            let folder = path.parent().unwrap_or(Path::new(""));
            let absolute = std::path::absolute(folder).unwrap_or_default();
            let below = absolute.strip_prefix("/").unwrap_or(&absolute);
            places.extend([folder.join(name), folder.join(".debug").join(name)]);
            places.extend(folders().iter().map(|root| root.join(below).join(name)));
        }
        places.retain(|place| place != path && *place != real);
        places.dedup();
        places
    }

    /// Opens a file if it is of this program: of the same build id, or, where one of the two has none, with the checksum
    /// that the program states.
    fn fitting(&self, place: &Path, checksum: Option<u32>, notes: &mut Vec<String>) -> Option<Binary> {
        if !place.is_file() {
            return None;
        }
        let shown = place.display();
        let binary = match Binary::open(place, self.options) {
            Ok(binary) => binary,
            Err(error) => {
                notes.push(format!("{}: its debug file is not used: {error}", self.object.name()));
                return None;
            }
        };
        let object = match ObjectFile::parse(&binary, None) {
            Ok(object) => object,
            Err(error) => {
                notes.push(format!("{}: its debug file is not used: {error}", self.object.name()));
                return None;
            }
        };
        let is_same = match (self.object.build_id(), object.build_id()) {
            (Some(own), Some(other)) => own == other,
            _ => checksum.is_none_or(|checksum| checksum == crc32(binary.bytes())),
        };
        if !is_same {
            notes.push(format!("{}: {shown} is the debug file of another build and is not used", self.object.name()));
            return None;
        }
        Some(binary)
    }

    /// The name and checksum of the debug file, as the linker or `objcopy --add-gnu-debuglink` wrote it.
    fn link(&self) -> Option<Link> {
        let (name, checksum) = self.object.file.gnu_debuglink().ok().flatten()?;
        // A name, not a path: a file must not lead elsewhere.
        let name = PathBuf::from(Path::new(&*String::from_utf8_lossy(name)).file_name()?);
        Some(Link { name, checksum })
    }

    /// Has elfutils' program ask the servers; it knows their protocol, and keeps what it gets where [`fetched`] finds it.
    fn ask_servers(&self, notes: &mut Vec<String>) -> Option<Binary> {
        let servers = servers()?;
        let (name, id) = (self.object.name(), hexadecimal(self.object.build_id()?));
        let command = Command::new("debuginfod-find").args(["debuginfo", &id]).stdin(Stdio::null()).output();
        match command {
            Ok(output) if output.status.success() => {
                let path = PathBuf::from(OsStr::new(String::from_utf8_lossy(&output.stdout).trim_end()));
                notes.push(format!("{name}: its debug data came from a server (DEBUGINFOD_URLS)"));
                self.fitting(&path, None, notes)
            }
            Ok(_) => {
                let servers = servers.to_string_lossy().into_owned();
                notes.push(format!("{name}: no debug data at {servers} (DEBUGINFOD_URLS)"));
                None
            }
            Err(_) => {
                notes.push(format!(
                    "{name}: DEBUGINFOD_URLS names servers, but the program that asks them is missing: debuginfod-find, \
                     of elfutils (Debian: apt-get install debuginfod)"
                ));
                None
            }
        }
    }

    /// MiniDebugInfo: a packed object file with symbols, in a section of the program.
    fn mini(&self, notes: &mut Vec<String>) -> Option<Binary> {
        let section = self.object.file.section_by_name(MINI)?;
        let packed = section.data().ok()?;
        let mut bytes = Vec::new();
        let reader = lzma_rust2::XzReader::new(packed, false);
        let read = reader.take(MINI_BYTES_MAX + 1).read_to_end(&mut bytes);
        let wrong = match read {
            Ok(read) if read as u64 > MINI_BYTES_MAX => Some("is too long".to_owned()),
            Ok(_) => None,
            Err(error) => Some(format!("cannot be unpacked: {error}")),
        };
        if let Some(wrong) = wrong {
            notes.push(format!("{}: its section {MINI} {wrong}", self.object.name()));
            return None;
        }
        Some(Binary::from_bytes(&format!("{} ({MINI})", self.object.name()), bytes))
    }
}

/// What `.gnu_debuglink` says.
struct Link {
    name: PathBuf,
    checksum: u32,
}

fn servers() -> Option<std::ffi::OsString> {
    std::env::var_os(SERVERS_VARIABLE).filter(|servers| !servers.is_empty())
}

fn folders() -> Vec<PathBuf> {
    let own = std::env::var_os(FOLDERS_VARIABLE).unwrap_or_default();
    let own: Vec<_> = std::env::split_paths(&own).filter(|folder| !folder.as_os_str().is_empty()).collect();
    own.into_iter().chain([PathBuf::from(USUAL_FOLDER)]).collect()
}

/// Where elfutils keeps what it fetched.
fn fetched() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("DEBUGINFOD_CACHE_PATH")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("debuginfod_client")))
        .or_else(|| set("HOME").map(|folder| folder.join(".cache/debuginfod_client")))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The checksum of `.gnu_debuglink`: that of gzip and zlib.
fn crc32(bytes: &[u8]) -> u32 {
    let mut checksum = flate2::Crc::new();
    checksum.update(bytes);
    checksum.sum()
}
