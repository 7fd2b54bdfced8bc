//! Sums of pictures: written, read from a file or a folder of pictures, compared.

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_apitrace::tools::diff_images::{ImageOptions, Picture, marked};
use anytrace_core::text;
use anytrace_replay::{Difference, Part, Sum, compare, from_json, of_png};

use crate::failure::Failure;
use crate::output::Output;
use crate::{Verdict, terminal};

/// Most bytes of a file of sums.
const SUMS_BYTES_MAX: u64 = 1 << 28;

/// Sums that `--sums` wrote, or those of the pictures in a folder: files whose names end with a call's number, ten
/// digits, the part of the framebuffer where there are several (`-mrt1`, `-z`, `-s`), and `.png`.
pub(super) fn load(path: &Path) -> Result<Vec<Sum>, Failure> {
    let name = text::printable(&path.display().to_string());
    let failed = |error: std::io::Error| Failure::usage(format!("cannot read {name}: {error}"));
    let about = std::fs::metadata(path).map_err(failed)?;
    if !about.is_dir() {
        if about.len() > SUMS_BYTES_MAX {
            return Err(Failure::usage(format!("{name} has more than {SUMS_BYTES_MAX} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        return from_json(&text).ok_or_else(|| Failure::usage(format!("{name} was not written by --sums")));
    }
    let mut sums = Vec::new();
    for (call, part, path) in pictures(path).map_err(failed)? {
        let bytes = std::fs::read(&path).map_err(failed)?;
        let sum = of_png(call, part, &bytes).map_err(|error| Failure::of(&path.display().to_string(), &error))?;
        sums.push(sum);
    }
    if sums.is_empty() {
        return Err(Failure::usage(format!("{name} has no pictures whose names end with a call's number and .png")));
    }
    sums.sort_by_key(|sum| (sum.call, sum.part));
    Ok(sums)
}

/// The pictures in a folder, with their calls and parts.
fn pictures(folder: &Path) -> std::io::Result<Vec<(u64, Part, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some((call, part)) = file.strip_suffix(".png").and_then(call_and_part) {
            found.push((call, part, path));
        }
    }
    Ok(found)
}

/// Writes a picture with the pixels in red that differ from the one of the same call in a folder.
pub(super) fn write_difference(
    file: &Path,
    folder: &Path,
    (sum, bytes): &(Sum, Vec<u8>),
    force: bool,
) -> Result<(), Failure> {
    let failed = |path: &Path, why: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot read {}: {why}", text::printable(&path.display().to_string())))
    };
    let all = pictures(folder).map_err(|error| failed(folder, &error))?;
    let Some((.., path)) = all.into_iter().find(|(call, part, _)| (*call, *part) == (sum.call, sum.part)) else {
        return Ok(());
    };
    let before = std::fs::read(&path).map_err(|error| failed(&path, &error))?;
    let read = |bytes: &[u8]| Picture::read(std::io::Cursor::new(bytes.to_vec()));
    let (before, now) =
        (read(&before).map_err(|why| failed(&path, &why))?, read(bytes).map_err(|why| failed(&path, &why))?);
    write_marked(file, &before, &now, force)
}

/// Writes the second picture with the pixels in red that differ from the first.
pub(super) fn write_marked(file: &Path, before: &Picture, now: &Picture, force: bool) -> Result<(), Failure> {
    // Any other pixel is marked, however little it differs.
    let how = ImageOptions { fuzz: 0.0, ..ImageOptions::default() };
    let Some(marked) = marked(before, now, how) else {
        writeln!(terminal::stdout(), "No picture of the difference: the sizes differ")?;
        return Ok(());
    };
    let mut out = Output::create(file, force)?;
    marked.write(&mut out).map_err(|why| Failure::usage(format!("cannot write {}: {why}", file.display())))?;
    out.commit(Verdict::Fine)?;
    writeln!(terminal::stdout(), "Wrote {}", text::printable(&file.display().to_string()))?;
    Ok(())
}

/// The call and the part at the end of a name.
fn call_and_part(stem: &str) -> Option<(u64, Part)> {
    let number = |stem: &str| stem.get(stem.len().checked_sub(10)?..)?.parse().ok();
    let named = stem.rsplit_once('-').and_then(|(rest, name)| Some((number(rest)?, Part::of_name(name)?)));
    named.or_else(|| Some((number(stem)?, Part::Drawn)))
}

/// Says where pictures differ first.
pub(super) fn report(before: &[Sum], now: &[Sum]) -> Result<Verdict, Failure> {
    let mut out = terminal::stdout();
    let Some((first, count)) = compare(before, now) else {
        writeln!(out, "All {} pictures are equal", now.len())?;
        return Ok(Verdict::Fine);
    };
    let of = |sum: &Sum| {
        let part = sum.part.name().map_or(String::new(), |name| format!(", {name}"));
        format!("call {}, frame {}{part}", sum.call, sum.frame)
    };
    let size = |sum: &Sum| format!("{}x{}", sum.width, sum.height);
    match &first {
        Difference::Pixels(a, b) if size(a) != size(b) => {
            writeln!(out, "{}: {} pixels instead of {}", of(b), size(b), size(a))?;
        }
        Difference::Pixels(a, b) => writeln!(out, "{}: other pixels: {} instead of {}", of(b), b.md5, a.md5)?,
        Difference::OnlyFirst(a) => writeln!(out, "{}: no picture", of(a))?,
        Difference::OnlySecond(b) => writeln!(out, "{}: there was no picture before", of(b))?,
    }
    writeln!(out, "{count} of {} pictures differ", before.len().max(now.len()))?;
    Ok(Verdict::Breach)
}
