//! `anytrace apitrace diff-images`.

use std::fs;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Component, Path, PathBuf};

use anytrace_apitrace::tools::diff_images::{
    Cell, Comparison, ImageOptions, Picture, Row, compare, find_images, marked, with_inner_extension, write_page,
};
use clap::Args;

use crate::failure::Failure;
use crate::output::{Aside, Output, commit_all};
use crate::{Verdict, paint, terminal};

/// `apitrace diff-images`.
#[derive(Debug, Args)]
pub(crate) struct DiffImagesArguments {
    /// The first set: a folder, or a folder and how names begin
    #[arg(value_name = "REF_PREFIX")]
    a: String,
    /// The second set
    #[arg(value_name = "SRC_PREFIX")]
    b: String,
    /// Say of each image whether it matches
    #[arg(short, long)]
    verbose: bool,
    /// The page to write; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "index.html")]
    output: PathBuf,
    /// Which part of the full range a pixel may differ by
    #[arg(short, long, value_name = "RATIO", default_value_t = 0.05, value_parser = parse_ratio)]
    fuzz: f64,
    /// Compare how opaque pixels are, too
    #[arg(short, long)]
    alpha: bool,
    /// Write the page, differences and thumbnails again where there are some
    #[arg(long, visible_alias = "force")]
    overwrite: bool,
    /// Show images that match, too
    #[arg(long)]
    show_all: bool,
    /// Measure as apitrace does, which passes pixels whose blue alone differs
    #[arg(long)]
    compat: bool,
}

fn parse_ratio(text: &str) -> Result<f64, String> {
    let ratio: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if (0.0..=1.0).contains(&ratio) { Ok(ratio) } else { Err("expected a number from 0 to 1".to_owned()) }
}

pub(crate) fn run(options: &DiffImagesArguments) -> Result<Verdict, Failure> {
    let find = |prefix: &str| {
        find_images(prefix).map_err(|error| Failure::usage(format!("cannot look for images at {prefix}: {error}")))
    };
    let (in_a, in_b) = (find(&options.a)?, find(&options.b)?);
    for (prefix, found) in [(&options.a, &in_a), (&options.b, &in_b)] {
        if found.is_empty() {
            return Err(Failure::usage(format!("{prefix}: no PNG images there")));
        }
    }
    let page = Output::create(&options.output, options.overwrite)?;
    let mut names: Vec<&String> = in_a.keys().chain(in_b.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let base = options.output.parent().map(Path::to_owned).unwrap_or_default();
    let mut rows = Vec::new();
    // The page and its pictures appear together, or none of them.
    let mut pictures = Vec::new();
    for name in names {
        let pair = [in_a.get(name), in_b.get(name)];
        let row = row(name, pair, &base, options, &mut pictures)?;
        if options.verbose {
            say(options, name, &row)?;
        }
        rows.push(row);
    }
    let mut out = BufWriter::new(page);
    write_page([&options.a, &options.b], &rows, &mut out)?;
    let verdict = if rows.iter().all(Row::is_match) { Verdict::Fine } else { Verdict::Breach };
    let page = out.into_inner().map_err(|error| Failure::output(error.error()))?;
    commit_all(pictures)?;
    page.commit(verdict)
}

fn say(options: &DiffImagesArguments, name: &str, row: &Row) -> Result<(), Failure> {
    let word = match row.comparison {
        Some(comparison) if comparison.is_match() => "MATCH",
        Some(_) => "MISMATCH",
        None => "MISSING",
    };
    let line = format!("Comparing {0}{name} and {1}{name} ... {word}", options.a, options.b);
    // The page alone belongs to standard output where that is its place.
    if options.output.as_os_str() == "-" {
        writeln!(terminal::stderr(), "{line}")?;
    } else {
        writeln!(terminal::stdout(), "{line}")?;
    }
    Ok(())
}

/// Compares a pair and makes the images that show how.
fn row(
    name: &str,
    pair: [Option<&PathBuf>; 2],
    base: &Path,
    options: &DiffImagesArguments,
    pictures: &mut Vec<Aside>,
) -> Result<Row, Failure> {
    let read = pair.map(|path| path.map(|path| (path, picture(path))));
    for (path, why) in read.iter().flatten().filter_map(|(path, read)| Some((path, read.as_ref().err()?))) {
        paint::complain("error", format!("cannot read {}: {why}", path.display()));
    }
    let how = ImageOptions { fuzz: options.fuzz, has_alpha: options.alpha, is_grey: options.compat };
    let mut comparison: Option<Comparison> = None;
    let mut difference = None;
    if let [Some((_, Ok(a))), Some((b_path, Ok(b)))] = &read {
        let found = compare(a, b, how);
        comparison = Some(found);
        if !found.is_match() || options.show_all {
            difference = marked(a, b, how).map(|picture| (with_inner_extension(b_path, "diff"), picture));
        }
    }
    let is_shown = options.show_all || !comparison.is_some_and(|found| found.is_match());
    let address = pair.into_iter().flatten().next().map(|path| address(path, base)).unwrap_or_default();
    let mut row = Row { name: name.to_owned(), address, comparison, cells: None };
    if is_shown {
        let [a, b] = read.map(|side| match side {
            None => Ok(Cell::Missing),
            Some((path, Err(why))) => Ok(Cell::Unreadable(self::address(path, base), why)),
            Some((path, Ok(picture))) => cell((path, &picture), &[path], base, options, pictures),
        });
        let marked = match &difference {
            None => Cell::Missing,
            Some((path, picture)) => {
                let sources: Vec<&Path> = pair.into_iter().flatten().map(PathBuf::as_path).collect();
                pictures.extend(write(path, picture, &sources, options)?);
                cell((path, picture), &sources, base, options, pictures)?
            }
        };
        row.cells = Some([a?, b?, marked]);
    }
    Ok(row)
}

fn picture(path: &Path) -> Result<Picture, String> {
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    Picture::read(BufReader::new(file))
}

/// The cell of an image; large ones get a thumbnail beside them.
fn cell(
    (path, picture): (&Path, &Picture),
    sources: &[&Path],
    base: &Path,
    options: &DiffImagesArguments,
    pictures: &mut Vec<Aside>,
) -> Result<Cell, Failure> {
    let Some(small) = picture.thumbnail() else { return Ok(Cell::Small(address(path, base), picture.size())) };
    let thumbnail = with_inner_extension(path, "thumb");
    pictures.extend(write(&thumbnail, &small, sources, options)?);
    Ok(Cell::Large(address(path, base), address(&thumbnail, base)))
}

/// Writes an image that is made of others, unless it is there and no older than they are.
fn write(
    path: &Path,
    picture: &Picture,
    sources: &[&Path],
    options: &DiffImagesArguments,
) -> Result<Option<Aside>, Failure> {
    let time = |path: &Path| fs::metadata(path).ok().filter(fs::Metadata::is_file)?.modified().ok();
    if let Some(made) = time(path)
        && !options.overwrite
        && sources.iter().all(|source| time(source).is_some_and(|source| source <= made))
    {
        return Ok(None);
    }
    let mut output = Output::create(path, true)?;
    picture.write(&mut output).map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))?;
    output.set_aside().map(Some)
}

/// The address of a file as seen from the folder of the page.
fn address(path: &Path, base: &Path) -> String {
    let has_no_ups = base.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let seen = if path.is_absolute() || base.as_os_str().is_empty() {
        path.to_owned()
    } else if let (true, true) = (has_no_ups, base.is_relative()) {
        match path.strip_prefix(base) {
            Ok(inner) => inner.to_owned(),
            Err(_) => {
                let levels = base.components().filter(|part| matches!(part, Component::Normal(_))).count();
                PathBuf::from("../".repeat(levels)).join(path)
            }
        }
    } else {
        fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
    };
    let text = seen.display().to_string();
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_seen_from_the_page() {
        let seen = |path: &str, base: &str| address(Path::new(path), Path::new(base));
        assert_eq!(seen("a/x 1.png", ""), "a/x%201.png");
        assert_eq!(seen("a/x.png", "out/page"), "../../a/x.png");
        assert_eq!(seen("out/a/x.png", "out"), "a/x.png");
        assert_eq!(seen("/tmp/x.png", "out"), "/tmp/x.png");
    }
}
