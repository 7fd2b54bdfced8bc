//! What was mapped into a process: `/proc/PID/maps` (`proc(5)`), and what `anytrace record` keeps of it beside a trace.
//!
//! The latter has, before the kernel's lines, lines that begin with `#`: what they are, and each object, in the order
//! in which the dynamic linker loaded them, with its number in the trace and its build id. A line with `#` that is not
//! known is skipped.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anytrace_core::text::printable;

use crate::places::build_id;

/// The first line of a file that was written here.
const TITLE: &str = "# anytrace maps 1";

/// Most objects of a process, and most lines that are reported.
const OBJECTS_MAX: usize = 10_000;
const NOTES_MAX: usize = 5;

/// A file with code that was mapped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappedObject {
    /// Where it was.
    pub path: PathBuf,
    /// The build id that it had then; empty where it is not known.
    pub build_id: Vec<u8>,
    /// Its number in the trace; `None` where it has none, or where none are known.
    pub number: Option<u32>,
}

/// The objects of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Maps {
    /// The program, then the others: in the order in which they were loaded, or, where that is not known, as it is most
    /// likely.
    pub objects: Vec<MappedObject>,
    /// True where it is known in which order they were loaded: the dynamic linker's own list was read.
    pub is_ordered: bool,
    /// What could not be read, one line each.
    pub notes: Vec<String>,
}

impl Maps {
    /// True for the beginning of a file that [`Self::parse`] reads.
    pub fn is_like(head: &[u8]) -> bool {
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        line == TITLE.as_bytes() || Line::parse(line).is_some()
    }

    /// Reads the lines of a file; those that are none are noted with their numbers. `None` if [`Self::is_like`] says
    /// that it is something else.
    pub fn parse(name: &str, bytes: &[u8]) -> Option<Self> {
        if !Self::is_like(bytes) {
            return None;
        }
        let mut maps = Self::default();
        let (mut mapped, mut known) = (Vec::new(), BTreeSet::new());
        let mut bad = 0_usize;
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            if let Some(comment) = line.strip_prefix(b"# ") {
                maps.comment(comment);
                continue;
            }
            let Some(found) = Line::parse(line) else {
                bad += 1;
                if bad <= NOTES_MAX {
                    let shown: String = String::from_utf8_lossy(line).chars().take(60).collect();
                    let expected = "expected a mapping as in /proc/PID/maps, found";
                    maps.notes.push(format!("{name}: line {number}: {expected} {}", printable(&shown)));
                }
                continue;
            };
            if let Some(path) = found.code()
                && mapped.len() < OBJECTS_MAX
                && known.insert(path.clone())
            {
                mapped.push(path);
            }
        }
        if bad > NOTES_MAX {
            maps.notes.push(format!("{name}: {} more lines are no mappings", bad - NOTES_MAX));
        }
        if maps.objects.is_empty() {
            maps.is_ordered = false;
            maps.objects = likely(mapped);
        }
        Some(maps)
    }

    fn comment(&mut self, text: &[u8]) {
        if text == b"order: loaded" {
            self.is_ordered = true;
        } else if let Some(object) = text.strip_prefix(b"object ")
            && self.objects.len() < OBJECTS_MAX
        {
            let mut words = object.splitn(3, |byte| *byte == b' ');
            let (Some(number), Some(id), Some(path)) = (words.next(), words.next(), words.next()) else { return };
            let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
            let build_id = bytes_of(id).unwrap_or_default();
            self.objects.push(MappedObject { path: unescaped(path), build_id, number });
        }
    }

    /// Objects in the order in which they were loaded, with the build ids that they have now.
    pub fn of_files(paths: impl Iterator<Item = PathBuf>) -> Self {
        let object = |path: PathBuf| {
            let build_id = build_id(&path).unwrap_or_default();
            MappedObject { path, build_id, number: None }
        };
        Self { objects: paths.map(object).collect(), is_ordered: true, notes: Vec::new() }
    }

    /// The text of a file: these objects, and the lines of the kernel.
    pub fn to_text(&self, process: Option<u32>, lines: &[String]) -> String {
        let mut text = format!("{TITLE}\n");
        if let Some(process) = process {
            let _ = writeln!(text, "# process {process}");
        }
        text.push_str(if self.is_ordered { "# order: loaded\n" } else { "# order: seen\n" });
        for object in &self.objects {
            let id = object.build_id.iter().fold(String::new(), |mut id, byte| {
                // Writing to a string does not fail.
                let _ = write!(id, "{byte:02x}");
                id
            });
            let id = if id.is_empty() { "-" } else { &id };
            let number = object.number.map_or_else(|| "-".to_owned(), |number| number.to_string());
            let _ = writeln!(text, "# object {number} {id} {}", escaped(&object.path));
        }
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

/// Objects in the order in which they were most likely loaded: the kernel gives the lowest address to what is mapped
/// last.
fn likely(mut by_address: Vec<PathBuf>) -> Vec<MappedObject> {
    if by_address.len() > 1 {
        by_address[1..].reverse();
    }
    by_address.into_iter().map(|path| MappedObject { path, ..MappedObject::default() }).collect()
}

/// A line of `/proc/PID/maps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// First address.
    pub start: u64,
    /// Address behind the last one.
    pub end: u64,
    /// What may be done: `r-xp`.
    pub permissions: &'a [u8],
    /// The file as the kernel writes it; empty for other memory.
    pub path: &'a [u8],
}

impl<'a> Line<'a> {
    /// Reads a line, without its end; `None` if it is none.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let mut rest = line;
        let mut word = || {
            let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
            let (word, behind) = rest.split_at_checked(end)?;
            rest = behind.trim_ascii_start();
            (!word.is_empty()).then_some(word)
        };
        let (range, permissions, offset, device, inode) = (word()?, word()?, word()?, word()?, word()?);
        let mut ends = range.split(|byte| *byte == b'-');
        let (start, end) = (hexadecimal(ends.next()?)?, hexadecimal(ends.next()?)?);
        hexadecimal(offset)?;
        let is_fine = ends.next().is_none()
            && start < end
            && permissions.len() == 4
            && permissions.iter().all(|byte| b"rwxps-".contains(byte))
            && device.contains(&b':')
            && inode.iter().all(u8::is_ascii_digit);
        is_fine.then_some(Self { start, end, permissions, path: rest })
    }

    /// The file, where this is one.
    pub fn file(&self) -> Option<PathBuf> {
        self.path.starts_with(b"/").then(|| {
            let path = self.path.strip_suffix(b" (deleted)").unwrap_or(self.path);
            unescaped(path)
        })
    }

    /// The file, where its contents may be executed.
    pub fn code(&self) -> Option<PathBuf> {
        self.file().filter(|_| self.permissions.contains(&b'x'))
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u64::from_str_radix(digits, 16).ok()
}

fn bytes_of(digits: &[u8]) -> Option<Vec<u8>> {
    digits.chunks(2).map(|pair| u8::try_from(hexadecimal(pair).filter(|_| pair.len() == 2)?).ok()).collect()
}

/// A path without the kernel's escapes: the end of a line is `\012`. What is not UTF-8 is replaced.
fn unescaped(path: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(path).replace("\\012", "\n"))
}

/// A path as the kernel writes it.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace('\n', "\\012")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    const KERNEL: &str = "\
555500000000-555500001000 r--p 00000000 fe:01 1  /opt/app
555500001000-555500005000 r-xp 00001000 fe:01 1  /opt/app
555500005000-555500006000 rw-p 00000000 00:00 0  [heap]
7f0000000000-7f0000001000 r-xp 00000000 fe:01 2  /opt/late one.so (deleted)
7f0000100000-7f0000101000 r--p 00000000 fe:01 3  /opt/data
7f0000200000-7f0000201000 r-xp 00000000 fe:01 4  /opt/li\\012b.so
7f0000300000-7f0000301000 r-xp 00000000 00:00 0
7fff00000000-7fff00001000 r-xp 00000000 00:00 0  [vdso]
";

    fn paths(maps: &Maps) -> Vec<&str> {
        maps.objects.iter().map(|object| object.path.to_str().unwrap()).collect()
    }

    #[test]
    fn files_with_code_are_objects_and_the_lowest_was_mapped_last() {
        let maps = Maps::parse("m", KERNEL.as_bytes()).unwrap();
        assert_eq!(paths(&maps), ["/opt/app", "/opt/li\nb.so", "/opt/late one.so"]);
        assert!(!maps.is_ordered && maps.notes.is_empty(), "{maps:?}");
    }

    #[test]
    fn what_is_written_comes_back() {
        let object = |path: &str, build_id: &[u8], number| {
            let (path, build_id) = (path.into(), build_id.to_vec());
            MappedObject { path, build_id, number }
        };
        let objects = vec![object("/b/app", &[0, 0xfe], Some(0)), object("/a b/c\nd.so", &[], None)];
        let lines: Vec<String> = KERNEL.lines().map(str::to_owned).collect();
        for is_ordered in [true, false] {
            let maps = Maps { objects: objects.clone(), is_ordered, notes: Vec::new() };
            let text = maps.to_text(Some(7), &lines);
            assert!(text.ends_with(KERNEL), "{text}");
            assert_eq!(Maps::parse("m", text.as_bytes()), Some(maps));
        }
    }

    #[test]
    fn lines_that_are_none_are_noted_with_their_numbers() {
        let text = format!("{KERNEL}junk\n{}", "7f-70 r-xp 0 1:2 3 /x\n".repeat(9));
        let maps = Maps::parse("m", text.as_bytes()).unwrap();
        assert_eq!((maps.objects.len(), maps.notes.len()), (3, 6), "{maps:?}");
        assert!(maps.notes[0].starts_with("m: line 9: expected a mapping"), "{maps:?}");
        assert_eq!(maps.notes[5], "m: 5 more lines are no mappings");
        for other in ["", "\n", "---\n- { id: 1 }\n", "\x7fELF", "# something else", "1-2 rwx", "# anytrace maps 10"] {
            assert_eq!(Maps::parse("m", other.as_bytes()), None, "{other:?}");
        }
        // Cut anywhere, it is read as far as it goes.
        for end in 0..KERNEL.len() {
            let part = Maps::parse("m", &KERNEL.as_bytes()[..end]).unwrap_or_default();
            assert!(part.objects.len() <= 3);
        }
    }
}
