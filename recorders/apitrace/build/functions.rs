//! Functions, as rows of the table, and their symbols.

use std::collections::BTreeMap;
use std::fmt::Write;

use roxmltree::{Document, Node};

use crate::enums::Enums;
use crate::lengths;
use crate::types::{Base, parse};

/// Each function's name, and its row's text.
pub(crate) type Rows = BTreeMap<String, String>;

/// Functions that the registry lacks, as C declares them: of Mesa, and newer than the registry.
pub(crate) const UNREGISTERED: &str = "
void glEGLImageTargetTexStorageEXT(GLenum target, GLeglImageOES image, const GLint *attrib_list)
void glEGLImageTargetTextureStorageEXT(GLuint texture, GLeglImageOES image, const GLint *attrib_list)
int glXGetSwapIntervalMESA(void)
const char *glXGetScreenDriver(Display *dpy, int screen)
char *glXGetDriverConfig(const char *driverName)
const char *eglGetDisplayDriverName(EGLDisplay dpy)
char *eglGetDisplayDriverConfig(EGLDisplay dpy)
EGLBoolean eglQueryDeviceBinaryEXT(EGLDeviceEXT device, EGLint name, EGLint max_size, void *value, EGLint *size)
EGLBoolean eglDestroyDisplayEXT(EGLDisplay dpy)
";

pub(crate) fn read(prefix: &str, document: &Document<'_>, enums: &mut Enums, rows: &mut Rows) {
    let commands = document.descendants().filter(|node| node.has_tag_name("command"));
    for command in commands {
        let Some(proto) = command.children().find(|node| node.has_tag_name("proto")) else { continue };
        let (returned, name) = declaration(proto);
        if !name.starts_with(prefix) {
            continue;
        }
        let nodes: Vec<Node<'_, '_>> = command.children().filter(|node| node.has_tag_name("param")).collect();
        let parameters: Vec<Parameter> = nodes
            .iter()
            .map(|node| {
                let (declared, name) = declaration(*node);
                let text = |key: &str| node.attribute(key).map(str::to_owned);
                Parameter { declared, name, group: text("group"), len: text("len") }
            })
            .collect();
        let row = row(prefix, &name, &returned, proto.attribute("group"), &parameters, enums);
        rows.insert(name, row);
    }
}

/// A function from its declaration in C.
pub(crate) fn declared(line: &str, enums: &mut Enums, rows: &mut Rows) {
    let (head, rest) = line.split_once('(').expect("a declaration has parameters");
    let (returned, name) = split(head);
    let parameters: Vec<Parameter> = rest
        .trim_end_matches(')')
        .split(',')
        .filter(|text| *text != "void")
        .map(|text| {
            let (declared, name) = split(text);
            Parameter { declared, name, group: None, len: None }
        })
        .collect();
    let prefix = ["glX", "egl", "gl"].into_iter().find(|prefix| name.starts_with(prefix)).expect("a known interface");
    let row = row(prefix, &name, &returned, None, &parameters, enums);
    rows.insert(name, row);
}

/// Types that are passed by pointer and are nothing but handles.
const STRUCTURES: [&str; 7] =
    ["Display ", "XVisualInfo", "AHardwareBuffer", "wl_display", "wl_buffer", "wl_resource", "HyperpipeNetwork"];

/// A declaration's type and name.
fn split(text: &str) -> (String, String) {
    let at = text.rfind([' ', '*']).expect("a type and a name") + 1;
    (text[..at].to_owned(), text[at..].to_owned())
}

struct Parameter {
    declared: String,
    name: String,
    group: Option<String>,
    len: Option<String>,
}

/// The text around a `<name>`, and the name.
fn declaration(node: Node<'_, '_>) -> (String, String) {
    let name = node.children().find(|node| node.has_tag_name("name")).and_then(|node| node.text()).unwrap_or_default();
    let mut declared = String::new();
    for text in node.descendants().filter(|node| node.is_text()) {
        if !text.parent().is_some_and(|parent| parent.has_tag_name("name")) {
            declared.push_str(text.text().unwrap_or_default());
            declared.push(' ');
        }
    }
    (declared, name.to_owned())
}

fn row(
    prefix: &str,
    function: &str,
    returned: &str,
    group: Option<&str>,
    parameters: &[Parameter],
    enums: &mut Enums,
) -> String {
    let names: Vec<String> = parameters.iter().map(|parameter| parameter.name.clone()).collect();
    let mut text = format!("Function {{ name: {function:?}, result: ");
    let (base, pointers, _) = parse(returned);
    text.push_str(&match (&base, pointers) {
        // `glGetString` returns bytes, and means text.
        (Base::Character, 1) | (Base::Number("Uint8"), 1) => "Kind::Text".to_owned(),
        (base, 0) => kind(prefix, base, group, enums),
        _ => "Kind::Handle".to_owned(),
    });
    text.push_str(", parameters: &[");
    for parameter in parameters {
        let (base, mut pointers, is_const) = parse(&parameter.declared);
        // A structure of the system's is a handle: what is in it is not looked at.
        if base == Base::Handle && STRUCTURES.iter().any(|name| parameter.declared.contains(name)) {
            pointers = pointers.saturating_sub(1);
        }
        let group = parameter.group.as_deref();
        // Enumerants that are declared as numbers.
        let is_named = base == Base::Number("Int32")
            && (prefix != "gl" && ["attribute", "name"].contains(&parameter.name.as_str())
                || parameter.name.eq_ignore_ascii_case("internalformat"));
        let base = if is_named { Base::Enumerant { is_mask: false } } else { base };
        // `glXGetProcAddress` declares its text as bytes.
        let is_text = base == Base::Number("Uint8") && parameter.name == "procName";
        let base = if is_text { Base::Character } else { base };
        let of = kind(prefix, &base, group, enums);
        let mut length = lengths::parse(function, &parameter.name, parameter.len.as_deref(), &names);
        if length.starts_with("Length::Attributes") {
            let number = enums.number(prefix, None, false).expect("each interface has all of its enumerants");
            length = length.replace(')', &format!(", {number})"));
        }
        let _ = write!(
            text,
            "Parameter {{ name: {:?}, kind: {of}, pointers: {pointers}, is_const: {is_const}, length: {length} }}, ",
            parameter.name
        );
    }
    text.push_str("] }");
    text
}

fn kind(prefix: &str, base: &Base, group: Option<&str>, enums: &mut Enums) -> String {
    match base {
        Base::Void => "Kind::Void".to_owned(),
        Base::Number(name) => format!("Kind::{name}"),
        Base::Handle => "Kind::Handle".to_owned(),
        Base::Character => "Kind::Character".to_owned(),
        Base::Truth(group) => {
            let number = enums.number(prefix, Some(group), false).expect("truth has groups");
            let is_byte = *group == "GLboolean";
            format!("Kind::Truth({number}, {is_byte})")
        }
        Base::Enumerant { is_mask } => match enums.number(prefix, group, *is_mask) {
            Some(number) if *is_mask => format!("Kind::Mask({number})"),
            Some(number) => format!("Kind::Enum({number})"),
            None => "Kind::Uint32".to_owned(),
        },
    }
}

pub(crate) fn table(rows: &Rows) -> String {
    let mut text = format!("pub(crate) static FUNCTIONS: [Function; {}] = [\n", rows.len());
    for row in rows.values() {
        text.push_str(row);
        text.push_str(",\n");
    }
    text.push_str("];\n");
    text
}

/// A symbol for each function, which hands the function's number on.
pub(crate) fn stubs(rows: &Rows) -> String {
    let mut text = String::from("stubs! {\n");
    for (number, name) in rows.keys().enumerate() {
        let _ = writeln!(text, "    {number} {name}");
    }
    text.push_str("}\n");
    text
}

/// Names of the functions that count calls of functions that are not in the table.
pub(crate) fn counters(count: usize) -> String {
    let mut text = String::from("counters! {\n");
    for number in 0..count {
        let _ = writeln!(text, "    counter_{number} {number}");
    }
    text.push_str("}\n");
    text
}
