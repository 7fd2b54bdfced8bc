//! Compares two sets of snapshots pixel by pixel, and writes a page that shows where they differ.
//!
//! Two images are in memory at a time, at four bytes per pixel, of at most [`PIXELS_MAX`] pixels.

mod page;
mod picture;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use page::{Cell, Row, write_page};
pub use picture::{PIXELS_MAX, Picture};

/// Thumbnails have at most this many columns and rows.
pub const THUMBNAIL: u32 = 320;

/// Deepest folder searched.
const DEPTH_MAX: usize = 64;

/// Options of [`compare`].
#[derive(Debug, Clone, Copy)]
pub struct ImageOptions {
    /// The share of the full range by which a pixel may differ. Default 0.05.
    pub fuzz: f64,
    /// Also compare the opacity of pixels.
    pub has_alpha: bool,
    /// Convert differences to gray before they are measured, as apitrace does. A pixel that differs only in blue passes
    /// then.
    pub is_gray: bool,
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self { fuzz: 0.05, has_alpha: false, is_gray: false }
    }
}

/// How much two images differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Pixels that differ by more than the fuzz; `None` for images of different sizes.
    pub pixels: Option<u64>,
    /// Correct bits of each channel, on average: 0 for images of different sizes, about 16 or more for equal ones,
    /// increasing with the size of the image.
    pub precision_bits: f64,
}

impl Comparison {
    /// True when no pixel differs by more than the fuzz.
    pub fn is_match(&self) -> bool {
        self.pixels == Some(0)
    }
}

/// The level of difference from which on a pixel counts.
fn threshold(fuzz: f64) -> u32 {
    // A saturating cast: with a negative fuzz or NaN, every difference counts.
    (255.0 * fuzz) as u32
}

/// Compares two images.
pub fn compare(a: &Picture, b: &Picture, options: ImageOptions) -> Comparison {
    if a.size() != b.size() {
        return Comparison { pixels: None, precision_bits: 0.0 };
    }
    let threshold = threshold(options.fuzz);
    let (mut pixels, mut squares) = (0, 0_u64);
    for (x, y) in a.pixels().zip(b.pixels()) {
        let difference = difference(x, y, options.has_alpha);
        squares += difference.iter().map(|level| u64::from(*level).pow(2)).sum::<u64>();
        let [red, green, blue, alpha] = difference.map(u32::from);
        let level = if options.is_gray {
            // The weights of ITU-R 601, as in Pillow.
            (red * 19_595 + green * 38_470 + blue * 7_471 + 0x8000) >> 16
        } else {
            red.max(green).max(blue).max(alpha)
        };
        pixels += u64::from(level > threshold);
    }
    let (width, height) = a.size();
    let all = f64::from(width) * f64::from(height) * 3.0 * 255.0 * 255.0 * 2.0;
    let precision_bits = -((squares as f64 * 2.0 + 1.0) / all).log2();
    Comparison { pixels: Some(pixels), precision_bits }
}

fn difference(x: [u8; 4], y: [u8; 4], has_alpha: bool) -> [u8; 4] {
    let [red, green, blue, alpha] = std::array::from_fn(|at| match (x.get(at), y.get(at)) {
        (Some(x), Some(y)) => x.abs_diff(*y),
        _ => 0,
    });
    [red, green, blue, if has_alpha { alpha } else { 0 }]
}

/// The second image in pale colors, with pixels that differ by more than the fuzz in red; `None` for images of
/// different sizes.
pub fn marked(a: &Picture, b: &Picture, options: ImageOptions) -> Option<Picture> {
    const RED: [u8; 3] = [0xf1, 0x00, 0x1e];
    if a.size() != b.size() {
        return None;
    }
    let (width, height) = b.size();
    let mut rgba = Vec::with_capacity(b.bytes().len());
    for (x, y) in a.pixels().zip(b.pixels()) {
        let most = difference(x, y, options.has_alpha).into_iter().max().unwrap_or(0);
        let mask = if most == 0 { 0.0 } else { (f64::from(most) / options.fuzz.max(f64::MIN_POSITIVE)).min(255.0) };
        // Rounded to even, as Pillow rounds tables.
        let mask = mask.round_ties_even() as u32;
        for (channel, red) in y.into_iter().zip(RED) {
            let mixed = 255 * (255 - mask) + u32::from(red) * mask + 128;
            let mixed = ((mixed >> 8) + mixed) >> 8;
            let (from, to) = (f32::from(channel), mixed as f32);
            rgba.push((from + 0.8_f32 * (to - from)) as u8);
        }
        rgba.push(255);
    }
    Picture::new(width, height, rgba)
}

/// Finds the images whose paths begin with a prefix (a folder, or a folder and the start of a name), keyed by what
/// follows it. Images made by an earlier comparison are omitted.
///
/// # Errors
/// Folders that cannot be read.
pub fn find_images(prefix: &str) -> io::Result<BTreeMap<String, PathBuf>> {
    let path = Path::new(prefix);
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    let mut found = BTreeMap::new();
    let mut seen = HashSet::new();
    let mut todo = vec![(folder.to_path_buf(), 0)];
    while let Some((folder, depth)) = todo.pop() {
        let readable = if folder.as_os_str().is_empty() { Path::new(".") } else { folder.as_path() };
        // A link to a parent folder must not cause an endless loop.
        if depth > DEPTH_MAX || !seen.insert(fs::canonicalize(readable)?) {
            continue;
        }
        for entry in fs::read_dir(readable)? {
            let path = folder.join(entry?.file_name());
            if path.is_dir() {
                todo.push((path, depth + 1));
            } else if let Some(name) = path.to_str().and_then(|text| text.strip_prefix(prefix))
                && is_image(&path)
            {
                found.insert(name.to_owned(), path);
            }
        }
    }
    Ok(found)
}

/// True for images that are neither differences nor thumbnails.
fn is_image(path: &Path) -> bool {
    let is_png = path.extension().is_some_and(|extension| extension == "png");
    let inner = path.file_stem().map(Path::new).and_then(Path::extension);
    is_png && inner.is_none_or(|extension| extension != "diff" && extension != "thumb")
}

/// The name with something inserted before its extension: `a.png` becomes `a.diff.png`.
pub fn with_inner_extension(path: &Path, inner: &str) -> PathBuf {
    path.with_extension(format!("{inner}.png"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(pixels: &[[u8; 4]]) -> Picture {
        Picture::new(pixels.len() as u32, 1, pixels.concat()).unwrap()
    }

    #[test]
    fn pixels_count_from_the_fuzz_on() {
        let a = picture(&[[0, 0, 0, 255], [100, 100, 100, 255], [0, 0, 0, 0]]);
        let b = picture(&[[12, 0, 0, 255], [100, 113, 100, 255], [0, 0, 0, 255]]);
        let count = |options| compare(&a, &b, options).pixels;
        assert_eq!(count(ImageOptions::default()), Some(1));
        assert_eq!(count(ImageOptions { fuzz: 0.0, ..ImageOptions::default() }), Some(2));
        assert_eq!(count(ImageOptions { has_alpha: true, ..ImageOptions::default() }), Some(2));
        assert_eq!(count(ImageOptions { is_gray: true, ..ImageOptions::default() }), Some(0));
        assert_eq!(compare(&a, &picture(&[[0; 4]]), ImageOptions::default()).pixels, None);
    }

    #[test]
    fn equal_images_have_the_most_bits() {
        let a = picture(&[[9, 9, 9, 255]]);
        let found = compare(&a, &a, ImageOptions::default());
        assert!(found.is_match() && (found.precision_bits - 18.573).abs() < 0.001, "{}", found.precision_bits);
        let worst = compare(&picture(&[[0; 4]]), &picture(&[[255; 4]]), ImageOptions::default());
        assert!(worst.precision_bits.abs() < 0.001);
    }

    #[test]
    fn what_differs_is_red_and_the_rest_pale() {
        let (a, b) = (picture(&[[0; 4], [0; 4]]), picture(&[[0; 4], [200, 0, 0, 255]]));
        let found = marked(&a, &b, ImageOptions::default()).unwrap();
        assert_eq!(found.bytes(), [204, 204, 204, 255, 232, 0, 24, 255]);
    }
}
