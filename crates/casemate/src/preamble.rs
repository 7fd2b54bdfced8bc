//! stub
use crate::record::Record;
use crate::rewrite::{Emitter, Out};
use crate::state::State;
use anytrace_core::Error;
pub(crate) fn write(_: &State, _: &Record<'_>, _: &mut Emitter, _: &mut Out<'_>) -> Result<u64, Error> {
    Ok(0)
}
pub(crate) fn notes(_: &State, _: u64) -> Vec<String> {
    Vec::new()
}
