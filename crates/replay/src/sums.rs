//! Sums of pictures, as a file, and compared.

use std::io;

use anytrace_core::Error;
use serde_json::{Value, json};

use crate::framebuffer::Part;
use crate::pixels::Image;

/// The sum of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// The call after which it was taken.
    pub call: u64,
    /// What of the framebuffer it shows.
    pub part: Part,
    /// Its frame, counted from 0.
    pub frame: u64,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// MD5 of the pixels: rows from the top, three or four bytes each, in hexadecimal.
    pub md5: String,
}

impl Sum {
    /// Whether the pictures have the same pixels.
    pub fn is_same(&self, other: &Self) -> bool {
        self.md5.eq_ignore_ascii_case(&other.md5) && (self.width, self.height) == (other.width, other.height)
    }
}

/// The sums as the text of a JSON file.
pub fn to_json(sums: &[Sum]) -> String {
    let rows: Vec<Value> = sums
        .iter()
        .map(|sum| {
            let Sum { call, part, frame, width, height, md5 } = sum;
            let mut row = json!({"call": call, "frame": frame, "width": width, "height": height, "md5": md5});
            if let (Some(part), Some(row)) = (part.name(), row.as_object_mut()) {
                row.insert("part".to_owned(), part.into());
            }
            row
        })
        .collect();
    format!("{:#}\n", json!({ "pictures": rows }))
}

/// Reads what [`to_json`] wrote; `None` for anything else.
pub fn from_json(text: &str) -> Option<Vec<Sum>> {
    let value: Value = serde_json::from_str(text).ok()?;
    let row = |row: &Value| {
        let number = |name: &str| row.get(name)?.as_u64();
        let side = |name: &str| u32::try_from(number(name)?).ok();
        let part = match row.get("part") {
            Some(name) => Part::of_name(name.as_str()?)?,
            None => Part::Drawn,
        };
        Some(Sum {
            call: number("call")?,
            part,
            frame: number("frame")?,
            width: side("width")?,
            height: side("height")?,
            md5: row.get("md5")?.as_str()?.to_owned(),
        })
    };
    value.get("pictures")?.as_array()?.iter().map(row).collect()
}

/// The sum of a PNG picture of eight bits a channel: colors with or without alpha, or shades of gray.
///
/// # Errors
/// It is not such a picture.
pub fn of_png(call: u64, part: Part, bytes: &[u8]) -> Result<Sum, Error> {
    let failed = |error: png::DecodingError| Error::io("a PNG picture", io::Error::other(error));
    let mut reader = png::Decoder::new(io::Cursor::new(bytes)).read_info().map_err(failed)?;
    let mut pixels = vec![0; reader.output_buffer_size().unwrap_or(0)];
    let about = reader.next_frame(&mut pixels).map_err(failed)?;
    pixels.truncate(about.buffer_size());
    let channels = match (about.color_type, about.bit_depth) {
        (png::ColorType::Grayscale, png::BitDepth::Eight) => 1,
        (png::ColorType::Rgb, png::BitDepth::Eight) => 3,
        (png::ColorType::Rgba, png::BitDepth::Eight) => 4,
        _ => {
            return Err(Error::unsupported(
                "a picture of other than eight bits for red, green, blue (and alpha), or for gray",
            ));
        }
    };
    let image = Image { width: about.width, height: about.height, channels, pixels };
    Ok(Sum { call, part, frame: 0, width: image.width, height: image.height, md5: image.sum() })
}

/// The first place where two replays differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// These pictures of one call have other pixels.
    Pixels(Sum, Sum),
    /// Only the first has a picture of this call.
    OnlyFirst(Sum),
    /// Only the second has a picture of this call.
    OnlySecond(Sum),
}

/// Compares pictures by their calls and parts, in this order. Returns the first difference and how many there are.
pub fn compare(first: &[Sum], second: &[Sum]) -> Option<(Difference, usize)> {
    let (mut left, mut right) = (first.iter().peekable(), second.iter().peekable());
    let mut found: Option<Difference> = None;
    let mut count = 0;
    loop {
        let difference = match (left.peek(), right.peek()) {
            (None, None) => return found.map(|found| (found, count)),
            (Some(a), Some(b)) if (a.call, a.part) == (b.call, b.part) => {
                let (a, b) = ((*a).clone(), (*b).clone());
                left.next();
                right.next();
                (!a.is_same(&b)).then_some(Difference::Pixels(a, b))
            }
            (Some(a), b) if b.is_none_or(|b| (a.call, a.part) < (b.call, b.part)) => {
                let a = (*a).clone();
                left.next();
                Some(Difference::OnlyFirst(a))
            }
            (_, Some(b)) => {
                let b = (*b).clone();
                right.next();
                Some(Difference::OnlySecond(b))
            }
            (Some(_), None) => None,
        };
        if let Some(difference) = difference {
            count += 1;
            found.get_or_insert(difference);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    fn sum(call: u64, md5: &str) -> Sum {
        Sum { call, part: Part::Drawn, frame: call / 10, width: 4, height: 3, md5: md5.to_owned() }
    }

    #[test]
    fn sums_are_read_as_they_were_written() {
        let sums = [sum(9, "AB"), sum(19, "CD"), Sum { part: Part::Color(2), ..sum(19, "EF") }];
        assert_eq!(from_json(&to_json(&sums)).unwrap(), sums);
        assert_eq!((from_json("[]"), from_json("{"), from_json(&to_json(&[]))), (None, None, Some(Vec::new())));
    }

    #[test]
    fn the_first_difference_is_found_and_all_are_counted() {
        let first = [sum(9, "AB"), sum(19, "CD"), sum(39, "EF")];
        assert_eq!(compare(&first, &first), None);
        let second = [sum(9, "ab"), sum(19, "00"), sum(29, "11"), sum(39, "EF")];
        assert_eq!(compare(&first, &second), Some((Difference::Pixels(sum(19, "CD"), sum(19, "00")), 2)));
        assert_eq!(compare(&first, &[]), Some((Difference::OnlyFirst(sum(9, "AB")), 3)));
        assert_eq!(compare(&[], &second), Some((Difference::OnlySecond(sum(9, "ab")), 4)));
    }
}
