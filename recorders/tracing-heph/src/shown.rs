//! What is recorded of spans and events beside their fields.

/// What is shown of a span or event beside its fields.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shown {
    pub(crate) target: bool,
    pub(crate) location: bool,
    pub(crate) level: bool,
    pub(crate) thread_name: bool,
    pub(crate) session: bool,
    /// Numbers of spans.
    pub(crate) numbers: bool,
}
