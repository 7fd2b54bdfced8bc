//! Enumerants: groups of them, and the one name that is shown for each value.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use roxmltree::{Document, Node};

/// Groups by name, each with names and values.
#[derive(Debug, Default)]
pub(crate) struct Enums {
    values: HashMap<String, i64>,
    /// The place of each group's name in the table, and its names.
    groups: BTreeMap<String, Vec<String>>,
    order: Vec<String>,
}

/// The group of all enumerants of an interface, for values that a parameter's own group lacks.
fn all(prefix: &str) -> &'static str {
    match prefix {
        "gl" => "GLenum",
        "egl" => "EGLenum",
        _ => "GLXenum",
    }
}

impl Enums {
    pub(crate) fn read(&mut self, prefix: &str, document: &Document<'_>) {
        let root = document.root_element();
        let mut of_all = Vec::new();
        for block in root.children().filter(|node| node.has_tag_name("enums")) {
            let is_mask = block.attribute("type") == Some("bitmask");
            for node in block.children().filter(|node| node.has_tag_name("enum")) {
                let Some((name, value)) = named(node) else { continue };
                self.values.insert(name.clone(), value);
                if let Some(group) = block.attribute("group").filter(|_| is_mask) {
                    self.groups.entry(group.to_owned()).or_default().push(name.clone());
                }
                // Small numbers mean something in a group only, and so do errors and events.
                let is_own = block.attribute("namespace").is_some_and(|space| space.eq_ignore_ascii_case(prefix));
                if is_own && !is_mask && (value > 1 || prefix == "glX" && value > 0) && value <= i64::from(u32::MAX) {
                    of_all.push(name);
                }
            }
        }
        for group in root.children().filter(|node| node.has_tag_name("groups")).flat_map(|node| node.children()) {
            let Some(name) = group.attribute("name") else { continue };
            let members = group.children().filter_map(|node| node.attribute("name")).map(str::to_owned);
            self.groups.entry(name.to_owned()).or_default().extend(members);
        }
        if prefix == "gl" {
            self.complete();
        }
        self.groups.insert(all(prefix).to_owned(), of_all);
    }

    /// Groups that the registry has not, and members that it forgot.
    fn complete(&mut self) {
        let more: [(&str, &[&str]); 9] = [
            ("GLboolean", &["GL_FALSE", "GL_TRUE"]),
            ("Bool", &["False", "True"]),
            ("EGLBoolean", &["EGL_FALSE", "EGL_TRUE"]),
            ("PrimitiveType", &["GL_POINTS", "GL_PATCHES", "GL_TRIANGLE_STRIP_ADJACENCY", "GL_TRIANGLES_ADJACENCY"]),
            ("BlendingFactorDest", &["GL_ZERO", "GL_ONE"]),
            ("BlendingFactorSrc", &["GL_ZERO", "GL_ONE"]),
            ("ErrorCode", &["GL_NO_ERROR"]),
            ("DrawBufferMode", &["GL_NONE"]),
            ("ReadBufferMode", &["GL_NONE"]),
        ];
        for (name, value) in [("False", 0), ("True", 1), ("EGL_FALSE", 0), ("EGL_TRUE", 1)] {
            self.values.insert(name.to_owned(), value);
        }
        for (group, names) in more {
            self.groups.entry(group.to_owned()).or_default().extend(names.iter().map(|name| (*name).to_owned()));
        }
    }

    /// The number of a group, which it has from now on; `None`: there is no such group.
    pub(crate) fn number(&mut self, prefix: &str, group: Option<&str>, is_mask: bool) -> Option<usize> {
        let known = group.filter(|group| self.groups.get(*group).is_some_and(|names| !names.is_empty()));
        let group = match known {
            Some(group) => group.to_owned(),
            None if is_mask => return None,
            None => all(prefix).to_owned(),
        };
        Some(self.order.iter().position(|known| *known == group).unwrap_or_else(|| {
            self.order.push(group);
            self.order.len() - 1
        }))
    }

    /// The table's text.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("pub(crate) static GROUPS: [Group; {}] = [\n", self.order.len());
        for group in &self.order {
            let mut members: BTreeMap<i64, &str> = BTreeMap::new();
            for name in &self.groups[group] {
                let Some(value) = self.values.get(name) else { continue };
                let best = members.entry(*value).or_insert(name);
                if rank(name) < rank(best) {
                    *best = name;
                }
            }
            let _ = write!(text, "Group {{ name: {group:?}, members: &[");
            for (value, name) in members {
                let _ = write!(text, "({name:?}, {value}),");
            }
            text.push_str("] },\n");
        }
        text.push_str("];\n");
        for (constant, name) in [("ALL_OF_GL", "GLenum"), ("ALL_OF_EGL", "EGLenum")] {
            let at = self.order.iter().position(|group| group == name).expect("functions use each interface's names");
            let _ = writeln!(
                text,
                "/// The place of all names of an interface.\npub(crate) const {constant}: usize = {at};"
            );
        }
        text
    }
}

/// A name with no vendor's suffix comes first, then a short one.
fn rank(name: &str) -> (bool, usize, &str) {
    let vendors = [
        "_ARB", "_EXT", "_OES", "_NV", "_AMD", "_ATI", "_APPLE", "_SGIX", "_SGIS", "_KHR", "_QCOM", "_INTEL", "_IMG",
        "_NVX", "_ANGLE", "_MESA", "_SUN", "_IBM", "_HP", "_PGI", "_OVR", "_ANDROID", "_3DFX", "_INGR", "_SGI", "_WIN",
    ];
    (vendors.iter().any(|vendor| name.ends_with(vendor)), name.len(), name)
}

fn named(node: Node<'_, '_>) -> Option<(String, i64)> {
    let (name, value) = (node.attribute("name")?, node.attribute("value")?);
    let value = match value.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => value.parse().ok()?,
    };
    // A name may have another value in an old interface.
    node.attribute("api").is_none_or(|api| api != "gles1").then(|| (name.to_owned(), value))
}
