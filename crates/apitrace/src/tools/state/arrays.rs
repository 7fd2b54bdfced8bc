//! Vertex arrays.

use std::rc::Rc;

use crate::tools::gl::kind::Kind;
use crate::tools::gl::values::Values;
use crate::tools::state::machine::{At, Machine, own_target, value};
use crate::tools::state::model::{Attribute, Detail, Key, Setting, VertexArray};
use crate::tools::state::ops::{Special, Way};
use crate::tools::state::value::Val;

impl Machine {
    /// A vertex array: of that name, or the one that is bound.
    pub(super) fn vertex_array(&mut self, context: u32, name: Option<u64>) -> Option<&mut VertexArray> {
        let name = match name {
            Some(name) => name,
            None => self.bound(context, own_target(Kind::VertexArray), None).unwrap_or(0),
        };
        if name == 0 {
            return Some(&mut self.state(context).vertex_array);
        }
        match &mut self.objects.get_mut(Kind::VertexArray, name, context, &self.contexts)?.detail {
            Detail::VertexArray(array) => Some(array),
            _ => None,
        }
    }

    fn attribute(&mut self, way: Way, key: Key, at: At<'_>, values: &Values<'_>) -> Option<&mut Attribute> {
        let name = if way == Way::Named { Some(values.name(0)?) } else { None };
        let budget = Rc::clone(&self.budget);
        let array = self.vertex_array(at.context, name)?;
        if !array.attributes.contains_key(&key) && !budget.takes() {
            return None;
        }
        Some(array.attributes.entry(key).or_default())
    }

    pub(super) fn special_array(&mut self, special: Special, at: At<'_>, values: &Values<'_>) {
        match special {
            Special::VertexPointer(name) => {
                let unit =
                    (name == "GL_TEXTURE_COORD_ARRAY").then(|| self.unit(at.context, "GL_CLIENT_ACTIVE_TEXTURE"));
                self.pointer((name.into(), unit), 0, at, values);
            }
            Special::AttribPointer => {
                let key = index_key(values, 0);
                self.pointer(key, 1, at, values);
            }
            Special::AttribEnable(way, is_on) => {
                let key = index_key(values, usize::from(way == Way::Named));
                if let Some(attribute) = self.attribute(way, key, at, values) {
                    attribute.enabled = Some(Setting::new(Val::truth(is_on), at.number));
                }
            }
            Special::AttribDivisor => self.describe(Way::Bound, 1..2, at, values),
            Special::AttribFormat(way) => {
                let first = usize::from(way == Way::Named);
                self.describe(way, first + 1..first + 5, at, values);
            }
            Special::AttribBinding(way) => {
                let first = usize::from(way == Way::Named);
                self.describe(way, first + 1..first + 2, at, values);
            }
            Special::BindVertexBuffer(way) => self.bind_vertex_buffer(way, 3, at, values),
            Special::BindingDivisor(way) => self.bind_vertex_buffer(way, 1, at, values),
            Special::ElementBuffer => {
                let name = values.name(0);
                if let (Some(buffer), Some(array)) = (value(values, 1), self.vertex_array(at.context, name)) {
                    array.elements = Some(Setting::new(buffer, at.number));
                }
            }
            _ => {}
        }
    }

    /// Size, type, stride and pointer, and the buffer that is bound.
    fn pointer(&mut self, key: Key, first: usize, at: At<'_>, values: &Values<'_>) {
        let buffer = self.bound(at.context, "GL_ARRAY_BUFFER", None).unwrap_or(0);
        let format = at.named(values, first..first + 6);
        if let Some(attribute) = self.attribute(Way::Bound, key, at, values) {
            attribute.format = format.into_iter().collect();
            attribute.format.insert("buffer".into(), Val::Int(buffer as i64));
            attribute.call = Some(at.number);
        }
    }

    fn describe(&mut self, way: Way, arguments: std::ops::Range<usize>, at: At<'_>, values: &Values<'_>) {
        let key = index_key(values, usize::from(way == Way::Named));
        let more = at.named(values, arguments);
        if let Some(attribute) = self.attribute(way, key, at, values) {
            attribute.format.extend(more);
            attribute.call = Some(at.number);
        }
    }

    fn bind_vertex_buffer(&mut self, way: Way, count: usize, at: At<'_>, values: &Values<'_>) {
        let first = usize::from(way == Way::Named);
        let name = if way == Way::Named { values.name(0) } else { None };
        let Some(point) = values.name(first) else { return };
        let more = at.named(values, first + 1..first + 1 + count);
        let budget = Rc::clone(&self.budget);
        let Some(array) = self.vertex_array(at.context, name) else { return };
        if !array.buffers.contains_key(&point) && !budget.takes() {
            return;
        }
        let settings = more.into_iter().map(|(label, given)| (label, Setting::new(given, at.number)));
        array.buffers.entry(point).or_default().extend(settings);
    }
}

fn index_key(values: &Values<'_>, argument: usize) -> Key {
    ("attribute".into(), values.integer(argument).and_then(|index| u32::try_from(index).ok()))
}
