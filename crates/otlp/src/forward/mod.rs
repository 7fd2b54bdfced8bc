//! Sends spans on.
use crate::request::Forward;
use anytrace_core::Error;
pub(crate) async fn run(_task: Forward) -> Result<(), Error> { Ok(()) }
