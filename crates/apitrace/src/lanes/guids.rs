//! Names of Windows interfaces by their GUIDs.

use crate::lanes::packed::{Packed, find};

/// GUIDs of Direct3D, DXGI, Direct2D and related interfaces, as the numbers formed by their digits, and the names that
/// apitrace 11.1 prints for them.
static GUIDS: Packed = include_str!("../tables/guids.txt");

/// The name of an interface. The GUID is the number formed by its hexadecimal digits.
pub(crate) fn guid_name(identity: u128) -> Option<&'static str> {
    find(GUIDS, format!("{identity:032x}").as_bytes()).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::packed::checked_keys;

    #[test]
    fn identities_are_sorted_and_found() {
        let keys = checked_keys(GUIDS);
        assert!(keys.iter().all(|key| key.len() == 32 && guid_name(u128::from_str_radix(key, 16).unwrap()).is_some()));
        assert_eq!(keys.len(), 674);
        // allvals_v6 of the corpus, calls 90 and 91.
        assert_eq!(guid_name(0x7b7166ec_21c7_44ae_b21a_c9ae321ae369), Some("IID_IDXGIFactory"));
        assert_eq!(guid_name(0x12345678_0001_0002_0001_020304050607), None);
    }
}
