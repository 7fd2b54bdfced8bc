//! The exact output of all verbs that read, for every sample. `UPDATE_GOLDENS=1` rewrites the files in `goldens`.

#![cfg(feature = "lanes")]

use std::path::Path;

use anytrace_core::testing::goldens::assert_goldens;
use anytrace_perfetto::Perfetto;

#[test]
fn samples_read_as_their_goldens_say() {
    assert_goldens(&Perfetto, Path::new(env!("CARGO_MANIFEST_DIR")), &["", "odd", "real"], "pftrace");
}
