//! Several files as one sequence of bytes: the form of `tar`, which has the name and the length of each file in front
//! of its bytes.
//!
//! A trace that is a folder is read as the archive that `tar` would make of it, so that every reader sees one input, and
//! an archive is a trace as well as the folder is. Form: POSIX.1-1988 (ustar), with the long names and the long numbers
//! of GNU tar, and the paths of POSIX.1-2001 (pax).

use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

/// Headers and the bytes of files fill blocks of this length.
pub const BLOCK_BYTES: usize = 512;

/// Most bytes of a name.
const NAME_BYTES_MAX: u64 = 1 << 16;

/// What follows a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A file.
    File,
    /// The name of the next header's file.
    LongName,
    /// Facts about the next header's file, its path among them.
    Facts,
    /// A folder, a link or something else that is not a file of the trace.
    Other,
}

/// A header: what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The path, with `/` between folders.
    pub name: String,
    /// Bytes that follow, without those that fill the last block.
    pub size: u64,
    /// What they are.
    pub kind: Kind,
}

impl Header {
    /// The header of a file.
    pub fn file(name: &str, size: u64) -> Self {
        Self { name: name.to_owned(), size, kind: Kind::File }
    }

    /// Reads a block. `None` where it is no header: its checksum says so.
    pub fn read(block: &[u8; BLOCK_BYTES]) -> Option<Self> {
        if octal(&block[148..156])? != checksum(block) || block[257..262] != *b"ustar" {
            return None;
        }
        let size = match block[124] & 0x80 {
            0 => octal(&block[124..136])?,
            _ => {
                let (high, low) = block[124..136].split_first_chunk::<4>()?;
                let low = low.first_chunk::<8>()?;
                (*high == [0x80, 0, 0, 0]).then(|| u64::from_be_bytes(*low))?
            }
        };
        let kind = match block[156] {
            b'0' | 0 | b'7' => Kind::File,
            b'L' => Kind::LongName,
            b'x' => Kind::Facts,
            _ => Kind::Other,
        };
        // The old form of GNU has times where the prefix is.
        let is_posix = block[262] == 0;
        let mut name = String::new();
        let prefix = text(&block[345..500]);
        if is_posix && !prefix.is_empty() {
            name.push_str(&prefix);
            name.push('/');
        }
        name.push_str(&text(&block[..100]));
        Some(Self { name, size, kind })
    }

    /// The blocks of a file's header: several where its name is long.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let name = self.name.as_bytes();
        match split(name) {
            Some((prefix, name)) => out.extend_from_slice(&block(prefix, name, self.size, b'0')),
            None => {
                out.extend_from_slice(&block(b"", b"././@LongLink", name.len() as u64 + 1, b'L'));
                out.extend_from_slice(name);
                out.resize(out.len() + padding(name.len() as u64 + 1) + 1, 0);
                out.extend_from_slice(&block(b"", name.get(..100).unwrap_or(name), self.size, b'0'));
            }
        }
        out
    }
}

/// Zeros that fill the last block of so many bytes.
pub fn padding(bytes: u64) -> usize {
    let rest = (bytes % BLOCK_BYTES as u64) as usize;
    if rest == 0 { 0 } else { BLOCK_BYTES - rest }
}

/// The header of a file with another size; `None` where it is no header.
pub fn resized(header: &[u8], size: u64) -> Option<[u8; BLOCK_BYTES]> {
    let mut block: [u8; BLOCK_BYTES] = header.try_into().ok()?;
    if Header::read(&block)?.size != size {
        block[124..136].copy_from_slice(&size_field(size));
        let sum = format!("{:06o}\0 ", checksum(&block));
        block.get_mut(148..156)?.copy_from_slice(sum.as_bytes().get(..8)?);
    }
    Some(block)
}

/// A size in octal digits, or as a number where there are too few of them.
fn size_field(size: u64) -> [u8; 12] {
    let mut field = [0; 12];
    if size < 1 << 33 {
        for (place, digit) in field.iter_mut().take(11).rev().zip(0..) {
            *place = b'0' + (size >> (3 * digit) & 7) as u8;
        }
    } else {
        field[0] = 0x80;
        field[4..].copy_from_slice(&size.to_be_bytes());
    }
    field
}

/// What ends an archive.
pub const END: [u8; 2 * BLOCK_BYTES] = [0; 2 * BLOCK_BYTES];

/// The path among the facts of a pax header.
pub fn path_of_facts(facts: &[u8]) -> Option<String> {
    let mut rest = facts;
    while !rest.is_empty() {
        let space = rest.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(rest.get(..space)?).ok()?.parse().ok()?;
        let fact = rest.get(space + 1..length.checked_sub(1)?)?;
        if let Some(path) = fact.strip_prefix(b"path=") {
            return Some(String::from_utf8_lossy(path).into_owned());
        }
        rest = rest.get(length..)?;
    }
    None
}

/// Writes the files of an archive below a folder. A name that leads out of it is an error, as is an archive that is
/// cut.
///
/// # Errors
/// I/O.
pub fn unpack(mut from: impl Read, folder: &Path) -> io::Result<()> {
    let mut long: Option<String> = None;
    loop {
        let mut block = [0; BLOCK_BYTES];
        if !read_block(&mut from, &mut block)? || block == [0; BLOCK_BYTES] {
            return Ok(());
        }
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "not the header of a file");
        let header = Header::read(&block).ok_or_else(broken)?;
        let mut data = (&mut from).take(header.size);
        match header.kind {
            Kind::LongName | Kind::Facts if header.size <= NAME_BYTES_MAX => {
                let mut bytes = Vec::new();
                data.read_to_end(&mut bytes)?;
                long = match header.kind {
                    Kind::Facts => path_of_facts(&bytes),
                    _ => Some(text(&bytes)),
                };
            }
            Kind::File => {
                let path = folder.join(inside(&long.take().unwrap_or(header.name)).ok_or_else(broken)?);
                if let Some(parent) = path.parent() {
                    std::fs::create_dir_all(parent)?;
                }
                let mut file = std::fs::File::create_new(path)?;
                if io::copy(&mut data, &mut file)? < header.size {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                file.flush()?;
                file.sync_all()?;
            }
            _ => {
                io::copy(&mut data, &mut io::sink())?;
            }
        }
        io::copy(&mut (&mut from).take(padding(header.size) as u64), &mut io::sink())?;
    }
}

/// A name as a path below a folder.
fn inside(name: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in Path::new(name).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!path.as_os_str().is_empty()).then_some(path)
}

fn read_block(from: &mut impl Read, block: &mut [u8; BLOCK_BYTES]) -> io::Result<bool> {
    let mut have = 0;
    while let Some(rest) = block.get_mut(have..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) if have == 0 => return Ok(false),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => have += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// A name in the two fields of a header: folders, and the rest.
fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    if name.len() <= 100 {
        return Some((b"", name));
    }
    let at = (name.len() - 101..name.len().min(156)).find(|at| name.get(*at) == Some(&b'/'))?;
    Some((name.get(..at)?, name.get(at + 1..).filter(|rest| !rest.is_empty())?))
}

fn block(prefix: &[u8], name: &[u8], size: u64, kind: u8) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(field) = block.get_mut(at..at + bytes.len()) {
            field.copy_from_slice(bytes);
        }
    };
    put(0, name);
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, &size_field(size));
    put(136, b"00000000000\0");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(345, prefix);
    let sum = format!("{:06o}\0 ", checksum(&block));
    if let Some(field) = block.get_mut(148..156) {
        field.copy_from_slice(sum.as_bytes());
    }
    block
}

/// The sum of all bytes, those of the sum itself taken as spaces.
fn checksum(block: &[u8; BLOCK_BYTES]) -> u64 {
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    let own: u64 = block[148..156].iter().map(|byte| u64::from(*byte)).sum();
    sum - own + 8 * u64::from(b' ')
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits: &[u8] = field.trim_ascii_start();
    let end = digits.iter().position(|byte| matches!(byte, 0 | b' ')).unwrap_or(digits.len());
    let digits = digits.get(..end)?;
    if digits.is_empty() {
        return Some(0);
    }
    let mut value = 0_u64;
    for digit in digits {
        value = value.checked_mul(8)?.checked_add(u64::from(digit.checked_sub(b'0').filter(|digit| *digit < 8)?))?;
    }
    Some(value)
}

/// Text up to its first zero.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(field.get(..end).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back() {
        let deep = format!("{}/{}/f", "a".repeat(90), "b".repeat(60));
        for (name, size) in [("f", 0), ("a/b", 511), (deep.as_str(), 1 << 40)] {
            let header = Header::file(name, size);
            let bytes = header.to_bytes();
            let read = Header::read(bytes.as_slice().try_into().unwrap()).unwrap();
            assert_eq!(read, header);
            let other = resized(&bytes, 12345).unwrap();
            assert_eq!(Header::read(&other).unwrap(), Header::file(name, 12345));
            // A changed bit is noticed, unless it is one that says nothing.
            for at in 0..BLOCK_BYTES {
                let mut changed: [u8; BLOCK_BYTES] = bytes.as_slice().try_into().unwrap();
                changed[at] ^= 1;
                assert!(Header::read(&changed).is_none_or(|read| read == header), "byte {at}");
            }
        }
        assert!(Header::read(&[0; BLOCK_BYTES]).is_none());
    }

    #[test]
    fn an_archive_becomes_files() {
        let long = "x".repeat(300);
        let mut archive = Vec::new();
        for (name, bytes) in [("one", &b"1"[..]), ("a/b/two", &[2; 600]), (long.get(..240).unwrap(), b"three")] {
            archive.extend(Header::file(name, bytes.len() as u64).to_bytes());
            archive.extend_from_slice(bytes);
            archive.resize(archive.len() + padding(bytes.len() as u64), 0);
        }
        archive.extend(END);
        let folder = std::env::temp_dir().join(format!("anytrace-archive-{}", std::process::id()));
        unpack(archive.as_slice(), &folder).unwrap();
        assert_eq!(std::fs::read(folder.join("a/b/two")).unwrap(), [2; 600]);
        assert_eq!(std::fs::read(folder.join(&long[..240])).unwrap(), b"three");
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(unpack(&archive[..1600], &folder).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
        for name in ["/etc/x", "../x", "a/../../x", "."] {
            assert!(unpack(Header::file(name, 0).to_bytes().as_slice(), &folder).is_err(), "{name}");
        }
        assert!(!folder.exists());
    }

    #[test]
    fn facts_have_a_path() {
        assert_eq!(path_of_facts(b"11 mtime=1\n12 path=abc\n").as_deref(), Some("abc"));
        for bad in [&b"x"[..], b"99 path=abc\n", b"0 path=abc\n", b"3 path=abc\n"] {
            assert_eq!(path_of_facts(bad), None);
        }
    }
}
