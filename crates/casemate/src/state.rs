//! stub
use crate::record::Record;
use anytrace_core::Limits;
#[derive(Debug)]
pub(crate) struct State;
impl State {
    pub(crate) fn new(_: Limits) -> Self {
        Self
    }
    pub(crate) fn apply(&mut self, _: &Record<'_>) {}
}
