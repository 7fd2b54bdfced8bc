//! Names of interfaces of Windows by their identities.

use crate::tools::guids_table::GUIDS;

/// The name of an interface; its identity as the number that its text is.
pub(crate) fn guid_name(identity: u128) -> Option<&'static str> {
    let at = GUIDS.binary_search_by_key(&identity, |(known, _)| *known).ok()?;
    GUIDS.get(at).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_sorted_and_found() {
        assert!(GUIDS.is_sorted_by(|a, b| a.0 < b.0));
        // allvals_v6 of the corpus, calls 90 and 91.
        assert_eq!(guid_name(0x7b7166ec_21c7_44ae_b21a_c9ae321ae369), Some("IID_IDXGIFactory"));
        assert_eq!(guid_name(0x12345678_0001_0002_0001_020304050607), None);
    }
}
