//! Parameters of OpenGL that a driver can be asked for, and the names of enumerations among their values: numbers from
//! the OpenGL registry's headers, checked against apitrace's dumps of the same states.

/// What a parameter's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Enum,
    Integer,
    Long,
    Float,
    Text,
    Pointer,
}

/// A parameter: its name, its number, what its values are and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) number: u32,
    pub(super) kind: Kind,
    pub(super) count: usize,
}

/// The rows of a table: a name, a number in hexadecimal, a letter for what it is, how many unless one.
pub(super) fn rows(table: &'static str) -> impl Iterator<Item = Parameter> {
    table.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, number, what) = (words.next()?, words.next()?, words.next()?);
        let kind = match what.as_bytes().first()? {
            b'B' => Kind::Bool,
            b'E' => Kind::Enum,
            b'I' => Kind::Integer,
            b'L' => Kind::Long,
            b'F' => Kind::Float,
            b'S' => Kind::Text,
            _ => Kind::Pointer,
        };
        let count = what.get(1..).and_then(|count| count.parse().ok()).unwrap_or(1);
        Some(Parameter { name, number: u32::from_str_radix(number, 16).ok()?, kind, count })
    })
}

/// The name of an enumeration's value; `None` if it has none here.
pub(super) fn enum_name(number: u32) -> Option<&'static str> {
    ENUMS.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (u32::from_str_radix(value, 16).ok()? == number).then_some(name)
    })
}

/// Parameters of `glGet`.
pub(super) const PARAMETERS: &str = include_str!("parameters.txt");

/// Names of values.
const ENUMS: &str = include_str!("enums.txt");

/// Parameters of `glGetMaterialfv`.
pub(super) const MATERIAL: &str = "\
GL_AMBIENT 1200 F4
GL_DIFFUSE 1201 F4
GL_SPECULAR 1202 F4
GL_EMISSION 1600 F4
GL_SHININESS 1601 F
GL_COLOR_INDEXES 1603 F3";

/// Parameters of `glGetLightfv`.
pub(super) const LIGHT: &str = "\
GL_AMBIENT 1200 F4
GL_DIFFUSE 1201 F4
GL_SPECULAR 1202 F4
GL_POSITION 1203 F4
GL_SPOT_DIRECTION 1204 F3
GL_SPOT_EXPONENT 1205 F
GL_SPOT_CUTOFF 1206 F
GL_CONSTANT_ATTENUATION 1207 F
GL_LINEAR_ATTENUATION 1208 F
GL_QUADRATIC_ATTENUATION 1209 F";

/// Parameters of `glGetVertexAttribiv`.
pub(super) const ATTRIBUTE: &str = "\
GL_VERTEX_ATTRIB_BINDING 82D4 I
GL_VERTEX_ATTRIB_RELATIVE_OFFSET 82D5 I
GL_VERTEX_ATTRIB_ARRAY_ENABLED 8622 B
GL_VERTEX_ATTRIB_ARRAY_SIZE 8623 I
GL_VERTEX_ATTRIB_ARRAY_STRIDE 8624 I
GL_VERTEX_ATTRIB_ARRAY_TYPE 8625 E
GL_VERTEX_ATTRIB_ARRAY_NORMALIZED 886A B
GL_VERTEX_ATTRIB_ARRAY_BUFFER_BINDING 889F I
GL_VERTEX_ATTRIB_ARRAY_INTEGER 88FD B
GL_VERTEX_ATTRIB_ARRAY_LONG 874E B
GL_VERTEX_ATTRIB_ARRAY_DIVISOR 88FE I";

/// Parameters of `glGetBufferParameteriv`.
pub(super) const BUFFER: &str = "\
GL_BUFFER_IMMUTABLE_STORAGE 821F B
GL_BUFFER_STORAGE_FLAGS 8220 I
GL_BUFFER_SIZE 8764 I
GL_BUFFER_USAGE 8765 E
GL_BUFFER_ACCESS 88BB E
GL_BUFFER_MAPPED 88BC B
GL_BUFFER_ACCESS_FLAGS 911F I
GL_BUFFER_MAP_LENGTH 9120 I
GL_BUFFER_MAP_OFFSET 9121 I";

/// Targets of buffers, with the parameters that say what is bound to them.
pub(super) const BUFFER_TARGETS: [(&str, u32, u32); 13] = [
    ("GL_ARRAY_BUFFER", 0x8892, 0x8894),
    ("GL_ELEMENT_ARRAY_BUFFER", 0x8893, 0x8895),
    ("GL_PIXEL_PACK_BUFFER", 0x88eb, 0x88ed),
    ("GL_PIXEL_UNPACK_BUFFER", 0x88ec, 0x88ef),
    ("GL_UNIFORM_BUFFER", 0x8a11, 0x8a28),
    ("GL_TEXTURE_BUFFER", 0x8c2a, 0x8c2a),
    ("GL_TRANSFORM_FEEDBACK_BUFFER", 0x8c8e, 0x8c8f),
    ("GL_COPY_READ_BUFFER", 0x8f36, 0x8f36),
    ("GL_COPY_WRITE_BUFFER", 0x8f37, 0x8f37),
    ("GL_DRAW_INDIRECT_BUFFER", 0x8f3f, 0x8f43),
    ("GL_DISPATCH_INDIRECT_BUFFER", 0x90ee, 0x90ef),
    ("GL_SHADER_STORAGE_BUFFER", 0x90d2, 0x90d3),
    ("GL_QUERY_BUFFER", 0x9192, 0x9193),
];

/// Parameters of `glGetTexParameter`.
pub(super) const TEXTURE: &str = "\
GL_TEXTURE_BORDER_COLOR 1004 F4
GL_TEXTURE_TARGET 1006 E
GL_TEXTURE_MAG_FILTER 2800 E
GL_TEXTURE_MIN_FILTER 2801 E
GL_TEXTURE_WRAP_S 2802 E
GL_TEXTURE_WRAP_T 2803 E
GL_TEXTURE_WRAP_R 8072 E
GL_TEXTURE_MIN_LOD 813A F
GL_TEXTURE_MAX_LOD 813B F
GL_TEXTURE_BASE_LEVEL 813C I
GL_TEXTURE_MAX_LEVEL 813D I
GL_TEXTURE_VIEW_MIN_LEVEL 82DB I
GL_TEXTURE_VIEW_NUM_LEVELS 82DC I
GL_TEXTURE_VIEW_MIN_LAYER 82DD I
GL_TEXTURE_VIEW_NUM_LAYERS 82DE I
GL_TEXTURE_IMMUTABLE_LEVELS 82DF I
GL_TEXTURE_MAX_ANISOTROPY_EXT 84FE F
GL_TEXTURE_LOD_BIAS 8501 F
GL_TEXTURE_COMPARE_MODE 884C E
GL_TEXTURE_COMPARE_FUNC 884D E
GL_TEXTURE_SRGB_DECODE_EXT 8A48 E
GL_TEXTURE_SWIZZLE_R 8E42 E
GL_TEXTURE_SWIZZLE_G 8E43 E
GL_TEXTURE_SWIZZLE_B 8E44 E
GL_TEXTURE_SWIZZLE_A 8E45 E
GL_TEXTURE_SWIZZLE_RGBA 8E46 E4
GL_DEPTH_STENCIL_TEXTURE_MODE 90EA E
GL_TEXTURE_IMMUTABLE_FORMAT 912F B";

/// Parameters of `glGetTexLevelParameter`.
pub(super) const LEVEL: &str = "\
GL_TEXTURE_WIDTH 1000 I
GL_TEXTURE_HEIGHT 1001 I
GL_TEXTURE_DEPTH 8071 I
GL_TEXTURE_INTERNAL_FORMAT 1003 E
GL_TEXTURE_RED_SIZE 805C I
GL_TEXTURE_GREEN_SIZE 805D I
GL_TEXTURE_BLUE_SIZE 805E I
GL_TEXTURE_ALPHA_SIZE 805F I
GL_TEXTURE_DEPTH_SIZE 884A I
GL_TEXTURE_STENCIL_SIZE 88F1 I
GL_TEXTURE_COMPRESSED 86A1 B
GL_TEXTURE_RED_TYPE 8C10 E
GL_TEXTURE_GREEN_TYPE 8C11 E
GL_TEXTURE_BLUE_TYPE 8C12 E
GL_TEXTURE_ALPHA_TYPE 8C13 E
GL_TEXTURE_DEPTH_TYPE 8C16 E
GL_TEXTURE_SAMPLES 9106 I
GL_TEXTURE_FIXED_SAMPLE_LOCATIONS 9107 B
GL_TEXTURE_BUFFER_OFFSET 919D I
GL_TEXTURE_BUFFER_SIZE 919E I";

/// Targets of textures: names, numbers, the names and numbers of the parameters that say what is bound.
pub(super) const TEXTURE_TARGETS: [(&str, u32, &str, u32); 11] = [
    ("GL_TEXTURE_1D", 0x0de0, "GL_TEXTURE_BINDING_1D", 0x8068),
    ("GL_TEXTURE_2D", 0x0de1, "GL_TEXTURE_BINDING_2D", 0x8069),
    ("GL_TEXTURE_3D", 0x806f, "GL_TEXTURE_BINDING_3D", 0x806a),
    ("GL_TEXTURE_RECTANGLE", 0x84f5, "GL_TEXTURE_BINDING_RECTANGLE", 0x84f6),
    ("GL_TEXTURE_CUBE_MAP", 0x8513, "GL_TEXTURE_BINDING_CUBE_MAP", 0x8514),
    ("GL_TEXTURE_1D_ARRAY", 0x8c18, "GL_TEXTURE_BINDING_1D_ARRAY", 0x8c1c),
    ("GL_TEXTURE_2D_ARRAY", 0x8c1a, "GL_TEXTURE_BINDING_2D_ARRAY", 0x8c1d),
    ("GL_TEXTURE_BUFFER", 0x8c2a, "GL_TEXTURE_BINDING_BUFFER", 0x8c2c),
    ("GL_TEXTURE_CUBE_MAP_ARRAY", 0x9009, "GL_TEXTURE_BINDING_CUBE_MAP_ARRAY", 0x900a),
    ("GL_TEXTURE_2D_MULTISAMPLE", 0x9100, "GL_TEXTURE_BINDING_2D_MULTISAMPLE", 0x9104),
    ("GL_TEXTURE_2D_MULTISAMPLE_ARRAY", 0x9102, "GL_TEXTURE_BINDING_2D_MULTISAMPLE_ARRAY", 0x9105),
];

/// Parameters of `glGetFramebufferAttachmentParameteriv`.
pub(super) const ATTACHMENT: &str = "\
GL_FRAMEBUFFER_ATTACHMENT_COLOR_ENCODING 8210 E
GL_FRAMEBUFFER_ATTACHMENT_COMPONENT_TYPE 8211 E
GL_FRAMEBUFFER_ATTACHMENT_RED_SIZE 8212 I
GL_FRAMEBUFFER_ATTACHMENT_GREEN_SIZE 8213 I
GL_FRAMEBUFFER_ATTACHMENT_BLUE_SIZE 8214 I
GL_FRAMEBUFFER_ATTACHMENT_ALPHA_SIZE 8215 I
GL_FRAMEBUFFER_ATTACHMENT_DEPTH_SIZE 8216 I
GL_FRAMEBUFFER_ATTACHMENT_STENCIL_SIZE 8217 I
GL_FRAMEBUFFER_ATTACHMENT_OBJECT_TYPE 8CD0 E
GL_FRAMEBUFFER_ATTACHMENT_OBJECT_NAME 8CD1 I
GL_FRAMEBUFFER_ATTACHMENT_TEXTURE_LEVEL 8CD2 I
GL_FRAMEBUFFER_ATTACHMENT_TEXTURE_CUBE_MAP_FACE 8CD3 E
GL_FRAMEBUFFER_ATTACHMENT_TEXTURE_LAYER 8CD4 I
GL_FRAMEBUFFER_ATTACHMENT_LAYERED 8DA7 B";

/// Kinds of shaders.
pub(super) const SHADERS: [(u32, &str); 6] = [
    (0x8b31, "GL_VERTEX_SHADER"),
    (0x8b30, "GL_FRAGMENT_SHADER"),
    (0x8dd9, "GL_GEOMETRY_SHADER"),
    (0x8e88, "GL_TESS_CONTROL_SHADER"),
    (0x8e87, "GL_TESS_EVALUATION_SHADER"),
    (0x91b9, "GL_COMPUTE_SHADER"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read_and_no_name_occurs_twice() {
        for table in [PARAMETERS, MATERIAL, LIGHT, ATTRIBUTE, BUFFER, TEXTURE, LEVEL, ATTACHMENT] {
            let mut names: Vec<_> = rows(table).map(|row| row.name).collect();
            assert_eq!(names.len(), table.lines().count());
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.lines().count());
        }
        let mut numbers: Vec<_> = ENUMS.lines().filter_map(|line| line.split_once(' ')).map(|(_, at)| at).collect();
        assert_eq!(numbers.len(), ENUMS.lines().count());
        numbers.sort_unstable();
        let all = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
        assert_eq!((enum_name(0x203), enum_name(0xfffe)), (Some("GL_LEQUAL"), None));
    }
}
