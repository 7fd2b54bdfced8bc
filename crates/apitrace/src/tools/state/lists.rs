//! Display lists and saved attributes.

use std::rc::Rc;

use crate::lanes::calls::Call;
use crate::tools::gl::attribute_groups::TEXTURE;
use crate::tools::gl::kind::Kind;
use crate::tools::gl::values::Values;
use crate::tools::state::machine::{At, Machine};
use crate::tools::state::model::{Compiling, Detail, Kept, List, Object, Saved};
use crate::tools::state::ops::Op;
use crate::tools::state::parameters::attribute_bits;

/// Calls of display lists done for one call, and how deep lists call lists.
const LIST_CALLS_MAX: u32 = 1 << 16;
/// Calls of display lists executed for one trace. Without this limit, lists that call lists could take arbitrarily
/// long.
const LIST_CALLS_ALL_MAX: u64 = 1 << 28;
const LIST_DEPTH_MAX: u32 = 64;

/// Saved attributes; OpenGL has 16.
const SAVED_MAX: usize = 32;

impl Machine {
    pub(super) fn keep_in_list(&mut self, op: Op, call: &Call<'_>, context: u32) {
        let budget = Rc::clone(&self.budget);
        let Some(list) = &mut self.state(context).compiling else { return };
        if let Some(enter) = budget.text(call.enter.to_vec()).filter(|_| budget.takes()) {
            list.calls.push(Rc::new(Kept { op, function: call.function, enter }));
        }
    }

    pub(super) fn call_list(&mut self, name: u64, at: At<'_>, values: &Values<'_>, depth: u32) {
        let calls = match self.objects.get(Kind::List, name, at.context, &self.contexts).map(|object| &object.detail) {
            Some(Detail::List(list)) => Rc::clone(&list.0),
            _ => {
                self.unknown(at.context, format!("effects of display list {name} at call {}", at.number));
                return;
            }
        };
        for kept in calls.iter() {
            self.list_calls += 1;
            self.list_calls_all += 1;
            let is_enough = self.list_calls > LIST_CALLS_MAX || self.list_calls_all > LIST_CALLS_ALL_MAX;
            if is_enough || depth >= LIST_DEPTH_MAX {
                self.unknown(at.context, format!("effects of display lists at call {}", at.number));
                return;
            }
            let Some(function) = values.dictionary().function(kept.function) else { continue };
            let (number, slot, enter) = (at.number, kept.function, kept.enter.bytes());
            let call = Call { number, function: slot, is_incomplete: false, enter, ..Call::NONE };
            let inner = Values::new(&call, values.dictionary());
            self.apply(kept.op, At { function, ..at }, &inner, depth + 1);
        }
    }

    pub(super) fn begin_list(&mut self, name: u64, at: At<'_>, values: &Values<'_>) {
        let executes = values.integer(1) == Some(0x1301);
        self.state(at.context).compiling = Some(Compiling { name, executes, calls: Vec::new() });
    }

    pub(super) fn end_list(&mut self, at: At<'_>) {
        let Some(list) = self.state(at.context).compiling.take() else { return };
        let mut object = self.object(Kind::List, at);
        object.function = "glNewList".into();
        object.detail = Detail::List(List(Rc::new(list.calls)));
        let key = (Kind::List, Kind::List.scope());
        let before = self.objects.insert_row(key, (list.name, 1), object, at.context, &self.contexts);
        self.budget.free(before.iter().map(Object::entries).sum());
    }

    pub(super) fn push_attributes(&mut self, at: At<'_>, values: &Values<'_>) {
        let mask = values.integer(0).unwrap_or(0) as u32;
        let state = self.state(at.context);
        if state.attributes.len() >= SAVED_MAX {
            return;
        }
        let parameters = state.parameters.iter().filter(|((name, _), _)| attribute_bits(name) & mask != 0);
        let parameters = parameters.map(|(key, setting)| (key.clone(), setting.clone())).collect();
        let bindings =
            state.bindings.iter().filter(|(_, binding)| mask & TEXTURE != 0 && binding.kind == Kind::Texture);
        let bindings = bindings.map(|(key, binding)| (key.clone(), binding.clone())).collect();
        state.attributes.push(Saved { mask, parameters, bindings });
    }

    pub(super) fn pop_attributes(&mut self, at: At<'_>) {
        let state = self.state(at.context);
        let Some(saved) = state.attributes.pop() else { return };
        let before = state.parameters.len();
        state.parameters.retain(|(name, _), _| attribute_bits(name) & saved.mask == 0);
        state.parameters.extend(saved.parameters);
        if saved.mask & TEXTURE != 0 {
            state.bindings.retain(|_, binding| binding.kind != Kind::Texture);
            state.bindings.extend(saved.bindings);
        }
        let after = state.parameters.len();
        self.budget.free(before.saturating_sub(after));
    }
}
