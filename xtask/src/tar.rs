//! Archives of a few small files, for traces that are folders.

use tar::{Builder, EntryType, Header};

/// The files as `tar` writes them.
pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, bytes) in files {
        let added = builder.append_data(&mut file(bytes.len() as u64), name, *bytes);
        added.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    builder.into_inner().unwrap_or_else(|error| panic!("the end of an archive: {error}"))
}

/// The header of a file.
pub(crate) fn header(name: &str, size: u64) -> [u8; 512] {
    let mut header = file(size);
    header.set_path(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    header.set_cksum();
    *header.as_bytes()
}

fn file(size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_size(size);
    header
}
