//! Pictures inside a state: PNG in base 64, as apitrace's players write them.

use serde_json::{Value, json};

use crate::pictures::{PictureFormat, write};
use crate::pixels::Image;

/// A picture of several layers, one below the other. `pixels`: from the first row on, without gaps.
pub(super) fn image(
    (width, height, depth): (usize, usize, usize),
    channels: usize,
    pixels: Vec<u8>,
    format: &Value,
) -> Value {
    let side = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let image = Image { width: side(width), height: side(height.saturating_mul(depth)), channels, pixels };
    of_image(&image, side(depth), format)
}

/// The same of a picture that there is.
pub(super) fn of_image(image: &Image, depth: u32, format: &Value) -> Value {
    let mut bytes = Vec::new();
    // Writing to memory fails only for pictures without pixels.
    if write(&mut bytes, PictureFormat::Png, 0, image).is_err() {
        return Value::Null;
    }
    json!({
        "__class__": "image",
        "__width__": image.width,
        "__height__": image.height / depth.max(1),
        "__depth__": depth,
        "__format__": format,
        "__data__": base64_simd::STANDARD.encode_to_string(&bytes),
    })
}
