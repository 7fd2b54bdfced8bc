//! A row of the page: a pair of images is compared, and the images that show how are made.

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anytrace_apitrace::tools::diff_images::{
    Cell, Comparison, ImageOptions, Picture, Row, compare, marked, with_inner_extension,
};

use super::DiffImagesArguments;
use super::address::address;
use crate::failure::Failure;
use crate::output::{Aside, Output};
use crate::paint;

/// Compares a pair and makes the images that show how.
pub(super) fn compare_pair(
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
    let how = ImageOptions { fuzz: options.fuzz, has_alpha: options.alpha, is_gray: options.compat };
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
    let seen = pair.into_iter().flatten().next().map(|path| address(path, base)).unwrap_or_default();
    let mut row = Row { name: name.to_owned(), address: seen, comparison, cells: None };
    if is_shown {
        let [a, b] = read.map(|side| match side {
            None => Ok(Cell::Missing),
            Some((path, Err(why))) => Ok(Cell::Unreadable(address(path, base), why)),
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
        && !options.force
        && sources.iter().all(|source| time(source).is_some_and(|source| source <= made))
    {
        return Ok(None);
    }
    let mut output = Output::create(path, true)?;
    picture.write(&mut output).map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))?;
    output.set_aside().map(Some)
}
