//! Prints what `apitrace leaks` of apitrace 11.1 prints, including its faults.
//!
//! It follows buffers and textures that are made by `glGen*`, treating all contexts as one, and reports what is left
//! when as many contexts were destroyed as were made. It would follow framebuffers and renderbuffers if its pattern did
//! not spell them with a capital B.

use std::collections::HashMap;
use std::io::Write;

use anytrace_core::{Error, Sink};

use crate::lanes::calls::{Call, CallOptions, CallVisitor, read_calls};
use crate::lanes::dictionary::{Definition, Dictionary};
use crate::tools::gl::values::Values;
use crate::wire::reader::{Reader, Totals};
use crate::wire::record::{Header, Space};

/// How `apitrace leaks` would have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerEnd {
    /// What was read.
    pub totals: Totals,
    /// The call at which it would have failed itself, such as by destroying more contexts than were made; nothing is
    /// printed from there on.
    pub failed: Option<u64>,
}

/// Prints what `apitrace leaks` prints.
///
/// If the trace is damaged, reading continues after the damage, as everywhere here; apitrace stops.
///
/// # Errors
/// I/O, limits, and what the sink returns.
pub fn peer_leaks(reader: &mut Reader, out: &mut dyn Write, sink: &mut dyn Sink) -> Result<PeerEnd, Error> {
    let options = CallOptions::default().with_limits(&reader.limits);
    let mut detector = Detector {
        dictionary: Dictionary::default(),
        roles: Vec::new(),
        contexts: 0,
        kinds: Vec::new(),
        order: 0,
        failed: None,
        out,
    };
    let totals = read_calls(reader, options, &mut detector, sink)?;
    if detector.failed.is_none() {
        detector.print("<EOF>")?;
    }
    Ok(PeerEnd { totals, failed: detector.failed })
}

/// The kinds it knows, in lower case and without the s.
const KINDS: [(&str, &str); 4] = [
    ("Buffers", "buffer"),
    ("Textures", "texture"),
    ("FrameBuffers", "framebuffer"),
    ("RenderBuffers", "renderbuffer"),
];

/// How a function affects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Generate(&'static str),
    Delete(&'static str),
    Create,
    Destroy,
}

fn role(name: &str) -> Option<Role> {
    let creates = [
        "CGLCreateContext",
        "eglCreateContext",
        "glXCreateContext",
        "glXCreateNewContext",
        "glXCreateContextAttribsARB",
        "glXCreateContextWithConfigSGIX",
        "wglCreateContext",
        "wglCreateContextAttribsARB",
    ];
    let destroys = ["CGLDestroyContext", "glXDestroyContext", "eglDestroyContext", "wglDeleteContext"];
    if creates.contains(&name) {
        return Some(Role::Create);
    }
    if destroys.contains(&name) {
        return Some(Role::Destroy);
    }
    let of = |rest: &str| {
        let is_suffix = |more: &str| more.bytes().all(|byte| byte.is_ascii_uppercase());
        KINDS.iter().find(|(plural, _)| rest.strip_prefix(plural).is_some_and(is_suffix)).map(|(_, kind)| *kind)
    };
    // Its pattern allows a line end to follow.
    let rest = name.strip_suffix('\n').unwrap_or(name).strip_prefix("gl")?;
    match (rest.strip_prefix("Gen"), rest.strip_prefix("Delete")) {
        (Some(rest), _) => of(rest).map(Role::Generate),
        (_, Some(rest)) => of(rest).map(Role::Delete),
        _ => None,
    }
}

/// An object: the call that made it, and when its name was first seen.
type Made = (u64, u64);

struct Detector<'a> {
    dictionary: Dictionary,
    roles: Vec<Option<Role>>,
    contexts: u64,
    /// In the order in which the kinds were first seen.
    kinds: Vec<(&'static str, HashMap<i64, Made>)>,
    order: u64,
    failed: Option<u64>,
    out: &'a mut dyn Write,
}

impl Detector<'_> {
    fn print(&mut self, until: &str) -> Result<(), Error> {
        for (kind, objects) in &mut self.kinds {
            let mut rows: Vec<(Made, i64)> = objects.drain().map(|(name, made)| (made, name)).collect();
            rows.sort_unstable();
            for ((call, _), name) in rows {
                writeln!(self.out, "{call}: error: {kind} {name} was not destroyed until {until}")?;
            }
        }
        Ok(())
    }

    /// `None` if it would end with an error.
    fn take(&mut self, role: Role, values: &Values<'_>, number: u64) -> Option<()> {
        let (kind, is_made) = match role {
            Role::Generate(kind) => (kind, true),
            Role::Delete(kind) => (kind, false),
            Role::Create | Role::Destroy => return Some(()),
        };
        // It requires two arguments, and as many names as the first argument says.
        if values.argument(1).is_none() || values.argument(2).is_some() {
            return None;
        }
        let count = usize::try_from(values.integer(0)?.max(0)).unwrap_or(usize::MAX);
        let at = self.kinds.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            self.kinds.push((kind, HashMap::new()));
            self.kinds.len() - 1
        });
        let (_, objects) = self.kinds.get_mut(at)?;
        let mut names = values.integers(1);
        for _ in 0..count {
            let name = names.next()?;
            if is_made {
                // A name that is made again keeps its position.
                let order = objects.get(&name).map_or(self.order, |made| made.1);
                self.order += 1;
                objects.insert(name, (number, order));
            } else {
                objects.remove(&name);
            }
        }
        Some(())
    }
}

impl CallVisitor for Detector<'_> {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        self.dictionary = Dictionary::new(header.version);
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        self.dictionary.define(definition);
        if definition.space != Space::Function {
            return;
        }
        let at = definition.slot as usize;
        let name = self.dictionary.function(definition.slot).map_or(&b""[..], |function| function.name());
        let role = std::str::from_utf8(name).ok().and_then(role);
        if self.roles.len() <= at {
            self.roles.resize(at + 1, None);
        }
        if let Some(place) = self.roles.get_mut(at) {
            *place = role;
        }
    }

    #[inline]
    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        let Some(role) = self.roles.get(call.function as usize).copied().flatten() else { return Ok(()) };
        if self.failed.is_some() {
            return Ok(());
        }
        match role {
            // Whether it succeeds is not checked.
            Role::Create => self.contexts += 1,
            Role::Destroy => match self.contexts.checked_sub(1) {
                None => self.failed = Some(call.number),
                Some(left) => {
                    self.contexts = left;
                    if left == 0 {
                        self.print(&call.number.to_string())?;
                    }
                }
            },
            Role::Generate(_) | Role::Delete(_) => {
                let dictionary = std::mem::take(&mut self.dictionary);
                let taken = self.take(role, &Values::new(call, &dictionary), call.number);
                self.dictionary = dictionary;
                if taken.is_none() {
                    self.failed = Some(call.number);
                }
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.failed.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_four_families_of_functions_count() {
        assert_eq!(role("glGenTexturesEXT"), Some(Role::Generate("texture")));
        assert_eq!(role("glDeleteBuffersARB"), Some(Role::Delete("buffer")));
        assert_eq!(role("glGenFrameBuffers"), Some(Role::Generate("framebuffer")));
        for name in ["glGenFramebuffers", "glCreateBuffers", "glGenBuffers2", "glGenTexturesExt", "xglGenBuffers"] {
            assert_eq!(role(name), None, "{name}");
        }
    }
}
