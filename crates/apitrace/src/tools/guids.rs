//! Names of interfaces of Windows by their identities.

/// The name of an interface, from its identity in lower-case text.
pub(crate) fn guid_name(_uuid: &str) -> Option<&'static str> {
    None
}
