//! What functions of textures do, by their names.

/// Where a function takes its texture from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The object bound to a target.
    Bound,
    /// An object: the first argument.
    Named,
    /// An object and its target: the first two (`GL_EXT_direct_state_access`).
    NamedTarget,
    /// A unit and a target: the first two.
    Unit,
}

/// Functions of textures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Texture {
    /// A new image with this many dimensions.
    Image(usize),
    /// A multisampled image.
    Samples(usize),
    /// A part of an image.
    Part(usize),
    /// An image, or a part, from the framebuffer.
    Copy { dimensions: usize, is_part: bool },
    /// All levels at once; the first size's index.
    Storage(usize),
    /// All levels from the first.
    Mipmaps,
    /// A parameter.
    Parameter,
    /// A buffer as a texture.
    Buffer,
    /// One value for an image or a part.
    Clear,
}

/// Functions of textures, by the parts of their names.
pub(super) fn texture(base: &str, is_extension: bool) -> Option<(Texture, Way)> {
    let (rest, prefix) = ["Compressed", "Copy", "Generate", "Clear"]
        .iter()
        .find_map(|prefix| base.strip_prefix(prefix).map(|rest| (rest, *prefix)))
        .unwrap_or((base, ""));
    let (what, way) = if let Some(what) = rest.strip_prefix("MultiTex") {
        (what, Way::Unit)
    } else if let Some(what) = rest.strip_prefix("Texture") {
        (what, if is_extension { Way::NamedTarget } else { Way::Named })
    } else {
        (rest.strip_prefix("Tex").or_else(|| rest.strip_prefix("Mip").map(|_| "mip"))?, Way::Bound)
    };
    let dimensions = |what: &str| match what {
        "1D" => Some(1),
        "2D" => Some(2),
        "3D" => Some(3),
        _ => None,
    };
    let samples = |what: &str| match what {
        "2DMultisample" => Some(2),
        "3DMultisample" => Some(3),
        _ => None,
    };
    let function = match (prefix, what) {
        ("Generate", "Mipmap") | ("Generate", "mip") => Texture::Mipmaps,
        ("Clear", "Image" | "SubImage") => return Some((Texture::Clear, Way::Named)),
        ("" | "Compressed", _) if what.starts_with("Image") => match what.strip_prefix("Image")? {
            kind if samples(kind).is_some() => Texture::Samples(samples(kind)?),
            kind => Texture::Image(dimensions(kind)?),
        },
        ("" | "Compressed", _) if what.starts_with("SubImage") => {
            Texture::Part(dimensions(what.strip_prefix("SubImage")?)?)
        }
        ("Copy", _) if what.starts_with("Image") => {
            Texture::Copy { dimensions: dimensions(what.strip_prefix("Image")?)?, is_part: false }
        }
        ("Copy", _) if what.starts_with("SubImage") => {
            Texture::Copy { dimensions: dimensions(what.strip_prefix("SubImage")?)?, is_part: true }
        }
        ("", _) if what.starts_with("Storage") => {
            let kind = what.strip_prefix("Storage")?;
            let is_memory = kind.starts_with("Mem");
            dimensions(kind.strip_prefix("Mem").unwrap_or(kind)).or_else(|| samples(kind))?;
            // The memory object stays, like everything unknown.
            if is_memory {
                return None;
            }
            Texture::Storage(3)
        }
        ("", "Buffer" | "BufferRange") => Texture::Buffer,
        ("", _) if what.starts_with("Parameter") => Texture::Parameter,
        _ => return None,
    };
    Some((function, way))
}
