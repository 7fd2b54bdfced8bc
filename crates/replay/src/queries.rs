//! Queries of the device: times and samples. They are the replayer's own; those of the trace go on beside them.

use std::collections::HashMap;

use crate::gl::Gl;

/// `GL_SAMPLES_PASSED`.
pub(crate) const SAMPLES_PASSED: u32 = 0x8914;

/// `GL_TIMESTAMP`.
const TIMESTAMP: u32 = 0x8e28;

/// Query objects by context, made once and used again.
#[derive(Debug, Default)]
pub(crate) struct Queries {
    spare: HashMap<u32, Vec<u32>>,
    used: HashMap<u32, Vec<u32>>,
    /// What the driver can do, by context and target.
    can: HashMap<(u32, u32), bool>,
}

impl Queries {
    /// Whether the driver has such queries.
    fn can(&mut self, gl: &Gl, context: u32, target: u32) -> bool {
        *self.can.entry((context, target)).or_insert_with(|| {
            gl.clear_errors();
            let can = gl.has_query(target);
            gl.clear_errors();
            can
        })
    }

    fn take(&mut self, gl: &Gl, context: u32) -> Option<u32> {
        let query = self.spare.get_mut(&context).and_then(Vec::pop).or_else(|| gl.new_query())?;
        self.used.entry(context).or_default().push(query);
        Some(query)
    }

    /// A query of the device's time when it has done everything before; `None` if the driver has none.
    pub(crate) fn time(&mut self, gl: &Gl, context: u32) -> Option<u32> {
        if !self.can(gl, context, TIMESTAMP) {
            return None;
        }
        let query = self.take(gl, context)?;
        gl.query_time(query);
        Some(query)
    }

    /// Begins to count; `None` where the driver cannot, or the trace itself counts the same.
    pub(crate) fn begin(&mut self, gl: &Gl, context: u32, target: u32) -> Option<u32> {
        if !self.can(gl, context, target) || gl.current_query(target) != 0 {
            return None;
        }
        let query = self.take(gl, context)?;
        gl.begin_query(target, query);
        Some(query)
    }

    pub(crate) fn end(&mut self, gl: &Gl, target: u32) {
        gl.end_query(target);
    }

    /// All results of a context were read.
    pub(crate) fn give_back(&mut self, context: u32) {
        if let Some(used) = self.used.get_mut(&context) {
            self.spare.entry(context).or_default().append(used);
        }
    }
}
