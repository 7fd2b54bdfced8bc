//! How many bytes a call reads behind its pointers, for the functions where the trace's own numbers say it: images,
//! uniforms, indices. What is longer than the bytes that the trace has must not reach the driver.
//!
//! Vectors of a fixed size need no rule: zeros follow everything that is copied ([`crate::marshal`]). Sizes are those of
//! OpenGL 4.6, sections 8.4.4 (pixels) and 10.3 (indices).

use anytrace_apitrace::tools::program::{Argument, GlCall, Scalar, Unfit};

/// Why a call is refused.
const SHORT: Unfit = Unfit::Value("its data are shorter than declared");

/// Where an image's parameters are.
#[derive(Debug)]
pub(crate) struct Image {
    stem: &'static str,
    /// Arguments with width, height and depth.
    sides: &'static [usize],
    /// The argument with the format; the type follows.
    format: usize,
    pixels: usize,
}

const fn image(stem: &'static str, sides: &'static [usize], format: usize, pixels: usize) -> Image {
    Image { stem, sides, format, pixels }
}

static IMAGES: [Image; 10] = [
    image("glTexImage1D", &[3], 5, 7),
    image("glTexImage2D", &[3, 4], 6, 8),
    image("glTexImage3D", &[3, 4, 5], 7, 9),
    image("glTexSubImage1D", &[3], 4, 6),
    image("glTexSubImage2D", &[4, 5], 6, 8),
    image("glTexSubImage3D", &[5, 6, 7], 8, 10),
    image("glTextureSubImage1D", &[3], 4, 6),
    image("glTextureSubImage2D", &[4, 5], 6, 8),
    image("glTextureSubImage3D", &[5, 6, 7], 8, 10),
    image("glDrawPixels", &[0, 1], 2, 4),
];

/// Functions with a number of bytes, and the data after it.
const SIZED: [(&str, usize); 9] = [
    ("glCompressedTexImage1D", 5),
    ("glCompressedTexImage2D", 6),
    ("glCompressedTexImage3D", 7),
    ("glCompressedTexSubImage1D", 5),
    ("glCompressedTexSubImage2D", 7),
    ("glCompressedTexSubImage3D", 9),
    ("glCompressedTextureSubImage1D", 5),
    ("glCompressedTextureSubImage2D", 7),
    ("glCompressedTextureSubImage3D", 9),
];

/// Draws by indices: where their number is, which their type and the indices follow; what is added to them, instances and
/// the first of these.
#[derive(Debug)]
pub(crate) struct Indexed {
    pub(crate) stem: &'static str,
    pub(crate) count: usize,
    pub(crate) base: Option<usize>,
    pub(crate) instances: Option<usize>,
    pub(crate) first_instance: Option<usize>,
}

const fn indexed(
    stem: &'static str,
    count: usize,
    base: Option<usize>,
    instances: Option<usize>,
    first_instance: Option<usize>,
) -> Indexed {
    Indexed { stem, count, base, instances, first_instance }
}

pub(crate) static INDEXED: [Indexed; 8] = [
    indexed("glDrawElements", 1, None, None, None),
    indexed("glDrawElementsBaseVertex", 1, Some(4), None, None),
    indexed("glDrawElementsInstanced", 1, None, Some(4), None),
    indexed("glDrawElementsInstancedBaseVertex", 1, Some(5), Some(4), None),
    indexed("glDrawElementsInstancedBaseInstance", 1, None, Some(4), Some(5)),
    indexed("glDrawElementsInstancedBaseVertexBaseInstance", 1, Some(5), Some(4), Some(6)),
    indexed("glDrawRangeElements", 3, None, None, None),
    indexed("glDrawRangeElementsBaseVertex", 3, Some(6), None, None),
];

/// How the driver finds pixels in memory: `GL_UNPACK_ALIGNMENT` and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unpacking {
    pub(crate) alignment: u64,
    pub(crate) row_length: u64,
    pub(crate) image_height: u64,
    pub(crate) skipped: (u64, u64, u64),
}

impl Default for Unpacking {
    fn default() -> Self {
        Self { alignment: 4, row_length: 0, image_height: 0, skipped: (0, 0, 0) }
    }
}

/// How the calls of a function are measured; found once, for there may be millions of them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    Image(&'static Image),
    /// The argument with the number of bytes; the data follow.
    Sized(usize),
    Indexed(&'static Indexed),
    /// The argument with the number of vectors or matrices, the one with the values, and the bytes of each.
    Uniform {
        count: usize,
        values: usize,
        bytes: u64,
    },
}

impl Rule {
    /// `None` for functions whose calls are not measured.
    pub(crate) fn of(stem: &str) -> Option<Self> {
        let image = || IMAGES.iter().find(|image| image.stem == stem).map(Self::Image);
        let sized = || SIZED.iter().find(|(known, _)| *known == stem).map(|(_, size)| Self::Sized(*size));
        let indexed = || INDEXED.iter().find(|how| how.stem == stem).map(Self::Indexed);
        image().or_else(sized).or_else(indexed).or_else(|| of_uniform(stem))
    }
}

/// The state that has the buffer into which a function's pointer is an offset; `None` for pointers to memory.
pub(crate) fn buffer_of(stem: &str) -> Option<u32> {
    let has = |part: &str| stem.contains(part);
    let (is_draw, is_read) = (has("Draw") && !has("DrawBuffer"), has("glRead") || has("glGet"));
    // GL_DRAW_INDIRECT_BUFFER_BINDING, GL_ELEMENT_ARRAY_BUFFER_BINDING, GL_ARRAY_BUFFER_BINDING,
    // GL_PIXEL_PACK_BUFFER_BINDING, GL_PIXEL_UNPACK_BUFFER_BINDING.
    match () {
        () if is_draw && has("Indirect") => Some(0x8f43),
        () if is_draw && has("Elements") => Some(0x8895),
        () if stem.ends_with("Pointer") || stem == "glInterleavedArrays" => Some(0x8894),
        () if is_read && (has("Pixels") || has("Image") || has("Table") || has("Filter") || has("Stipple")) => {
            Some(0x88ed)
        }
        () if has("Image") || has("PixelMap") || has("Stipple") || has("Table") || has("Filter") => Some(0x88ef),
        () if matches!(stem, "glDrawPixels" | "glBitmap") => Some(0x88ef),
        () => None,
    }
}

/// Refuses a call whose data are too short. `memory`: how many bytes are at an address of the trace, where that is known;
/// `unpacking` asks the driver, and is called for images only.
pub(crate) fn check(
    rule: Rule,
    call: &GlCall<'_>,
    memory: &dyn Fn(u64) -> Option<u64>,
    unpacking: &mut dyn FnMut() -> Unpacking,
) -> Result<(), Unfit> {
    let (at, needed) = match rule {
        Rule::Image(image) => (image.pixels, of_image(call, image, unpacking)),
        Rule::Sized(size) => (size + 1, Some(number(call, size))),
        Rule::Indexed(how) => {
            let bytes = index_bytes(number(call, how.count + 1));
            (how.count + 2, bytes.map(|bytes| number(call, how.count).saturating_mul(bytes)))
        }
        Rule::Uniform { count, values, bytes } => (values, Some(number(call, count).saturating_mul(bytes))),
    };
    match (call.arguments.get(at), needed) {
        (Some(Argument::Bytes(bytes) | Argument::Text(bytes)), Some(needed)) if needed > bytes.len() as u64 => {
            Err(SHORT)
        }
        (Some(Argument::Array(array)), Some(needed)) if needed > array.bytes() => Err(SHORT),
        (Some(Argument::Address(traced)), Some(needed)) if memory(*traced).is_some_and(|bytes| needed > bytes) => {
            Err(SHORT)
        }
        _ => Ok(()),
    }
}

/// An integer among the arguments; negative ones are errors that the driver finds, and read nothing.
pub(crate) fn number(call: &GlCall<'_>, at: usize) -> u64 {
    match call.arguments.get(at) {
        Some(Argument::Scalar(Scalar::Integer(number))) => u64::try_from(*number).unwrap_or(0),
        Some(Argument::Scalar(Scalar::Enum(number, _))) => u64::from(*number),
        _ => 0,
    }
}

pub(crate) fn index_bytes(kind: u64) -> Option<u64> {
    match kind {
        0x1401 => Some(1),
        0x1403 => Some(2),
        0x1405 => Some(4),
        _ => None,
    }
}

/// Bytes of a pixel; `None` where format or type are unknown, which the driver refuses.
pub(crate) fn pixel_bytes(format: u64, kind: u64) -> Option<u64> {
    let channels = match format {
        // Color index, stencil, depth, red, green, blue, alpha, luminance, red and so on as integers.
        0x1900..=0x1906 | 0x1909 | 0x8d94..=0x8d97 => 1,
        // Luminance and alpha, red and green, both as integers.
        0x190a | 0x8227 | 0x8228 => 2,
        // RGB, BGR.
        0x1907 | 0x80e0 | 0x8d98 | 0x8d9a => 3,
        // RGBA, BGRA, ABGR.
        0x1908 | 0x80e1 | 0x8d99 | 0x8d9b | 0x8000 => 4,
        // Depth and stencil.
        0x84f9 => 1,
        _ => return None,
    };
    Some(match kind {
        0x1400 | 0x1401 => channels,
        0x1402 | 0x1403 | 0x140b | 0x8d61 => channels * 2,
        0x1404..=0x1406 => channels * 4,
        // Packed pixels.
        0x8032 | 0x8362 => 1,
        0x8033 | 0x8034 | 0x8363..=0x8366 => 2,
        0x8035 | 0x8036 | 0x8367 | 0x8368 | 0x84fa | 0x8c3b | 0x8c3e => 4,
        0x8dad => 8,
        _ => return None,
    })
}

fn of_image(call: &GlCall<'_>, image: &Image, unpacking: &mut dyn FnMut() -> Unpacking) -> Option<u64> {
    if matches!(call.arguments.get(image.pixels), None | Some(Argument::Null)) {
        return None;
    }
    let mut sides = image.sides.iter().map(|at| number(call, *at));
    let (width, height, depth) = (sides.next()?, sides.next().unwrap_or(1), sides.next().unwrap_or(1));
    if width == 0 || height == 0 || depth == 0 {
        return Some(0);
    }
    let pixel = pixel_bytes(number(call, image.format), number(call, image.format + 1))?;
    let how = unpacking();
    let row = if how.row_length > 0 { how.row_length } else { width };
    let row = row.saturating_mul(pixel).checked_next_multiple_of(how.alignment.max(1)).unwrap_or(u64::MAX);
    let rows = if how.image_height > 0 && image.sides.len() > 2 { how.image_height } else { height };
    let (pixels_skipped, rows_skipped, images_skipped) = how.skipped;
    let images = if image.sides.len() > 2 { images_skipped + depth - 1 } else { 0 };
    // The last row has no padding.
    let last = (pixels_skipped + width).saturating_mul(pixel);
    let before = images.saturating_mul(rows).saturating_add(rows_skipped + height - 1);
    Some(before.saturating_mul(row).saturating_add(last))
}

/// `glUniform3fv`, `glProgramUniformMatrix2x4dv` and so on.
fn of_uniform(stem: &str) -> Option<Rule> {
    let (rest, count) = match stem.strip_prefix("glProgramUniform") {
        Some(rest) => (rest, 2),
        None => (stem.strip_prefix("glUniform")?, 1),
    };
    let rest = rest.strip_suffix('v')?;
    let (rest, bytes) = match rest.strip_suffix("ui").or_else(|| rest.strip_suffix(['f', 'i'])) {
        Some(rest) => (rest, 4),
        None => (rest.strip_suffix('d')?, 8),
    };
    let (sides, values) = match rest.strip_prefix("Matrix") {
        Some(sides) => (sides, count + 2),
        None => (rest, count + 1),
    };
    let side = |text: &str| text.parse::<u64>().ok().filter(|side| (1..=4).contains(side));
    let numbers = match sides.split_once('x') {
        Some((columns, rows)) => side(columns)? * side(rows)?,
        None if values == count + 2 => side(sides)? * side(sides)?,
        None => side(sides)?,
    };
    Some(Rule::Uniform { count, values, bytes: numbers * bytes })
}

#[cfg(test)]
mod tests {
    use anytrace_apitrace::tools::dictionary::Dictionary;
    use anytrace_apitrace::tools::program::Around;

    use super::*;

    fn is_short(stem: &'static str, numbers: &[i64], bytes: &[u8], how: Unpacking) -> bool {
        let dictionary = Dictionary::new(6);
        let mut arguments: Vec<Argument<'_>> =
            numbers.iter().map(|number| Argument::Scalar(Scalar::Integer(*number))).collect();
        arguments.push(Argument::Bytes(bytes));
        let call = GlCall {
            number: 0,
            name: stem,
            stem,
            types: "v",
            arguments: &arguments,
            around: Around::Nothing,
            dictionary: &dictionary,
        };
        Rule::of(stem).is_some_and(|rule| check(rule, &call, &|_| None, &mut || how).is_err())
    }

    #[test]
    fn images_are_measured_as_the_driver_reads_them() {
        // RGB of bytes, 3 by 2: rows of 9 bytes, padded to 12 but for the last.
        let image = [0, 0, 0, 3, 2, 0, 0x1907, 0x1401];
        let packed = Unpacking { alignment: 1, ..Unpacking::default() };
        for (how, needed) in [
            (Unpacking::default(), 12 + 9),
            (packed, 18),
            (Unpacking { row_length: 5, ..packed }, 15 + 9),
            (Unpacking { skipped: (1, 1, 7), ..packed }, 18 + 12),
        ] {
            assert!(is_short("glTexImage2D", &image, &vec![0; needed - 1], how), "{how:?}");
            assert!(!is_short("glTexImage2D", &image, &vec![0; needed], how), "{how:?}");
        }
        let volume = [0, 0, 0, 2, 2, 2, 0, 0x1908, 0x1406];
        assert!(
            is_short("glTexImage3D", &volume, &[0; 127], packed)
                && !is_short("glTexImage3D", &volume, &[0; 128], packed)
        );
        // What the driver refuses reads nothing.
        assert!(!is_short("glTexImage2D", &[0, 0, 0, -3, 2, 0, 0x1907, 0x1401], &[], packed));
        assert!(!is_short("glTexImage2D", &[0, 0, 0, 3, 2, 0, 0x9999, 0x1401], &[], packed));
        let huge = [0, 0, 0, i64::from(i32::MAX), i64::from(i32::MAX), 0, 0x1908, 0x1406];
        assert!(is_short("glTexImage2D", &huge, &[0; 64], packed));
    }

    #[test]
    fn counts_of_values_and_indices_are_believed_only_as_far_as_data_go() {
        let how = Unpacking::default();
        for (stem, numbers, needed) in [
            ("glUniform3fv", &[0, 2][..], 24),
            ("glUniform4uiv", &[0, 1], 16),
            ("glUniformMatrix4fv", &[0, 2, 0], 128),
            ("glUniformMatrix2x3dv", &[0, 1, 0], 48),
            ("glProgramUniform2iv", &[0, 0, 3], 24),
            ("glProgramUniformMatrix3fv", &[0, 0, 1, 0], 36),
            ("glDrawElements", &[4, 3, 0x1403], 6),
            ("glDrawRangeElements", &[4, 0, 9, 3, 0x1405], 12),
            ("glCompressedTexImage2D", &[0, 0, 0, 4, 4, 0, 16], 16),
        ] {
            assert!(is_short(stem, numbers, &vec![0; needed - 1], how), "{stem}");
            assert!(!is_short(stem, numbers, &vec![0; needed], how), "{stem}");
        }
        assert!(!is_short("glUniformBlockBinding", &[0, 9], &[], how));
    }
}
