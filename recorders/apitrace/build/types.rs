//! C types, as what is written of them.

/// A type without its pointers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Base {
    Void,
    /// A number, by the name of the variant of the table's `Kind`.
    Number(&'static str),
    /// An enumerant, and `true` for bits.
    Enumerant {
        is_mask: bool,
    },
    /// Truth, by the name of the group.
    Truth(&'static str),
    /// Text.
    Character,
    /// What only the driver knows, of a pointer's size.
    Handle,
}

/// The type and its pointers, from a declaration without the name.
pub(crate) fn parse(declared: &str) -> (Base, usize, bool) {
    let pointers = declared.matches('*').count();
    let is_const = declared.trim_start().starts_with("const");
    let words: Vec<&str> = declared
        .split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .filter(|word| !word.is_empty())
        .collect();
    let named: Vec<&str> = words.into_iter().filter(|word| !["const", "struct", "unsigned"].contains(word)).collect();
    let is_unsigned = declared.split_whitespace().any(|word| word == "unsigned");
    let base = match named.first().copied().unwrap_or("int") {
        "void" | "GLvoid" => Base::Void,
        "GLenum" | "EGLenum" => Base::Enumerant { is_mask: false },
        "GLbitfield" => Base::Enumerant { is_mask: true },
        "GLboolean" => Base::Truth("GLboolean"),
        "EGLBoolean" => Base::Truth("EGLBoolean"),
        "Bool" => Base::Truth("Bool"),
        "GLchar" | "GLcharARB" | "char" => Base::Character,
        "GLbyte" => Base::Number("Int8"),
        "GLubyte" => Base::Number("Uint8"),
        "GLshort" => Base::Number("Int16"),
        "GLushort" | "GLhalfNV" | "GLhalf" => Base::Number("Uint16"),
        "GLint"
        | "GLsizei"
        | "GLfixed"
        | "GLclampx"
        | "EGLint"
        | "int32_t"
        | "Status"
        | "EGLNativeFileDescriptorKHR" => Base::Number("Int32"),
        "int" if is_unsigned => Base::Number("Uint32"),
        "int" => Base::Number("Int32"),
        "GLuint" | "GLhandleARB" | "uint32_t" => Base::Number("Uint32"),
        "GLfloat" | "GLclampf" | "float" => Base::Number("Float"),
        "GLdouble" | "GLclampd" => Base::Number("Double"),
        "GLint64" | "GLint64EXT" | "int64_t" | "GLintptr" | "GLsizeiptr" | "GLintptrARB" | "GLsizeiptrARB"
        | "EGLAttrib" | "EGLAttribKHR" | "EGLnsecsANDROID" | "EGLsizeiANDROID" => Base::Number("Int64"),
        "GLuint64"
        | "GLuint64EXT"
        | "EGLTime"
        | "EGLTimeKHR"
        | "EGLTimeNV"
        | "EGLuint64KHR"
        | "EGLuint64NV"
        | "long"
        | "XID"
        | "Window"
        | "Pixmap"
        | "Font"
        | "Colormap"
        | "GLXDrawable"
        | "GLXWindow"
        | "GLXPixmap"
        | "GLXPbuffer"
        | "GLXContextID"
        | "GLXPbufferSGIX"
        | "GLXVideoSourceSGIX"
        | "GLXVideoCaptureDeviceNV" => Base::Number("Uint64"),
        // `Display`, `EGLDisplay`, `GLsync`, callbacks, native windows and so on.
        _ => Base::Handle,
    };
    (base, pointers, is_const)
}
