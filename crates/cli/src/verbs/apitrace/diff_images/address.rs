//! Addresses of images, as the page writes them.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// The address of a file as seen from the folder of the page.
pub(super) fn address(path: &Path, base: &Path) -> String {
    let has_no_ups = base.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let seen = if path.is_absolute() || base.as_os_str().is_empty() {
        path.to_owned()
    } else if let (true, true) = (has_no_ups, base.is_relative()) {
        match path.strip_prefix(base) {
            Ok(inner) => inner.to_owned(),
            Err(_) => {
                let levels = base.components().filter(|part| matches!(part, Component::Normal(_))).count();
                PathBuf::from("../".repeat(levels)).join(path)
            }
        }
    } else {
        fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
    };
    let text = seen.display().to_string();
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_seen_from_the_page() {
        let seen = |path: &str, base: &str| address(Path::new(path), Path::new(base));
        assert_eq!(seen("a/x 1.png", ""), "a/x%201.png");
        assert_eq!(seen("a/x.png", "out/page"), "../../a/x.png");
        assert_eq!(seen("out/a/x.png", "out"), "a/x.png");
        assert_eq!(seen("/tmp/x.png", "out"), "/tmp/x.png");
    }
}
