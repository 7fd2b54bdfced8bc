//! Sums of pictures: written, read from a file or a folder of pictures, compared.

use std::io::Write;
use std::path::Path;

use anytrace_core::text;
use anytrace_replay::{Difference, Part, Sum, compare, from_json, of_png};

use crate::failure::Failure;
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
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let Some((call, part)) = file.strip_suffix(".png").and_then(call_and_part) else { continue };
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
