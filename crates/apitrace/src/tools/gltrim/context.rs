//! How contexts become current.

use crate::tools::gl::contexts::{Change, ContextVerb, System};
use crate::tools::gl::values::Values;
use crate::tools::gltrim::log::Effect;
use crate::tools::gltrim::model::{At, Model};

impl Model {
    /// Follows a call that makes, destroys or changes current contexts.
    pub(super) fn follow_context(&mut self, action: (System, ContextVerb), values: &Values<'_>, at: At) {
        let before = self.ctx;
        let changes = self.contexts.take(action, values, at.thread, at.call);
        self.effect(Effect::Always);
        for change in changes {
            match change {
                Change::Joined { from, to } => {
                    let moved: Vec<_> =
                        self.names.iter().filter(|(slot, _)| slot.1 == from).map(|(slot, id)| (*slot, *id)).collect();
                    for ((kind, _, name), id) in moved {
                        self.names.insert((kind, to, name), id);
                    }
                }
                Change::Current(now) => {
                    // A thread's context is needed as long as calls that use it are kept.
                    self.record.effects.clear();
                    let (current, _) = self.current(at.thread);
                    self.kills(current);
                    let holder = self.state().holder;
                    self.kills(holder);
                    self.ctx = now.unwrap_or(0);
                    let (holder, made) = (self.state().holder, self.state().made);
                    self.kills(holder);
                    self.reads(holder);
                    self.reads(made);
                    if let ContextVerb::MakeCurrent(context) = action.1 {
                        self.take_windows(context, values);
                    }
                    self.ctx = before;
                }
                Change::Created(made) => {
                    self.ctx = made;
                    let node = self.state().made;
                    self.kills(node);
                    self.ctx = before;
                }
                Change::Ended { .. } => {}
            }
        }
    }

    /// The drawables are the arguments between the display and the context.
    fn take_windows(&mut self, context: usize, values: &Values<'_>) {
        let first = usize::from(context > 1);
        let Some(draw) = values.name(first).filter(|_| context > 0) else { return };
        let read = if context > first + 1 { values.name(first + 1).unwrap_or(draw) } else { draw };
        let (draw, read) = (self.window(draw), self.window(read));
        let state = self.state();
        (state.window, state.read_window) = (draw, read);
        self.touch();
    }
}
