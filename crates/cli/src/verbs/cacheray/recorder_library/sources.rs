//! The recorder's sources and headers, as they are in this program.

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        /// The recorder's sources, by their place in its `src`. `recorder` leads to them, so that they are packaged with
        /// this crate.
        pub(super) const SOURCES: &[(&str, &str)] = &[$((
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/recorder/src/", $name)),
        )),*];
    };
}

sources! {
    "alloc.rs",
    "api.rs",
    "callbacks.rs",
    "calls.rs",
    "codes.rs",
    "elf.rs",
    "entries.rs",
    "hooks/accesses.rs",
    "hooks/annotations.rs",
    "hooks/atomics.rs",
    "hooks/atomics128.rs",
    "hooks/files.rs",
    "hooks/library.rs",
    "hooks/memory.rs",
    "hooks/mod.rs",
    "hooks/printing.rs",
    "hooks/releases.rs",
    "hooks/scanning.rs",
    "hooks/text.rs",
    "hooks/values.rs",
    "hot.rs",
    "inner.rs",
    "inner/thread_buffers.rs",
    "inner/writing.rs",
    "interface.rs",
    "layouts.rs",
    "lib.rs",
    "log.rs",
    "log/signals.rs",
    "log/start.rs",
    "loss.rs",
    "options.rs",
    "order.rs",
    "places.rs",
    "real.rs",
    "record.rs",
    "regions.rs",
    "sites.rs",
    "spawn.rs",
    "spread.rs",
    "stacks.rs",
    "sys.rs",
    "target.rs",
    "thread.rs",
    "thread_buffer.rs",
    "variables.rs",
    "wrappers.rs",
}

/// The header for programs that declare types.
pub(in crate::verbs::cacheray) const HEADER: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/recorder/include/cacheray.h"));

/// The header that makes calls of what gcc expands in place.
pub(super) const BUILTINS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/recorder/include/cacheray_builtins.h"));

/// A number that changes with the sources.
pub(super) fn fingerprint() -> u64 {
    hash(SOURCES.iter().flat_map(|(name, text)| name.bytes().chain(text.bytes())))
}

/// FNV-1a.
pub(super) fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn all_sources_of_the_recorder_are_here() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorder/src");
        let mut found = Vec::new();
        for prefix in ["", "hooks/", "inner/", "log/"] {
            for entry in fs::read_dir(folder.join(prefix)).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_file() {
                    found.push(format!("{prefix}{}", entry.file_name().to_string_lossy()));
                }
            }
        }
        found.sort();
        let listed: Vec<_> = SOURCES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(found, listed);
    }
}
